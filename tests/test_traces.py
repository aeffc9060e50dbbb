"""How many files of the package a call runs through: few, so that it can be read."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import xrecal

PACKAGE = Path(xrecal.__path__[0])

BUDGETS = {
    "fit, of observations": 28,
    "apply, of observations": 24,
    "fit": 32,
    "apply": 31,
    "crps": 14,
    "skce_test": 22,
}
"""Files of which a call may run any function. A change may lower these, never raise them.

By default a fit chooses among observations and errors around three centres, and forecasts have
tails and give way to novelty: that is in files which members that are past observations, the
method of the paper, do without."""


def files_run(call: Callable[[], object]) -> list[str]:
    """Files of the package in which any Python function runs during a call.

    Compiled functions do not count.
    """
    names = set()

    def note(frame, event, _):
        if event == "call":
            names.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    paths = (Path(name) for name in names)
    return sorted(str(p.relative_to(PACKAGE)) for p in paths if p.is_relative_to(PACKAGE))


@pytest.fixture(scope="module")
def calls() -> dict[str, Callable[[], object]]:
    """The calls of the docstring of the package, on forecasts in memory."""
    data = xrecal.datasets.lorenz96(n_inits=60, n_members=8, n_locations=4, lead_days=[5])
    data = data.isel(lead=0, drop=True)
    observations = data.observation
    hindcast, forecast = data.forecast[:50], data.forecast[50:]
    model, paper = hindcast.recal.fit(observations), xrecal.CKME(support="observations")
    of_observations = hindcast.recal.fit(observations, paper)
    return {
        "fit, of observations": lambda: hindcast.recal.fit(observations, paper),
        "apply, of observations": lambda: forecast.recal.apply(of_observations),
        "fit": lambda: hindcast.recal.fit(observations),
        "apply": lambda: forecast.recal.apply(model),
        "crps": lambda: forecast.recal.crps(observations),
        "skce_test": lambda: forecast.recal.skce_test(observations),
    }


@pytest.mark.parametrize("name", BUDGETS)
def test_a_call_runs_through_few_files(calls, name):
    calls[name]()  # imports and compiles
    files = files_run(calls[name])
    listed = "\n".join(files)
    assert len(files) <= BUDGETS[name], f"{name} runs through {len(files)} files:\n{listed}"
