"""Seconds of a fit and of the distributions of all test cases: CKME against PIT recalibration."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.paper.data import load_split, set_names
from benchmarks.paper.forecasts import CACHE, Forecasted, Forecasts
from benchmarks.paper.models import forecast
from benchmarks.paper.recalibration import recalibrate, settings
from benchmarks.paper.tables import RESULTS, add_row, keys_of

FILE = "clock.csv"
COLUMNS = (
    *("set", "model", "method", "n_calibration", "n_test", "solver"),
    *("seconds_fit", "seconds_apply"),
)
METHODS = ("ckme", "default", "pit")
FEW = 40


def run(
    sets: Iterable[str] | None = None,
    models: Iterable[str] = ("GDN", "MDN", "DRF"),
    folder: Path = RESULTS,
    cache: Path = CACHE,
) -> None:
    """Add the rows that are not there yet, each from one call after one that compiles."""
    path = folder / FILE
    done = keys_of(path, ("set", "model", "method"))
    for name in set_names() if sets is None else sets:
        split = load_split(name, 0)
        for model in models:
            base = forecast(name, model, 0, split, calibrated=False, cache=cache)
            few = Forecasted(*(_head(part) for part in base))
            for method in METHODS:
                if (name, model, method) in done:
                    continue
                y = split.calibration.y
                recalibrate(method, few, y[: few.calibration.n])
                found = recalibrate(method, base, y)
                row = {"set": name, "model": model, "method": method}
                row |= {"n_calibration": y.size, "n_test": split.test.y.size}
                row |= {"solver": getattr(settings(method, y.size), "solver", "")}
                row |= {"seconds_fit": found.seconds_fit, "seconds_apply": found.seconds_apply}
                add_row(path, row, COLUMNS)
                print(f"{name} {model} {method}: {found.seconds_fit:.3g} s", flush=True)


def _head(forecasts: Forecasts) -> Forecasts:
    """The first cases, enough to compile for."""
    loc, scale, weights = forecasts
    if scale is None:
        return Forecasts(loc, None, weights[:FEW])
    return Forecasts(loc[:FEW], scale[:FEW], weights[:FEW])
