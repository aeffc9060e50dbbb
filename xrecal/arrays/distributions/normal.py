"""Formulas for normal distributions and their mixtures: distances, CRPS, quantiles, moments.

A component is one of the normal distributions of a mixture. The last axis of arrays holds the
components; their weights may have any sum. A component with scale 0 has a single value, so an
ensemble is a mixture whose scales are all 0. The functions check their input and convert it to
float64 copies, so they never change it.

The functions ignore components with a NaN location or scale, and components of weight 0. They
return NaN for a forecast if they ignore all its components. They also return NaN if a forecast has
an infinite value or a NaN weight.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from xrecal.arrays.compiled import Cube, Matrix, OutMatrix, OutVector, Vector, inner, kernel
from xrecal.typing import FloatArray

SQRT_2 = math.sqrt(2.0)
SQRT_2_PI = math.sqrt(2.0 * math.pi)

ROUNDING = 1e-13  # smaller squared distances, as a share of 2E|X-Y|, are rounding errors


def normal_squared_energy_distance(
    x_loc: npt.ArrayLike,
    x_scale: npt.ArrayLike,
    y_loc: npt.ArrayLike | None = None,
    y_scale: npt.ArrayLike | None = None,
    *,
    x_weights: npt.ArrayLike | None = None,
    y_weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Compute squared energy distances 2E|X-Y| - E|X-X'| - E|Y-Y'| of normal distributions.

    Parameters
    ----------
    x_loc, x_scale : array_like, shape (n,) or (n, k)
        Locations and standard deviations (>= 0) of n forecasts X, in the unit of the variable. If
        there are two axes, the forecasts are mixtures of k normal distributions.
    y_loc, y_scale : array_like, shape (q,) or (q, l), optional
        Locations and standard deviations (>= 0) of q forecasts Y, which may be mixtures of l normal
        distributions. By default, the function compares the forecasts X with each other.
    x_weights, y_weights : array_like, shape (n, k) and (q, l), optional
        Weights of the components of mixtures (>= 0), equal by default.

    Returns
    -------
    ndarray of float64, shape (n, q)
        Squared distances in the unit of the variable, >= 0. If Y is not given, they are symmetric
        with a zero diagonal.

    Raises
    ------
    ValueError
        If shapes do not match, a scale or weight is negative, a weight is infinite, or arguments
        for Y are given without both y_loc and y_scale.

    Notes
    -----
    The cost is O(n q k l + n k² + q l²). The absolute error is about 1e-15 times 2E|X-Y|. Székely
    and Rizzo (2013), doi:10.1016/j.jspi.2013.03.018, define the distance.

    Examples
    --------
    >>> normal_squared_energy_distance([0.0], [1.0], [1.0, 2.0], [1.0, 1.0]).round(3)
    array([[0.542, 1.944]])
    """
    x = _as_mixture(x_loc, x_scale, x_weights, np.ndim(x_loc) == 2)
    if (y_loc is None) != (y_scale is None) or (y_loc is None and y_weights is not None):
        raise ValueError("y is incomplete; give y_loc and y_scale, or no argument for y")
    if y_loc is None or y_scale is None:
        y = x
    else:
        y = _as_mixture(y_loc, y_scale, y_weights, np.ndim(y_loc) == 2)
    if x[0].ndim != 2 or y[0].ndim != 2:
        raise ValueError(
            "locations must have shape (n,) or (n, k), found "
            f"{np.shape(x_loc)} and {np.shape(x_loc if y_loc is None else y_loc)}"
        )
    out = np.empty((len(x[0]), len(y[0])))
    fill_normal_distances(*x, *y, out)
    return out


def normal_crps(
    observations: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Compute the CRPS of normal distributions, or of mixtures of normal distributions.

    Parameters
    ----------
    observations : array_like, shape (...)
        Observations, in the unit of the variable.
    loc, scale : array_like, shape (...) or (..., k)
        Locations and standard deviations (>= 0), in the unit of the variable. If weights are given,
        or if loc has one axis more than observations, the last axis holds the components of
        mixtures.
    weights : array_like, shape (..., k), optional
        Weights of the components (>= 0); equal by default.

    Returns
    -------
    ndarray of float64, shape (...)
        CRPS in the unit of the variable, >= 0; smaller is better. The CRPS is NaN if the
        observation is missing, or if all components are missing.

    Raises
    ------
    ValueError
        If shapes do not match, a scale or weight is negative, or a weight is infinite.

    Notes
    -----
    The cost is O(k²) per forecast. Grimit et al. (2006), doi:10.1256/qj.05.235, give the formula.

    Examples
    --------
    >>> normal_crps([0.0, 1.0], 0.0, 1.0).round(3)
    array([0.234, 0.602])
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
    size = math.prod(shape)
    mu, sigma, w = (
        np.broadcast_to(a, (*shape, a.shape[-1])).reshape(size, a.shape[-1]).copy()
        for a in (mu, sigma, w)
    )
    out = np.empty(size)
    fill_normal_crps(np.broadcast_to(y, shape).flatten(), mu, sigma, w, out)
    return out.reshape(shape)


def normal_quantile(
    q: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Compute quantiles of normal distributions or mixtures: the smallest z with F(z) >= q.

    Parameters
    ----------
    q : array_like, shape (Q,)
        Levels in [0, 1], in any order. Level 0 gives the smallest possible value, and level 1 the
        largest.
    loc, scale : array_like, shape (...), or (..., k) if weights are given
        Locations and standard deviations (>= 0), in the unit of the variable.
    weights : array_like, shape (..., k), optional
        Weights of the components of mixtures (>= 0). If weights are given, the last axis of loc and
        scale holds the components.

    Returns
    -------
    ndarray of float64, shape (..., Q)
        Quantiles in the unit of the variable; a higher level never has a lower quantile. The
        quantiles are NaN where all components of a forecast are missing.

    Raises
    ------
    ValueError
        If shapes do not match, a level is outside [0, 1], a scale or weight is negative, or a
        weight is infinite.

    Notes
    -----
    Without weights, the function uses a formula. With weights, it searches for each quantile, and
    computes about ten values of the CDF per level. Each value costs O(k). If many components have
    scale 0, the search costs O(k²).

    Examples
    --------
    >>> normal_quantile([0.1, 0.5, 0.9], 10.0, 2.0).round(2)
    array([ 7.44, 10.  , 12.56])
    """
    levels = np.asarray(q, np.float64)
    if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
        raise ValueError(f"q must be a 1-D array of levels in [0, 1], found {q!r}")
    mu, sigma, w = as_forecasts(loc, scale, weights, weights is not None)
    ascending = np.argsort(levels)
    out = np.empty((*mu.shape[:-1], levels.size))
    flat = np.empty((math.prod(mu.shape[:-1]), levels.size))
    rows = [a.reshape(len(flat), a.shape[-1]) for a in (mu, sigma, w)]
    fill_normal_quantiles(
        levels[ascending], ndtri(levels[ascending]), rows[0], rows[1], rows[2], flat
    )
    out[..., ascending] = flat.reshape(out.shape)
    return out


def normal_exceedance(
    thresholds: npt.ArrayLike,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Compute ``P(Y > threshold)`` of normal distributions or of mixtures of them.

    Parameters
    ----------
    thresholds : array_like, shape (Q,) or (..., Q)
        Thresholds, in the unit of the variable. Their leading axes broadcast to the forecasts.
    loc, scale : array_like, shape (...), or (..., k) if weights are given
        Locations and standard deviations (>= 0), in the unit of the variable.
    weights : array_like, shape (..., k), optional
        Weights of the components of mixtures (>= 0). If weights are given, the last axis of loc and
        scale holds the components.

    Returns
    -------
    ndarray of float64, shape (..., Q)
        Probabilities in [0, 1]; small probabilities are exact to all digits. A component of scale 0
        is a single value. A probability is NaN if the threshold is missing, or if all components
        are missing.

    Raises
    ------
    ValueError
        If shapes do not match, a scale or weight is negative, or a weight is infinite.

    Examples
    --------
    >>> normal_exceedance([10.0, 12.0], 10.0, 2.0).round(2)
    array([0.5 , 0.16])
    """
    mu, sigma, w = as_forecasts(loc, scale, weights, weights is not None)
    given = np.asarray(thresholds, np.float64)
    given = np.broadcast_to(given, (*mu.shape[:-1], given.shape[-1]))
    above = np.zeros(given.shape)
    for k in range(mu.shape[-1]):
        centre, width, mass = (a[..., k, np.newaxis] for a in (mu, sigma, w))
        with np.errstate(over="ignore"):  # infinitely many deviations away
            standard = (centre - given) / np.where(width > 0, width, 1.0)
        above += mass * np.where(width > 0, ndtr(standard), np.where(centre > given, 1.0, 0.0))
    return np.where(np.isnan(given), np.nan, np.minimum(above, 1.0))


def normal_mean_std(
    loc: npt.ArrayLike, scale: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Compute the mean and standard deviation of normal distributions or of mixtures of them.

    Parameters
    ----------
    loc, scale : array_like, shape (...), or (..., k) if weights are given
        Locations and standard deviations (>= 0), in the unit of the variable.
    weights : array_like, shape (..., k), optional
        Weights of the components of mixtures (>= 0). If weights are given, the last axis of loc and
        scale holds the components.

    Returns
    -------
    mean, std : ndarray of float64, shape (...)
        Mean and standard deviation, in the unit of the variable. They are NaN where all components
        of a forecast are missing.

    Raises
    ------
    ValueError
        If shapes do not match, a scale or weight is negative, or a weight is infinite.

    Examples
    --------
    >>> normal_mean_std([[0.0, 2.0]], 0.0, [0.5, 0.5])
    (array([1.]), array([1.]))
    """
    mu, sigma, w = as_forecasts(loc, scale, weights, weights is not None)
    mean = np.sum(w * mu, axis=-1)
    variance = np.sum(w * (sigma**2 + (mu - mean[..., np.newaxis]) ** 2), axis=-1)
    return mean, np.sqrt(variance)


def normal_skewness(
    loc: npt.ArrayLike, scale: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> FloatArray:
    """Compute the skewness of mixtures of normal distributions; it is 0 for a single component.

    Parameters, missing values and errors are those of :func:`normal_mean_std`.

    Returns
    -------
    ndarray of float64, shape (...)
        Skewness, without a unit; 0 if a forecast has only one possible value.

    Examples
    --------
    >>> normal_skewness([[0.0, 1.0]], 0.0, [0.75, 0.25]).round(2)
    array([1.15])
    """
    mu, sigma, w = as_forecasts(loc, scale, weights, weights is not None)
    from_mean = mu - np.sum(w * mu, axis=-1, keepdims=True)
    size = np.maximum(np.abs(from_mean), sigma).max(axis=-1, keepdims=True, initial=0.0)
    rounding = 1e-14 * np.abs(mu).max(axis=-1, keepdims=True, initial=0.0)
    size = np.where(size > rounding, size, np.inf)  # cubes may overflow or underflow
    d, s = from_mean / size, sigma / size
    second = np.sum(w * (s**2 + d**2), axis=-1)
    third = np.sum(w * (d**3 + 3.0 * d * s**2), axis=-1)
    return np.asarray(third / np.where(second > 0, second, 1.0) ** 1.5)


def as_forecasts(
    loc: npt.ArrayLike, scale: npt.ArrayLike, weights: npt.ArrayLike | None, components: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return location, scale and weights (..., k) as float64, with weights that sum to 1.

    Locations and weights are NaN if the forecast is missing. If `components` is False, the
    function adds a last axis of length 1.
    """
    mu, sigma, w = _as_mixture(loc, scale, weights, components)
    w[np.isnan(mu + sigma)] = 0.0  # a missing component
    mu[w == 0] = sigma[w == 0] = 0.0
    total = w.sum(axis=-1, keepdims=True)
    missing = ~np.isfinite(mu + sigma + w).all(axis=-1, keepdims=True) | (total == 0)
    w = np.where(missing, np.nan, w / np.where(missing, 1.0, total))
    return np.where(missing, np.nan, mu), sigma, w


def _as_mixture(
    loc: npt.ArrayLike, scale: npt.ArrayLike, weights: npt.ArrayLike | None, components: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return checked copies of location, scale and weights (..., k) as float64.

    If `components` is False, the function adds a last axis of length 1.
    """
    mu, sigma = np.asarray(loc, np.float64), np.asarray(scale, np.float64)
    if components and (mu.ndim == 0 or mu.shape[-1] == 0):
        raise ValueError(f"loc must have components on its last axis, found shape {mu.shape}")
    if not components:
        mu, sigma = mu[..., np.newaxis], sigma[..., np.newaxis]
    w = np.ones(1) if weights is None else np.asarray(weights, np.float64)
    if np.any(sigma < 0):
        raise ValueError(f"scale must not be negative, found {np.nanmin(sigma):g}")
    if np.any(w < 0) or np.any(np.isinf(w)):
        raise ValueError("weights must be finite and not negative")
    try:
        mu, sigma, w = (a.copy() for a in np.broadcast_arrays(mu, sigma, w))
    except ValueError:
        raise ValueError(
            f"shapes do not match (components last): loc {mu.shape}, scale {sigma.shape}, weights "
            f"{w.shape}; give scale and weights the shape of loc"
        ) from None
    return mu, sigma, w


@kernel
def mean_absolute_normal(loc: float, scale: float) -> float:
    """Compute E|Z| for Z ~ N(loc, scale²), in the unit of loc; if the scale is 0, it is |loc|."""
    if scale == 0.0:
        return abs(loc)
    z = loc / scale
    return loc * math.erf(z / SQRT_2) + 2.0 * scale * math.exp(-0.5 * z * z) / SQRT_2_PI


@inner
def _mean_distance(x_loc, x_scale, x_weights, y_loc, y_scale, y_weights):  # type: ignore[no-untyped-def]
    """Compute E|X - Y| of mixtures X (k,) and Y (l,), whose weights each sum to one."""
    total = 0.0
    for k in range(x_loc.size):
        if x_weights[k] == 0.0:
            continue
        for m in range(y_loc.size):
            if y_weights[m] != 0.0:
                scale = math.sqrt(x_scale[k] * x_scale[k] + y_scale[m] * y_scale[m])
                distance = mean_absolute_normal(x_loc[k] - y_loc[m], scale)
                total += x_weights[k] * y_weights[m] * distance
    return total


@inner
def _prepare(loc, scale, weights):  # type: ignore[no-untyped-def]
    """Return weights (n, k) that sum to one over valid components, and E|X - X'| (n,).

    E|X - X'| is NaN for a forecast without valid components.
    """
    normalised = np.zeros(loc.shape)
    within = np.empty(loc.shape[0])
    for i in range(loc.shape[0]):
        total = 0.0
        for k in range(loc.shape[1]):
            if weights[i, k] > 0.0 and not math.isnan(loc[i, k] + scale[i, k]):
                normalised[i, k] = weights[i, k]
                total += weights[i, k]
        for k in range(loc.shape[1]):
            normalised[i, k] /= total if total > 0.0 else 1.0
        row = normalised[i]
        within[i] = _mean_distance(loc[i], scale[i], row, loc[i], scale[i], row)
        if total == 0.0:
            within[i] = np.nan
    return normalised, within


@kernel
def fill_normal_distances(
    x_loc: Matrix,
    x_scale: Matrix,
    x_weights: Matrix,
    y_loc: Matrix,
    y_scale: Matrix,
    y_weights: Matrix,
    out: OutMatrix,
) -> None:
    """Write the squared energy distances (n, q) of mixtures (n, k) and (q, l) into ``out``.

    All arrays must be float64 and C-contiguous. The function skips components with a NaN location
    or scale, or without positive weight. If it skips all components of a forecast, the distances of
    this forecast are NaN. If both sets of mixtures are in the same arrays, the function computes
    each pair only once. The compiled function runs without Python's global lock.
    """
    same = x_loc is y_loc and x_scale is y_scale and x_weights is y_weights
    x_normalised, x_within = _prepare(x_loc, x_scale, x_weights)
    y_normalised, y_within = _prepare(y_loc, y_scale, y_weights)
    for i in range(x_loc.shape[0]):
        for j in range(y_loc.shape[0]):
            if same and j < i:
                out[i, j] = out[j, i]
                continue
            across = 2.0 * _mean_distance(
                x_loc[i], x_scale[i], x_normalised[i], y_loc[j], y_scale[j], y_normalised[j]
            )
            squared = across - x_within[i] - y_within[j]
            out[i, j] = 0.0 if squared < ROUNDING * across else squared


@kernel
def fill_normal_crps(
    observations: Vector, loc: Matrix, scale: Matrix, weights: Matrix, out: OutVector
) -> None:
    """Write the CRPS E|X - y| - E|X - X'|/2 of mixtures (n, k) at observations y (n,) into ``out``.

    The weights of each mixture must sum to one.
    """
    for i in range(observations.size):
        crps = -0.5 * _mean_distance(loc[i], scale[i], weights[i], loc[i], scale[i], weights[i])
        for k in range(loc.shape[1]):
            if weights[i, k] != 0.0:
                error = loc[i, k] - observations[i]
                crps += weights[i, k] * mean_absolute_normal(error, scale[i, k])
        out[i] = 0.0 if crps < 0.0 else crps


@kernel
def fill_mean_crps(
    loc: Cube, scale: Cube, weights: Cube, points: Matrix, mass: Cube, out: OutMatrix
) -> None:
    """Write the mean CRPS (L, T) of mixtures (L, T, k) over n observations into ``out``.

    ``points`` (L, n) holds the observations. ``mass`` (L, T, n) holds their weights in the mean;
    these weights may have any sum. The function skips observations of weight 0. In contrast, the
    weights of the components of each mixture must sum to one.
    """
    for cell in range(mass.shape[0]):
        for t in range(mass.shape[1]):
            mu, sigma, w = loc[cell, t], scale[cell, t], weights[cell, t]
            total, across = 0.0, 0.0
            for j in range(points.shape[1]):
                z, share = points[cell, j], mass[cell, t, j]
                if share != 0.0 and not math.isnan(z):
                    total += share
                    for k in range(mu.size):
                        if w[k] != 0.0:
                            across += share * w[k] * mean_absolute_normal(mu[k] - z, sigma[k])
            within = _mean_distance(mu, sigma, w, mu, sigma, w)
            out[cell, t] = across / total - 0.5 * within if total > 0.0 else np.nan


@inner
def _shortfall(z, closed, sought):  # type: ignore[no-untyped-def]
    """Return q - F(z) and the density F'(z); if `closed` is False, replace F(z) by P(X < z).

    F is the CDF of a mixture, and X is a random value from this mixture. `sought` holds a level, a
    flag and the locations, scales and weights of the mixture. The level is q if the flag is False,
    and 1 - q if the flag is True.
    """
    level, upper, loc, scale, weights = sought
    tail, density = 0.0, 0.0
    for k in range(loc.size):
        if scale[k] > 0.0:
            standard = (z - loc[k]) / (scale[k] * SQRT_2)
            tail += weights[k] * 0.5 * math.erfc(standard if upper else -standard)
            density += weights[k] * math.exp(-standard * standard) / (scale[k] * SQRT_2_PI)
        elif (loc[k] < z or (closed and loc[k] == z)) != upper:
            tail += weights[k]
    return (tail - level if upper else level - tail), density


@inner
def _smooth_root(low, high, sought):  # type: ignore[no-untyped-def]
    """Solve F(z) = q for z between `low` and `high`, by Newton's method with bisection as a guard.

    F is the CDF of the mixture in `sought`; it must have no jump between `low` and `high`.
    """
    width = step = high - low
    z = 0.5 * (low + high)
    for _ in range(200):
        shortfall, density = _shortfall(z, True, sought)
        if shortfall > 0.0:
            low = z
        else:
            high = z
        proposal = z + shortfall / density if density > 0.0 else low
        if not (low < proposal < high) or abs(proposal - z) > 0.5 * step:
            proposal = 0.5 * (low + high)
        step = abs(proposal - z)
        z = proposal
        if step <= 1e-15 * (abs(z) + width):
            break
    return z


@inner
def _mixture_quantile(q, normal_quantile, loc, scale, weights):  # type: ignore[no-untyped-def]
    """Compute the quantile of a mixture at level q, from the `normal_quantile` of N(0, 1)."""
    low, high = np.inf, -np.inf  # the quantile lies between those of the components
    for k in range(loc.size):
        if weights[k] != 0.0:
            z = loc[k] + scale[k] * normal_quantile if scale[k] > 0.0 else loc[k]
            low, high = min(low, z), max(high, z)
    if q == 0.0 or q == 1.0 or low == high:
        return high if q == 1.0 else low
    # Use the smaller tail, to keep all digits. The slack allows for rounded sums of weights.
    slack = 1e-15 * loc.size
    level = (1.0 - q) * (1.0 + slack) if q > 0.5 else q * (1.0 - slack)
    sought = (level, q > 0.5, loc, scale, weights)
    if _shortfall(low, True, sought)[0] <= 0.0:
        return low
    for k in range(loc.size):  # narrow the search range until it has no jump
        if scale[k] == 0.0 and low < loc[k] < high:
            if _shortfall(loc[k], True, sought)[0] > 0.0:
                low = loc[k]
            else:
                high = loc[k]
    if _shortfall(high, False, sought)[0] > 0.0:
        return high  # F jumps over q here
    return _smooth_root(low, high, sought)


@kernel
def fill_normal_quantiles(
    levels: Vector,
    normal_quantiles: Vector,
    loc: Matrix,
    scale: Matrix,
    weights: Matrix,
    out: OutMatrix,
) -> None:
    """Write quantiles (n, Q) of mixtures (n, k) at ascending levels into ``out``.

    The weights of each mixture must sum to one.
    """
    for i in range(loc.shape[0]):
        smallest = np.nan if math.isnan(weights[i, 0]) else -np.inf
        for j in range(levels.size):
            if not math.isnan(smallest):
                z = _mixture_quantile(levels[j], normal_quantiles[j], loc[i], scale[i], weights[i])
                smallest = max(smallest, z)  # rounding must not make quantiles cross
            out[i, j] = smallest
