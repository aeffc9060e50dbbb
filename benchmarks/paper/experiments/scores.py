"""CRPS, tests of calibration and intervals of every set, model, split and method."""

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import xarray as xr

from benchmarks.paper.data import Split, load_split, n_splits, set_names
from benchmarks.paper.forecasts import CACHE, labelled, observed
from benchmarks.paper.models import forecast
from benchmarks.paper.recalibration import ALPHA, CORE, Recalibrated, recalibrate
from benchmarks.paper.tables import RESULTS, add_row, keys_of
from xrecal.arrays.calibration.dependence import distance_correlation

KEYS = ("set", "model", "split", "method")
COLUMNS = (
    *KEYS,
    *("n_train", "n_calibration", "n_test", "crps", "skce", "skce_p", "pit_p"),
    *("coverage", "width", "dcor", "ridge", "bandwidth", "support", "solver"),
    *("seconds_fit", "seconds_apply", "seconds_evidence"),
)
MEMBERS_TESTED = 300
"""Quantiles that stand for forecasts with members of their own in the SKCE test."""
CASES_TESTED = 1500
"""First cases of the test, whose order is random, that the SKCE test and dCor take at most."""
FILE = "scores.csv"


def evidence(
    found: Recalibrated, y: np.ndarray, *, interval_only: bool = False
) -> dict[str, float]:
    """Score, p-values and intervals of a forecast with observations y."""
    targets, forecast = observed(y), found.forecast
    ends = only(forecast.recal.quantile([ALPHA / 2, 1 - ALPHA / 2])).transpose("case", "quantile")
    low, high = ends.values.T
    scores = {
        "coverage": float(((y >= low) & (y <= high)).mean()),
        "width": float((high - low).mean()),
    }
    if interval_only:
        return scores
    some = {"case": slice(CASES_TESTED)}
    tested = forecast.isel(some)
    if not found.shared:
        levels = (np.arange(MEMBERS_TESTED) + 0.5) / MEMBERS_TESTED
        tested = only(tested.recal.quantile(levels)).rename("y")
    skce = tested.recal.skce_test(targets.isel(some), "case")
    pit = only(forecast.recal.pit(targets))
    return scores | {
        "crps": float(only(forecast.recal.crps(targets)).mean()),
        "skce": float(skce["skce"]),
        "skce_p": float(skce["p_value"]),
        "pit_p": float(forecast.recal.pit_test(targets, "case")["p_value"]),
        "dcor": dependence(ends.values[:CASES_TESTED], pit.values[:CASES_TESTED]),
    }


def dependence(ends: np.ndarray, pit: np.ndarray) -> float:
    """Bias-corrected squared distance correlation of intervals (n, 2) and PIT (n,)."""
    return float(distance_correlation(ends, pit[:, np.newaxis]))


def only(found: xr.DataArray | xr.Dataset) -> xr.DataArray:
    """The one variable there is."""
    return found["y"] if isinstance(found, xr.Dataset) else found


def row_of(
    set_name: str, model: str, number: int, method: str, split: Split, cache: Path = CACHE
) -> dict[str, object]:
    """One row: recalibrate and test."""
    both = method == "none_tc"
    forecasted = forecast(set_name, model, number, split, calibrated=both, cache=cache)
    found = recalibrate(method, forecasted, split.calibration.y)
    start = time.perf_counter()
    scores = evidence(found, split.test.y, interval_only=method == "conformal")
    if method == "conformal":  # the interval belongs to the base model's distribution
        base = only(labelled(forecasted.test).recal.pit(observed(split.test.y))).values
        ends = only(found.forecast.recal.quantile([ALPHA / 2, 1 - ALPHA / 2]))
        ends = ends.transpose("case", "quantile").values
        scores["dcor"] = dependence(ends[:CASES_TESTED], base[:CASES_TESTED])
    sizes = zip(("n_train", "n_calibration", "n_test"), split, strict=True)
    return {
        **dict(zip(KEYS, (set_name, model, number, method), strict=True)),
        **{name: part.y.size for name, part in sizes},
        **scores,
        **found.chosen,
        "seconds_fit": found.seconds_fit,
        "seconds_apply": found.seconds_apply,
        "seconds_evidence": time.perf_counter() - start,
    }


def run(
    sets: Iterable[str] | None = None,
    models: Iterable[str] = ("GDN", "MDN", "BNN", "DRF"),
    methods: Iterable[str] = CORE,
    splits: int | None = None,
    folder: Path = RESULTS,
    cache: Path = CACHE,
) -> int:
    """Add the rows that are not there yet; their number."""
    path, added = folder / FILE, 0
    done = keys_of(path, KEYS)
    for set_name in set_names() if sets is None else sets:
        for number in range(min(n_splits(set_name), splits or n_splits(set_name))):
            split = load_split(set_name, number)
            for model in models:
                for method in methods:
                    if (set_name, model, str(number), method) in done:
                        continue
                    row = row_of(set_name, model, number, method, split, cache)
                    add_row(path, row, COLUMNS)
                    added += 1
                    crps = row.get("crps", np.nan)
                    print(f"{set_name} {model} {number} {method}: CRPS {crps:.4g}", flush=True)
    return added
