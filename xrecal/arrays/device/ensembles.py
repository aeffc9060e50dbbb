"""Sorted ensembles of many locations, and their squared energy distances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.dispatch import distances_for, namespace
from xrecal.arrays.distributions.distance import EPSILON, ROUNDING, check_ensembles

__all__ = ["Ensembles", "across", "among", "arrange", "mean_apart", "squared_energy_distance"]


class Ensembles(NamedTuple):
    """Sorted members of n ensembles at L locations, in float64."""

    points: Any
    """(L, n, m) members, ascending; missing members are replaced by the largest member"""
    mass: Any
    """(L, n, m) weights of the members, which sum to one; 0 for missing members"""
    known: Any
    """(L, n) True if an ensemble has a member"""
    sums: Any
    """(L, 4) sum, number, minimum times -1, and maximum of the members of all ensembles at a
    location"""


def squared_energy_distance(
    x: Any, y: Any | None = None, *, x_weights: Any | None = None, y_weights: Any | None = None
) -> Any:
    """Compute distances on a device; see :func:`xrecal.arrays.squared_energy_distance`."""
    if y is None and y_weights is not None:
        raise ValueError("y_weights is given without y; pass x_weights for the weights of x")
    check_ensembles("x", x, x_weights)
    ones = arrange(x[None], None if x_weights is None else x_weights[None])
    if y is None:
        return among(ones)[0]
    check_ensembles("y", y, y_weights)
    return across(ones, arrange(y[None], None if y_weights is None else y_weights[None]))[0]


def arrange(values: Any, weights: Any | None) -> Ensembles:
    """Sort the members (L, n, m) of each ensemble; NaN and members of weight 0 are missing."""
    xp = namespace(values)
    values = values.astype(np.float64)
    if 0 in values.shape:
        return _nothing(xp, values)
    missing = xp.isnan(values)
    if weights is not None:
        weights = weights.astype(np.float64)
        missing = missing | ~(weights > 0.0)
    order = xp.argsort(xp.where(missing, float("inf"), values), axis=-1)
    counts = (~xp.take_along_axis(missing, order, axis=-1)).astype(np.float64)
    mass = counts if weights is None else xp.take_along_axis(weights, order, axis=-1)
    mass = xp.where(counts > 0.0, mass, 0.0)
    total = xp.sum(mass, axis=-1, keepdims=True)
    points = xp.take_along_axis(values, order, axis=-1)
    some = counts > 0.0
    high = xp.max(xp.where(some, points, -float("inf")), axis=-1, keepdims=True)
    low = xp.min(xp.where(some, points, float("inf")), axis=-1)
    known = total[..., 0] > 0.0
    points = xp.where(some, points, xp.where(total > 0.0, high, 0.0))
    sums = xp.stack(
        [
            xp.sum(xp.where(some, points, 0.0), axis=(-1, -2)),
            xp.sum(counts, axis=(-1, -2)),
            xp.max(-low, axis=-1),
            xp.max(high[..., 0], axis=-1),
        ],
        axis=-1,
    )
    return Ensembles(points, mass / xp.where(total > 0.0, total, 1.0), known, sums)


def _nothing(xp: Any, values: Any) -> Ensembles:
    """Return the empty result for values without locations, ensembles or members."""
    sums = xp.zeros((values.shape[0], 4))
    return Ensembles(values, values, xp.zeros(values.shape[:2], dtype=np.bool_), sums)


def among(ensembles: Ensembles) -> Any:
    """Compute squared energy distances (L, n, n) among the n ensembles of each location."""
    squared = distances_for(ensembles.points).among(ensembles)
    return _rounded(squared, ensembles, ensembles)


def across(ones: Ensembles, others: Ensembles) -> Any:
    """Compute squared energy distances (L, n, q) from n ensembles to q other ensembles."""
    return _rounded(distances_for(ones.points).across(ones, others), ones, others)


def mean_apart(ensembles: Ensembles) -> Any:
    """Compute the mean distance (L, n) of two members of each ensemble, over all pairs."""
    points, mass = ensembles[:2]
    xp = namespace(points)
    moment = xp.cumsum(mass * points, axis=-1)
    return 2.0 * xp.sum(mass * (points * xp.cumsum(mass, axis=-1) - moment), axis=-1)


def _rounded(squared: Any, ones: Ensembles, others: Ensembles) -> Any:
    """Replace distances as small as rounding errors by 0, as the functions for NumPy do.

    Distances of ensembles without members become NaN. The ensembles ``ones`` may be new forecasts,
    and the result for a new forecast must not depend on other new forecasts. So the function
    derives the size of rounding errors from this one forecast and the ensembles ``others``.
    """
    xp = namespace(squared)
    total, count, low, high = (others.sums[:, k] for k in range(4))
    centre = total / xp.maximum(count, xp.ones_like(count))
    widest = xp.maximum(xp.maximum(low + centre, high - centre), xp.zeros_like(centre))[:, None]
    centre = centre[:, None]
    own = xp.maximum(ones.points[..., -1] - centre, centre - ones.points[..., 0])
    tolerance = ROUNDING * xp.maximum(widest, own) + 4 * EPSILON * xp.abs(centre)
    squared = xp.where(squared <= tolerance[..., None], 0.0, squared)
    known = ones.known[:, :, None] & others.known[:, None, :]
    return xp.where(known, squared, float("nan"))
