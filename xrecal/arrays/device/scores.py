"""CRPS of ensembles, weighted or not; see :mod:`xrecal.arrays.scores.crps`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace

from .losses import crps_loss
from .namespace import doubled
from .weighted import ascending, by_support

__all__ = ["crps", "mean_of_cases"]


def crps(observations: Any, members: Any, weights: Any | None = None) -> Any:
    """See :func:`xrecal.arrays.crps`."""
    xp = namespace(members)
    if weights is not None and bool(xp.any(weights < 0)):
        raise ValueError("weights must not be negative")
    values, mass = by_support(members, weights)
    shape = tuple(mass.shape[:-1])
    if tuple(observations.shape) != shape:
        raise ValueError(
            f"observations have shape {tuple(observations.shape)}, but the forecasts need {shape}"
        )
    infinite = xp.any(xp.isinf(values) & (mass > 0.0), axis=-1)
    values, mass = ascending(values, mass)
    total = xp.sum(mass, axis=-1, keepdims=True)
    known = (total[..., 0] > 0.0) & ~infinite
    # A point without weight changes nothing, so what is missing may stand anywhere.
    finite = xp.isfinite(values)
    last = xp.max(xp.where(finite, values, -float("inf")), axis=-1, keepdims=True)
    first = xp.min(xp.where(finite, values, float("inf")), axis=-1, keepdims=True)
    some = last >= first
    points = xp.where(values == -float("inf"), first, xp.where(finite, values, last))
    points = xp.where(some, points, 0.0)
    share = mass / xp.where(total > 0.0, total, 1.0)
    found = crps_loss(share, points, doubled(xp, observations))
    return xp.where(known, found, float("nan"))


def mean_of_cases(scores: Any) -> Any:
    """Mean (...) of the cases of scores (..., n) that are not NaN; NaN without any."""
    xp = namespace(scores)
    known = ~xp.isnan(scores)
    count = xp.sum(doubled(xp, known), axis=-1)
    total = xp.sum(xp.where(known, scores, 0.0), axis=-1)
    return total / xp.where(count > 0.0, count, float("nan"))
