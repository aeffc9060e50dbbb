"""Statistics of ensembles whose members have weights.

The arguments of all functions have these shapes. ``members`` has shape (..., n). If each forecast
has its own members, ``weights`` has the shape of the members. If T forecasts share their members,
such as past observations, ``weights`` has shape (..., T, n). If ``weights`` is None, all members
have the same weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Cube, IndexMatrix, Matrix, OutCube, Vector, inner, kernel
from xrecal.arrays.dispatch import as_array, namespace
from xrecal.arrays.rows import double_blocks
from xrecal.typing import FloatArray

# Sums of weights are rounded. A level that exceeds a value of the CDF by at most this counts as
# equal to it.
LEVEL_ROUNDING = 1e-12

# Members count as equal if they differ from the mean by at most this share of the largest member.
SAME = 1e-14


def weighted_mean(members: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Compute the mean of each forecast.

    Parameters
    ----------
    members : array of float, shape (..., n)
        Members in any unit; NaN marks a missing member.
    weights : array of float, shape (..., n) or (..., T, n), optional
        Weights >= 0 of the members, equal by default. The function divides them by their sum.

    Returns
    -------
    array of float64, shape (...) or (..., T)
        Means, in the unit of the members. A mean is NaN if no member has positive weight, or if a
        weight is NaN.

    Examples
    --------
    >>> float(weighted_mean(np.array([1.0, 3.0]), np.array([0.25, 0.75])))
    2.5
    """
    values, mass = _present(members, weights)
    return np.asarray((values * mass).sum(-1))


def weighted_std(members: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Compute the standard deviation of each forecast.

    The variance is the weighted mean of squared deviations, without a correction for the number of
    members. Parameters, shapes, unit and missing values are those of :func:`weighted_mean`.

    Examples
    --------
    >>> float(weighted_std(np.array([1.0, 3.0])))
    1.0
    """
    return mean_std(members, weights)[1]


def mean_std(
    members: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Compute the mean and standard deviation of each forecast; see :func:`weighted_std`."""
    values, mass = _present(members, weights)
    mean = (values * mass).sum(-1, keepdims=True)
    return mean[..., 0], np.asarray(np.sqrt((mass * (values - mean) ** 2).sum(-1)))


def weighted_skewness(members: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Compute the skewness of each forecast, without a correction for the number of members.

    Parameters, shapes and missing values are those of :func:`weighted_mean`. The skewness has no
    unit. It is 0 for a forecast whose members are all equal.

    Examples
    --------
    >>> float(weighted_skewness(np.array([0.0, 0.0, 0.0, 1.0])).round(2))
    1.15
    """
    values, mass = _present(members, weights)
    deviation = values - (values * mass).sum(-1, keepdims=True)
    largest = np.abs(values).max(-1, keepdims=True, initial=0.0)
    size = np.abs(np.where(mass > 0, deviation, 0.0)).max(-1, keepdims=True, initial=0.0)
    size = np.where(size > SAME * largest, size, np.inf)
    x = deviation / size  # cubes may overflow or underflow
    second, third = (mass * x**2).sum(-1), (mass * x**3).sum(-1)
    return np.asarray(third / np.where(second > 0, second, 1.0) ** 1.5)


def weighted_cdf(
    members: FloatArray, thresholds: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Compute the CDF of each forecast: ``P(Y <= threshold)``.

    Parameters
    ----------
    members, weights
        The same as in :func:`weighted_mean`.
    thresholds : array of float, shape (k,)
        Thresholds, in the unit of the members.

    Returns
    -------
    array of float64, shape (..., k) or (..., T, k)
        Probabilities in [0, 1]. They are NaN if no member has positive weight, or if a weight is
        NaN.

    Examples
    --------
    >>> weighted_cdf(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0]))
    array([0. , 0.5])
    """
    values, mass = _present(members, weights)
    below = [(mass * (values <= t)).sum(-1) for t in np.asarray(thresholds, dtype=np.float64)]
    return np.asarray(np.minimum(np.stack(below, axis=-1), 1.0))


def weighted_exceedance(
    members: FloatArray, thresholds: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Compute ``P(Y > threshold)``; thresholds may differ from forecast to forecast.

    Parameters
    ----------
    members, weights
        The same as in :func:`weighted_mean`.
    thresholds : array of float, shape (k,), or the shape of the result
        Thresholds, in the unit of the members. Thresholds of shape (k,) apply to all forecasts.

    Returns
    -------
    array of float64, shape (..., k) or (..., T, k)
        Probabilities in [0, 1]: one minus :func:`weighted_cdf`, up to rounding. A higher threshold
        never has a higher probability. Even small probabilities are exact to all digits. A
        probability is NaN if no member has positive weight, or if a weight or the threshold is NaN.

    Notes
    -----
    The cost is O(n k) per forecast.

    Examples
    --------
    >>> weighted_exceedance(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0]))
    array([1. , 0.5])
    """
    support, mass, shape = by_support(members, weights)
    given = np.asarray(thresholds, dtype=np.float64)
    wanted = np.broadcast_to(given, (*shape, given.shape[-1])).reshape(*mass.shape[:2], -1)
    out = np.empty(wanted.shape)
    for block, parts in double_blocks(support, mass, wanted):
        _fill_exceedance(*parts, out[block])
    return out.reshape(*shape, given.shape[-1])


def category_probabilities(exceedance: FloatArray, edges: FloatArray) -> FloatArray:
    """Compute probabilities of categories from the probabilities of exceeding their edges.

    Parameters
    ----------
    exceedance : array of float, shape (..., k)
        Probabilities ``P(Y > edge)``. A value on an edge belongs to the category below the edge.
    edges : array of float, shape (..., k)
        Edges between the categories, in the unit of the variable, not decreasing along the last
        axis.

    Returns
    -------
    array of float64, shape (..., k + 1)
        Probabilities >= 0, from the lowest category to the highest; their sum is one up to
        rounding. A category between equal edges has probability 0. All probabilities of a forecast
        are NaN if one of its probabilities or edges is missing, or if its edges decrease.

    Examples
    --------
    >>> category_probabilities(np.array([0.75, 0.25]), np.array([1.0, 2.0]))
    array([0.25, 0.5 , 0.25])
    """
    above, edges = as_array(exceedance).astype(np.float64), as_array(edges)
    xp, one = namespace(above), (*above.shape[:-1], 1)
    all_, none = xp.ones(one), xp.zeros(one)
    between = np.concatenate([all_, above], axis=-1) - np.concatenate([above, none], axis=-1)
    decreasing = (edges[..., 1:] < edges[..., :-1]).any(-1, keepdims=True)
    missing = np.isnan(edges).any(-1, keepdims=True) | np.isnan(above).any(-1, keepdims=True)
    return np.where(decreasing | missing, np.nan, np.maximum(between, 0.0))


def weighted_quantile(
    members: FloatArray, q: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Compute quantiles; each is the smallest member z with ``P(Y <= z) >= q``.

    Parameters
    ----------
    members, weights
        The same as in :func:`weighted_mean`. The function sorts shared members only once.
    q : array of float, shape (k,)
        Levels in [0, 1], in any order.

    Returns
    -------
    array of float64, shape (..., k) or (..., T, k)
        Quantiles (definition 1 of [1]_). Each quantile is a member with positive weight, and a
        higher level never has a lower quantile. The quantile at q = 0 is the smallest member with
        positive weight. The quantiles are NaN if no member has positive weight, or if a weight is
        NaN.

    Raises
    ------
    ValueError
        If a level is outside [0, 1].

    References
    ----------
    .. [1] Hyndman & Fan (1996), Sample quantiles in statistical packages.
       https://doi.org/10.1080/00031305.1996.10473566

    Examples
    --------
    >>> weighted_quantile(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.25, 0.5, 0.6]))
    array([1., 2., 3.])
    """
    levels = check_levels(q)
    support, mass, shape = by_support(members, weights)
    ascending = np.argsort(levels)
    out = np.empty((*mass.shape[:2], levels.size))
    for block, (values, shares) in double_blocks(support, mass):
        order = np.argsort(values, axis=1)
        _fill_quantiles(values, shares, order, levels[ascending], out[block])
    return out[..., np.argsort(ascending)].reshape(*shape, levels.size)


def check_levels(q: npt.ArrayLike) -> FloatArray:
    """Return levels as a float64 array with one axis; raise ValueError unless all lie in [0, 1]."""
    try:
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"q must hold levels between 0 and 1, got {q!r:.60}") from None
    if levels.ndim != 1:
        raise ValueError(
            f"q must hold levels between 0 and 1 along one axis, got shape {levels.shape}"
        )
    if not ((levels >= 0) & (levels <= 1)).all():
        percent = levels.size and (levels >= 1).any() and (levels <= 100).all()
        advice = "; divide percentages by 100" if percent else ""
        raise ValueError(f"q must hold levels between 0 and 1, got {levels}{advice}")
    return levels


def by_support(
    members: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Return contiguous members (L, n) and weights (L, T, n), and the shape of the forecasts."""
    members = np.asarray(members)
    if weights is None:
        weights = np.ones((1,) * members.ndim, dtype=members.dtype)
    weights = np.asarray(weights)
    shared = weights.ndim == members.ndim + 1
    if not shared:
        lead = np.broadcast_shapes(members.shape, weights.shape)
        members, weights = np.broadcast_to(members, lead), np.broadcast_to(weights, lead)
        weights = weights[..., np.newaxis, :]
    if members.shape != (*weights.shape[:-2], weights.shape[-1]):
        raise ValueError(
            f"weights of shape {weights.shape} do not fit members of shape {members.shape}; "
            "give both the same shape; if forecasts share members, weights need one more axis, "
            "before the last"
        )
    n, n_sharing = members.shape[-1], weights.shape[-2]
    shape = weights.shape[:-1] if shared else members.shape[:-1]
    return (
        np.ascontiguousarray(members).reshape(math.prod(members.shape[:-1]), n),
        np.ascontiguousarray(weights).reshape(math.prod(members.shape[:-1]), n_sharing, n),
        shape,
    )


def _present(members: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return members and weights; the weights sum to one.

    Missing members become 0, with weight 0. All weights are NaN if their sum is not positive.
    """
    members = np.asarray(members, dtype=np.float64)
    missing = np.isnan(members)
    mass = np.ones_like(members) if weights is None else np.asarray(weights, dtype=np.float64)
    if mass.ndim == members.ndim + 1:
        members, missing = members[..., np.newaxis, :], missing[..., np.newaxis, :]
    mass = np.where(missing, 0.0, mass)
    members = np.where(mass == 0, 0.0, members)  # infinity times zero
    total = mass.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        mass = mass / np.where(total > 0, total, np.nan)
    return members, mass


@inner
def total_mass(values: Any, weights: Any) -> float:
    """Sum the weights (n,) of members (n,) that are not missing.

    Return NaN if the sum is 0, a weight is NaN, or an infinite member has positive weight.
    """
    total = 0.0
    for i in range(values.size):
        if not np.isnan(values[i]):
            total += np.nan if np.isinf(values[i]) and weights[i] > 0 else weights[i]
    return total if total > 0 else np.nan


@kernel
def _fill_quantiles(
    support: Matrix, mass: Cube, order: IndexMatrix, levels: Vector, out: OutCube
) -> None:
    """Write quantiles (L, T, k) at ascending levels into ``out``.

    ``support`` (L, n) holds the members, ``mass`` (L, T, n) their weights, and ``order`` (L, n) the
    positions of the members in ascending order.
    """
    for cell in range(support.shape[0]):
        values = support[cell]
        for t in range(mass.shape[1]):
            total = 0.0
            for i in range(values.size):
                if not np.isnan(values[i]):
                    total += mass[cell, t, i]
            level, below, last = 0, 0.0, np.nan
            for i in order[cell]:
                weight = mass[cell, t, i]
                if np.isnan(values[i]) or not weight > 0:
                    continue
                below, last = below + weight, values[i]
                while level < levels.size and below >= (levels[level] - LEVEL_ROUNDING) * total:
                    out[cell, t, level] = values[i]
                    level += 1
            for k in range(level if total > 0 else 0, levels.size):
                out[cell, t, k] = last if total > 0 else np.nan


@kernel
def _fill_exceedance(support: Matrix, mass: Cube, thresholds: Cube, out: OutCube) -> None:
    """Write the probabilities (L, T, k) of values above ``thresholds`` (L, T, k) into ``out``.

    ``support`` (L, n) holds the members, and ``mass`` (L, T, n) their weights. All sums run over
    the members in the same order. So even with rounding, a higher threshold never has a higher
    probability.
    """
    for cell in range(mass.shape[0]):
        for t in range(mass.shape[1]):
            for k in range(thresholds.shape[2]):
                threshold, above, total = thresholds[cell, t, k], 0.0, 0.0
                for i in range(support.shape[1]):
                    value, weight = np.float64(support[cell, i]), np.float64(mass[cell, t, i])
                    if not np.isnan(value) and weight != 0.0:
                        total += weight
                        above += weight if value > threshold else 0.0
                defined = total > 0.0 and not np.isnan(threshold)
                out[cell, t, k] = above / total if defined else np.nan
