"""Isotonic distributional regression (IDR): a larger index never makes small observations likelier.

The index is the ensemble mean, or a linear function of the ensemble mean and other variables, such
as the season.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.ckme.simplex import push_level
from xrecal.arrays.compiled import IndexMatrix, Indices, Matrix, OutCube, inner, kernel
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray

from .lines import fit_line


def fit_index(means: FloatArray, observations: FloatArray, regressors: FloatArray) -> FloatArray:
    """Fit the index: a linear function of ensemble mean and regressors with the smallest CRPS.

    Parameters
    ----------
    means, observations : array of float, shape (L, n)
        Ensemble means and observations, in the unit of the variable.
    regressors : array of float, shape (L, n, K)
        Other variables, such as sine and cosine of the season, in any units; K may be 0.

    Returns
    -------
    array of float64, shape (L, 2 + K)
        Intercept, slope on the mean (>= 0) and coefficients of the regressors; NaN at locations
        with fewer than 2 complete cases. The function ignores a case with a NaN or infinite value.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    The line is the parameter mu of :func:`fit_emos` with a constant spread and without bounds. It
    minimises the CRPS, so a few outlying observations do not change it much. The fit ignores cases
    with a mean or a regressor more than 20 typical deviations from the median. Coefficients that
    the cases do not determine are 0, such as the coefficient of a constant regressor. If two
    regressors are equal, the cases determine only the sum of their coefficients. The index must not
    decrease with the ensemble mean. So if the slope on the mean is negative, the function sets the
    slope to 0, and fits the other coefficients again, without the mean.

    The search takes about 20 steps per location, each in O(n K²). IDR with such an index is a
    distributional index model [1]_.

    References
    ----------
    .. [1] Henzi, Kleger & Ziegel, Distributional (single) index models.
       https://arxiv.org/abs/2006.09219

    Examples
    --------
    >>> means = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> fit_index(means, 1.0 + 2.0 * means, np.empty((1, 4, 0))).round(6)
    array([[1., 2.]])
    """
    means, observations = np.asarray(means), np.asarray(observations)
    regressors = np.asarray(regressors)
    if means.ndim != 2 or observations.shape != means.shape:
        raise ValueError(
            "means and observations must both have shape (locations, cases), "
            f"got {means.shape} and {observations.shape}"
        )
    _check_regressors(means, regressors)
    complete = np.isfinite(means) & np.isfinite(observations) & np.isfinite(regressors).all(-1)
    coefficients = np.full((len(means), 2 + regressors.shape[2]), np.nan)
    for cell in np.flatnonzero(complete.sum(-1) >= 2):
        given = (means[cell], regressors[cell], observations[cell])
        some = (part[complete[cell]].astype(np.float64) for part in given)
        coefficients[cell] = fit_line(*some)
    return coefficients


def index_of(coefficients: FloatArray, means: FloatArray, regressors: FloatArray) -> FloatArray:
    """Compute the index of forecasts.

    Parameters
    ----------
    coefficients : array of float, shape (L, 2 + K)
        Result of :func:`fit_index`.
    means, regressors : array of float, shapes (L, T) and (L, T, K)
        Ensemble means and regressors of T forecasts, as in the fit.

    Returns
    -------
    array of float64, shape (L, T)
        Index in the unit of the variable; NaN if the mean or a regressor is NaN or infinite. Equal
        inputs give exactly equal indices.

    Raises
    ------
    ValueError
        If shapes do not match.

    Examples
    --------
    >>> index_of(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.empty((1, 2, 0)))
    array([[7., 9.]])
    """
    coefficients, means = np.asarray(coefficients), np.asarray(means)
    regressors = np.asarray(regressors)
    _check_regressors(means, regressors)
    if coefficients.shape != (len(means), 2 + regressors.shape[2]):
        raise ValueError(
            f"coefficients must have shape {(len(means), 2 + regressors.shape[2])}, "
            f"got {coefficients.shape}"
        )
    index = np.repeat(coefficients[:, :1], means.shape[1], axis=1).astype(np.float64)
    # One column after another, because the order of sums in a matrix product depends on its size.
    for k, column in enumerate([means, *np.moveaxis(regressors, 2, 0)], start=1):
        index += coefficients[:, k, np.newaxis] * np.where(np.isfinite(column), column, np.nan)
    return index


def idr_weights(new_index: FloatArray, index: FloatArray, observations: FloatArray) -> FloatArray:
    r"""Compute the probabilities that new forecasts give to past observations.

    Parameters
    ----------
    new_index : array of float, shape (L, T)
        Index of the new forecasts.
    index : array of float, shape (L, n)
        Index of the past forecasts, in any unit. Where a new index equals a past index, only the
        order of the indices matters.
    observations : array of float, shape (L, n)
        Observations. The function leaves out cases with a NaN or infinite observation or index.

    Returns
    -------
    array of the floating type of ``new_index``, shape (L, T, n)
        Probabilities that sum to one, with 0 for cases left out. They are NaN where the new index
        is NaN or infinite, and at locations with fewer than 2 cases.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    For each distinct observation z, the method estimates :math:`P(Y \le z \mid x)`, the conditional
    CDF. The estimate is the least-squares fit to :math:`1\{y_i \le z\}` among the non-increasing
    functions of the index x. Cases with the same index share one CDF. The probability of an
    observation is the step of the CDF at this value; cases with the same observation get equal
    parts of this step. Between two neighbouring past values of the index, the function interpolates
    CDFs linearly. A forecast with an index outside the range of the past indices gets the CDF at
    the nearest end of the range. If the past index is constant, all observations get the same
    probability.

    The cost is O(n²) per location for all CDFs, and O(n) per new forecast. The function does not
    store an n × n matrix.

    References
    ----------
    .. [1] Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression.
       https://doi.org/10.1111/rssb.12450

    Examples
    --------
    >>> index, observations = np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[1.0, 3.0, 2.0, 4.0]])
    >>> idr_weights(np.array([[2.5]]), index, observations)
    array([[[0. , 0.5, 0.5, 0. ]]])
    """
    new_index, index = np.asarray(new_index), np.asarray(index)
    observations = np.asarray(observations)
    if index.ndim != 2 or observations.shape != index.shape:
        raise ValueError(
            "index and observations must both have shape (locations, cases), "
            f"got {index.shape} and {observations.shape}"
        )
    if new_index.ndim != 2 or len(new_index) != len(index):
        raise ValueError(
            f"new_index must have shape ({len(index)}, T), one row for each location of index, "
            f"got {new_index.shape}"
        )
    (n_locations, n), n_new = index.shape, new_index.shape[1]
    dtype = np.result_type(new_index.dtype, np.float32)
    weights = np.empty((n_locations, n_new, n), dtype=dtype)
    for block in location_blocks(n_locations, 8 * n * max(n_new, 8)):
        new = np.array(new_index[block], np.float64, order="C")
        new[np.isinf(new)] = np.nan
        ordered = _order(index[block], observations[block])
        filled = np.zeros((len(new), n_new, n))
        fill_weights(-new, ordered, filled)
        weights[block] = filled
    return weights


def _check_regressors(means: FloatArray, regressors: FloatArray) -> None:
    if means.ndim != 2 or regressors.ndim != 3 or regressors.shape[:2] != means.shape:
        raise ValueError(
            "means need shape (locations, cases) and regressors (locations, cases, K), "
            f"got {means.shape} and {regressors.shape}"
        )


class OrderedCases(NamedTuple):
    """Sorted cases (L, n) for compiled loops; usable cases come first."""

    minus: Matrix
    """Minus the index, ascending; so the CDF at a fixed value increases along this axis"""
    target: Matrix
    """Observations, ascending"""
    slot: IndexMatrix
    """Position of each observation in ``target`` among the unsorted cases"""
    number: IndexMatrix
    """Rank among the distinct index values, for the case of each observation in ``target``"""
    n_used: Indices
    """(L,) Number of usable cases"""


def _order(index: FloatArray, observations: FloatArray) -> OrderedCases:
    """Sort cases with NumPy, because a compiled sort would take long to compile."""
    index, observations = (np.array(a, np.float64, order="C") for a in (index, observations))
    usable = np.isfinite(index) & np.isfinite(observations)
    minus = np.where(usable, -index, np.nan)
    by_index = np.argsort(minus, axis=-1)
    minus = np.take_along_axis(minus, by_index, axis=-1)
    number = np.empty(minus.shape, dtype=np.int64)
    changes = np.cumsum(minus[:, 1:] != minus[:, :-1], axis=-1)
    np.put_along_axis(number, by_index[:, 1:], changes, axis=-1)
    np.put_along_axis(number, by_index[:, :1], 0, axis=-1)
    target = np.where(usable, observations, np.nan)
    slot = np.argsort(target, axis=-1, kind="stable")
    target, number = (np.take_along_axis(a, slot, axis=-1) for a in (target, number))
    return OrderedCases(minus, target, slot, number, usable.sum(-1))


@kernel
def fill_weights(new: Matrix, cases: OrderedCases, out: OutCube) -> None:
    """Write probabilities to ``out`` (L, T, n), which must contain zeros before the call.

    ``new`` (L, T) is the index of the new forecasts, times -1.
    """
    minus, target, slot, number, n_used = cases
    n_new, n = new.shape[1], minus.shape[1]
    knots, counts, hits, cdf = np.empty(n), np.empty(n), np.empty(n), np.empty(n + 1)
    arrays = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    spare = np.empty(n), np.empty(n), np.empty(n, np.int64)
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
        first, blocks = 0, 1
        arrays[0][0], arrays[1][0], arrays[2][0], arrays[3][0] = 0.0, 0.0, float(used), last + 1
        for k in range(n + 1):
            cdf[k] = 0.0
        for i in range(used if used > 1 else 0):
            j = number[cell, i]
            hits[j] += 1.0
            blocks = _raise(j, (hits, counts), arrays, spare, blocks, cdf)
            if i < used - 1 and target[cell, i + 1] == target[cell, i]:
                continue
            for t in range(n_new):
                k = low[t]
                value = cdf[k] + share[t] * (cdf[k + 1] - cdf[k])
                if value > before[t]:
                    step = (value - before[t]) / (i + 1 - first)
                    for tied in range(first, i + 1):
                        out[cell, t, slot[cell, tied]] += step  # adds to 0 or NaN
                    before[t] = value
            first = i + 1


@inner
def _place(value, knots, last):  # type: ignore[no-untyped-def]
    """Return the position of the knot below a value, and the share of the way to the next knot.

    The knots from position 0 to `last` are in ascending order. A value outside the range of the
    knots gets the position of the nearest end.
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
def _raise(j, of, arrays, spare, blocks, cdf):  # type: ignore[no-untyped-def]
    """Update the isotonic regression (n + 1,) of the shares of hits, after a new hit at knot j.

    A hit is a case whose observation is at most a value z. The knots are the distinct values of the
    index. A block is a group of neighbouring knots with one fitted share. Blocks before the block
    of knot j do not change. The block of knot j splits, and the function may merge its parts with
    later blocks. See [1]_; the short algorithm is from [2]_.

    References
    ----------
    .. [1] Barlow & Brunk (1972), The isotonic regression problem and its dual.
       https://doi.org/10.1080/01621459.1972.10481216
    .. [2] Henzi, Mösching & Dümbgen (2022), Accelerating the pool-adjacent-violators algorithm for
       isotonic distributional regression. https://doi.org/10.1007/s11009-022-09937-2
    """
    hits, counts = of
    level, total, width, length = arrays
    block, start = 0, 0
    while start + length[block] <= j:
        start += length[block]
        block += 1
    stop = start + length[block]
    behind = blocks - block - 1
    hits_behind, counts_behind, length_behind = spare
    for b in range(behind):
        hits_behind[b], counts_behind[b] = total[block + 1 + b], width[block + 1 + b]
        length_behind[b] = length[block + 1 + b]
    blocks = block
    for k in range(start, stop):
        value = hits[k] / counts[k]
        blocks = push_level(value, hits[k], counts[k], level, total, width, length, blocks)
    changed = end = stop
    for b in range(behind):
        before, hit, count = blocks, hits_behind[b], counts_behind[b]
        blocks = push_level(hit / count, hit, count, level, total, width, length, blocks)
        length[blocks - 1] += length_behind[b] - 1
        end += length_behind[b]
        changed = end if blocks <= before else changed
    k = start
    while k < changed:
        for _ in range(length[block]):
            cdf[k] = level[block]
            k += 1
        block += 1
    cdf[end] = cdf[end - 1]
    return blocks
