"""Regressions that minimise the CRPS, and shrink the coefficients of predictors.

A predictor is a regressor other than season and place. If a record has few cases, many predictors
make forecasts worse. So the fit shrinks their coefficients by a ridge, or leaves the predictors
out. The fit chooses the ridge by the errors of held-out cases.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .crps_regression import fit_varying, place_coefficients
from .robust import EDGE, believed, cut

NONE = np.zeros(0, np.int64)
"""Empty array of column numbers, for fits without predictors."""

RIDGES = (math.inf, 1.0, 1e-1, 1e-2, 1e-3)
"""Ridges that the fit tries, for predictors of standard deviation 1. The fit adds the product of
ridge, number of cases and sum of squared coefficients to the sum of squared errors. An infinite
ridge leaves out the predictors."""

BLOCKS = 20
"""Number of blocks of successive cases; cross-validation holds out each block once."""

ERRORS_ABOVE = 1.0
"""The loss of the chosen ridge may exceed the smallest loss by this number of standard errors."""

CASES_PER_REGRESSOR = 3
"""Least number of cases per regressor; with fewer cases, any predictor can seem to help."""

CURVATURE = 0.282
"""The mean CRPS of a normal distribution with standard deviation 1 grows by this factor times the
square of a small error of its mean. The factor converts the ridge of least squares to a ridge of
the CRPS."""

SMALLEST = 0.05
"""Sizes of errors below this share of the mean size count as this share, so that their logarithms
are not too small."""

TINY = 1e-9
"""Ridge of regressors other than predictors, so that equal regressors do no harm."""


def fit_shrunk(
    x: FloatArray,
    v: FloatArray,
    y: FloatArray,
    r: FloatArray,
    predictors: IntArray,
    lower: float,
    upper: float,
    in_spread: bool,
    coefficients: FloatArray,
) -> bool:
    """Call :func:`fit_varying` with a ridge for the predictors, which are some columns of r (n, K).

    First, :func:`choose_ridge` chooses the ridge with which predictors best explain the errors of a
    fit without predictors. If this ridge is infinite, and the spread may depend on predictors, it
    chooses a second ridge: with this ridge, predictors best explain the logarithm of the size of
    these errors. If the second ridge is infinite, too, the fit uses no predictors.
    """
    if predictors.size == 0:
        return fit_varying(x, v, y, r, lower, upper, in_spread, coefficients)
    others = np.setdiff1d(np.arange(r.shape[1]), predictors)
    plain, own = np.ascontiguousarray(r[:, others]), np.zeros(4 + 2 * others.size)
    converged = fit_varying(x, v, y, plain, lower, upper, in_spread, own)
    place_coefficients(own, others, coefficients)
    predictors = predictors[(r[:, predictors] != r[:1, predictors]).any(0)]
    if predictors.size == 0:
        return converged
    known = np.column_stack([x, plain])
    error = np.clip(y, lower, upper) - own[0] - known @ own[[1, *range(4, 4 + others.size)]]
    ridge = choose_ridge(known, r[:, predictors], error)
    if math.isinf(ridge) and in_spread:
        spread = np.hypot(own[2], own[3] * np.sqrt(v)) * np.exp(plain @ own[4 + others.size :])
        ridge = choose_ridge(known, r[:, predictors], _log_size(error, spread))
    if math.isinf(ridge):
        return converged
    weights = np.zeros(r.shape[1])
    weights[predictors] = CURVATURE * ridge * y.size
    return fit_varying(x, v, y, r, lower, upper, in_spread, coefficients, weights)


def choose_ridge(known: FloatArray, predictors: FloatArray, error: FloatArray) -> float:
    """Choose the ridge of predictors by the errors of held-out blocks of cases.

    Parameters
    ----------
    known : array of float64, shape (n, q)
        Regressors that are not predictors, and get almost no ridge.
    predictors : array of float64, shape (n, p)
        Predictors.
    error : array of float64, shape (n,)
        Errors of a fit without predictors, in the order of time.

    Returns
    -------
    float
        The largest of :data:`RIDGES` whose loss exceeds the smallest loss by at most
        :data:`ERRORS_ABOVE` standard errors over the blocks. The loss is the mean absolute error of
        least-squares fits in held-out blocks.

    Notes
    -----
    The function limits errors far from the median. To hold out a block, it subtracts the sums of
    squares of this block from the sums over all cases. The cost is O(n (q + p)²), and O((q + p)³)
    for each ridge and block.
    """
    n, q = known.shape
    if n < max(2 * BLOCKS, CASES_PER_REGRESSOR * (q + predictors.shape[1])):
        return math.inf
    design = np.column_stack([np.ones(n), _standard(known), _standard(predictors)])
    error = cut(error, far=EDGE)
    edges = np.arange(BLOCKS + 1) * n // BLOCKS
    blocks = [slice(*ends) for ends in pairwise(edges.tolist())]
    squares = np.array([design[block].T @ design[block] for block in blocks])
    products = np.array([design[block].T @ error[block] for block in blocks])
    is_predictor = np.arange(design.shape[1]) > q
    losses = np.empty((len(RIDGES), BLOCKS))
    for f, block in enumerate(blocks):
        square, product = squares.sum(0) - squares[f], products.sum(0) - products[f]
        n_train = n - (block.stop - block.start)
        for i, ridge in enumerate(RIDGES):
            used = ~is_predictor if math.isinf(ridge) else np.ones_like(is_predictor)
            weight = n_train * np.where(is_predictor[used], ridge, TINY)
            line = np.linalg.solve(square[np.ix_(used, used)] + np.diag(weight), product[used])
            losses[i, f] = np.abs(error[block] - design[block][:, used] @ line).mean()
    above = losses - losses[losses.mean(-1).argmin()]
    error_of_mean = np.std(above, axis=-1, ddof=1) / math.sqrt(BLOCKS)
    is_near = above.mean(-1) <= ERRORS_ABOVE * error_of_mean
    return RIDGES[int(is_near.argmax())]


def _log_size(error: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the logarithm (n,) of the size of each error, in units of the spread.

    Very small sizes count as :data:`SMALLEST` times the mean size.
    """
    size = np.abs(error) / np.where(spread > 0.0, spread, 1.0)
    return np.asarray(np.log(np.maximum(size, SMALLEST * size.mean() or 1.0)))


def _standard(columns: FloatArray) -> FloatArray:
    """Return standardised columns (n, k), with 0 for a constant column."""
    apart = columns - columns.mean(0)
    std = apart.std(0)
    varies = std > TINY * np.abs(columns).max(0, initial=0.0)
    return np.where(varies, apart / np.where(varies, std, 1.0), 0.0)


def fit_line(
    mean: FloatArray,
    regressors: FloatArray,
    target: FloatArray,
    low: float = -np.inf,
    high: float = np.inf,
    predictors: IntArray = NONE,
) -> FloatArray:
    """Fit the line with the smallest CRPS, for errors with a constant spread.

    Parameters
    ----------
    mean, target : array of float64, shape (n,)
        Ensemble means and observations of complete cases.
    regressors : array of float64, shape (n, K)
        Further variables of the line.
    low, high : float
        Bounds of the variable, infinite without a bound. The fit moves targets beyond a bound to
        the bound.
    predictors : array of int, optional
        Positions of the regressors that are predictors; the fit shrinks their coefficients.

    Returns
    -------
    array of float64, shape (2 + K,)
        Intercept, slope on the mean (>= 0) and coefficients of the regressors.

    Notes
    -----
    The line is the parameter mu of EMOS with a constant spread. The fit leaves out cases that
    :func:`~xrecal.arrays.baselines.robust.believed` does not mark. If the slope on the mean is
    negative, the function sets the slope to 0, and fits the other coefficients again, without the
    mean.
    """
    near = believed(np.column_stack([mean, regressors]))
    x, y = np.ascontiguousarray(mean[near]), cut(target[near])
    r = np.ascontiguousarray(regressors[near])
    found, even = np.zeros(4 + 2 * r.shape[1]), np.zeros(x.size)
    fit_shrunk(x, even, y, r, predictors, low, high, False, found)
    if found[1] < 0.0:
        fit_shrunk(even, even, y, r, predictors, low, high, False, found)
    return np.concatenate([found[:2], found[4 : 4 + r.shape[1]]])
