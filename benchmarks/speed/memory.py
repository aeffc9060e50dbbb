"""Budget: peak memory of quantile forecasts in chunks, in a fresh process.

``python -m benchmarks.speed.memory METHOD CASES FORECASTS MEMBERS LOCATIONS CHUNKS`` prints bytes
at the peak, and those of input, output and stated workspace of a chunk.
"""

import sys
from collections.abc import Iterator

import dask
import dask.array
import numpy as np
import xarray as xr

import xrecal

from .data import make_hindcast
from .forecasts import LEVELS
from .processes import PeakMemory, fresh_process
from .tables import Line, megabytes

METHODS = {
    "CKME": xrecal.CKME(ridge=0.01, support="observations"),
    "CKME errors": xrecal.CKME(ridge=0.01, support="errors"),
    "EMOS": xrecal.EMOS(),
}
"""The ridge is given, as the fit is not what is measured."""


def measure(label: str, n: int, n_new: int, m: int, locations: int, n_chunks: int) -> None:
    small = make_hindcast(60, m, 2)
    hindcast, observations = make_hindcast(n, m, 4)
    repeated = np.arange(locations * n_chunks) % 4
    method = METHODS[label]
    with dask.config.set(scheduler="threads", num_workers=1):
        small[0].recal.fit(small[1], method).quantile(small[0].chunk(location=1), LEVELS).compute()
        model = hindcast[:, repeated].recal.fit(observations[:, repeated], method)
        forecast = lazy_forecast(n_new, m, locations, n_chunks)
        with PeakMemory() as peak:
            model.quantile(forecast, LEVELS).compute()
    (plan,) = model.plan(forecast, values=LEVELS.size, probe=False).variables
    print(peak.bytes, plan.input_bytes, plan.output_bytes, plan.workspace_bytes)


def lazy_forecast(n: int, m: int, locations: int, n_chunks: int) -> xr.DataArray:
    """Forecasts that are drawn inside the task, as if they were read from disk there."""
    shape, chunks = (n, locations * n_chunks, m), (n, locations, m)
    values = dask.array.random.default_rng(0).normal(size=shape, chunks=chunks)
    days = np.datetime64("2010-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    return xr.DataArray(
        values.astype(np.float32),
        dims=("time", "location", "member"),
        coords={"time": days},
        attrs={"units": "K"},
    )


def budgets(quick: bool) -> Iterator[Line]:
    sizes = (30, 40, 5, 2, 2) if quick else (300, 1500, 50, 60, 3)
    for label in list(METHODS)[:1] if quick else METHODS:
        peak, given, made, workspace = fresh_process("-m", "benchmarks.speed.memory", label, *sizes)
        absolute = (
            f"{megabytes(peak)}; chunk {megabytes(given)} in, {megabytes(made)} out, workspace "
            f"{megabytes(workspace)}"
        )
        allowed = 4 * (given + made) + workspace
        work = f"peak of chunked quantiles / (4 x chunk + workspace), {label}"
        yield Line(work, peak / allowed, "x", absolute, 1)


if __name__ == "__main__":
    label, *numbers = sys.argv[1:]
    measure(label, *map(int, numbers))
