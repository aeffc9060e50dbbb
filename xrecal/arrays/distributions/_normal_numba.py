"""Compiled closed forms for mixtures of normal distributions: distances, CRPS, quantiles.

Kernels take float64 C-contiguous arrays, components last, and trust them.
"""

from __future__ import annotations

import math

import numpy as np

from xrecal.arrays.compiled import inner, kernel

SQRT_2 = math.sqrt(2.0)
SQRT_2_PI = math.sqrt(2.0 * math.pi)
ROUNDING = 1e-13  # squared distances below this fraction of 2E|X-Y| are rounding of equal forecasts


@kernel
def mean_absolute_normal(loc: float, scale: float) -> float:
    """E|Z| of Z ~ N(loc, scale²), in the unit of both; |loc| where scale is 0. Compiled."""
    if scale == 0.0:
        return abs(loc)
    z = loc / scale
    return loc * math.erf(z / SQRT_2) + 2.0 * scale * math.exp(-0.5 * z * z) / SQRT_2_PI


@inner
def _mean_distance(x_loc, x_scale, x_weights, y_loc, y_scale, y_weights):  # type: ignore[no-untyped-def]
    """E|X - Y| of two mixtures (k,), (l,) with normalised weights."""
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
    """Weights (n, k) normalised over valid components, and E|X - X'| (n,), NaN if there is none."""
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
def fill_normal_distances(x_loc, x_scale, x_weights, y_loc, y_scale, y_weights, out):  # type: ignore[no-untyped-def]
    """Squared energy distances of mixtures (n, k) and (q, l) into `out` (n, q). Compiled, no GIL.

    All arrays are float64 and C-contiguous. Components with a NaN location or scale or without
    positive weight are skipped; a forecast without any gives NaN. Given the same three arrays
    twice, each pair is computed once.
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
def fill_normal_crps(observations, loc, scale, weights, out):  # type: ignore[no-untyped-def]
    """CRPS E|X - y| - E|X - X'|/2 of mixtures (n, k), normalised weights, at observations (n,)."""
    for i in range(observations.size):
        crps = -0.5 * _mean_distance(loc[i], scale[i], weights[i], loc[i], scale[i], weights[i])
        for k in range(loc.shape[1]):
            if weights[i, k] != 0.0:
                error = loc[i, k] - observations[i]
                crps += weights[i, k] * mean_absolute_normal(error, scale[i, k])
        out[i] = 0.0 if crps < 0.0 else crps


@kernel
def fill_mean_crps(loc, scale, weights, points, mass, out):  # type: ignore[no-untyped-def]
    """Mean CRPS (L, T) of mixtures (L, T, k) at points (L, n) with mass (L, T, n).

    Weights of components are normalised, mass is here; points without it cost nothing.
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
def _shortfall(z, closed, level, upper, loc, scale, weights):  # type: ignore[no-untyped-def]
    """Return q - F(z), with F(z-) unless `closed`, and F'(z); level is q, or 1 - q if `upper`."""
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
def _smooth_root(low, high, *mixture):  # type: ignore[no-untyped-def]
    """Solve F(z) = q in a bracket without point masses inside: Newton, guarded by bisection."""
    width = step = high - low
    z = 0.5 * (low + high)
    for _ in range(200):
        shortfall, density = _shortfall(z, True, *mixture)
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
    """Smallest z with F(z) >= q; `normal_quantile` is that of N(0, 1) at q."""
    low, high = np.inf, -np.inf  # the mixture's quantile lies between those of its components
    for k in range(loc.size):
        if weights[k] != 0.0:
            z = loc[k] + scale[k] * normal_quantile if scale[k] > 0.0 else loc[k]
            low, high = min(low, z), max(high, z)
    if q == 0.0 or q == 1.0 or low == high:
        return high if q == 1.0 else low
    # The smaller tail keeps its digits; the slack keeps rounded sums of weights from missing q.
    slack = 1e-15 * loc.size
    level = (1.0 - q) * (1.0 + slack) if q > 0.5 else q * (1.0 - slack)
    mixture = (level, q > 0.5, loc, scale, weights)
    if _shortfall(low, True, *mixture)[0] <= 0.0:
        return low
    for k in range(loc.size):  # shrink the bracket until no point mass is inside
        if scale[k] == 0.0 and low < loc[k] < high:
            if _shortfall(loc[k], True, *mixture)[0] > 0.0:
                low = loc[k]
            else:
                high = loc[k]
    if _shortfall(high, False, *mixture)[0] > 0.0:
        return high  # F jumps over q here
    return _smooth_root(low, high, *mixture)


@kernel
def fill_normal_quantiles(levels, normal_quantiles, loc, scale, weights, out):  # type: ignore[no-untyped-def]
    """Quantiles (n, Q) at ascending levels of mixtures (n, k) with normalised weights."""
    for i in range(loc.shape[0]):
        smallest = np.nan if math.isnan(weights[i, 0]) else -np.inf
        for j in range(levels.size):
            if not math.isnan(smallest):
                z = _mixture_quantile(levels[j], normal_quantiles[j], loc[i], scale[i], weights[i])
                smallest = max(smallest, z)  # rounding must not make quantiles cross
            out[i, j] = smallest
