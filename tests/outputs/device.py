"""Arrays of Dask and of a device."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import xarray as xr

import xrecal

from .cases import Cases, Output, temperature
from .methods import DEVICE_METHODS
from .models import fitted, products


def lazily() -> Output:
    """Dask arrays, in chunks of places and of cases."""
    cases = temperature()
    hindcast, observed = (a.chunk(station=2) for a in (cases.hindcast, cases.observed))
    new, seen = (a.chunk(station=1, time=4) for a in (cases.forecast, cases.verified))
    for name, method in (
        ("ckme", xrecal.CKME(support="auto")),
        ("emos", xrecal.EMOS(condition_on="season")),
    ):
        model = hindcast.recal.fit(observed, method)
        yield f"{name}.model", model.to_dataset().compute(scheduler="sync")
        model = model.compute()
        for output, lazy in products(model, cases._replace(forecast=new, verified=seen)):
            lazy = lazy.compute(scheduler="sync") if hasattr(lazy, "compute") else lazy
            yield f"{name}.{output}", lazy


@contextmanager
def stand_in_device() -> Iterator[Any]:
    """A module like CuPy, under its name."""
    from xarray.namedarray import pycompat

    from tests.device import stand_in

    loaded = [m for n, m in sys.modules.items() if n.startswith("xrecal.arrays")]
    tables = [m.DISTANCES for m in loaded if hasattr(m, "DISTANCES")]
    assert tables, "no table DISTANCES of loops for devices among the modules of xrecal.arrays"
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(sys.modules, {"cupy": stand_in.module}))
        stack.enter_context(mock.patch.object(pycompat, "_cached_duck_array_modules", {}))
        for table in tables:  # without loops of its own it compares by array expressions
            stack.enter_context(mock.patch.dict(table, cupy="tests.device.naive"))
        yield stand_in.module


def on_device() -> Output:
    """Arrays of another library, here held by NumPy inside."""
    cases = temperature()
    with stand_in_device() as cupy:

        def moved(data: xr.DataArray) -> xr.DataArray:
            return data.copy(data=cupy.asarray(data.to_numpy()))

        here = Cases(*map(moved, cases))
        for name, method in DEVICE_METHODS.items():
            for output, found in fitted(here, method):
                yield f"{name}.{output}", on_host(found)


def on_host(found: Any) -> Any:
    return found.as_numpy() if hasattr(found, "as_numpy") else found
