"""Formulas for normal distributions censored to bounds, such as 0 for rain.

Censoring turns values below `lower` into `lower`, and values above `upper` into `upper`. So each
bound itself has a probability above 0. Location and scale are the mean and the standard deviation
of the normal distribution before censoring. If the scale is 0, a single value has the probability
1. An infinite bound means that there is no bound. NaN in any argument gives NaN.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from xrecal.typing import FloatArray

SQRT_PI = math.sqrt(math.pi)
SQRT_2 = math.sqrt(2.0)
SQRT_2_PI = math.sqrt(2.0 * math.pi)
SMALLEST = 1e-200  # smaller numbers count as 0, because a division by them would overflow


def censored_normal_crps(
    observations: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
) -> FloatArray:
    """Compute the CRPS of normal forecasts censored to [lower, upper].

    Parameters
    ----------
    observations : array_like, shape (...)
        Observations, in the unit of the variable. The score of an observation outside the bounds is
        the score of the nearest bound plus the distance of the observation from this bound.
    loc, scale : array_like, shape (...)
        Location and scale (>= 0) of the normal distribution before censoring, in the unit of the
        variable.
    lower, upper : array_like, shape (...)
        Bounds, in the unit of the variable; -inf and inf mean no bound.

    Returns
    -------
    ndarray of float64, shape (...)
        CRPS in the unit of the variable, >= 0; smaller is better. Its shape is that of all
        arguments after broadcasting. The CRPS is NaN where an argument is NaN, or where a location,
        scale or observation is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, a scale is negative, or no value lies within the bounds.

    Notes
    -----
    Jordan, Krüger and Lerch (2019), doi:10.18637/jss.v090.i12, give the formula. Gneiting et al.
    (2005), doi:10.1175/MWR2904.1, give the formula for normal distributions without bounds.

    Examples
    --------
    >>> censored_normal_crps([0.0, 2.0], 0.0, 1.0, 0.0, np.inf).round(2)
    array([0.12, 1.34])
    """
    mu, sigma, below, above, y = censored_parts(loc, scale, lower, upper, observations)
    y = np.where(np.isinf(y), np.nan, y)
    within = np.clip(y, below, above)
    z, alpha, omega = (_standardised(a, mu, sigma) for a in (within, below, above))
    # The differences are exactly 0 if y is on the bound, so rounding errors stay small there.
    score = _integral(z) - _integral(alpha) + _integral(-z) - _integral(-omega)
    spread = np.where(sigma > 0, sigma * np.maximum(score, 0.0), 0.0)
    point = np.abs(within - np.clip(mu, below, above))
    return np.asarray(np.abs(y - within) + np.where(sigma > 0, spread, point))


def censored_normal_mean_std(
    loc: npt.ArrayLike, scale: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Compute the mean and standard deviation of normal forecasts censored to [lower, upper].

    Parameters
    ----------
    loc, scale : array_like, shape (...)
        Location and scale (>= 0) of the normal distribution before censoring, in the unit of the
        variable.
    lower, upper : array_like, shape (...)
        Bounds, in the unit of the variable; -inf and inf mean no bound.

    Returns
    -------
    mean, std : ndarray of float64, shape (...)
        Mean and standard deviation, in the unit of the variable. Their shape is that of all
        arguments after broadcasting. Both are NaN where an argument is NaN, or where a location or
        scale is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, a scale is negative, or no value lies within the bounds.

    Notes
    -----
    The formulas follow from moments of the part of the normal distribution between the bounds.
    Messner, Mayr and Zeileis (2016), doi:10.32614/RJ-2016-012, explain censored forecasts.

    Examples
    --------
    >>> mean, std = censored_normal_mean_std(0.0, 1.0, [-np.inf, 0.0], np.inf)
    >>> mean.round(2), std.round(2)
    (array([0. , 0.4]), array([1.  , 0.58]))
    """
    mu, sigma, below, above = censored_parts(loc, scale, lower, upper)
    alpha, omega = _standardised(below, mu, sigma), _standardised(above, mu, sigma)
    # Deviations are from the median, which may be a bound, so a small variance keeps its digits.
    median = np.clip(0.0, alpha, omega)
    up, up_square, _ = _partial_moments(median, omega)
    down, down_square, _ = _partial_moments(-median, -alpha)
    variance = np.maximum(up_square + down_square - (up - down) ** 2, 0.0)
    mean = np.clip(np.clip(mu, below, above) + sigma * (up - down), below, above)
    # For bounds close to each other, rounding can exceed the variance.
    return mean, np.minimum(sigma * np.sqrt(variance), (above - below) / 2)


def censored_normal_skewness(
    loc: npt.ArrayLike, scale: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike
) -> FloatArray:
    """Compute the skewness of normal forecasts censored to [lower, upper].

    Parameters, missing values and errors are those of :func:`censored_normal_mean_std`.

    Returns
    -------
    ndarray of float64, shape (...)
        Skewness, without a unit; 0 if a single value has the probability 1. Its shape is that of
        all arguments after broadcasting. The skewness is exact to about 1e-6 if the values within
        the bounds have a probability of at least 0.001 before censoring, and less exact otherwise.

    Examples
    --------
    >>> censored_normal_skewness(0.0, 1.0, [-np.inf, 0.0], np.inf).round(2)
    array([0.  , 1.64])
    """
    mu, sigma, below, above = censored_parts(loc, scale, lower, upper)
    alpha, omega = _standardised(below, mu, sigma), _standardised(above, mu, sigma)
    median = np.clip(0.0, alpha, omega)
    up, up_square, up_cube = _partial_moments(median, omega)
    down, down_square, down_cube = _partial_moments(-median, -alpha)
    mean, square = up - down, up_square + down_square
    second = np.maximum(square - mean**2, 0.0)
    third = up_cube - down_cube - 3.0 * mean * square + 2.0 * mean**3
    spread = (sigma > 0) & (second > 0)
    skewness = np.where(spread, third, 0.0) / np.where(spread, second, 1.0) ** 1.5
    return np.where(np.isnan(mu + sigma), np.nan, skewness)


def censored_normal_quantile(
    q: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
) -> FloatArray:
    """Compute quantiles of normal forecasts censored to [lower, upper].

    Parameters
    ----------
    q : array_like, shape (k,)
        Levels in [0, 1], in any order. Level 0 gives the smallest possible value, and level 1 the
        largest.
    loc, scale : array_like, shape (...)
        Location and scale (>= 0) of the normal distribution before censoring, in the unit of the
        variable.
    lower, upper : array_like, shape (...)
        Bounds, in the unit of the variable; -inf and inf mean no bound.

    Returns
    -------
    ndarray of float64, shape (..., k)
        Quantiles in the unit of the variable; a higher level never has a lower quantile. The
        quantiles are NaN where an argument is NaN, or where a location or scale is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, a level is outside [0, 1], a scale is negative, or no value lies
        within the bounds.

    Notes
    -----
    Censoring does not change a quantile that lies within the bounds: see Messner, Mayr and Zeileis
    (2016), doi:10.32614/RJ-2016-012.

    Examples
    --------
    >>> censored_normal_quantile([0.25, 0.5, 0.9], 0.0, 1.0, 0.0, np.inf).round(2)
    array([0.  , 0.  , 1.28])
    """
    levels = np.asarray(q, np.float64)
    if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
        raise ValueError(f"q must be a 1-D array of levels in [0, 1], found {q!r}")
    mu, sigma, below, above = (a[..., np.newaxis] for a in censored_parts(loc, scale, lower, upper))
    deviation = np.where(sigma > 0, ndtri(levels), 0.0)  # 0 times infinity is NaN
    return np.asarray(np.clip(mu + sigma * deviation, below, above))


def censored_normal_exceedance(
    thresholds: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
) -> FloatArray:
    """Compute ``P(Y > threshold)`` of normal forecasts censored to [lower, upper].

    Parameters
    ----------
    thresholds : array_like, shape (k,) or (..., k)
        Thresholds, in the unit of the variable. Their leading axes broadcast to the forecasts.
    loc, scale : array_like, shape (...)
        Location and scale (>= 0) of the normal distribution before censoring, in the unit of the
        variable.
    lower, upper : array_like, shape (...)
        Bounds, in the unit of the variable; -inf and inf mean no bound.

    Returns
    -------
    ndarray of float64, shape (..., k)
        Probabilities in [0, 1]. The probability is 1 for a threshold below the lower bound, and 0
        for a threshold that is not below the upper bound. For all other thresholds, it is the
        probability before censoring. The probabilities are NaN where an argument is NaN, or where a
        location or scale is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, a scale is negative, or no value lies within the bounds.

    Examples
    --------
    >>> censored_normal_exceedance([-1.0, 0.0, 1.0], 0.0, 1.0, 0.0, np.inf).round(2)
    array([1.  , 0.5 , 0.16])
    """
    mu, sigma, below, above = (a[..., np.newaxis] for a in censored_parts(loc, scale, lower, upper))
    given = np.asarray(thresholds, np.float64)
    given = np.broadcast_to(given, (*mu.shape[:-1], given.shape[-1]))
    standard = _standardised(mu, given, sigma)  # distance of the location from the threshold
    smooth = np.where(sigma > 0, ndtr(standard), np.where(mu > given, 1.0, 0.0))
    inside = np.where(given < below, 1.0, np.where(given >= above, 0.0, smooth))
    return np.where(np.isnan(given + mu + sigma), np.nan, inside)


def censored_parts(
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *others: npt.ArrayLike,
) -> list[FloatArray]:
    """Return all arguments as float64 arrays of one shape, after checks of their values.

    Where a location or scale is infinite, or a bound is NaN, location and scale become NaN.
    """
    arrays = [np.asarray(a, np.float64) for a in (loc, scale, lower, upper, *others)]
    if np.any(arrays[1] < 0):
        raise ValueError(f"scale must not be negative, found {np.nanmin(arrays[1]):g}")
    try:
        mu, sigma, below, above, *rest = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise ValueError(
            f"shapes of loc, scale, lower, upper (and observations) do not match: {shapes}"
        ) from None
    if np.any((below > above) | (below == np.inf) | (above == -np.inf)):
        raise ValueError("lower must not exceed upper; for no bound give -inf and inf")
    missing = ~np.isfinite(mu + sigma) | np.isnan(below) | np.isnan(above)
    sigma = np.where(sigma < SMALLEST, 0.0, sigma)
    return [np.where(missing, np.nan, mu), np.where(missing, np.nan, sigma), below, above, *rest]


def _standardised(values: FloatArray, loc: FloatArray, scale: FloatArray) -> FloatArray:
    """Return ``(values - loc) / scale``, or ``values - loc`` where the scale is 0."""
    with np.errstate(over="ignore"):  # a tiny scale gives an infinite value
        return np.asarray((values - loc) / np.where(scale == 0, 1.0, scale))


def density(z: FloatArray) -> FloatArray:
    """Compute the density of the standard normal distribution at z."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.exp(-0.5 * z * z) / SQRT_2_PI)


def _integral(z: FloatArray) -> FloatArray:
    """Compute the integral of Phi² from -inf to z, where Phi is the standard normal CDF."""
    finite = np.where(np.isneginf(z), 0.0, z)
    below = ndtr(finite)
    integral = finite * below**2 + 2.0 * density(finite) * below - ndtr(SQRT_2 * finite) / SQRT_PI
    return np.where(np.isneginf(z), 0.0, integral)


def _partial_moments(
    start: FloatArray, end: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the moments 1 to 3 of ``min(max(Z - start, 0), end - start)`` for standard normal Z.

    The moments follow from those of ``max(Z - start, 0)`` and ``max(Z - end, 0)``.
    """
    open_end = np.isposinf(end)
    bounded = np.where(open_end, start, end)
    width = bounded - start
    whole = _exceedance(start)
    first, second, third = _exceedance(bounded)
    beyond = (
        first,
        second + 2.0 * width * first,
        third + 3.0 * width * second + 3.0 * width**2 * first,
    )
    mean, square, cube = (
        np.where(open_end, moment, moment - rest)
        for moment, rest in zip(whole, beyond, strict=True)
    )
    return mean, square, cube


def _exceedance(t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the moments 1 to 3 of ``max(Z - t, 0)`` for a standard normal Z."""
    at, above = density(t), ndtr(-t)
    with np.errstate(over="ignore", invalid="ignore"):
        return (
            at - t * above,
            (1.0 + t * t) * above - t * at,
            (2.0 + t * t) * at - t * (3.0 + t * t) * above,
        )
