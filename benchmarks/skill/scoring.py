"""Fit all methods on one set, all of its places in one call, and score what they predict."""

import time
import warnings
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from xrecal.arrays import find_bounds, standard_error

from .sets import Position, Set, at, part_of

BASELINES = ("raw", "climatology", "EMOS", "EMOS + season", "IDR")
JUDGED = ("CKME", "LinearPool")
EACH = {name: f"{name} each" for name in JUDGED}
"""The same methods where each place chooses for itself, by their label in the table"""
LABELS = (*BASELINES, *JUDGED, *EACH.values())
LEVELS = (np.arange(200) + 0.5) / 200
"""Of the quantiles that are scored: their CRPS is that of the distribution to four digits."""

FEWEST = 10  # cases that a fit learns from
TESTED = 500  # of the cases of a place at most by the SKCE, which compares all pairs
BLOCK = 20  # successive cases that share a sign in its wild bootstrap ...
BLOCKS = 10  # ... of which it needs so many

Row = dict[str, str | float]


class Predicted(NamedTuple):
    """What a method predicts on one set."""

    quantiles: xr.DataArray
    seconds: float
    """Of one fit"""
    weights: xr.DataArray | None = None
    """Of the components of a pool"""

    def at(self, position: Position) -> "Predicted":
        """What is predicted at a position."""
        weights = None if self.weights is None else at(self.weights, position)
        return Predicted(at(self.quantiles, position), self.seconds, weights)


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


def predict(one: Set, method, q, choose="together") -> Predicted:
    """Quantiles of the cases of one set, by fits that have not seen them."""
    given = {name: v for name, v in (one.covariates or {}).items() if name in method.covariates}
    known = {"covariates": given} if given else {}
    dim, start = one.case_dim, time.perf_counter()
    if one.leave_out:
        known |= {"dim": dim, "min_samples": FEWEST}
        splits = {"by": "block", "blocks": one.hindcast.sizes[dim]}
    elif one.pool is not None:
        known |= {"pool": one.pool}
        splits = {"by": "year"}
    else:
        model = one.hindcast.recal.fit(one.observations, method, dim=dim, choose=choose, **known)
        seconds = time.perf_counter() - start
        quantiles = model.quantile(one.forecast, q, **known)
        return Predicted(variable_of(quantiles), seconds, model.state.get("pool_weight"))
    quantiles = one.hindcast.recal.cross_validate(
        one.observations, method, q=q, choose=choose, **splits, **known
    )
    if not isinstance(method, xrecal.LinearPool) or choose == "each":
        return Predicted(quantiles, np.nan)
    start = time.perf_counter()
    model = one.hindcast.isel({dim: slice(-1)}).recal.fit(one.observations, method, **known)
    return Predicted(quantiles, time.perf_counter() - start, model.state.get("pool_weight"))


def predict_all(one: Set, q) -> dict[str, Predicted]:
    """What all methods predict; with a single place each choice is its own."""
    compared = methods(one.condition_on)
    found = {label: predict(one, method, q) for label, method in compared.items()}
    for name, label in EACH.items():
        several = one.n_places > 1
        found[label] = predict(one, compared[name], q, "each") if several else found[name]
    return found


def variable_of(found):
    """The only variable of what is found of forecasts that take several arrays."""
    return found if isinstance(found, xr.DataArray) else next(iter(found.values()))


def in_words(weights: xr.DataArray | None) -> str:
    """Weights of the components of a pool, on average over places."""
    if weights is None:
        return ""
    mean = weights.mean([d for d in weights.dims if d != "component"])
    pairs = zip(mean["component"].values, mean.values, strict=True)
    return " ".join(f"{name}:{weight:.2f}" for name, weight in pairs if weight >= 0.005)


def means(scores: dict[str, xr.DataArray]) -> tuple[dict[str, float], int]:
    """Mean score of each method over the cases that all of them have, and how many these are."""
    common = in_common(scores)
    found = {name: float(score.mean(dtype=np.float64)) for name, score in common.items()}
    return found, int(next(iter(common.values())).count())


def in_common(scores: dict[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    """Scores of the cases that all methods have; NaN at others."""
    known = xr.concat(list(scores.values()), "method", coords="minimal", compat="override")
    common = known.notnull().all("method")
    return {name: score.where(common) for name, score in scores.items()}


def paired_error(score: xr.DataArray, reference: xr.DataArray, dim: str) -> float:
    """Standard error of the difference of two mean scores, over that of the reference.

    Cases of one date count together, and successive dates depend on each other.
    """
    apart = score - reference
    apart = apart.mean([d for d in apart.dims if d != dim]).dropna(dim)
    return float(standard_error(apart.values)) / float(reference.mean())


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
    bound = lower_bound(one.observations, one.case_dim)
    if bound is None:
        return dict.fromkeys(JUDGED, np.nan)
    reference = single(found)
    scores = {
        name: found[name].quantiles.recal.brier_score(one.observations, bound)
        for name in (*JUDGED, reference)
    }
    mean, _ = means(scores)
    return {name: mean[name] / mean[reference] for name in JUDGED}


def single(found: dict) -> str:
    """EMOS, with season where it has it: the best single method that can be named beforehand."""
    return "EMOS + season" if "EMOS + season" in found else "EMOS"


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


def score_set(one: Set, source: str) -> list[Row]:
    """The rows of the table of one set, from one fit of each method."""
    warnings.filterwarnings("ignore", "season learned from")  # ten months at Toulouse
    warnings.filterwarnings("ignore", ".* neighbour within a week")  # judged on later cases
    warnings.filterwarnings("ignore", "successive cases depend")  # as calibration says
    predicted = predict_all(one, np.union1d(LEVELS, one.levels or ()))
    scores = {"raw": variable_of(one.forecast.recal.crps(one.observations))}
    for name, part in predicted.items():
        scores[name] = part.quantiles.recal.crps(one.observations)
    found = []
    for name, position in one.rows.items():
        parts = {label: part.at(position) for label, part in predicted.items()}
        own = {label: at(score, position) for label, score in scores.items()}
        row = {"set": name, "source": source, "places": one.n_places}
        found.append(row | score_row(part_of(one, name), parts, own))
    return found


def score_row(one: Set, predicted: dict[str, Predicted], scores: dict[str, xr.DataArray]) -> Row:
    """Scores of one row of the table, and their ratios."""
    dim, (mean, scored) = one.case_dim, means(scores)
    row = {
        "cases": one.hindcast.sizes[dim] - (one.pool is not None or one.leave_out),
        "scored": scored,
        **mean,
    }
    bounds, intervals = bound_scores(predicted, one), interval_scores(predicted, one)
    common = in_common(scores)
    for name, each in EACH.items():
        row[f"{name}/best"] = mean[name] / best(mean)
        row[f"{name}/EMOS"] = mean[name] / mean[single(mean)]
        row[f"{name}/each"] = mean[name] / mean[each]
        row[f"{name}/each error"] = paired_error(common[name], common[each], dim)
        quantiles = predicted[name].quantiles
        row[f"{name} PIT p"], row[f"{name} SKCE p"] = calibration(quantiles, one.observations, dim)
        row[f"{name} Brier of bound"] = bounds[name]
        row[f"{name} WIS"] = intervals[name]
    row["fit s"] = predicted["LinearPool"].seconds
    row["weights"] = in_words(predicted["LinearPool"].weights)
    return row
