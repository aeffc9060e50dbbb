"""Weights and offsets of named members, such as the models of several centres.

The weights minimise the squared error of the weighted mean over all places (Bates & Granger 1969,
doi:10.1057/jors.1969.103). They are on the simplex, and a ridge shrinks them towards equal weights.
Offsets are the differences between the biases of models, so a missing model does not shift the
mean.
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
"""Ridges to try, as numbers of cases with errors of equal size; infinite for equal weights."""

FAR = 3.0
"""Limit of errors, in typical errors of the mean, so that a spike does not decide the weights."""

NEAR = 2.0
"""Limit of errors before their mean is a bias, in typical deviations."""

LEAST = 0.02
"""Share of the weights that is equal for all, so that a day with any one model has a forecast."""

CORRELATED = 0.9
"""Largest autocorrelation in the error of an offset."""

FEWEST = 2 * BLOCKS
"""Least number of dates: with fewer, models have equal weights and no offsets."""

CASES_OF_NONE = 30.0
"""Number of artificial cases without an offset, as biases of models change with the season."""

ONE = float(2**20)
"""Integer for one squared typical error: integer sums do not depend on their order."""

ROUNDING = 1e-12


def sums_size(n_members: int) -> int:
    """Return the length of the result of :func:`error_sums`."""
    return BLOCKS * (n_members**2 + 1)


def member_biases(members: FloatArray, observations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute biases of members and the squared errors of their differences.

    Parameters
    ----------
    members : array, shape (L, n, m)
        Forecasts in the order of time, NaN where a model is missing.
    observations : array, shape (L, n)
        Observations, NaN if unknown.

    Returns
    -------
    bias : array of float64, shape (L, m)
        Mean of member minus observation, in the unit of the variable; large errors are limited. NaN
        without a case, and 0 if the observations have a bound: a shift would move members off it.
    error : array of float64, shape (L, m)
        Squared standard error of the bias minus the mean bias of all members; it allows for
        autocorrelation.

    Notes
    -----
    O(L n m).
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
    """Return biases (..., m) minus their mean, shrunk by squared errors (..., m); 0 if unknown.

    The offsets are 0 with 40 dates, and grow with the number of dates.
    """
    apart = bias - mean_of_known(bias)[..., np.newaxis]
    size, noise = mean_of_known(apart**2), mean_of_known(np.where(np.isnan(bias), np.nan, error))
    share = np.maximum(0.0, 1 - noise / np.where(size > 0, size, np.inf))
    n_more = max(n_dates - FEWEST, 0)
    share *= n_more / (n_more + CASES_OF_NONE)
    return np.nan_to_num(apart * share[..., np.newaxis])


def error_sums(members: FloatArray, observations: FloatArray, bias: FloatArray) -> IntArray:
    """Sum products of errors of members, without their biases, over places, for each block.

    Parameters
    ----------
    members, observations : array, shape (L, n, m) and (L, n)
        As for :func:`member_biases`.
    bias : array, shape (L, m)
        From :func:`member_biases`.

    Returns
    -------
    array of int64, shape (BLOCKS (m² + 1),)
        For each block of dates, m x m products and the number of cases. The unit of products is the
        squared typical error of the mean at a place, over 2**20. A missing model gets the mean
        error of the others.
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
        Number of dates, which is the unit of the ridge, because places of one date depend on each
        other.
    n_members : int
        Members m.

    Returns
    -------
    array of float64, shape (m,)
        Positive, with sum one. Equal with fewer than 40 dates, or if no other weights are better in
        held-out blocks of dates by more than one standard error.

    Notes
    -----
    O(m³) for each of 20 blocks and 4 ridges.
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
    """Find weights w on the simplex that minimise w'Sw + ridge t |w - 1/m|².

    Here t is the mean of the diagonal of S.

    The method is an active set: it moves from equal weights towards the minimum of the free
    weights, as long as no weight becomes negative.
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
    """Make ensembles (L, n, m) with weights, minus offsets, both (L, m)."""
    loc = forecasts.loc - offsets[:, np.newaxis].astype(forecasts.loc.dtype)
    each = np.broadcast_to(weights[:, np.newaxis].astype(loc.dtype), loc.shape)
    return Forecasts(loc, None, np.array(each))


def _errors(members: FloatArray, observations: FloatArray) -> FloatArray:
    """Return member minus observation (n, m), NaN if not finite."""
    errors = members.astype(np.float64) - observations[:, np.newaxis]
    return np.where(np.isfinite(errors), errors, np.nan)


def mean_of_known(values: FloatArray) -> npt.NDArray[np.float64]:
    """Return the mean (...) of the known values among (..., k); NaN if no value is known."""
    there = np.isfinite(values)
    total, n = np.where(there, values, 0.0).sum(-1), there.sum(-1)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)
