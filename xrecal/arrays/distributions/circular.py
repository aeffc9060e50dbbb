"""Points, CRPS, mean, spread and members of variables on a circle, such as wind direction.

Values may lie outside one turn. For example, if the period is 360, the values -10, 350 and 710 are
the same direction. Members have shape (..., m). Weights have the shape of the members, or shape
(..., T, m) if T forecasts share the members. Functions sort shared members only once. The class
:class:`Circular` represents forecasts on a circle. The compiled loops are at the end of the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Matrix, OutCube, OutMatrix, inner, kernel
from xrecal.arrays.rows import whole_number
from xrecal.arrays.scores.crps import check_shape
from xrecal.typing import FloatArray

from .weighted import LEVEL_ROUNDING, by_support, total_mass

# If the mean of unit vectors is not longer than this many rounding errors, it has no direction.
UNDIRECTED = 64


def on_circle(values: FloatArray, period: float) -> FloatArray:
    """Return the points of values on a circle whose circumference is the period.

    Parameters
    ----------
    values : array of float, shape (...)
        Values, in the unit of the period.
    period : float
        A full turn, > 0, such as 360 for degrees.

    Returns
    -------
    array of float64, shape (2, ...)
        Coordinates of points at radius ``period / (2 pi)``, in the unit of the values. The straight
        distance between two near points is nearly the difference of their values. The straight
        distance between two opposite points is ``period / pi``, although their values differ by
        ``period / 2``. The coordinates are NaN for values that are not finite.

    Raises
    ------
    ValueError
        If the period is not a positive number.

    Examples
    --------
    >>> on_circle(np.array([0.0, 90.0]), 360.0).round(1)
    array([[57.3,  0. ],
           [ 0. , 57.3]])
    """
    radius = _checked_period(period) / math.tau
    with np.errstate(invalid="ignore"):  # infinite values
        turned = np.mod(np.asarray(values, dtype=np.float64), period) / radius
    return radius * np.stack([np.cos(turned), np.sin(turned)])


@dataclass(frozen=True)
class Circular:
    """Forecasts on a circle: members (..., n) with weights (..., n).

    If T forecasts share their members, the weights have shape (..., T, n).
    """

    members: FloatArray
    weights: FloatArray | None
    period: float

    def mean(self) -> FloatArray:
        """Return the mean direction; see :func:`~xrecal.arrays.circular_mean`."""
        return circular_mean(self.members, self.weights, period=self.period)

    def std(self) -> FloatArray:
        """Return the standard deviation; see :func:`~xrecal.arrays.circular_std`."""
        return circular_std(self.members, self.weights, period=self.period)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Return n equally weighted members; ``q`` must be the levels (i - ½) / n, i = 1, ..., n.

        See :func:`~xrecal.arrays.circular_members`.
        """
        levels = np.atleast_1d(q)
        if not np.allclose(levels, (np.arange(levels.size) + 0.5) / levels.size):
            raise ValueError("values on a circle have no order, so they have no quantiles")
        return circular_members(self.members, self.weights, levels.size, period=self.period)

    def crps(self, observations: FloatArray) -> FloatArray:
        """Return the CRPS; see :func:`~xrecal.arrays.circular_crps`."""
        return circular_crps(observations, self.members, self.weights, period=self.period)


def circular_crps(
    observations: FloatArray,
    members: FloatArray,
    weights: FloatArray | None = None,
    *,
    period: float,
) -> FloatArray:
    r"""Compute the CRPS of forecasts on a circle, with distances along the circle.

    Parameters
    ----------
    observations : array of float, shape (...) or (..., T)
        Observations, in the unit u of the members.
    members : array of float, shape (..., m)
        Members; NaN marks a missing member. If weights have no axis T, the leading axes of the
        members broadcast with the axes of the observations.
    weights : array of float, shape (..., m) or (..., T, m), optional
        Weights >= 0, equal by default. The function divides them by their sum.
    period : float
        A full turn, > 0, in the unit u.

    Returns
    -------
    array of float64, shape (...) or (..., T)
        :math:`\sum_i w_i d(x_i, y) - \frac12 \sum_{ij} w_i w_j d(x_i, x_j) \ge 0` [1]_ in the unit
        u. Here d is the length of the shorter way around the circle, at most period / 2. The score
        is NaN where the observation is not finite, no member has positive weight, a weight is NaN,
        or an infinite member has positive weight.

    Raises
    ------
    ValueError
        If a weight is negative, the period is not a positive number, or shapes do not match.

    Notes
    -----
    The score is proper: no forecast has a better mean score than the true distribution. It equals
    the ordinary CRPS if the observation and all members lie within half a turn. The score is not
    strictly proper: another forecast can have the same mean score as the true distribution. For
    example, the forecast "north or south, with equal probability" has the same score as the
    forecast "east or west, with equal probability". Scores that use straight distances between
    points on the circle distinguish these two forecasts: use :func:`energy_score` or
    :func:`vector_energy_distance` with :func:`on_circle`. The cost is O(m log m) per forecast, or
    O(m) if forecasts share members. Rounding errors are about 1e-15 of the period.

    References
    ----------
    .. [1] Grimit, Gneiting, Berrocal & Johnson (2006), The continuous ranked probability score for
       circular variables and its application to mesoscale forecast ensemble verification.
       https://doi.org/10.1256/qj.05.235

    Examples
    --------
    >>> float(circular_crps(np.array(359.0), np.array([1.0]), period=360.0))
    2.0
    """
    turn = _checked_period(period)
    y, x = np.asarray(observations, np.float64), np.asarray(members)
    if weights is not None and (np.asarray(weights) < 0).any():
        raise ValueError("weights must not be negative")
    own = weights is None or np.ndim(weights) <= x.ndim
    if own:
        x = np.broadcast_to(x, (*_common(y.shape, x.shape[:-1]), x.shape[-1]))
    support, mass, shape = _support(x, weights)
    if not own:
        check_shape(y, shape)
    y = np.ascontiguousarray(np.broadcast_to(y, shape)).reshape(mass.shape[:2])
    out = np.empty(mass.shape[:2])
    fill_circular_crps(y, support, mass, turn, out)
    return out.reshape(shape)


def circular_mean(
    members: FloatArray, weights: FloatArray | None = None, *, period: float
) -> FloatArray:
    """Compute the mean direction of each forecast: the direction of the mean point of its members.

    Parameters
    ----------
    members : array of float, shape (..., m)
        Members; NaN marks a missing member.
    weights : array of float, shape (..., m) or (..., T, m), optional
        Weights >= 0, equal by default. The function divides them by their sum.
    period : float
        A full turn, > 0, in the unit of the members.

    Returns
    -------
    array of float64, shape (...) or (..., T)
        Directions in [0, period), in the unit of the members. The direction is NaN where the mean
        point is at the centre of the circle up to rounding, such as for two opposite members of
        equal weight. It is also NaN where no member has positive weight, a weight is NaN, or an
        infinite member has positive weight.

    Raises
    ------
    ValueError
        If the period is not a positive number, or shapes do not match.

    Examples
    --------
    >>> circular_mean(np.array([[340.0, 40.0]]), period=360.0).round(6)
    array([10.])
    """
    return _directions(members, weights, period)[0]


def circular_std(
    members: FloatArray, weights: FloatArray | None = None, *, period: float
) -> FloatArray:
    r"""Compute the standard deviation of each forecast on a circle [1]_.

    Parameters, shapes, errors and missing values are those of :func:`circular_mean`.

    Returns
    -------
    array of float64, shape (...) or (..., T)
        :math:`\sqrt{-2 \ln R}` radians, converted to the unit of the members. On a circle with
        radius 1, R is the distance of the mean point from the centre. The standard deviation is 0
        if all members have the same direction, and it has no upper limit.

    References
    ----------
    .. [1] Mardia & Jupp (2000), Directional statistics. https://doi.org/10.1002/9780470316979

    Examples
    --------
    >>> circular_std(np.array([[340.0, 40.0], [10.0, 10.0]]), period=360.0).round(1)
    array([30.7,  0. ])
    """
    return _directions(members, weights, period)[1]


def circular_members(
    members: FloatArray, weights: FloatArray | None, n_members: int, *, period: float
) -> FloatArray:
    """Return equally weighted members: quantiles of the given members, ordered along the circle.

    Parameters
    ----------
    members, weights, period
        The same as in :func:`circular_mean`; the weights may be None.
    n_members : int
        Number of members to return, at least 1.

    Returns
    -------
    array of float64, shape (..., n_members) or (..., T, n_members)
        Quantiles at the levels (i - ½) / n_members, i = 1, ..., n_members. The function orders the
        given members by direction. The order starts opposite the mean direction, or at 0 if there
        is no mean direction. :func:`weighted_quantile` defines the quantiles. Each returned value
        is a given member with positive weight, even if it lies outside one turn. The result is NaN
        where no member has positive weight, a weight is NaN, or an infinite member has positive
        weight.

    Raises
    ------
    ValueError
        If ``n_members`` is not a positive integer, the period is not a positive number, or shapes
        do not match.

    Notes
    -----
    The cost is O(m log m) per forecast, or O(m) if forecasts share members.

    Examples
    --------
    >>> members = np.array([350.0, 0.0, 10.0, 20.0])
    >>> circular_members(members, None, 2, period=360.0)
    array([350.,  10.])
    """
    wanted = whole_number("n_members", n_members, 1)
    direction = _directions(members, weights, period)[0]
    support, mass, shape = _support(members, weights)
    out = np.empty((*mass.shape[:2], wanted))
    fill_circular_members(support, mass, direction.reshape(mass.shape[:2]), float(period), out)
    return out.reshape(*shape, wanted)


def _checked_period(period: float) -> float:
    if not (np.ndim(period) == 0 and 0 < period < math.inf):
        raise ValueError(
            f"period must be a positive number, got {period!r}; a full turn is 360 in degrees"
        )
    return float(period)


def _common(observations: tuple[int, ...], forecasts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of observations and forecasts after broadcasting."""
    try:
        return np.broadcast_shapes(observations, forecasts)
    except ValueError:
        raise ValueError(
            f"observations have shape {observations}, but the forecasts have shape {forecasts}; "
            "give one observation for each forecast"
        ) from None


def _support(
    members: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Return members (L, m) and weights (L, T, m) as float64, and the shape of the forecasts."""
    w = None if weights is None else np.asarray(weights, np.float64)
    return by_support(np.asarray(members, np.float64), w)


def _directions(
    members: FloatArray, weights: FloatArray | None, period: float
) -> tuple[FloatArray, FloatArray]:
    """Compute the mean direction and the standard deviation of each forecast."""
    turn, kind = _checked_period(period), np.asarray(members).dtype
    precise = kind if np.issubdtype(kind, np.floating) else np.float64
    support, mass, shape = _support(members, weights)
    mean, std = np.empty(mass.shape[:2]), np.empty(mass.shape[:2])
    shortest = UNDIRECTED * float(np.finfo(precise).eps)
    fill_directions(support, mass, turn, shortest, mean, std)
    return mean.reshape(shape), std.reshape(shape)


@inner
def _in_first_turn(values: Any, period: float) -> Any:
    """Move values (m,) into the turn from 0 to the period; infinite values become NaN."""
    return values - period * np.floor(values / period)


@kernel
def fill_directions(
    support: Matrix, mass: Cube, period: float, shortest: float, mean: OutMatrix, std: OutMatrix
) -> None:
    """Write mean directions (L, T) into ``mean``, and standard deviations (L, T) into ``std``.

    ``support`` (L, m) holds the members, and ``mass`` (L, T, m) their weights. The function writes
    NaN if there is no mean direction.
    """
    for cell in range(support.shape[0]):
        angles = _in_first_turn(support[cell], period) * (2 * np.pi / period)
        cosines, sines = np.cos(angles), np.sin(angles)
        for t in range(mass.shape[1]):
            total, row = total_mass(support[cell], mass[cell, t]), mass[cell, t]
            c, s = 0.0, 0.0
            for i in range(angles.size):
                if row[i] > 0 and not np.isnan(angles[i]):
                    c += row[i] / total * cosines[i]
                    s += row[i] / total * sines[i]
            length = np.hypot(c, s)
            mean[cell, t] = std[cell, t] = np.nan
            if not length > shortest:
                continue
            c, s, shorter = c / length, s / length, 0.0  # 1 - length, with all digits
            for i in range(angles.size):
                if row[i] > 0 and not np.isnan(angles[i]):
                    apart = (cosines[i] - c) ** 2 + (sines[i] - s) ** 2
                    shorter += row[i] / total * apart / 2
            turn = np.arctan2(s, c) / (2 * np.pi) % 1.0
            mean[cell, t] = turn * period if turn < 1 else 0.0
            std[cell, t] = np.sqrt(-2 * np.log1p(-shorter)) * (period / (2 * np.pi))


@kernel
def fill_circular_crps(
    observations: Matrix, support: Matrix, mass: Cube, period: float, out: OutMatrix
) -> None:
    """Write the scores (L, T) of members (L, m) with weights (L, T, m) into ``out``."""
    m = support.shape[1]
    angles, shares = np.empty(m), np.empty(m)
    for cell in range(support.shape[0]):
        turned = _in_first_turn(support[cell], period)
        order = np.argsort(turned)
        for t in range(mass.shape[1]):
            total, used, near = total_mass(support[cell], mass[cell, t]), 0, 0.0
            for i in order:
                share = mass[cell, t, i] / total
                if share > 0 and not np.isnan(turned[i]):
                    apart = abs(support[cell, i] - observations[cell, t])
                    apart -= period * np.floor(apart / period)
                    near += share * min(apart, period - apart)
                    angles[used], shares[used] = turned[i], share
                    used += 1
            score = near - _half_mean_distance(angles[:used], shares[:used], period)
            defined = total > 0 and abs(observations[cell, t]) < np.inf
            out[cell, t] = max(score, 0.0) if defined else np.nan  # negative only by rounding


@inner
def _half_mean_distance(angles: Any, shares: Any, period: float) -> Any:
    """Compute ``E d(X, X') / 2`` for sorted angles, whose shares sum to one.

    X and X' are two independent draws of an angle; the shares are the probabilities of the angles.
    The distance d is the length of the shorter way along the circle. From an angle to a larger
    angle, the shorter way goes up if the difference is at most half a turn, and down otherwise.
    """
    all_mass, all_moment = shares.sum(), (shares * angles).sum()
    mass, moment, mass_near, moment_near = 0.0, 0.0, 0.0, 0.0  # to i, and half a turn on
    near, pairs = 0, 0.0
    for i in range(angles.size):
        while near < angles.size and angles[near] - angles[i] <= period / 2:
            mass_near += shares[near]
            moment_near += shares[near] * angles[near]
            near += 1
        mass += shares[i]
        moment += shares[i] * angles[i]
        upwards = (moment_near - moment) - angles[i] * (mass_near - mass)
        downwards = (period + angles[i]) * (all_mass - mass_near) - (all_moment - moment_near)
        pairs += shares[i] * (upwards + downwards)
    return pairs


@kernel
def fill_circular_members(
    support: Matrix, mass: Cube, direction: Matrix, period: float, out: OutCube
) -> None:
    """Write quantiles (L, T, n) of members (L, m) with weights (L, T, m) into ``out``.

    The order of the members starts opposite the mean ``direction`` (L, T).
    """
    m, n = support.shape[1], out.shape[2]
    for cell in range(support.shape[0]):
        turned = _in_first_turn(support[cell], period)
        order = np.argsort(turned)
        for t in range(mass.shape[1]):
            total = total_mass(support[cell], mass[cell, t])
            undirected = np.isnan(direction[cell, t])
            cut = 0.0 if undirected else direction[cell, t] + period / 2
            cut -= LEVEL_ROUNDING * period
            start, lowest = 0, np.inf
            for k in range(m):
                height = (turned[order[k]] - cut) % period
                if height < lowest:
                    start, lowest = k, height
            level, below, last = 0, 0.0, np.nan
            for k in range(m):
                i = order[(start + k) % m]
                if np.isnan(turned[i]) or not mass[cell, t, i] > 0:
                    continue
                below, last = below + mass[cell, t, i], support[cell, i]
                while level < n and below >= ((level + 0.5) / n - LEVEL_ROUNDING) * total:
                    out[cell, t, level] = last
                    level += 1
            for k in range(level if total > 0 else 0, n):
                out[cell, t, k] = last if total > 0 else np.nan
