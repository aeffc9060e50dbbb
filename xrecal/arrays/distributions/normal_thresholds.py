"""Formulas for the CRPS of normal distributions and their mixtures between two thresholds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, owens_t

from xrecal.arrays.scores.crps import thresholds_of
from xrecal.typing import FloatArray

from .censored import SMALLEST, censored_normal_crps, density
from .normal import as_forecasts


def censored_threshold_crps(
    observations: FloatArray,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    below: npt.ArrayLike,
    above: npt.ArrayLike,
    *,
    lower: npt.ArrayLike = -np.inf,
    upper: npt.ArrayLike = np.inf,
) -> FloatArray:
    r"""Compute the CRPS of normal distributions censored to bounds, between two thresholds.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in the unit of the variable.
    loc, scale : array_like, broadcast to ``observations``
        Location and scale (>= 0) of the normal distribution before censoring, in the unit of the
        variable.
    below, above : array_like, broadcast to ``observations``
        Lower and upper bound of the variable, in its unit; -inf and inf mean no bound.
    lower, upper : array_like, broadcast to ``observations``
        Thresholds, in the unit of the variable; -inf and inf mean no threshold.

    Returns
    -------
    array of float64, shape (...)
        :math:`\int_{lower}^{upper} (F(z) - 1\{y \le z\})^2 dz \ge 0`, in the unit of the
        variable. It is NaN where an argument is NaN, or where a location or scale is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, a scale is negative, a lower bound exceeds the upper bound, or a
        lower threshold exceeds the upper threshold.

    Notes
    -----
    The score equals the CRPS if all values of forecast and observation beyond a threshold are moved
    to this threshold. See :func:`~xrecal.arrays.threshold_weighted_crps` and
    :func:`~xrecal.arrays.censored_normal_crps`.

    Examples
    --------
    >>> censored_threshold_crps(np.array([0.0, 2.0]), 0.0, 1.0, 0.0, np.inf, lower=1.0).round(2)
    array([0.01, 0.86])
    """
    y = np.asarray(observations, np.float64)
    low, high = thresholds_of(y, lower, upper)
    ends = [np.clip(np.asarray(bound, np.float64), low, high) for bound in (below, above)]
    return censored_normal_crps(np.clip(y, low, high), loc, scale, *ends)


def normal_threshold_crps(
    observations: FloatArray,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    lower: npt.ArrayLike = -np.inf,
    upper: npt.ArrayLike = np.inf,
) -> FloatArray:
    r"""Compute the CRPS of mixtures of normal distributions between two thresholds.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in the unit of the variable.
    loc, scale : array_like, shape (..., k)
        Locations and standard deviations (>= 0) of the components, in the unit of the variable.
    weights : array_like, shape (..., k), optional
        Weights of the components (>= 0); equal by default.
    lower, upper : array_like, broadcast to ``observations``
        Thresholds, in the unit of the variable; -inf and inf mean no threshold.

    Returns
    -------
    array of float64, shape (...)
        :math:`\int_{lower}^{upper} (F(z) - 1\{y \le z\})^2 dz \ge 0`, in the unit of the variable.
        It is NaN where a threshold, the observation or all components are missing, or where the
        observation is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, a scale or weight is negative, a weight is infinite, or a lower
        threshold exceeds the upper threshold.

    Notes
    -----
    The score is the threshold-weighted CRPS [1]_. The cost is O(k²) per forecast. Below the
    observation, the integrand is a sum of products of two normal CDFs. Above the observation, it is
    a sum of products of two complements 1 - F of normal CDFs. The formula for the integral of a
    product contains a probability of two correlated normal variables. This probability follows from
    Owen's T function [2]_. The absolute error is about 1e-15 times the distance between thresholds
    and components.

    References
    ----------
    .. [1] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110
    .. [2] Owen (1980), A table of normal integrals. https://doi.org/10.1080/03610918008812164

    Examples
    --------
    >>> observations, one = np.array([0.0, 2.0]), np.ones((2, 1))
    >>> normal_threshold_crps(observations, 0 * one, one, lower=1.0).round(2)
    array([0.01, 0.86])
    """
    y = np.asarray(observations, np.float64)
    low, high = thresholds_of(y, lower, upper)
    mu, sigma, w = as_forecasts(loc, scale, weights, True)
    if mu.shape[:-1] != y.shape:
        raise ValueError(
            f"observations have shape {y.shape}, forecasts have {mu.shape[:-1]}; they must match"
        )
    sigma = np.where(sigma < SMALLEST, 0.0, sigma)
    missing = np.isnan(w).any(-1) | ~np.isfinite(y) | np.isnan(low) | np.isnan(high)
    at, low, high = (np.where(missing, 0.0, part) for part in (np.clip(y, low, high), low, high))
    parts = [np.moveaxis(np.where(missing[..., np.newaxis], 0.0, a), -1, 0) for a in (mu, sigma, w)]
    mirrored = (-parts[0], *parts[1:])
    below = _squared_integral(at, *parts) - _squared_integral(low, *parts)
    above = _squared_integral(-at, *mirrored) - _squared_integral(-high, *mirrored)
    return np.where(missing, np.nan, np.maximum(below, 0.0) + np.maximum(above, 0.0))


def _squared_integral(
    z: FloatArray, mu: FloatArray, sigma: FloatArray, w: FloatArray
) -> FloatArray:
    """Integrate F² from -inf to z (...), for mixtures F with components on the first axis."""
    from_here = np.isneginf(z)
    z = np.where(from_here, 0.0, z)
    total = np.zeros(z.shape)
    for one in range(len(mu)):
        total += w[one] ** 2 * _product_integral(z, mu[one], sigma[one], mu[one], sigma[one])
    for one, other in combinations(range(len(mu)), 2):
        pair = mu[one], sigma[one], mu[other], sigma[other]
        total += 2.0 * w[one] * w[other] * _product_integral(z, *pair)
    return np.where(from_here, 0.0, total)


def _product_integral(
    z: FloatArray, m1: FloatArray, s1: FloatArray, m2: FloatArray, s2: FloatArray
) -> FloatArray:
    """Integrate the product F1 F2 of two normal CDFs from -inf to z.

    The integral is E[max(z - max(X1, X2), 0)] for independent X1 and X2. After two integrations by
    parts, the only term without an elementary formula is P(X1 < X2 < z).
    """
    spread = np.hypot(s1, s2)
    apart = m2 - m1
    # The product of both densities is a normal density with this mean. If its scale is 0, it is a
    # single value. The mean is exactly z if the means of both densities are.
    unit = np.where(spread > 0, spread, 1.0)
    from_middle = (s2 / unit) ** 2 * (z - m1) + (s1 / unit) ** 2 * (z - m2)
    a, b = _standard(z - m1, s1), _standard(z - m2, s2)
    c = _standard(from_middle, s1 * s2 / unit)
    k = _standard(apart, spread)
    smooth = (
        (z - m1) * ndtr(a) * ndtr(b)
        + s1 * density(a) * ndtr(b)
        + s2 * density(b) * ndtr(a)
        - spread * density(k) * ndtr(c)
        - apart * _between(a, b, c, k)
    )
    points = np.maximum(z - np.maximum(m1, m2), 0.0)
    return np.asarray(np.where(spread > 0, smooth, points))


def _between(a: FloatArray, b: FloatArray, c: FloatArray, k: FloatArray) -> FloatArray:
    """Compute P(X1 < X2 < z) from four distances, each divided by its standard deviation.

    X1 and X2 are independent normal variables. ``a`` and ``b`` are the distances of z from the
    means of X1 and X2. ``c`` is the distance of z from the mean of the normal density that is
    proportional to the product of both densities. ``k`` is the distance of the mean of X2 from the
    mean of X1. If b or k is 0, the function may treat it as positive or as negative, but all terms
    must use the same sign.
    """
    b, k = (np.where(part == 0, 1e-300, part) for part in (b, k))
    opposite = np.where((b < 0) != (k < 0), 0.5, 0.0)
    return np.asarray(0.5 * (ndtr(b) + ndtr(k)) - _owen(b, a) - _owen(k, c) - opposite)


def _owen(h: FloatArray, other: FloatArray) -> FloatArray:
    """Compute Owen's function T(h, other / h); it is 0 for infinite h."""
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.where(np.isinf(h), 0.0, other / h)
        return np.asarray(owens_t(h, slope))


def _standard(distance: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the distance in units of the scale; infinite where the scale is 0."""
    with np.errstate(over="ignore"):
        scaled = distance / np.where(scale > 0, scale, 1.0)
    return np.asarray(np.where(scale > 0, scaled, np.where(distance > 0, np.inf, -np.inf)))
