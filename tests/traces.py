"""Report of the files of the package that a call runs through: the fewer, the easier to read.

``python -m tests.traces``, a part of ``make lint``.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import xrecal

PACKAGE = Path(xrecal.__path__[0])


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


def main() -> None:
    """Print the number of files of each call."""
    for name, call in calls().items():
        call()  # imports and compiles
        print(f"{name}: {len(files_run(call))} files")


if __name__ == "__main__":
    main()
