"""Mean similarities of forecasts and observations of one location, by the Laplace kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import Forecasts
from xrecal.typing import FloatArray, IntArray

from .laplace_kernel import (
    fill_behind,
    fill_cross_normals,
    fill_cross_points,
    fill_cross_shared,
    fill_within_normals,
    fill_within_points,
    median_positive_gap,
)

# A sum of weights may differ from one by this, because weights are rounded, as in float32.
SUM_TOLERANCE = 1e-3


class Points(NamedTuple):
    """All N points (members) of several forecasts, in ascending order."""

    z: FloatArray
    """(N,) values of the points"""
    weights: FloatArray
    """(N,) weight, above 0, of each point in its forecast"""
    owner: IntArray
    """(N,) position of the forecast to which the point belongs"""


def laplace_expectations(
    forecasts: Forecasts, observations: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray]:
    r"""Compute mean similarities of forecasts to observations, and of forecasts to each other.

    The similarity of two values v and w is the Laplace kernel l(v, w), between 0 and 1.

    Parameters
    ----------
    forecasts : Forecasts
        n forecasts of one location in the unit u: arrays (n, m), or ``loc`` (m,) and ``weights``
        (n, m) for points that all forecasts share. NaN marks a missing member. The weights of a
        forecast must sum to one, up to 1e-3; the function normalises the weights of the members
        that are not missing.
    observations : array of float, shape (n,)
        Observations in u.
    bandwidth : float
        Parameter :math:`\theta > 0` of the kernel :math:`l(v, w) = \exp(-|v - w| / \theta)`, in u.

    Returns
    -------
    cross : array of float64, shape (n, n)
        :math:`A_{ij} = E\,l(Z_i, y_j)` in [0, 1], where :math:`Z_i` has the distribution of
        forecast i; NaN for a forecast without members, and for a NaN observation.
    within : array of float64, shape (n, n)
        :math:`M_{ij} = E\,l(Z_i, Z'_j)` in [0, 1], where the random values Z and Z' are
        independent, even for i = j; NaN for a forecast without members. The matrix is symmetric and
        positive semi-definite.

    Raises
    ------
    ValueError
        If shapes do not match, the bandwidth is not positive, a value is infinite, a weight or a
        scale is negative, or weights do not sum to one.

    Notes
    -----
    The function takes O(N log N + N n) time, where N is the number of points of positive weight in
    all forecasts. For S shared points it takes O(S n) time and one product of (n, S) matrices. The
    function updates sums from one sorted point to the next, without approximation. For mixtures of
    k normal distributions, it uses a closed form for each pair of normal distributions, so the time
    is O(n² k²). If the difference X of two values is normal with mean d and standard deviation s,
    the closed form is

    .. math:: E e^{-|X|/\theta} = \tfrac{1}{2} e^{-d^2/2s^2} \left[
       \mathrm{erfcx}\tfrac{s/\theta - d/s}{\sqrt 2} + \mathrm{erfcx}\tfrac{s/\theta + d/s}{\sqrt 2}
       \right]

    The memory is O(n² + N).

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2021), Calibration tests beyond classification.
       https://openreview.net/forum?id=-bxf89v3Nx

    Examples
    --------
    >>> cross, within = laplace_expectations(Forecasts(np.array([[0.0], [1.0]])), np.zeros(2), 1.0)
    >>> cross.round(2), within.round(2)
    (array([[1.  , 1.  ],
           [0.37, 0.37]]), array([[1.  , 0.37],
           [0.37, 1.  ]]))
    """
    if not bandwidth > 0:
        raise ValueError(f"bandwidth is {bandwidth}; give a positive number")
    parts = normalised(forecasts)
    y = np.asarray(observations, dtype=np.float64)
    n = len(_filled(parts)[2])
    if y.shape != (n,):
        raise ValueError(f"observations have shape {y.shape}, but the forecasts need ({n},)")
    if np.isinf(y).any():
        raise ValueError("observations hold infinite values; set them to NaN to leave them out")
    present, known = np.asarray(_filled(parts)[2].any(-1)), ~np.isnan(y)
    between = expectations(take_cases(parts, present), y[known], float(bandwidth))
    cross, within = np.full((2, n, n), np.nan)
    cross[np.ix_(present, known)], within[np.ix_(present, present)] = between
    return cross, within


def expectations(parts: Forecasts, y: FloatArray, theta: float) -> tuple[FloatArray, FloatArray]:
    """Compute cross (n, q) and within (n, n) as :func:`laplace_expectations` does.

    The forecasts come from :func:`normalised`, and the observations y (q,) are finite.
    """
    return cross_expectations(parts, y, theta), within_expectations(parts, theta)


def cross_expectations(parts: Forecasts, y: FloatArray, theta: float) -> FloatArray:
    """Compute mean similarities (n, q) of draws from n forecasts to observations y (q,)."""
    loc, scale, weights = _filled(parts)
    order = np.argsort(y)
    rows = np.empty((y.size, len(weights)))
    if scale is not None:
        fill_cross_normals(loc, scale, weights, y[order], theta, rows)
    elif loc.ndim == 1:
        fill_cross_shared(*by_point(parts), y[order], theta, rows)
    else:
        fill_cross_points(*pooled(parts), y[order], theta, rows)
    cross = np.empty(rows.shape)
    cross[order] = rows
    return cross.T


def within_expectations(parts: Forecasts, theta: float) -> FloatArray:
    """Compute mean similarities (n, n) of draws from n forecasts to each other."""
    loc, scale, weights = _filled(parts)
    within = np.empty((len(weights), len(weights)))
    if scale is not None:
        fill_within_normals(loc, scale, weights, theta, within)
    elif loc.ndim == 1:
        z, mass = by_point(parts)
        behind = np.empty(mass.shape)
        fill_behind(z, mass, theta, behind)
        half = mass.T @ behind
        within = half + half.T
    else:
        fill_within_points(*pooled(parts), theta, within)
    return within


def pooled(parts: Forecasts) -> Points:
    """Return all members of forecasts (n, m) that have a weight above 0, in ascending order."""
    loc, _, weights = _filled(parts)
    owner, member = np.nonzero(weights > 0)
    z = loc[owner, member]
    order = np.argsort(z)
    return Points(z[order], weights[owner, member][order], owner[order])


def by_point(parts: Forecasts) -> tuple[FloatArray, FloatArray]:
    """Return the points (S,) that n forecasts share, ascending, and their weights (S, n)."""
    loc, _, weights = _filled(parts)
    order = np.argsort(loc)
    return loc[order], np.ascontiguousarray(weights[:, order].T)


def take_cases(parts: Forecasts, chosen: npt.NDArray[np.bool_] | IntArray | slice) -> Forecasts:
    """Select cases of :func:`normalised` forecasts."""
    loc, scale, weights = _filled(parts)
    return Forecasts(
        loc if loc.ndim == 1 else loc[chosen],
        None if scale is None else scale[chosen],
        weights[chosen],
    )


def _filled(parts: Forecasts) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    assert parts.weights is not None  # set by normalised()
    return parts.loc, parts.scale, parts.weights


def normalised(forecasts: Forecasts) -> Forecasts:
    """Check forecasts (n, m) of one location, and return them for compiled code.

    The function raises ValueError for invalid forecasts. The result is float64, with weights that
    sum to one. Missing members get weight 0 and value 0. If all forecasts share their members, the
    function removes members to which no forecast gives weight. Otherwise it counts, in each
    forecast, the members with a weight above 0. If at most half of the members have such a weight
    in every forecast, it moves these members to the first columns, and removes unused columns.
    """
    loc, scale, weights = (
        None if part is None else np.asarray(part, dtype=np.float64) for part in forecasts
    )
    assert loc is not None
    shared = loc.ndim == 1
    if loc.ndim not in (1, 2) or (shared and (weights is None or scale is not None)):
        raise ValueError(
            f"loc of forecasts has shape {loc.shape}; give (case, member), or (member,) with "
            "weights (case, member) for points that all cases share"
        )
    shape = weights.shape if shared and weights is not None else loc.shape
    if len(shape) != 2 or shape[-1] != loc.shape[-1]:
        raise ValueError(f"weights have shape {shape}, but shared members need (n, {loc.size})")
    if not shared:
        Forecasts(loc, scale, weights).check("forecasts", 2)
    points, loc = loc, np.broadcast_to(loc, shape)
    _check_sound(Forecasts(loc, scale, weights))
    mass = np.ones(shape) if weights is None else weights
    there = ~np.isnan(loc) & (mass > 0)
    if scale is not None:
        there &= ~np.isnan(scale)
        scale = np.where(there, scale, 0.0)
    if (there & np.isinf(loc)).any():
        raise ValueError("forecasts hold infinite members; set them to NaN to leave them out")
    mass = np.where(there, mass, 0.0)
    total = mass.sum(-1, keepdims=True)
    mass /= np.where(total > 0, total, 1.0)
    if shared:
        used = there.any(0)
        return Forecasts(points[used], None, mass[:, used])
    return _compact(np.where(there, loc, 0.0), scale, mass)


def _compact(loc: FloatArray, scale: FloatArray | None, mass: FloatArray) -> Forecasts:
    widest = int((mass > 0).sum(-1).max(initial=0))
    if 2 * widest > mass.shape[-1]:
        return Forecasts(loc, scale, mass)
    first = np.argsort(mass == 0, axis=-1, kind="stable")[:, :widest]
    return Forecasts(
        *(None if a is None else np.take_along_axis(a, first, -1) for a in (loc, scale, mass))  # type: ignore[arg-type]
    )


def unsound(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Mark forecasts (L, n) with invalid weights or scales.

    A forecast is invalid if a member with a value has a negative or infinite weight, or if a member
    with a value and a weight other than 0 has a negative or infinite scale. It is also invalid if
    its weights, including those of missing members, do not sum to one. The function does not check
    forecasts without members.
    """
    loc, scale, weights = forecasts
    there, bad = ~np.isnan(loc), np.zeros(loc.shape, dtype=bool)
    if weights is not None:
        there = there & ~np.isnan(weights)
        bad |= (weights < 0) | np.isinf(weights)
        there = there & (weights != 0)
    if scale is not None:
        there = there & ~np.isnan(scale)
        bad |= np.isinf(scale) | (scale < 0)
    refused = np.asarray((there & bad).any(axis=-1))
    if weights is not None:
        with np.errstate(invalid="ignore"):  # sums of infinite weights of both signs are NaN
            total = np.nansum(weights, axis=-1, dtype=np.float64)
            refused |= there.any(axis=-1) & ~(np.abs(total - 1.0) <= SUM_TOLERANCE)
    return refused


def _check_sound(forecasts: Forecasts) -> None:
    bad = np.flatnonzero(unsound(forecasts))
    if not bad.size:
        return
    i = int(bad[0])
    for name, part in {"weights": forecasts.weights, "scale": forecasts.scale}.items():
        if part is not None and ((part[i] < 0) | np.isinf(part[i])).any():
            wrong = part[i][(part[i] < 0) | np.isinf(part[i])][0]
            raise ValueError(f"{name} of forecast {i} holds {wrong:g}; give finite numbers >= 0")
    total = np.nansum(forecasts.weights[i])  # type: ignore[index]
    raise ValueError(
        f"weights of forecast {i} sum to {total:.8g}, not to one; divide them by their sum"
    )


def target_bandwidth(observations: FloatArray) -> float:
    """Compute the median positive distance between two observations.

    Parameters
    ----------
    observations : array of float, shape (n,)
        Observations in a unit u; the function leaves out NaN.

    Returns
    -------
    float
        Exact median of the positive :math:`|y_i - y_j|` over pairs i < j, in u; NaN if no two
        observations differ.

    Raises
    ------
    ValueError
        If an observation is infinite, or the array does not have one axis.

    Notes
    -----
    The cost is O(n log n). One pass over the sorted observations counts the pairs within a
    distance. A bisection over all float64 numbers finds the median distance in at most 64 passes.

    Examples
    --------
    >>> target_bandwidth(np.array([0.0, 1.0, 3.0]))
    2.0
    """
    y = np.asarray(observations, dtype=np.float64)
    if y.ndim != 1:
        raise ValueError(f"observations must have shape (n,), got {y.shape}")
    if np.isinf(y).any():
        raise ValueError("observations hold infinite values; set them to NaN to leave them out")
    return float(median_positive_gap(np.sort(y[~np.isnan(y)])))
