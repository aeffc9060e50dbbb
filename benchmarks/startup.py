"""Import time and first fit, in fresh processes: python -m benchmarks.startup."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT_BUDGET, FIRST_FIT_BUDGET = 0.5, 10.0  # seconds

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


def fresh_process(code, *arguments):
    """Numbers that a new Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def main(quick=False):
    n, m, imports, fits = (30, 4, 1, 1) if quick else (200, 20, 7, 3)
    base, ours = map(min, zip(*(fresh_process(IMPORT) for _ in range(imports)), strict=True))
    runs = [fresh_process(FIT, n, m) for _ in range(fits)]
    fit, quantiles, second_fit, second_quantiles = map(min, zip(*runs, strict=True))
    more = fit - second_fit
    print(f"Fresh processes; fit of n = {n}, m = {m}; shortest of {imports} imports, {fits} fits")
    for name, value in {
        "import xarray": base,
        "import xrecal after it": ours,
        "first fit": fit,
        "first quantiles": quantiles,
        "second fit": second_fit,
        "second quantiles": second_quantiles,
    }.items():
        print(f"{name:34}{value:10.3f} s")
    holds = ours <= IMPORT_BUDGET and more <= FIRST_FIT_BUDGET
    print(
        f"budget {'holds' if holds else 'MISSED'}: import {ours:.2f} s more (<= {IMPORT_BUDGET}), "
        f"first fit {more:.1f} s more than the second (<= {FIRST_FIT_BUDGET:.0f})"
    )


if __name__ == "__main__":
    main()
