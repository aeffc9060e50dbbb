"""Names that the examples in docstrings share, besides those they make themselves."""

import doctest
import gc
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

# What xrecal compiles serves all processes that run tests, and the next run. Libraries that tests
# compare with keep theirs in files that two processes at the same time can spoil.
CACHE = Path(__file__).parent / ".pytest_cache"
os.environ.setdefault("XRECAL_CACHE_DIR", str(CACHE / "xrecal"))
os.environ["NUMBA_CACHE_DIR"] = str(CACHE / os.environ.get("PYTEST_XDIST_WORKER", "numba"))

# Docstrings of doors show the examples of the functions behind them, which run there.
collect_ignore_glob = ["xrecal/accessor/*.py"]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile in all processes of a run at once, from both ends, until all is there.

    No test starts before all processes have collected, so none compiles what another does. Garbage
    is looked for rarely, also in the process that gathers the reports: it took half a minute.
    """
    gc.set_threshold(50_000, 20, 50)
    process = getattr(session.config, "workerinput", None)
    if process is not None:
        from xrecal.cli.warm import every_kernel

        for kernel in every_kernel()[:: -1 if process["workerid"] == "gw1" else 1]:
            kernel.compile(None)


def pytest_collection_finish() -> None:
    """Look for no garbage in what was collected."""
    gc.freeze()


class _Finder(doctest.DocTestFinder):
    """Finds the examples of functions that are decorated where they are defined, too."""

    def _from_module(self, module: Any, object: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(object))  # type: ignore[misc]


doctest.DocTestFinder = _Finder  # type: ignore[misc]


@pytest.fixture(scope="session")
def example_names() -> dict[str, Any]:
    """Small data as in the docstring of xrecal, and the modules that examples use."""
    import xrecal

    data = xrecal.datasets.lorenz96(n_inits=60, n_members=8, n_locations=4, lead_days=[5])
    data = data.isel(lead=0, drop=True)
    hindcast, forecast = data.forecast[:50], data.forecast[50:]
    return {
        "np": np,
        "xr": xr,
        "xrecal": xrecal,
        "hindcast": hindcast,
        "forecast": forecast,
        "observations": data.observation,
        "model": hindcast.recal.fit(data.observation),
    }


@pytest.fixture(autouse=True)
def _example_names(request: pytest.FixtureRequest) -> Iterator[None]:
    """The names in examples, whose figures are closed; nothing, and no work, in other tests."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    names = request.getfixturevalue("doctest_namespace")
    names.update(request.getfixturevalue("example_names"))
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
