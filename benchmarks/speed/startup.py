"""Budgets: what a fresh process pays before it works, and a day at one station."""

import compileall
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from .processes import ROOT, fresh_process
from .tables import Line, seconds

IMPORT = """
import time
start = time.perf_counter()
import xarray
middle = time.perf_counter()
import xrecal
print(middle - start, time.perf_counter() - middle)
"""

DATA = """
import sys, time
import numpy as np
import xarray as xr
import xrecal
def cases(n, m, leads):
    rng = np.random.default_rng(0)
    days = np.datetime64("2018-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    mean = np.sin(2 * np.pi * np.arange(n) / 365.25)[:, None, None] + np.zeros((n, leads, 1))
    spread = rng.gamma(2.0, 0.5, (n, leads, 1))
    members = mean + spread * rng.normal(size=(n, leads, m))
    coords = {"time": days, "lead": np.arange(leads)}
    forecasts = xr.DataArray(members.astype("f4"), coords, ("time", "lead", "member"), "t2m")
    observed = mean[..., 0] + rng.normal(size=(n, leads))
    return forecasts, xr.DataArray(observed.astype("f4"), coords, ("time", "lead"), "t2m")
"""

FIT = (
    DATA
    + """
n, m = map(int, sys.argv[2:])
hindcast, observations = (part.isel(lead=0, drop=True) for part in cases(n, m, 1))
for _ in range(2):
    start = time.perf_counter()
    model = hindcast.recal.fit(observations, eval("xrecal." + sys.argv[1]))
    middle = time.perf_counter()
    model.quantile(hindcast[:10], [0.1, 0.5, 0.9])
    print(middle - start, time.perf_counter() - middle)
"""
)

STORE = (
    DATA
    + """
method, call, folder, n, m, leads = *sys.argv[1:4], *map(int, sys.argv[4:])
forecasts, observations = cases(n + 1, m, leads)
model = forecasts[:-1].recal.fit(observations[:-1], eval("xrecal." + call))
model.save(f"{folder}/{method}.nc", overwrite=True)
forecasts[-1:].to_netcdf(f"{folder}/forecast.nc")
observations[-1:].to_netcdf(f"{folder}/observation.nc")
"""
)

DAY = """
import sys
import xarray as xr
import xrecal
method, folder, update = sys.argv[1:]
model = xrecal.open_recalibrator(f"{folder}/{method}.nc")
forecast = xr.open_dataarray(f"{folder}/forecast.nc")
if update == "update":
    model = model.update(forecast, xr.open_dataarray(f"{folder}/observation.nc"))
model.quantile(forecast, [0.1, 0.5, 0.9]).load()
"""

COMMAND = """
import io, sys
from xrecal.cli import main
sys.stdout = io.StringIO()
method, folder = sys.argv[1:]
sys.argv = ["xrecal", "apply", f"{folder}/{method}.nc", f"{folder}/forecast.nc", f"{folder}/out.nc"]
sys.argv += ["--quantiles", "0.1,0.5,0.9", "--overwrite", "--quiet"]
main()
"""

CALLS = {
    "CKME": "CKME(support='observations')",
    "EMOS": "EMOS()",
    "LinearPool": "LinearPool()",
    "CKME, support chosen": "CKME()",
}
"""Settings of each method, as they are typed."""

ALLOWED = {"CKME": (1.0, 8.0), "EMOS": (1.0, 8.0), "LinearPool": (1.0, 20.0)}
"""Seconds that the first fit may take over the second, with compiled code on disk and without."""


def budgets(quick: bool) -> Iterator[Line]:
    # As pip leaves what it installs; a checkout has no byte code where Python may write none.
    compileall.compile_dir(ROOT / "xrecal", quiet=1)
    imports = 1 if quick else 7
    base, ours = map(min, zip(*(fresh_process("-c", IMPORT) for _ in range(imports)), strict=True))
    absolute = f"after {seconds(base)} for xarray; shortest of {imports}"
    yield Line("import xrecal, over import xarray", ours, "s", absolute, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        yield from _first_calls(quick, Path(folder))
        yield from _days(quick, Path(folder))


def _first_calls(quick: bool, folder: Path) -> Iterator[Line]:
    """First fit and quantiles of each method, with compiled code on disk and without."""
    n, m, repeats = (30, 4, 1) if quick else (200, 20, 3)
    for method, call in CALLS.items():
        for kept, limit in zip((True, False), ALLOWED.get(method, (None, None)), strict=True):
            if quick and not kept:
                continue
            runs = []
            for i in range(repeats if kept else 1):
                files = {} if kept else {"XRECAL_CACHE_DIR": str(folder / f"{method}{i}")}
                runs.append(fresh_process("-c", FIT, call, n, m, **files))
            fit, quantiles, again, quantiles_again = map(min, zip(*runs, strict=True))
            code = "on disk" if kept else "to compile"
            absolute = f"{seconds(fit)} v {seconds(again)}, n={n} m={m}"
            yield Line(
                f"first {method} fit, code {code}, over the second",
                fit - again,
                "s",
                absolute,
                limit,
            )
            absolute = f"{seconds(quantiles)} v {seconds(quantiles_again)}"
            yield Line(
                "  first quantiles, over the second", quantiles - quantiles_again, "s", absolute
            )


def _days(quick: bool, folder: Path) -> Iterator[Line]:
    """Whole processes that open a stored model and issue quantiles at all leads."""
    n, m, leads, repeats = (60, 4, 2, 1) if quick else (1500, 50, 10, 3)
    absolute = f"n={n} m={m}, {leads} leads; shortest of {repeats} processes"
    for method in ("CKME", "LinearPool"):
        fresh_process("-c", STORE, method, CALLS[method], folder, n, m, leads)
        for name, code, *more in (
            ("open, update, issue", DAY, "update"),
            ("open, issue", DAY, "as it is"),
            ("xrecal apply", COMMAND),
        ):
            if "update" in more and method == "LinearPool":
                continue  # pools have no update
            taken = []
            for _ in range(repeats):
                start = perf_counter()
                fresh_process("-c", code, method, folder, *more)
                taken.append(perf_counter() - start)
            yield Line(f"a day, {method}: {name}", min(taken), "s", absolute, 2.0)
