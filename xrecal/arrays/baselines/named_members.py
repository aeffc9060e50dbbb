"""Weights and offsets of named members, such as the models of several centres.

The weights minimise the squared error of the weighted mean over all places (Bates & Granger 1969,
doi:10.1057/jors.1969.103). Weights are not negative and sum to one, and a ridge shrinks them
towards equal weights. The offset of a model is its bias minus the mean bias of all models.
Forecasts use the members minus their offsets, so the mean does not shift when a model is missing.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import Forecasts, find_bounds
from xrecal.typing import FloatArray, IntArray

from .lines import BLOCKS
from .robust import cut, deviations

PSEUDO_CASES = (math.inf, 1000.0, 300.0, 100.0)
"""Ridges that the fit tries. A ridge acts like this number of artificial cases in which all models
have errors of one size. With an infinite ridge, weights are equal."""

FAR = 3.0
"""Errors above this multiple of the typical error (of the mean of all models) count as this
multiple. So a spike does not decide the weights."""

NEAR = 2.0
"""The bias of a model is a mean of its errors; each error counts as at most this number of typical
deviations from the median."""

LEAST = 0.02
"""This share of the total weight is divided equally between all models, so that no weight is zero.
So a day with only one model has a forecast, whichever model this is."""

CORRELATED = 0.9
"""In the standard error of an offset, autocorrelations above this value count as this value."""

FEWEST = 2 * BLOCKS
"""Least number of dates; with fewer dates, models have equal weights and no offsets."""

CASES_OF_NONE = 30.0
"""Offsets shrink as if the record had this number of further dates without an offset, because
biases of models change with the season."""

ONE = float(2**20)
"""The fit rounds products of errors to integers, with this integer for a squared typical error. A
sum of integers does not depend on the order of the places."""

ROUNDING = 1e-12


def sums_size(n_members: int) -> int:
    """Return the length of the array that :func:`error_sums` returns."""
    return BLOCKS * (n_members**2 + 1)


def member_biases(members: FloatArray, observations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute biases of members, and squared standard errors of the biases.

    Parameters
    ----------
    members : array, shape (L, n, m)
        Forecasts of m models for n dates in the order of time, NaN where a model is missing.
    observations : array, shape (L, n)
        Observations, NaN if unknown.

    Returns
    -------
    bias : array of float64, shape (L, m)
        Mean difference, member minus observation, in the unit of the variable. The function limits
        large errors. The bias is NaN if the member has no case with an observation. It is 0 if the
        observations have a bound, because a shift would move members off the bound.
    error : array of float64, shape (L, m)
        Squared standard error, with allowance for autocorrelation, of the difference between the
        bias of a member and the mean bias of all members.

    Notes
    -----
    The cost is O(L n m).
    """
    shape = len(members), members.shape[-1]
    bias, error = np.full(shape, np.nan), np.full(shape, np.nan)
    lower, upper, _ = find_bounds(observations)
    for place, bounds in enumerate(zip(lower, upper, strict=True)):
        known = _errors(members[place], observations[place])
        there = np.isfinite(known)
        for k in np.flatnonzero(there.any(0)):
            bias[place, k] = cut(known[there[:, k], k], far=NEAR).mean()
        if np.isfinite(bounds).any():
            bias[place] = error[place] = 0.0
            continue
        apart = known - mean_of_known(known)[:, np.newaxis]
        apart = np.where(there, apart - mean_of_known(apart.T), 0.0)
        n = np.maximum(there.sum(0), 1)
        square = (apart**2).sum(0)
        lagged = (apart[1:] * apart[:-1]).sum(0) / np.where(square > 0, square, 1.0)
        lagged = np.clip(lagged, 0.0, CORRELATED)
        error[place] = square / n**2 * (1 + lagged) / (1 - lagged)
    return bias, error


def offsets_from(bias: FloatArray, error: FloatArray, n_dates: int) -> FloatArray:
    """Return offsets (..., m): biases minus their mean, shrunk towards 0. Unknown offsets are 0.

    The larger the squared errors (..., m), the more the function shrinks the offsets. Offsets are 0
    with 40 dates or fewer, and grow with the number of dates.
    """
    apart = bias - mean_of_known(bias)[..., np.newaxis]
    size, noise = mean_of_known(apart**2), mean_of_known(np.where(np.isnan(bias), np.nan, error))
    share = np.maximum(0.0, 1 - noise / np.where(size > 0, size, np.inf))
    n_more = max(n_dates - FEWEST, 0)
    share *= n_more / (n_more + CASES_OF_NONE)
    return np.nan_to_num(apart * share[..., np.newaxis])


def error_sums(members: FloatArray, observations: FloatArray, bias: FloatArray) -> IntArray:
    """Sum products of errors over places and dates, for each pair of members and block of dates.

    The function first subtracts the bias of each member.

    Parameters
    ----------
    members, observations : array, shape (L, n, m) and (L, n)
        As for :func:`member_biases`.
    bias : array, shape (L, m)
        Biases, from :func:`member_biases`.

    Returns
    -------
    array of int64, shape (BLOCKS (m² + 1),)
        For each block of dates, the sums of m × m products, and the number of cases. The unit of
        the products is the squared typical error of the mean of all models at the place, divided by
        2**20. A missing model gets the mean error of the other models.
    """
    n, m = members.shape[1:]
    sums = np.zeros((BLOCKS, m * m + 1), np.int64)
    edges = np.arange(BLOCKS + 1) * n // BLOCKS
    for place, one in enumerate(bias):
        errors = _errors(members[place], observations[place]) - np.nan_to_num(one)
        mean = mean_of_known(errors)
        known = np.isfinite(mean)
        if not known.any():
            continue
        middle, typical = deviations(np.ascontiguousarray(mean[known]))
        if typical == 0.0:
            continue
        errors = np.where(np.isfinite(errors), errors, mean[:, np.newaxis]) - middle
        errors = np.where(known[:, np.newaxis], np.clip(errors / typical, -FAR, FAR), 0.0)
        for block, (first, last) in enumerate(pairwise(edges.tolist())):
            some = errors[first:last]
            sums[block, :-1] += np.rint(ONE * (some.T @ some)).astype(np.int64).ravel()
            sums[block, -1] += known[first:last].sum()
    return sums.ravel()


def member_weights(sums: IntArray, n_dates: int, n_members: int) -> FloatArray:
    """Compute weights of members from sums of errors over all places.

    Parameters
    ----------
    sums : array of int64, shape (BLOCKS (m² + 1),)
        Result of :func:`error_sums`.
    n_dates : int
        Number of dates. The function divides the ridge by this number, and not by the number of
        cases, because the places of one date depend on each other.
    n_members : int
        Number m of members.

    Returns
    -------
    array of float64, shape (m,)
        Positive weights with sum one. Weights are equal with fewer than 40 dates, or if fewer than
        10 blocks have cases. They are also equal if no other weights are better, by more than one
        standard error, in held-out blocks of dates.

    Notes
    -----
    The cost is O(m³) for each of 20 blocks and 4 ridges.
    """
    equal = np.full(n_members, 1 / n_members)
    table = sums.reshape(BLOCKS, -1).astype(np.float64)
    products = table[:, :-1].reshape(BLOCKS, n_members, n_members) / ONE
    counts = table[:, -1]
    held_out = np.flatnonzero(counts > 0)
    if n_dates < FEWEST or held_out.size < BLOCKS // 2:
        return equal
    whole, n = products.sum(0), counts.sum()
    losses = np.empty((len(PSEUDO_CASES), held_out.size))
    for f, block in enumerate(held_out):
        rest = (whole - products[block]) / (n - counts[block])
        for i, cases in enumerate(PSEUDO_CASES):
            weights = _on_simplex(rest, cases / n_dates)
            losses[i, f] = weights @ products[block] @ weights / counts[block]
    above = losses - losses[losses.mean(-1).argmin()]
    near = above.mean(-1) <= np.std(above, axis=-1, ddof=1) / math.sqrt(held_out.size)
    weights = _on_simplex(whole / n, PSEUDO_CASES[int(near.argmax())] / n_dates)
    return (1 - LEAST) * weights + LEAST * equal


def _on_simplex(square: FloatArray, ridge: float) -> FloatArray:
    """Find the weights w >= 0 with sum one that minimise w'Sw + ridge t |w - 1/m|².

    S is `square` (m, m), and t is the mean of its diagonal. The active-set method begins with equal
    weights, and moves towards the minimum until a weight becomes zero. It then fixes this weight at
    zero, and continues with the other weights. At a minimum, it releases a fixed weight if the
    minimum then becomes lower.
    """
    m = len(square)
    weights, free = np.full(m, 1 / m), np.ones(m, np.bool_)
    size = np.trace(square) / m
    if math.isinf(ridge) or size <= 0.0:
        return weights
    matrix = square / size + ridge * np.eye(m)
    while True:
        some = np.linalg.solve(matrix[np.ix_(free, free)], np.ones(free.sum()))
        aim = np.zeros(m)
        aim[free] = some / some.sum()
        falls = free & (aim < 0.0)
        if falls.any():
            steps = np.where(falls, weights / np.where(falls, weights - aim, 1.0), np.inf)
            first = int(steps.argmin())
            weights = weights + steps[first] * (aim - weights)
            free[first], weights[first] = False, 0.0
            continue
        weights = aim
        slopes = matrix @ weights
        gains = np.where(free, 0.0, slopes - slopes[free].mean())
        if gains.min() >= -ROUNDING * slopes.max():
            return weights
        free[int(gains.argmin())] = True


def as_weighted(forecasts: Forecasts, weights: FloatArray, offsets: FloatArray) -> Forecasts:
    """Subtract offsets (L, m) from ensembles (L, n, m), and give their members weights (L, m)."""
    loc = forecasts.loc - offsets[:, np.newaxis].astype(forecasts.loc.dtype)
    each = np.broadcast_to(weights[:, np.newaxis].astype(loc.dtype), loc.shape)
    return Forecasts(loc, None, np.array(each))


def _errors(members: FloatArray, observations: FloatArray) -> FloatArray:
    """Return the errors (n, m), member minus observation; infinite errors become NaN."""
    errors = members.astype(np.float64) - observations[:, np.newaxis]
    return np.where(np.isfinite(errors), errors, np.nan)


def mean_of_known(values: FloatArray) -> npt.NDArray[np.float64]:
    """Return the mean (...) of the known values in an array (..., k); NaN if no value is known."""
    there = np.isfinite(values)
    total, n = np.where(there, values, 0.0).sum(-1), there.sum(-1)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)
