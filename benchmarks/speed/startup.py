"""Budgets: import time and first fit, in fresh processes."""

from collections.abc import Iterator

from .processes import fresh_process
from .tables import Line, seconds

IMPORT = """
import time
start = time.perf_counter()
import xarray
middle = time.perf_counter()
import xrecal
print(middle - start, time.perf_counter() - middle)
"""

FIT = """
import sys, time
import numpy as np
import xarray as xr
import xrecal
n, m = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
mean = np.sin(2 * np.pi * np.arange(n) / 365.25)[:, np.newaxis]
members = mean + rng.gamma(2.0, 0.5, (n, 1)) * rng.normal(size=(n, m))
hindcast = xr.DataArray(members.astype("float32"), dims=("time", "member"))
observations = xr.DataArray(mean[:, 0] + rng.normal(size=n), dims="time").astype("float32")
for _ in range(2):
    start = time.perf_counter()
    model = hindcast.recal.fit(observations)
    middle = time.perf_counter()
    model.quantile(hindcast, [0.1, 0.5, 0.9])
    print(middle - start, time.perf_counter() - middle)
"""


def budgets(quick: bool) -> Iterator[Line]:
    n, m, imports, fits = (30, 4, 1, 1) if quick else (200, 20, 7, 3)
    base, ours = map(min, zip(*(fresh_process("-c", IMPORT) for _ in range(imports)), strict=True))
    absolute = f"after {seconds(base)} for xarray; shortest of {imports}"
    yield Line("import xrecal, over import xarray", ours, "s", absolute, 0.5)
    runs = [fresh_process("-c", FIT, n, m) for _ in range(fits)]
    fit, quantiles, again, quantiles_again = map(min, zip(*runs, strict=True))
    absolute = f"{seconds(fit)} v {seconds(again)}, n={n} m={m}; shortest of {fits}"
    yield Line("first fit in a fresh process, over the second", fit - again, "s", absolute, 10)
    absolute = f"{seconds(quantiles)} v {seconds(quantiles_again)}"
    yield Line("  first quantiles, over the second", quantiles - quantiles_again, "s", absolute)
