"""What a morning of the daily cycle costs, and what its folder holds: python -m benchmarks.morning.

An online pool of two years at one station with five leads. Thirty mornings are made up for in one
run; then the command of each of the next days runs in a process of its own, as cron starts it. The
shortest time counts, as others may use the machine. A morning takes some tenths of a second more
where packages are installed that xarray loads if they are there, such as pint for ``make bench``.
The modules of xrecal are compiled to bytecode before, as an installer does.
"""

import compileall
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

import xrecal
from benchmarks.record import FOLDER, store

RESULTS = FOLDER / "morning.csv"
CASES, MEMBERS, LEADS = 730, 20, 5
BEFORE, MORNINGS = 30, 5
"""Mornings made up for, as many as models are kept, and those that are timed."""

BUDGET = 4.0
"""Seconds of a morning."""

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
PARTS = ("forecasts", "models", "scores.nc", "monitor.nc", "status.json", "status.txt")


def main(quick=False):
    """Print and store seconds of a morning and bytes of the folder."""
    cases, before, mornings = (60, 2, 1) if quick else (CASES, BEFORE, MORNINGS)
    compileall.compile_dir(Path(xrecal.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        days, truth = stream(cases + before + mornings + LEADS)
        model = fitted(days, truth, cases)
        model.save(folder / "model.nc")
        last = cases + before - 1
        hand_over(folder, days, truth, last, before)
        cycle = xrecal.Cycle(folder / "out", folder / "model.nc", quantiles=LEVELS)
        start = time.perf_counter()
        cycle.run(folder / "days.nc", folder / "truth.nc", days["init"].to_numpy()[last])
        each = (time.perf_counter() - start) / before
        seconds, of_processor = [], []
        for day in range(last + 1, last + 1 + mornings):
            hand_over(folder, days, truth, day, LEADS + 1)
            before_it = processor_seconds()
            seconds.append(morning(folder, days["init"].to_numpy()[day]))
            of_processor.append(processor_seconds() - before_it)
        sizes = {part: size_of(folder / "out" / part) for part in PARTS}
        counts = {part: sum(1 for _ in (folder / "out" / part).iterdir()) for part in PARTS[:2]}
    rows = [(f"morning, shortest of {mornings}", "seconds", min(seconds))]
    rows += [("the same, of a processor", "seconds", min(of_processor))]
    rows += [("morning made up for with others", "seconds", each)]
    rows += [(f"{part}, one of {n}", "kB", sizes.pop(part) / n / 1e3) for part, n in counts.items()]
    rows += [(part, "kB", size / 1e3) for part, size in sizes.items()]
    for row, unit, value in rows:
        print(f"{row:<36}{value:10.3g} {unit}")
    if not quick:
        store(RESULTS, ("row", "unit", "value"), [(*r, f"{value:.3g}") for *r, value in rows])
    holds = "holds" if rows[0][2] <= BUDGET else "MISSED"
    print(f"budget {holds}: a morning {rows[0][2]:.1f} s (<= {BUDGET:g})")


def stream(n):
    """Forecasts (init, lead, member) of a station over days, and its observations."""
    rng = np.random.default_rng(1)
    dates = np.datetime64("2020-01-01", "ns") + np.arange(n + LEADS + 1) * np.timedelta64(1, "D")
    truth = 10 + 5 * rng.normal(size=dates.size)
    leads = np.arange(1, LEADS + 1)
    centre = truth[np.arange(n)[:, np.newaxis] + leads] + 1
    centre = centre + (1 + 0.3 * leads) * rng.normal(size=centre.shape)
    members = centre[..., np.newaxis] + 1.2 * rng.normal(size=(*centre.shape, MEMBERS))
    coords = {"init": dates[:n], "lead": ("lead", 24 * leads, {"units": "hours"})}
    forecasts = xr.DataArray(members, coords, ("init", "lead", "member"), "t", {"units": "degC"})
    return forecasts, xr.DataArray(truth, {"time": dates}, ("time",), "t", {"units": "degC"})


def fitted(days, truth, cases):
    """A pool that knows what had verified at the first morning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that two months of a quick run tell no season
        known = truth[: cases - LEADS]
        return days[: cases - LEADS].recal.fit(known, xrecal.OnlinePool(refit=10 * cases))


def hand_over(folder, days, truth, last, n):
    """Write the forecasts of the last days, and all observations of theirs until then."""
    days[last + 1 - n : last + 1].to_dataset().to_netcdf(folder / "days.nc")
    truth[: last + 1].to_dataset().to_netcdf(folder / "truth.nc")


def morning(folder, now):
    """Seconds of the command."""
    levels = ",".join(map(str, LEVELS))
    command = [
        sys.executable, "-m", "xrecal_command", "cycle", folder / "model.nc", "--forecasts",
        folder / "days.nc", "--observations", folder / "truth.nc", "--output", folder / "out",
        "--quantiles", levels, "--now", str(now), "--quiet", "--json",
    ]  # fmt: skip
    start = time.perf_counter()
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 10):
        raise RuntimeError(done.stderr)
    return time.perf_counter() - start


def processor_seconds():
    """Seconds of a processor that commands have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size_of(path):
    """Bytes of a file, or of all files of a folder; 0 where there is nothing."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(one.stat().st_size for one in files if one.is_file())


if __name__ == "__main__":
    main()
