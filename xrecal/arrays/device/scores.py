"""Losses and scores of ensembles, weighted or not; see :mod:`xrecal.arrays.scores.crps`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace, only_on_host
from xrecal.arrays.distributions.forms import Forecasts

from .case_groups import valid
from .namespace import concat, cumsum, doubled
from .weighted import ascending, by_support

__all__ = ["LOSSES", "crps", "crps_loss", "laplace_loss", "mean_of_cases", "pit_values"]


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


def pit_values(forecasts: Forecasts, observations: Any, uniform: Any) -> Any:
    """See :func:`xrecal.arrays.pit_values`; of ensembles alone."""
    shape = tuple(forecasts.check("forecasts", 3))
    if forecasts.scale is not None:
        raise TypeError(only_on_host("the probability integral transform of normal distributions"))
    for name, array in {"observations": observations, "uniform": uniform}.items():
        if tuple(array.shape) != shape[:2]:
            raise ValueError(
                f"{name} have shape {tuple(array.shape)}, but forecasts need {shape[:2]}"
            )
    xp = namespace(observations)
    loc, y = doubled(xp, forecasts.loc), doubled(xp, observations)
    mass = xp.ones_like(loc) if forecasts.weights is None else doubled(xp, forecasts.weights)
    left_out = xp.isnan(loc) | xp.isnan(mass) | ~valid(forecasts)[0][..., None]
    mass = xp.where(left_out, 0.0, mass)
    y = xp.where(xp.isfinite(y), y, float("nan"))
    below = xp.sum(xp.where(loc < y[..., None], mass, 0.0), axis=-1)
    jump = xp.sum(xp.where(loc == y[..., None], mass, 0.0), axis=-1)
    total = xp.sum(mass, axis=-1)
    known = (total > 0.0) & ~xp.isnan(y)
    found = (below + doubled(xp, uniform) * jump) / xp.where(total > 0.0, total, 1.0)
    found = xp.where(found < 0.0, 0.0, xp.where(found > 1.0, 1.0, found))
    return xp.where(known, found, float("nan"))


def crps_loss(weights: Any, points: Any, y: Any, theta: Any = None) -> Any:
    """CRPS ``int (F - 1{z >= y})^2 dz`` of weights on ascending points (..., k), of y (...)."""
    xp = namespace(weights)
    below = cumsum(xp, weights)[..., :-1]
    low, high = points[..., :-1], points[..., 1:]
    verified = y[..., None]
    under = xp.minimum(xp.maximum(verified - low, xp.zeros_like(low)), high - low)
    inner = below * below * under + (1.0 - below) ** 2 * (high - low - under)
    beyond = xp.maximum(points[..., 0] - y, y - points[..., -1])
    return xp.sum(inner, axis=-1) + xp.where(beyond > 0.0, beyond, 0.0)


def laplace_loss(weights: Any, points: Any, y: Any, theta: Any) -> Any:
    """``1 - 2 sum w_i l(z_i, y) + w'Lw`` with ``l(u, v) = exp(-|u - v| / theta)``.

    ``left_i = sum_{j<i} w_j l(z_j, z_i)`` follows from its neighbour before; so do spans of 2, 4,
    ... of them from each other, in log2 k steps.
    """
    xp = namespace(weights)
    scale = theta[..., None]
    shape = weights.shape
    fade = xp.exp((points[..., :-1] - points[..., 1:]) / scale)
    fade = xp.broadcast_to(concat(xp, [xp.zeros_like(fade[..., :1]), fade]), shape)
    left = fade * concat(xp, [xp.zeros_like(weights[..., :1]), weights[..., :-1]])
    reach = 1
    while reach < shape[-1]:
        ahead = left[..., reach:] + fade[..., reach:] * left[..., :-reach]
        left = concat(xp, [left[..., :reach], ahead])
        fade = concat(xp, [fade[..., :reach], fade[..., reach:] * fade[..., :-reach]])
        reach *= 2
    match = xp.sum(weights * xp.exp(-xp.abs(points - y[..., None]) / scale), axis=-1)
    return 1.0 - 2 * match + xp.sum(weights * (weights + 2 * left), axis=-1)


LOSSES = {"crps": crps_loss, "laplace": laplace_loss}
"""Losses of the cross-validation by name, (weights, points, y, theta)."""
