"""Distance correlation, which is zero only for independent quantities."""

from __future__ import annotations

import math

import numpy as np

from xrecal.arrays.compiled import Cube, OutVector, inner, kernel
from xrecal.typing import FloatArray

SMALLEST = 4
"""Least number of cases for the distance correlation; with fewer cases, it is not defined."""

CONSTANT = 1e-12  # centred distances below this fraction of the distances are rounding errors


def distance_correlation(x: FloatArray, y: FloatArray) -> FloatArray:
    r"""Compute the bias-corrected squared distance correlation.

    Parameters
    ----------
    x, y : array of float, shape (..., n, p) and (..., n, q)
        n cases of two quantities, which are vectors with p and q components. All components of a
        quantity have the same unit. For example, x holds the two ends of an interval, and y the
        probability integral transform. The function leaves out cases with NaN or infinity.

    Returns
    -------
    array of float64, shape (...)
        :math:`R^*_n` in [-1, 1], an estimate of the squared distance correlation. The estimate may
        be negative. For independent quantities it is 0 on average; without the bias correction it
        would be positive. It is 1 if the distances between cases in y are proportional to the
        distances in x. It is NaN with fewer than 4 cases, or if all cases, or all but one, are
        equal in x or in y.

    Raises
    ------
    ValueError
        If the shapes of x and y do not match.

    Notes
    -----
    Let :math:`a_{ij}` be the Euclidean distances between cases in x, and :math:`a_{i\cdot}` the row
    sums of these distances. For :math:`i \ne j` let

    .. math:: A_{ij} = a_{ij} - \frac{a_{i\cdot} + a_{j\cdot}}{n - 2}
        + \frac{a_{\cdot\cdot}}{(n - 1)(n - 2)}

    and let :math:`B_{ij}` be the corresponding numbers for y. The result is
    :math:`\langle A, B \rangle / \sqrt{\langle A, A \rangle \langle B, B \rangle}`, where
    :math:`\langle A, B \rangle` is the sum of :math:`A_{ij} B_{ij}` over :math:`i \ne j`. The cost
    is O(n² (p + q)) time and O(n) memory per location, because the function computes distances
    twice and does not store them.

    References
    ----------
    .. [1] Székely & Rizzo (2014), Partial distance correlation with methods for dissimilarities.
       https://doi.org/10.1214/14-AOS1255

    Examples
    --------
    >>> x = np.arange(8.0)[:, np.newaxis]
    >>> round(float(distance_correlation(x, 2 * x)), 6)
    1.0
    """
    x, y = np.asarray(x), np.asarray(y)
    if x.ndim < 2 or y.ndim < 2 or x.shape[:-1] != y.shape[:-1]:
        raise ValueError(
            "x and y must have shapes (..., n, p) and (..., n, q) with the same cases, "
            f"got {x.shape} and {y.shape}"
        )
    shape, n = x.shape[:-2], x.shape[-2]
    out = np.empty(math.prod(shape))
    x, y = (
        np.ascontiguousarray(part, np.float64).reshape(out.size, n, part.shape[-1])
        for part in (x, y)
    )
    _fill_correlations(x, y, out)
    return out.reshape(shape)


@kernel
def _fill_correlations(x: Cube, y: Cube, out: OutVector) -> None:
    """Compute bias-corrected distance correlations (L,) of x (L, n, p) and y (L, n, q)."""
    kept, row_x, row_y = np.empty(x.shape[1], np.int64), np.empty(x.shape[1]), np.empty(x.shape[1])
    for cell in range(x.shape[0]):
        n = 0
        for case in range(x.shape[1]):
            if _is_finite(x[cell, case]) and _is_finite(y[cell, case]):
                kept[n] = case
                n += 1
        out[cell] = np.nan
        if n >= SMALLEST:
            means = (
                _row_means(x[cell], kept[:n], row_x),
                _row_means(y[cell], kept[:n], row_y),
            )
            out[cell] = _correlation(x[cell], y[cell], kept[:n], (row_x, row_y), means)


@inner
def _is_finite(values):  # type: ignore[no-untyped-def]
    finite = True
    for value in values:
        finite = finite and math.isfinite(value)
    return finite


@inner
def _distance(first, second):  # type: ignore[no-untyped-def]
    square = 0.0
    for k in range(first.size):
        square += (first[k] - second[k]) ** 2
    return math.sqrt(square)


@inner
def _row_means(points, kept, row):  # type: ignore[no-untyped-def]
    """Write each row sum of distances, divided by n - 2, into `row`.

    The function returns the sum of all distances, divided by (n - 1)(n - 2).
    """
    n = kept.size
    for i in range(n):
        row[i] = 0.0
    for i in range(n):
        for j in range(i):
            distance = _distance(points[kept[i]], points[kept[j]])
            row[i] += distance
            row[j] += distance
    total = 0.0
    for i in range(n):
        row[i] /= n - 2
        total += row[i]
    return total / (n - 1)


@inner
def _correlation(x, y, kept, rows, means):  # type: ignore[no-untyped-def]
    """Return the correlation of the centred distances in x and in y.

    The correlation is NaN if all centred distances in x, or all in y, are zero up to rounding.
    `rows` and `means` each hold two results of :func:`_row_means`, one for x and one for y.
    """
    (row_x, row_y), (mean_x, mean_y) = rows, means
    xx, yy, xy, size_x, size_y = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(kept.size):
        for j in range(i):
            a = _distance(x[kept[i]], x[kept[j]])
            b = _distance(y[kept[i]], y[kept[j]])
            size_x += a * a
            size_y += b * b
            a += mean_x - row_x[i] - row_x[j]
            b += mean_y - row_y[i] - row_y[j]
            xx += a * a
            yy += b * b
            xy += a * b
    if xx <= CONSTANT * CONSTANT * size_x or yy <= CONSTANT * CONSTANT * size_y:
        return np.nan
    return min(max(xy / math.sqrt(xx) / math.sqrt(yy), -1.0), 1.0)
