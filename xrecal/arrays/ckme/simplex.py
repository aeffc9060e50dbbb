"""Projections of signed weights to the nearest probabilities, in two distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import OutIndices, OutVector, Vector, inner, kernel
from xrecal.typing import FloatArray

MARGIN = 0.1
"""The Euclidean projection subtracts a shift from all weights of a row. :func:`shift_of` assumes
that the shift of the next row is smaller by at most this share of the mean positive weight."""

ROUNDING = 1e-9
"""Relative difference between two sums that counts as rounding."""


def project_simplex(beta: FloatArray) -> FloatArray:
    """Compute the probabilities with the smallest Euclidean distance to signed weights.

    Parameters
    ----------
    beta : array of float, shape (N, n) or (n,)
        Signed weights, unitless.

    Returns
    -------
    array of float64, same shape
        Entries >= 0 that sum to one along the last axis. A constant added to a row of weights
        changes nothing. A row with a NaN gives NaN.

    Raises
    ------
    ValueError
        If there is no weight to project.

    Notes
    -----
    Michelot's active-set method [1]_ is exact. Each pass takes O(n). There are at most n passes,
    typically 5 to 10.

    References
    ----------
    .. [1] Michelot (1986), A finite algorithm for finding the projection of a point onto the
       canonical simplex of R^n. https://doi.org/10.1007/BF00938486

    Examples
    --------
    >>> project_simplex(np.array([0.75, 0.5, -0.25]))
    array([0.625, 0.375, 0.   ])
    """
    rows = _rows(beta)
    projected = np.empty_like(rows)
    for i in range(rows.shape[0]):
        simplex_row(rows[i], rows[i], projected[i])
    return projected.reshape(np.shape(beta))


def project_energy(beta: FloatArray, support: FloatArray) -> FloatArray:
    r"""Compute the probabilities with the smallest energy distance to signed weights.

    Parameters
    ----------
    beta : array of float, shape (N, n) or (n,)
        Signed weights, unitless. They should sum to one, as the signed weights of a CKME do after
        it has added climatology.
    support : array of float, shape (n,)
        Points to which the weights belong, finite and in any order; points may be equal.

    Returns
    -------
    array of float64, shape of ``beta``
        :math:`\arg\min_\theta (\theta-\beta)^T L (\theta-\beta)` over the simplex, where
        :math:`L_{ij} = |y_i| + |y_j| - |y_i - y_j|`, and y are the points. Equal points get equal
        probabilities. A row with a NaN gives NaN.

    Raises
    ------
    ValueError
        If support and weights differ in length, or support is not finite.

    Notes
    -----
    For weights that sum to one the objective is :math:`2 \int (F_\theta - F_\beta)^2`, with the
    CDFs F of the probabilities and of the signed weights. So the solution is the isotonic
    regression of the signed CDF, weighted by the gaps between sorted points and clipped to [0, 1].
    The pool-adjacent-violators algorithm gives this solution exactly, in O(n) per row. If weights
    sum to another number B, the regression replaces the signed CDF F by F + 1 - B at values above
    zero, because L measures distances from zero.

    Examples
    --------
    >>> project_energy(np.array([0.75, 0.5, -0.25]), np.array([1.0, 2.0, 3.0])).round(3)
    array([0.75, 0.25, 0.  ])
    """
    rows = _rows(beta)
    y = np.asarray(support, dtype=np.float64)
    if y.shape != rows.shape[1:]:
        raise ValueError(f"support has shape {y.shape}, but beta has {rows.shape[1]} weights a row")
    if not np.isfinite(y).all():
        raise ValueError("support must be finite; leave missing observations out, here and in beta")
    order = np.argsort(y, kind="stable")
    projected = np.empty_like(rows)
    for i in range(rows.shape[0]):
        row = np.empty(y.size)
        energy_row(rows[i][order], y[order], row)
        projected[i, order] = row
    return projected.reshape(np.shape(beta))


def _rows(beta: FloatArray) -> FloatArray:
    rows = np.ascontiguousarray(np.atleast_2d(np.asarray(beta, dtype=np.float64)))
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"beta needs shape (N, n) with n > 0, got {np.shape(beta)}")
    return rows


@kernel
def simplex_row(beta: Vector, support: Vector, out: OutVector) -> None:
    """Write the Euclidean projection of one row to ``out``; the support has no influence."""
    top, total, kept = _largest(beta), 0.0, beta.size
    for i in range(kept):  # subtract the largest: sums of large numbers would lose digits
        out[i] = beta[i] - top
        total += out[i]
    shift = (total - 1.0) / kept
    while True:  # the shift only grows: skip weights below it from then on
        total, count = 0.0, 0
        for i in range(kept):  # no branch here: a processor could not predict it
            above = out[i]
            keep = above > shift
            out[count] = above
            count += keep
            total += above if keep else 0.0
        if count == 0 or count >= kept:
            break
        shift, kept = (total - 1.0) / count, count
    for i in range(beta.size):
        weight = beta[i] - top - shift
        out[i] = weight if not weight <= 0 else 0.0


@inner
def shift_of(beta: Any, least: float, room: Any) -> Any:
    """Return the shift that the Euclidean projection subtracts from weights (n,) with sum one.

    The sum may differ from one by rounding. The shift is zero if all weights are positive, and
    infinite if one weight is NaN. The function also returns a probable lower bound of the shift of
    a similar row. If the caller passes this bound as ``least`` for the next row (0 for the first
    row), the function reads most weights only once. If ``least`` is too large, it reads all weights
    several times. It overwrites ``room``.
    """
    used, total, step = 0, 0.0, 0.25 / beta.size
    while True:
        used = 0
        for weight in beta:  # no branch here: a processor could not predict it
            room[used] = weight
            used += weight > least
        if used == beta.size and least >= 0.0:
            return 0.0, 0.0
        total = _sum(room, used)
        # ``least`` is a lower bound of the shift only if the weights above it exceed it by at least
        # one in all.
        if not total - used * least < 1.0 - ROUNDING:
            break
        least, step = least - step, 4 * step
    before, shift = 0, 0.0
    while 0 < used != before:
        shift, before, used = (total - 1.0) / used, used, 0
        for i in range(before):
            room[used], keep = room[i], room[i] > shift
            used += keep
        total = _sum(room, used)
    return (shift, max(shift - MARGIN / used, 0.0)) if used > 0 else (np.inf, 0.0)


@inner
def _sum(values: Any, used: int) -> float:
    """Return the sum of the first ``used`` values, from two partial sums.

    Two partial sums take less time, because an addition must wait for the previous addition to the
    same sum.
    """
    a, b = 0.0, 0.0
    for i in range(0, used - 1, 2):
        a += values[i]
        b += values[i + 1]
    return a + b + (values[used - 1] if used % 2 else 0.0)


@kernel
def _largest(row: Vector) -> Any:
    """Return the largest entry, from four partial maxima; ignore NaN."""
    a = b = c = d = -np.inf
    n = row.size - row.size % 4
    for i in range(0, n, 4):
        a = row[i] if row[i] > a else a
        b = row[i + 1] if row[i + 1] > b else b
        c = row[i + 2] if row[i + 2] > c else c
        d = row[i + 3] if row[i + 3] > d else d
    for i in range(n, row.size):
        a = row[i] if row[i] > a else a
    return max(max(a, b), max(c, d))


@kernel
def energy_row(beta: Vector, support: Vector, out: OutVector) -> None:
    """Write the energy projection of one row on its ascending support to ``out``.

    The function applies the pool-adjacent-violators algorithm to the signed CDF, weighted by the
    gaps between points; see :func:`project_energy`.
    """
    n = beta.size
    total = 0.0
    for b in beta:
        total += b
    level, sums, width, length = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    blocks, below = 0, 0.0
    for i in range(n - 1):
        below += beta[i]
        gap = support[i + 1] - support[i]
        if gap > 0:
            above_zero = min(max(support[i + 1], 0.0), gap) / gap
            cdf = below + (1.0 - total) * above_zero
            blocks = push_level(cdf, cdf * gap, gap, level, sums, width, length, blocks)
    first, block, used, previous = 0, 0, 0, 0.0
    for i in range(n):
        if i == n - 1:
            cdf = 1.0 + 0.0 * total  # NaN stays NaN
        elif support[i + 1] > support[i]:
            cdf = min(max(level[block], 0.0), 1.0)
            used += 1
            if used == length[block]:
                block, used = block + 1, 0
        else:
            continue
        out[first : i + 1] = (cdf - previous) / (i + 1 - first)
        first, previous = i + 1, cdf


PROJECTIONS = {"euclidean": simplex_row, "energy": energy_row}
"""Functions with the arguments (beta, support, out) that project one row of weights, by name."""


@kernel
def push_level(
    value: float,
    product: float,
    weight: float,
    level: OutVector,
    total: OutVector,
    width: OutVector,
    length: OutIndices,
    blocks: int,
) -> int:
    """Add one value to an isotonic regression, and join blocks until levels ascend strictly.

    A block is a run of successive values with the same fitted value, the level of the block.

    Parameters
    ----------
    value, product, weight : float
        Next value of the regression, its product with its weight, and its weight (> 0).
    level, total, width : array of float64, shape (n,)
        Level, sum of products and sum of weights of each block so far.
    length : array of int64, shape (n,)
        Number of values in each block.
    blocks : int
        Number of blocks so far; 0 starts a regression.

    Returns
    -------
    int
        Number of blocks after the call. The first entries of the arrays belong to these blocks.

    Notes
    -----
    After n calls, the levels are the isotonic regression of all n values by weighted least squares.
    The result is exact. All calls together take O(n), because each block is joined at most once.
    The level of a block is a ratio of sums. If products and weights are counts, equal ratios give
    equal levels, to the last digit. The function is compiled and overwrites the arrays.

    References
    ----------
    .. [1] Ayer et al. (1955), An empirical distribution function for sampling with incomplete
       information. https://doi.org/10.1214/aoms/1177728423
    """
    level[blocks], total[blocks], width[blocks], length[blocks] = value, product, weight, 1
    while blocks > 0 and level[blocks - 1] >= level[blocks]:
        total[blocks - 1] += total[blocks]
        width[blocks - 1] += width[blocks]
        length[blocks - 1] += length[blocks]
        blocks -= 1
        level[blocks] = total[blocks] / width[blocks]
    return blocks + 1
