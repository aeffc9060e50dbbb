"""Fit all methods on one set, and score what they predict."""

import time
import warnings
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from xrecal.arrays import find_bounds

from .sets import Set

BASELINES = ("raw", "climatology", "EMOS", "EMOS + season", "IDR")
JUDGED = ("CKME", "LinearPool")
LABELS = (*BASELINES, *JUDGED)
LEVELS = (np.arange(200) + 0.5) / 200
"""Of the quantiles that are scored: their CRPS is that of the distribution to four digits."""

CASES = ("time", "init")
FEWEST = 10  # cases that a fit learns from
TESTED = 500  # of the cases of a place at most by the SKCE, which compares all pairs
BLOCK = 20  # successive cases that share a sign in its wild bootstrap ...
BLOCKS = 10  # ... of which it needs so many


class Predicted(NamedTuple):
    """What a method predicts on one set."""

    quantiles: xr.DataArray
    seconds: float
    """Of one fit"""
    weights: str = ""
    """Of the components of a pool"""


def methods(given: tuple[str, ...]) -> dict[str, xrecal.methods.base.Method]:
    """The methods that are compared, by label, conditioned on the covariates named."""
    found = {
        "climatology": xrecal.Climatology(),
        "EMOS": xrecal.EMOS(),
        "EMOS + season": xrecal.EMOS(condition_on=given or None),
        "IDR": xrecal.IDR(),
        "CKME": xrecal.CKME(condition_on=given or None),
        "LinearPool": xrecal.LinearPool(condition_on=None if given == ("season",) else given),
    }
    if not given:
        del found["EMOS + season"]
    return found


def cases_of(one: Set) -> str:
    """The dimension of the cases."""
    return next(d for d in one.hindcast.dims if d in CASES)


def predict(one: Set, method, q) -> Predicted:
    """Quantiles of the cases of one set, by fits that have not seen them."""
    given = {name: v for name, v in (one.covariates or {}).items() if name in method.covariates}
    known = {"covariates": given} if given else {}
    dim, start = cases_of(one), time.perf_counter()
    if one.leave_out:
        known |= {"dim": dim, "min_samples": FEWEST}
        splits = {"by": "block", "blocks": one.hindcast.sizes[dim]}
    elif one.pool is not None:
        known |= {"pool": one.pool}
        splits = {"by": "year"}
    else:
        model = one.hindcast.recal.fit(one.observations, method, dim=dim, **known)
        seconds = time.perf_counter() - start
        quantiles = model.quantile(one.forecast, q, **known)
        return Predicted(variable_of(quantiles), seconds, weights_of(model))
    quantiles = one.hindcast.recal.cross_validate(one.observations, method, q=q, **splits, **known)
    if not isinstance(method, xrecal.LinearPool):
        return Predicted(quantiles, np.nan)
    start = time.perf_counter()
    model = one.hindcast.isel({dim: slice(-1)}).recal.fit(one.observations, method, **known)
    return Predicted(quantiles, time.perf_counter() - start, weights_of(model))


def variable_of(found):
    """The only variable of what is found of forecasts that take several arrays."""
    return found if isinstance(found, xr.DataArray) else next(iter(found.values()))


def weights_of(model) -> str:
    """Weights of the components of a pool, on average over places."""
    weights = model.state.get("pool_weight")
    if weights is None:
        return ""
    mean = weights.mean([d for d in weights.dims if d != "component"])
    pairs = zip(mean["component"].values, mean.values, strict=True)
    return " ".join(f"{name}:{weight:.2f}" for name, weight in pairs if weight >= 0.005)


def means(scores: dict[str, xr.DataArray]) -> tuple[dict[str, float], int]:
    """Mean score of each method over the cases that all of them have, and how many these are."""
    every = xr.concat(list(scores.values()), "method", coords="minimal", compat="override")
    common = every.notnull().all("method")
    over = [d for d in every.dims if d != "method"]
    found = every.where(common).mean(over, dtype=np.float64)
    return dict(zip(scores, found.values.tolist(), strict=True)), int(common.sum())


def best(found: dict[str, float]) -> float:
    """The smallest score of a baseline."""
    return min(found[name] for name in BASELINES if name in found)


def calibration(quantiles: xr.DataArray, observed: xr.DataArray, dim: str) -> tuple[float, float]:
    """P-values of a flat PIT and of the SKCE; over several places the medians.

    The first takes cases as independent, the second those that are a block apart.
    """
    pit = quantiles.recal.pit_test(observed, dim)["p_value"]
    step = -(-quantiles.sizes[dim] // TESTED)
    thinned = quantiles.isel({dim: slice(None, None, step)})
    block = min(BLOCK, max(1, thinned.sizes[dim] // BLOCKS))
    skce = thinned.recal.skce_test(observed, dim, test="wild", block_length=block)["p_value"]
    return float(pit.median()), float(skce.median())


def lower_bound(observed: xr.DataArray, dim: str) -> xr.DataArray | None:
    """Lower bound at each place, NaN where there is none; None without any."""
    places = observed.transpose(..., dim)
    rows = places.values.reshape(-1, places.sizes[dim])
    bound = find_bounds(rows)[0].reshape(places.shape[:-1])
    found = places.isel({dim: 0}, drop=True).copy(data=bound)
    found = found.where(np.isfinite(found))
    return found if found.notnull().any() else None


def bound_scores(found: dict[str, Predicted], one: Set) -> dict[str, float]:
    """Brier score of the probability of the bound over that of EMOS, with season where it has it.

    NaN where no bound is found.
    """
    bound = lower_bound(one.observations, cases_of(one))
    if bound is None:
        return dict.fromkeys(JUDGED, np.nan)
    reference = "EMOS + season" if "EMOS + season" in found else "EMOS"
    scores = {
        name: found[name].quantiles.recal.brier_score(one.observations, bound)
        for name in (*JUDGED, reference)
    }
    mean, _ = means(scores)
    return {name: mean[name] / mean[reference] for name in JUDGED}


def interval_scores(found: dict[str, Predicted], one: Set) -> dict[str, float]:
    """WIS over that of the best baseline, on the scale on which quantiles were issued.

    NaN where none were.
    """
    if one.levels is None:
        return dict.fromkeys(JUDGED, np.nan)
    given = {name: part.quantiles for name, part in found.items()} | {"raw": one.forecast}
    observed = np.expm1(one.observations)
    levels = list(one.levels)
    scores = {name: np.expm1(q).recal.wis(observed, levels=levels) for name, q in given.items()}
    mean, _ = means(scores)
    return {name: mean[name] / best(mean) for name in JUDGED}


def score_set(one: Set, source: str) -> dict[str, str | float]:
    """A row of the table."""
    warnings.filterwarnings("ignore", "season learned from")  # ten months at Toulouse
    warnings.filterwarnings("ignore", ".* neighbour within a week")  # judged on later cases
    q, dim = np.union1d(LEVELS, one.levels or ()), cases_of(one)
    predicted = {name: predict(one, m, q) for name, m in methods(one.condition_on).items()}
    scores = {"raw": variable_of(one.forecast.recal.crps(one.observations))}
    for name, part in predicted.items():
        scores[name] = part.quantiles.recal.crps(one.observations)
    mean, scored = means(scores)
    row = {
        "set": one.name,
        "source": source,
        "cases": one.hindcast.sizes[dim] - (one.pool is not None or one.leave_out),
        "scored": scored,
        **mean,
    }
    bounds, intervals = bound_scores(predicted, one), interval_scores(predicted, one)
    for name in JUDGED:
        row[f"{name}/best"] = mean[name] / best(mean)
        quantiles = predicted[name].quantiles
        row[f"{name} PIT p"], row[f"{name} SKCE p"] = calibration(quantiles, one.observations, dim)
        row[f"{name} Brier of bound"] = bounds[name]
        row[f"{name} WIS"] = intervals[name]
    row["fit s"] = predicted["LinearPool"].seconds
    row["weights"] = predicted["LinearPool"].weights
    return row
