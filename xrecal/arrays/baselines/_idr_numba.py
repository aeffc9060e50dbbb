"""Compiled loops of isotonic distributional regression, and of the fit of its index.

Arrays are float64 and contiguous.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xrecal.arrays.ckme.isotonic import push_level
from xrecal.arrays.compiled import inner, kernel

CONSTANT = 1e-12  # deviations below this fraction of the largest value are rounding of a constant
COLLINEAR = 1e-10  # a column that keeps less of its variance beside those before it is theirs


@kernel
def fill_weights(
    new: Any, minus: Any, target: Any, slot: Any, number: Any, n_used: Any, out: Any
) -> None:
    """Weights (L, T, n), zero before, from minus the new index (L, T) and cases as ordered."""
    n_new, n = new.shape[1], minus.shape[1]
    knots, counts, hits, cdf = np.empty(n), np.empty(n), np.empty(n), np.empty(n + 1)
    blocks = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    low, share, before = np.empty(n_new, np.int64), np.empty(n_new), np.empty(n_new)
    for cell in range(new.shape[0]):
        used = n_used[cell]
        last = -1
        for i in range(used):
            if last < 0 or minus[cell, i] != knots[last]:
                last += 1
                knots[last], counts[last], hits[last] = minus[cell, i], 0.0, 0.0
            counts[last] += 1.0
        for t in range(n_new):
            low[t], share[t], before[t] = 0, 0.0, 0.0
            if used < 2 or np.isnan(new[cell, t]):
                for i in range(n):
                    out[cell, t, i] = np.nan
            else:
                low[t], share[t] = _place(new[cell, t], knots, last)
        first = 0
        for i in range(used if used > 1 else 0):
            hits[number[cell, i]] += 1.0
            if i < used - 1 and target[cell, i + 1] == target[cell, i]:
                continue
            _fill_cdf(hits, counts, last, blocks, cdf)
            for t in range(n_new):
                k = low[t]
                value = cdf[k] + share[t] * (cdf[k + 1] - cdf[k])
                if value > before[t]:
                    step = (value - before[t]) / (i + 1 - first)
                    for tied in range(first, i + 1):
                        out[cell, t, slot[cell, tied]] += step  # 0 or NaN before
                    before[t] = value
            first = i + 1


@inner
def _place(value, knots, last):  # type: ignore[no-untyped-def]
    """Where a value lies among ascending knots 0 to `last`: below it, and how far to the next.

    Outside their range it is where the nearest end is.
    """
    if value <= knots[0]:
        return 0, 0.0
    if value >= knots[last]:
        return last, 0.0
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    return low, (value - knots[low]) / (knots[high] - knots[low])


@inner
def _fill_cdf(hits, counts, last, arrays, cdf):  # type: ignore[no-untyped-def]
    """Isotonic regression of hits/counts over knots 0 to `last`; one more entry repeats the end."""
    level, total, width, length = arrays
    blocks, k = 0, 0
    for i in range(last + 1):
        value = hits[i] / counts[i]
        blocks = push_level(value, hits[i], counts[i], level, total, width, length, blocks)
    for block in range(blocks):
        for _ in range(length[block]):
            cdf[k] = level[block]
            k += 1
    cdf[k] = cdf[k - 1]


@kernel
def fill_coefficients(x: Any, observations: Any, out: Any) -> None:
    """Least squares (L, 1 + p) of observations (L, n) on the columns (L, p, n), which are changed.

    The first coefficient is the intercept. Columns are standardised, so that no unit matters.
    """
    n_columns = x.shape[1]
    products, factor = np.empty((n_columns + 1, n_columns)), np.empty((n_columns, n_columns))
    mean, scale, solution = np.empty(n_columns), np.empty(n_columns), np.empty(n_columns)
    for cell in range(x.shape[0]):
        y = observations[cell]
        used = _keep_complete(x[cell], y)
        if used < 2:
            for j in range(n_columns + 1):
                out[cell, j] = np.nan
            continue
        y_mean, y_scale = _standardise(y, used)
        for j in range(n_columns):
            mean[j], scale[j] = _standardise(x[cell, j], used)
        for j in range(n_columns):  # correlations, and what the columns say about y in the last row
            for i in range(j, n_columns + 1):
                products[i, j] = 0.0
                for case in range(used):
                    other = y[case] if i == n_columns else x[cell, i, case]
                    products[i, j] += x[cell, j, case] * other / used
        _solve(products, 0, factor, solution)
        if solution[0] < 0.0:
            _solve(products, 1, factor, solution)
        out[cell, 0] = y_mean
        for j in range(n_columns):
            out[cell, 1 + j] = solution[j] * y_scale / scale[j]
            out[cell, 0] -= out[cell, 1 + j] * mean[j]


@inner
def _keep_complete(x, y):  # type: ignore[no-untyped-def]
    """Move the cases of x (p, n) and y (n,) without missing values to the front; their number."""
    used = 0
    for case in range(y.size):
        complete = math.isfinite(y[case])
        for j in range(x.shape[0]):
            complete = complete and math.isfinite(x[j, case])
        if complete:
            y[used] = y[case]
            for j in range(x.shape[0]):
                x[j, used] = x[j, case]
            used += 1
    return used


@inner
def _standardise(values, used):  # type: ignore[no-untyped-def]
    """Centre and scale the first values; their mean and deviation. A constant becomes zeros."""
    mean, square, largest = 0.0, 0.0, 0.0
    for i in range(used):
        mean += values[i]
        largest = max(largest, abs(values[i]))
    mean /= used
    for i in range(used):
        square += (values[i] - mean) ** 2 / used
    scale = math.sqrt(square)
    constant = scale <= CONSTANT * largest
    if constant:
        scale = 1.0
    for i in range(used):
        values[i] = 0.0 if constant else (values[i] - mean) / scale
    return mean, scale


@inner
def _solve(products, first, factor, solution):  # type: ignore[no-untyped-def]
    """Solve normal equations by Cholesky, with 0 before `first` and where nothing is identified.

    `products` (p + 1, p) holds correlations in its lower triangle, the right side in its last row.
    """
    p = solution.size
    for j in range(p):
        pivot = products[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        root = math.sqrt(pivot) if j >= first and pivot > COLLINEAR else 0.0
        factor[j, j], solution[j] = root, products[p, j]
        for k in range(j):
            solution[j] -= factor[j, k] * solution[k]
        solution[j] = solution[j] / root if root > 0.0 else 0.0
        for i in range(j + 1, p):
            factor[i, j] = products[i, j]
            for k in range(j):
                factor[i, j] -= factor[i, k] * factor[j, k]
            factor[i, j] = factor[i, j] / root if root > 0.0 else 0.0
    for j in range(p - 1, -1, -1):
        for i in range(j + 1, p):
            solution[j] -= factor[i, j] * solution[i]
        solution[j] = solution[j] / factor[j, j] if factor[j, j] > 0.0 else 0.0
