"""Log score: minus the log of the forecast density at the observation.

Normal distributions have a density. For members, Gaussian kernels estimate a density; for
quantiles, the density is constant between neighbouring quantiles. A point mass has no density, so
the score of an observation on a point mass is NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Cube, IndexMatrix, Matrix, OutMatrix, inner, kernel
from xrecal.arrays.distributions.censored import censored_parts
from xrecal.arrays.distributions.normal import as_forecasts
from xrecal.arrays.distributions.weighted import by_support, check_levels, total_mass
from xrecal.arrays.rows import double_blocks
from xrecal.typing import FloatArray

from .crps import check_shape

LOG_SQRT_2_PI = 0.5 * math.log(2.0 * math.pi)

# Two quartiles count as equal if they differ by less than this share of the standard deviation.
SAME_QUARTILES = 1e-9

# Distances of at least this number of bandwidths have squares that overflow.
FARTHEST = 1e150


def log_score(
    observations: FloatArray, members: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    r"""Compute the log score of ensembles, with a density from Gaussian kernels.

    Parameters
    ----------
    observations : array of float, shape (...) or (..., T)
        Observations, in the unit u of the members.
    members : array of float, shape (..., n)
        Members; NaN marks a missing member.
    weights : array of float, shape (..., n) or (..., T, n), optional
        Weights >= 0, which the function normalises; equal by default. If ``weights`` have one axis
        more than ``members``, T forecasts share the members. The function then sorts the members
        once, and the cost is O(n) per forecast.

    Returns
    -------
    array of float64, shape of ``observations``
        :math:`-\ln \sum_i w_i \varphi((y - x_i) / h) / h`, with the standard normal density
        :math:`\varphi` and the bandwidth h in Notes. The forecast density is in 1/u. The score has
        no unit and may be negative; smaller is better. If all members are equal, or if there is
        only one member, the forecast is a point mass. The score is then NaN if the observation
        equals this value, and inf otherwise. The score is also NaN if the observation is not
        finite, if all members are missing, if a weight is NaN, or if an infinite member has
        positive weight.

    Raises
    ------
    ValueError
        If a weight is negative or shapes do not fit.

    Notes
    -----
    The bandwidth is :math:`h = 1.06 \min(s, r / 1.34) \, m^{-1/5}` [1]_ with the standard deviation
    s and the interquartile range r, as in the R package scoringRules [2]_. If r is 0, the bandwidth
    depends on s alone. For weights that sum to one, :math:`m = 1 / \sum_i w_i^2` is the effective
    number of members, and :math:`s^2 = \sum_i w_i (x_i - \bar x)^2 / (1 - 1 / m)`. A quartile is
    the mean of the quantiles at all levels in a range of width 1/m around the level of the quartile
    [3]_. With equal weights, m is the number of members, s the sample standard deviation, and the
    quartiles are the usual quartiles, interpolated between members.

    The score depends on the bandwidth, most of all for small ensembles and for observations outside
    the ensemble [4]_. The :func:`~xrecal.arrays.crps` needs no bandwidth. Members at a bound of the
    variable, such as dry members, are a point mass. The kernels wrongly spread this mass to both
    sides of the bound.

    The cost is O(n log n) for a forecast that has its own members.

    References
    ----------
    .. [1] Silverman (1986), Density estimation for statistics and data analysis.
       https://doi.org/10.1201/9781315140919
    .. [2] Jordan, Krüger & Lerch (2019), Evaluating probabilistic forecasts with scoringRules.
       https://doi.org/10.18637/jss.v090.i12
    .. [3] Akinshin (2023), Weighted quantile estimators. https://arxiv.org/abs/2304.07265
    .. [4] Krüger, Lerch, Thorarinsdottir & Gneiting (2021), Predictive inference based on Markov
       chain Monte Carlo output. https://doi.org/10.1111/insr.12405

    Examples
    --------
    >>> log_score(np.array([2.0, 9.0]), np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])).round(2)
    array([ 1.45, 15.75])
    """
    observations = np.asarray(observations)
    if weights is not None and (np.asarray(weights) < 0).any():
        raise ValueError("weights must not be negative")
    support, mass, shape = by_support(members, weights)
    check_shape(observations, shape)
    scores = np.empty(mass.shape[:2])
    for block, (y, x, w) in double_blocks(observations.reshape(scores.shape), support, mass):
        _fill_log_scores(y, x, w, np.argsort(x, axis=-1), scores[block])
    return scores.reshape(shape)


def quantile_log_score(
    observations: FloatArray, quantiles: FloatArray, q: FloatArray
) -> FloatArray:
    r"""Compute the log score of forecasts that consist of quantiles.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in the unit u of the quantiles.
    quantiles : array of float, shape (..., m)
        Quantiles of each forecast; NaN marks a missing quantile.
    q : array of float, shape (m,)
        Different levels of the quantiles in [0, 1], in any order.

    Returns
    -------
    array of float64, shape (...)
        :math:`-\ln \frac{\tau_{i+1} - \tau_i}{z_{i+1} - z_i}` with the two neighbouring quantiles
        z, at the levels τ, that enclose the observation. With the density in 1/u, the score has no
        unit. It may be negative; smaller is better. The score is inf for an observation below or
        above all quantiles. The score is NaN if several quantiles equal the observation, if the
        observation or a quantile is infinite, if the observation is missing, or if there are fewer
        than two quantiles.

    Raises
    ------
    ValueError
        If a level is outside [0, 1] or shapes do not fit.

    Notes
    -----
    The density is the slope of a CDF that is linear between quantiles, as in
    :func:`~xrecal.arrays.quantile_pit`. The quantiles do not show where the mass beyond the
    outermost levels lies. So every observation beyond the outermost quantiles has the score inf. To
    avoid this, give levels near 0 and 1. An observation that equals one quantile belongs to the
    interval above this quantile, or to the interval below if this quantile is the highest. The
    function first sorts quantiles that are in the wrong order. The cost is O(m log m) per forecast.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> quantiles, levels = np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.5, 0.9])
    >>> float(quantile_log_score(np.array(3.0), quantiles, levels).round(2))
    1.61
    """
    levels = check_levels(q)
    y, z = np.asarray(observations, np.float64), np.asarray(quantiles, np.float64)
    if z.shape != (*y.shape, levels.size):
        raise ValueError(
            f"quantiles have shape {z.shape}, but observations and levels need "
            f"{(*y.shape, levels.size)}; put the levels on the last axis"
        )
    y = y[..., np.newaxis]
    n = (~np.isnan(z)).sum(-1, keepdims=True)
    undefined = (n < 2) | ~np.isfinite(y) | np.isinf(z).any(-1, keepdims=True)
    if levels.size < 2:
        return np.full(y.shape[:-1], np.nan)
    steps = np.sort(np.where(np.isnan(z), np.nan, levels), axis=-1)  # NaN last
    z = np.sort(z, axis=-1)
    below, up_to = (np.asarray(part.sum(-1, keepdims=True)) for part in (z < y, z <= y))
    upper = np.clip(up_to, 1, np.maximum(n - 1, 1))
    outside = (up_to == 0) | (below == n)
    tied = up_to - below > 1
    with np.errstate(invalid="ignore", divide="ignore"):  # replaced below
        share, width = (
            np.take_along_axis(part, upper, -1) - np.take_along_axis(part, upper - 1, -1)
            for part in (steps, z)
        )
        score = np.log(width) - np.log(share)
    score = np.where(outside, np.inf, score)
    return np.where(undefined | tied, np.nan, score)[..., 0]


def normal_log_score(
    observations: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    r"""Compute the log score of normal distributions, or of mixtures of normal distributions.

    Parameters
    ----------
    observations : array_like, shape (...)
        Observations, in the unit u of the variable.
    loc, scale : array_like, shape (...) or (..., k)
        Locations and standard deviations (>= 0), in u. The last axis holds components if
        ``weights`` is given, or if ``loc`` has one axis more than ``observations``.
    weights : array_like, shape (..., k), optional
        Weights of the components (>= 0); equal by default.

    Returns
    -------
    ndarray of float64, shape (...)
        :math:`-\ln \sum_k w_k \varphi((y - \mu_k) / \sigma_k) / \sigma_k`, with the standard normal
        density :math:`\varphi`. The forecast density is in 1/u. The score has no unit and may be
        negative; smaller is better. A component of scale 0 is a point mass and adds no density. If
        all components have scale 0, the score is inf. If the location of a component of scale 0
        equals the observation, the score is NaN. It is also NaN if an input is missing or the
        observation is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, or a scale or weight is negative.

    Notes
    -----
    The cost is O(k) per forecast. The score has full precision, also for observations far from the
    forecast.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> normal_log_score([0.0, 2.0], 0.0, 1.0).round(2)
    array([0.92, 2.92])
    """
    y = np.asarray(observations, np.float64)
    components = weights is not None or np.ndim(loc) == y.ndim + 1
    mu, sigma, w = as_forecasts(loc, scale, weights, components)
    try:
        shape = np.broadcast_shapes(y.shape, mu.shape[:-1])
    except ValueError:
        raise ValueError(
            f"observations have shape {y.shape}, forecasts have {mu.shape[:-1]}; they must match"
        ) from None
    density, point = np.full(shape, -np.inf), np.zeros(shape, dtype=np.bool_)  # log of the density
    for k in range(mu.shape[-1]):
        centre, width, mass = (a[..., k] for a in (mu, sigma, w))
        smooth = width > 0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            z = (y - centre) / np.where(smooth, width, 1.0)
            log = np.log(mass) - 0.5 * z * z - np.log(np.where(smooth, width, 1.0))
            log = np.where(smooth | np.isnan(mass), log - LOG_SQRT_2_PI, -np.inf)
            density = np.logaddexp(density, log)
        point |= ~smooth & (mass > 0) & (centre == y)
    return np.where(point | ~np.isfinite(y), np.nan, -density)


def censored_normal_log_score(
    observations: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
) -> FloatArray:
    """Compute the log score of normal distributions censored to [lower, upper].

    Parameters
    ----------
    observations : array_like, shape (...)
        Observations, in the unit of the variable.
    loc, scale : array_like, shape (...)
        Location and scale (>= 0) of the normal distribution before censoring, in the same unit.
    lower, upper : array_like, shape (...)
        Bounds, in the same unit; -inf and inf mean no bound.

    Returns
    -------
    ndarray of float64, shape (...)
        The score of :func:`normal_log_score` for an observation between the bounds, and inf for an
        observation outside the bounds. For an observation on a bound the score is NaN, because a
        point mass has no density. The score is also NaN if an argument is NaN, or if a location,
        scale or observation is infinite.

    Raises
    ------
    ValueError
        If shapes do not match, if a scale is negative, or if there are no values between the
        bounds.

    Notes
    -----
    A mean score that leaves out NaN does not count observations on a bound. So this mean does not
    judge the probability that the forecast gives to a bound. The mean of
    :func:`~xrecal.arrays.censored_normal_crps` judges this probability, too.

    Examples
    --------
    >>> censored_normal_log_score([-1.0, 0.0, 2.0], 0.0, 1.0, 0.0, np.inf).round(2)
    array([ inf,  nan, 2.92])
    """
    mu, sigma, below, above, y = censored_parts(loc, scale, lower, upper, observations)
    score = normal_log_score(y, mu, sigma)
    outside = ((y < below) | (y > above)) & np.isfinite(y) & ~np.isnan(mu)
    return np.where((y == below) | (y == above), np.nan, np.where(outside, np.inf, score))


@kernel
def _fill_log_scores(
    observations: Matrix, support: Matrix, mass: Cube, order: IndexMatrix, out: OutMatrix
) -> None:
    """Compute scores (L, T) of ensembles with members (L, n) and weights (L, T, n).

    ``order`` (L, n) has the positions of the members, from the lowest member to the highest.
    """
    values, shares = np.empty(support.shape[1]), np.empty(support.shape[1])
    for cell in range(support.shape[0]):
        for t in range(mass.shape[1]):
            y, row, used = observations[cell, t], mass[cell, t], 0
            total = total_mass(support[cell], row)
            for i in order[cell]:
                if row[i] > 0.0 and not np.isnan(support[cell, i]):
                    values[used], shares[used] = support[cell, i], row[i] / total
                    used += 1
            defined = total > 0.0 and abs(y) < np.inf
            out[cell, t] = _log_score(y, values[:used], shares[:used]) if defined else np.nan


@inner
def _log_score(y: float, values: Any, shares: Any) -> Any:
    """Return the log score of ascending members (n,) with weights (n,) that sum to one."""
    width = _bandwidth(values, shares)
    if not width > 0.0:
        return np.nan if values[0] <= y <= values[-1] else np.inf
    nearest = np.inf
    for value in values:
        nearest = min(nearest, abs(value - y))
    z, density = nearest / width, 0.0
    if z > FARTHEST:
        return np.inf
    # Densities are divided by the kernel at the nearest member, so that they do not become 0 far
    # away from all members.
    for i in range(values.size):
        apart = abs(values[i] - y)
        beyond = (apart - nearest) / width * ((apart + nearest) / width)
        density += shares[i] * np.exp(-0.5 * beyond)
    return 0.5 * z * z + np.log(width) + LOG_SQRT_2_PI - np.log(density)


@inner
def _bandwidth(values: Any, shares: Any) -> Any:
    """Return Silverman's bandwidth for ascending members (n,) with weights (n,).

    The result is 0 if all members are equal. The function subtracts the lowest member first, so
    that rounding does not make equal members different.
    """
    lowest, mean, variance, others, part = values[0], 0.0, 0.0, 0.0, 0.0
    for i in range(values.size):
        mean += shares[i] * (values[i] - lowest)
        part += shares[i] * shares[i]
        others += shares[i] * (1.0 - shares[i])  # 1 - sum of squares, without loss of digits
    for i in range(values.size):
        variance += shares[i] * (values[i] - lowest - mean) ** 2
    if not (variance > 0.0 and others > 0.0):
        return 0.0
    spread = np.sqrt(variance / others)
    low, high = 0.25 * (1.0 - part), 0.75 * (1.0 - part)
    between, below = 0.0, 0.0
    for i in range(values.size):
        above = below + shares[i]
        in_high = max(min(above, high + part) - max(below, high), 0.0)
        in_low = max(min(above, low + part) - max(below, low), 0.0)
        between += (in_high - in_low) * (values[i] - lowest)
        below = above
    between /= part
    if between > SAME_QUARTILES * spread:
        spread = min(spread, between / 1.34)
    return 1.06 * spread * part**0.2
