"""Compiled sums and expectations of the Laplace kernel ``l(u, v) = exp(-|u - v| / theta)``.

Z_i is a random value from forecast i, y_j is an observation, and theta is the bandwidth. The
functions take float64 C-contiguous arrays and do not check them. Points (members) must be in
ascending order, and weights must be positive.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xrecal.arrays.compiled import Indices, Matrix, OutMatrix, Vector, copy, inner, kernel

# Number of forecasts in the inner loop, which the compiler turns into vector instructions.
LANES = 64

# Factors exp((z - base) / theta) have a base at most this many theta below z. So neither they nor
# their inverses overflow.
SPAN = 30.0

# Smaller sums become zero, because arithmetic with subnormal numbers is a hundred times slower.
TINY = 1e-250

SQRT_2 = math.sqrt(2.0)
SQRT_PI = math.sqrt(math.pi)
FAR = 10.0  # from here on, the expansion of exp(x²) erfc(x) in 1/x² has all digits


@kernel
def fill_within_points(
    z: Vector, weights: Vector, owner: Indices, theta: float, out: OutMatrix
) -> None:
    """Compute mean Laplace kernels (n, n) of independent draws from forecasts with points (N,).

    The owner of a point is the position of its forecast. The function goes through the points in
    ascending order, for some forecasts j at a time. For each forecast j, it keeps the sum of
    ``w exp((z' - base) / theta)`` over the points z' of forecast j below the current point. Here w
    is the weight of z', and the number ``base`` prevents overflow. Each point of forecast i adds a
    multiple of this sum to the entry (i, j). This counts each pair of points in one order; the
    function adds the transpose for the other order.
    """
    n = out.shape[0]
    rise, fall = _rise_and_fall(z, theta)
    block, state = np.empty((n, LANES)), np.empty(LANES)
    for first in range(0, n, LANES):
        for i in range(n):
            _clear(block[i])
        _clear(state)
        for p in range(z.size):
            if fall[p] != 1.0:
                _shrink(state, fall[p])
            row, weight = block[owner[p]], weights[p] / rise[p]
            for lane in range(LANES):
                row[lane] += weight * state[lane]
            lane = owner[p] - first
            if 0 <= lane < LANES:
                state[lane] += weights[p] * rise[p]
        for i in range(n):
            for lane in range(min(LANES, n - first)):
                out[i, first + lane] = block[i, lane]
    _add_transpose(out)
    for p in range(z.size):
        out[owner[p], owner[p]] += weights[p] * weights[p]


@inner
def _rise_and_fall(z: Any, theta: float) -> Any:
    """Return ``exp((z - base) / theta)`` at each point, and a factor for the sum of earlier points.

    The base moves up from time to time, to prevent overflow. The factor is below 1 at points where
    the base moves, and 1 at all other points.
    """
    rise, fall = np.empty(z.size), np.ones(z.size)
    base = z[0] if z.size else 0.0
    for p in range(z.size):
        ahead = (z[p] - base) / theta
        if ahead > SPAN:
            fall[p], base, ahead = math.exp(-ahead), z[p], 0.0
        rise[p] = math.exp(ahead)
    return rise, fall


@inner
def _shrink(state: Any, factor: float) -> None:
    for i in range(state.size):
        s = state[i] * factor
        state[i] = s if s > TINY else 0.0


@inner
def _add_transpose(out: Any) -> None:
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] = out[j, i] = out[i, j] + out[j, i]


@kernel
def fill_cross_points(
    z: Vector, weights: Vector, owner: Indices, y: Vector, theta: float, out: OutMatrix
) -> None:
    """Compute ``E l(Z_i, y_j)`` for observations j and forecasts i: a row of ``out`` for each y.

    The values y (q,) ascend; l is the Laplace kernel, and Z_i is drawn from forecast i.

    The function keeps a sum for each forecast. A point changes the sum of its own forecast, and an
    observation y changes all n sums, so the cost is O(N + q n).
    """
    state = np.zeros(out.shape[1])
    p = 0
    for j in range(y.size):
        if j > 0:
            _shrink(state, math.exp((y[j - 1] - y[j]) / theta))
        while p < z.size and z[p] <= y[j]:
            state[owner[p]] += weights[p] * math.exp((z[p] - y[j]) / theta)
            p += 1
        copy(state, out[j])
    _clear(state)
    p = z.size - 1
    for j in range(y.size - 1, -1, -1):
        if j < y.size - 1:
            _shrink(state, math.exp((y[j] - y[j + 1]) / theta))
        while p >= 0 and z[p] > y[j]:
            state[owner[p]] += weights[p] * math.exp((y[j] - z[p]) / theta)
            p -= 1
        _add(out[j], state, 1.0)


@kernel
def fill_cross_shared(z: Vector, weights: Matrix, y: Vector, theta: float, out: OutMatrix) -> None:
    """Compute the array of :func:`fill_cross_points` for points (S,) that all forecasts share."""
    state = np.zeros(out.shape[1])
    s = 0
    for j in range(y.size):
        if j > 0:
            _shrink(state, math.exp((y[j - 1] - y[j]) / theta))
        while s < z.size and z[s] <= y[j]:
            _add(state, weights[s], math.exp((z[s] - y[j]) / theta))
            s += 1
        copy(state, out[j])
    _clear(state)
    s = z.size - 1
    for j in range(y.size - 1, -1, -1):
        if j < y.size - 1:
            _shrink(state, math.exp((y[j] - y[j + 1]) / theta))
        while s >= 0 and z[s] > y[j]:
            _add(state, weights[s], math.exp((y[j] - z[s]) / theta))
            s -= 1
        _add(out[j], state, 1.0)


@inner
def _clear(state: Any) -> None:
    for i in range(state.size):
        state[i] = 0.0


@inner
def _add(state: Any, row: Any, factor: float) -> None:
    for i in range(state.size):
        state[i] += row[i] * factor


@kernel
def fill_behind(z: Vector, weights: Matrix, theta: float, out: OutMatrix) -> None:
    """Compute ``sum_{t < s} l(z_t, z_s) w_t + w_s / 2`` (S, n).

    Points z (S,) have weights w (S, n), and l is the Laplace kernel.
    """
    state = np.zeros(weights.shape[1])
    for s in range(z.size):
        if s > 0:
            _shrink(state, math.exp((z[s - 1] - z[s]) / theta))
        for i in range(state.size):
            out[s, i] = state[i] + 0.5 * weights[s, i]
            state[i] += weights[s, i]


@kernel
def mean_laplace(gap: float, scale: float, theta: float) -> float:
    """Compute ``E exp(-|X| / theta)`` for X normal with mean ``gap`` and deviation ``scale`` >= 0.

    With mean d and standard deviation s, the result is ``exp(-d²/2s²) / 2`` times the sum of
    ``erfcx((s/theta - d/s) / sqrt 2)`` and ``erfcx((s/theta + d/s) / sqrt 2)``. The function
    computes it in an order in which no part overflows.
    """
    gap = abs(gap)
    if scale == 0.0:
        return math.exp(-gap / theta)
    a, b, g = scale / (theta * SQRT_2), gap / (scale * SQRT_2), gap / theta
    if a - b < FAR:
        near = math.exp(a * a - g) * math.erfc(a - b)
    else:
        near = math.exp(-b * b) * _scaled_erfc(a - b)
    if a + b < FAR:
        far = math.exp(a * a + g) * math.erfc(a + b)
    else:
        far = math.exp(-b * b) * _scaled_erfc(a + b)
    return 0.5 * (near + far)


@inner
def _scaled_erfc(x: float) -> float:
    """Compute ``exp(x²) erfc(x)`` for x >= 10."""
    term, total = 1.0, 1.0
    for k in range(1, 9):
        term *= -(2 * k - 1) / (2.0 * x * x)
        total += term
    return total / (x * SQRT_PI)


@kernel
def fill_within_normals(
    loc: Matrix, scale: Matrix, weights: Matrix, theta: float, out: OutMatrix
) -> None:
    """Compute mean Laplace kernels (n, n) of draws from n mixtures of k normal distributions."""
    for i in range(loc.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(loc.shape[1]):
                if weights[i, k] == 0.0:
                    continue
                for m in range(loc.shape[1]):
                    weight = weights[i, k] * weights[j, m]
                    if weight != 0.0:
                        width = math.sqrt(scale[i, k] ** 2 + scale[j, m] ** 2)
                        total += weight * mean_laplace(loc[i, k] - loc[j, m], width, theta)
            out[i, j] = out[j, i] = total


@kernel
def fill_cross_normals(
    loc: Matrix, scale: Matrix, weights: Matrix, y: Vector, theta: float, out: OutMatrix
) -> None:
    """Compute mean Laplace kernels (q, n) of values y (q,) and draws from n normal mixtures."""
    for j in range(y.size):
        for i in range(loc.shape[0]):
            total = 0.0
            for k in range(loc.shape[1]):
                if weights[i, k] != 0.0:
                    total += weights[i, k] * mean_laplace(loc[i, k] - y[j], scale[i, k], theta)
            out[j, i] = total


@kernel
def median_positive_gap(z: Vector) -> float:
    """Return the median positive difference among ascending z (n,), or NaN if all are equal."""
    n = z.size
    ties = _pairs_within(z, 0.0)
    positive = n * (n - 1) // 2 - ties
    if positive == 0:
        return np.nan
    lower = _gap_of_rank(z, ties + (positive + 1) // 2)
    if positive % 2 == 1:
        return lower  # type: ignore[no-any-return]
    return (lower + _gap_of_rank(z, ties + positive // 2 + 1)) / 2  # type: ignore[no-any-return]


@inner
def _pairs_within(z: Any, gap: float) -> int:
    """Count the pairs of values in z that differ by at most ``gap``."""
    count, i = 0, 0
    for j in range(z.size):
        while z[j] - z[i] > gap:
            i += 1
        count += j - i
    return count


@inner
def _gap_of_rank(z: Any, rank: int) -> Any:
    """Return the difference with a given rank (from 1) among the differences of all pairs in z.

    The search is a bisection over integers with the bits of floats: for positive floats, a greater
    integer means a greater float.
    """
    gap = np.empty(1)
    bits = gap.view(np.int64)
    gap[0] = z[z.size - 1] - z[0]
    low, high = np.int64(-1), bits[0]
    while high - low > 1:
        bits[0] = middle = low + (high - low) // 2
        if _pairs_within(z, gap[0]) >= rank:
            high = middle
        else:
            low = middle
    bits[0] = high
    return gap[0]
