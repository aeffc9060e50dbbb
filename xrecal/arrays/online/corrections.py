"""Correction of forecasts by their expected errors, which follow from earlier errors.

The earlier errors are those known when the forecast is issued. An error is a normal score: the
quantile of a standard normal distribution at the PIT value of the observation. It is 0 if the
observation is the median of the forecast. A first regression, on earlier errors and on properties
of the forecast, gives the expected error. A second regression, on sizes of earlier errors, gives
the expected size. Such corrections help because errors of floods, prices and fronts often persist
to the next day. Normal scores are bounded, so an outlier among the errors has little influence.
Predictors are not bounded, so the regressions limit them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from xrecal.arrays.baselines.robust import EDGE, cut
from xrecal.arrays.compiled import Indices, Matrix, OutMatrix, Vector, inner, kernel
from xrecal.typing import FloatArray

N_OWN = 3
"""Number of predictors that come from the forecast and from its own location."""

RATE = 0.2
"""Weight that a new error gets when it updates the mean of recent errors."""

RIDGE, COMMON_RIDGE = 50.0, 10.0
"""Numbers of artificial cases without error from which the regressions start: for the predictors of
the own location, and for those that places have in common."""

LARGEST = 3.0
"""The regressions limit standardised predictors to this number of standard deviations."""

LARGEST_SHIFT, LARGEST_STRETCH = 1.0, 0.7
"""Largest shift of a forecast, as a normal score, and largest change of its spread, as a
logarithm."""

LIMIT = 500.0
"""Largest difference of log evidences, so that exponentials stay finite."""

TAIL = 0.07
"""A straight line continues a forecast beyond its outermost level. The line passes through the
quantile at this level, and through the quantile that is this share of the levels further in."""

MEAN_SIZE = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal distribution."""


def normal_scores(quantiles: npt.ArrayLike, observations: npt.ArrayLike) -> FloatArray:
    """Compute the errors of forecasts as normal scores, from quantiles at the levels (j - ½) / J.

    Parameters
    ----------
    quantiles : array_like of float, shape (..., J)
        Ascending quantiles of the forecasts.
    observations : array_like of float, shape (...)
        Observations, in the unit of the quantiles.

    Returns
    -------
    array of float64, shape (...)
        Normal scores, between the scores of the levels ½ / (J + 1) and 1 - ½ / (J + 1). If an
        observation is equal to several quantiles, it gets the middle of their levels. Scores are
        NaN if the forecast or the observation is missing.
    """
    said, observed = np.asarray(quantiles, np.float64), np.asarray(observations, np.float64)
    y = observed[..., np.newaxis]
    rank = ((said < y).sum(-1) + (said <= y).sum(-1)) / 2
    missing = np.isnan(observed) | np.isnan(said).any(-1)
    scores: FloatArray = ndtri(np.where(missing, np.nan, (rank + 0.5) / (said.shape[-1] + 1)))
    return scores


def corrections(
    errors: FloatArray,
    earlier: npt.ArrayLike,
    predictors: FloatArray,
    new: FloatArray,
    *,
    rate: float = RATE,
    ridge: float = RIDGE,
) -> FloatArray:
    r"""Compute expected errors of new forecasts, and expected sizes of errors.

    Parameters
    ----------
    errors : array of float, shape (n,)
        Normal scores of past forecasts, in the order in which they were issued.
    earlier : array_like of int, shape (n,)
        For each past forecast, the number k of errors that were known when it was issued. These are
        the first k errors in ``errors``.
    predictors : array of float, shape (n, 3 + G)
        Predictors for each past forecast. The first three are in the unit of the variable: its mean
        minus the last known observation, its mean minus the mean of the earlier forecast of this
        observation, and its standard deviation. The last G are those that places have in common,
        known at its issue, from :mod:`xrecal.arrays.online.in_common`; NaN, if unknown, counts as
        0.
    new : array of float, shape (T, 3 + G)
        The same predictors for each new forecast. When the new forecasts are issued, all past
        errors are known.
    rate : float
        Weight :math:`\lambda` of a new error in the mean of recent errors, in (0, 1].
    ridge : float
        Ridge of the regressions for the predictors of the own location, above 0: number of
        artificial cases without error.

    Returns
    -------
    array of float64, shape (T, 2)
        For each new forecast, the expected error, within ±1, and the expected size of the error,
        within ±0.7. The size is the absolute error, divided by :math:`\sqrt{2 / \pi}`, minus 1; it
        is 0 on average for calibrated forecasts. :func:`corrected` uses the size as the logarithm
        of a factor for the spread. Both numbers are 0 without past errors, and NaN if one of the
        first three predictors is NaN.

    Notes
    -----
    Each error z updates the mean m of recent errors: :math:`m \leftarrow m + \lambda (z - m)`. In
    the same way, the size :math:`|z| / \sqrt{2 / \pi} - 1` updates the mean of recent sizes. The
    expected error is a mean of two regressions: one on the mean of recent errors and the first
    three predictors, and one on all predictors, with ridge 10 for the last G. Their weights are
    proportional to their evidence: the probability of the past errors if coefficients are normal
    with variances that follow from the ridge. The regression of sizes uses the mean of recent
    sizes, the absolute values of the first two predictors, and the third predictor. The function
    limits the first three predictors to 8 typical deviations from the median of past values, and
    subtracts from each its mean over the past forecasts. It does not centre the mean of recent
    errors or sizes, nor what places have in common. It divides all inputs of a regression by their
    root mean square, and limits the results to ±3. The time is O(n + T).
    """
    scores, known = (
        np.ascontiguousarray(errors, np.float64),
        np.ascontiguousarray(earlier, np.int64),
    )
    every = np.concatenate([predictors, new], dtype=np.float64)
    for column in every.T[:N_OWN]:
        column[:] = cut(column, column[: scores.size], EDGE)
    every[:, N_OWN:] = np.nan_to_num(every[:, N_OWN:])
    out = np.empty((new.shape[0], 2))
    _fill_corrections(scores, known, every, rate, ridge, out)
    return out


def corrected(
    quantiles: npt.ArrayLike, correction: npt.ArrayLike, bounds: tuple[float, float]
) -> FloatArray:
    r"""Correct quantiles (T, J) of forecasts by expected errors and expected sizes of errors.

    With a correction :math:`(\mu, \sigma)`, the new quantile at the level p is the old quantile at
    the level :math:`\Phi(\mu + e^\sigma \Phi^{-1}(p))`. The function interpolates quantiles
    linearly in the normal score of the level. Beyond the outermost levels, it continues each
    forecast by a straight line. Values beyond a bound move to the bound.

    Parameters
    ----------
    quantiles : array_like of float, shape (T, J)
        Ascending quantiles at the levels (j - ½) / J.
    correction : array_like of float, shape (T, 2)
        Expected errors and sizes, from :func:`corrections`.
    bounds : (float, float)
        Bounds of the variable, infinite without a bound.

    Returns
    -------
    array of float64, shape (T, J)
        Ascending corrected quantiles; NaN if the forecast or the correction is missing.
    """
    said = np.ascontiguousarray(quantiles, np.float64)
    n_levels = said.shape[1]
    scores = ndtri((np.arange(n_levels) + 0.5) / n_levels)
    out = np.empty(said.shape)
    _fill_corrected(said, np.ascontiguousarray(correction, np.float64), scores, *bounds, out)
    return out


@kernel
def _fill_corrections(
    errors: Vector,
    earlier: Indices,
    predictors: Matrix,
    rate: float,
    ridge: float,
    out: OutMatrix,
) -> None:
    n, n_all = errors.size, predictors.shape[0]
    sizes = np.abs(errors) / MEAN_SIZE - 1.0
    mean_error, mean_size = _recent(errors, rate), _recent(sizes, rate)
    signed, unsigned = np.empty((n_all, 1 + predictors.shape[1])), np.empty((n_all, 1 + N_OWN))
    signed[:, 1:] = predictors
    unsigned[:, 1:] = np.abs(predictors[:, :N_OWN])
    for i in range(n_all):
        known = earlier[i] if i < n else n
        signed[i, 0], unsigned[i, 0] = mean_error[known], mean_size[known]
    _fill_expected(signed, errors, ridge, LARGEST_SHIFT, out[:, 0])
    _fill_expected(unsigned, sizes, ridge, LARGEST_STRETCH, out[:, 1])


@inner
def _recent(values: Any, rate: float) -> Any:
    """Return means (n + 1,) of the first k values, for k from 0 to n; later values count more."""
    means = np.zeros(values.size + 1)
    for i in range(values.size):
        means[i + 1] = means[i] + rate * (values[i] - means[i])
    return means


@inner
def _fill_expected(table: Any, target: Any, ridge: float, largest: float, out: Any) -> None:
    """Compute expected values (T,) of new cases by regressions on n past cases.

    ``table`` (n + T, p) has the predictors of past and new cases; ``target`` (n,) has the values of
    the past cases. One regression uses the columns of the own place alone, another all columns. The
    result is their mean, with weights by their evidence.
    """
    n, n_own = target.size, N_OWN + 1
    _standardise(table, n)
    own, evidence = _ridge_regression(table[:, :n_own], target, ridge)
    coefficients = np.zeros(table.shape[1])
    coefficients[:n_own] = own
    if table.shape[1] > n_own:
        whole, other = _ridge_regression(table, target, ridge)
        share = 1.0 / (1.0 + math.exp(min(max(evidence - other, -LIMIT), LIMIT)))
        for p in range(coefficients.size):
            coefficients[p] += share * (whole[p] - coefficients[p])
    for t in range(out.size):
        expected = 0.0
        for p in range(table.shape[1]):
            expected += coefficients[p] * table[n + t, p]
        out[t] = _within(expected, -largest, largest)


@inner
def _within(value: float, low: float, high: float) -> float:
    """Limit a value to the range from ``low`` to ``high``; NaN stays NaN."""
    return low if value < low else high if value > high else value


@inner
def _standardise(table: Any, n: int) -> None:
    """Centre columns 1 to ``N_OWN``, and divide each column by its root mean square.

    The means and root mean squares are over the first n rows. The function limits the results to
    ±3.
    """
    for p in range(table.shape[1]):
        centre, square = 0.0, 0.0
        if 0 < p <= N_OWN:
            for i in range(n):
                centre += table[i, p] / n
        for i in range(n):
            square += (table[i, p] - centre) ** 2 / n
        deviation = math.sqrt(square)
        for i in range(table.shape[0]):
            value = (table[i, p] - centre) / deviation if deviation > 0.0 else 0.0 * table[i, p]
            table[i, p] = _within(value, -LARGEST, LARGEST)


@inner
def _ridge_regression(table: Any, target: Any, ridge: float) -> Any:
    """Return coefficients (p,) of the ridge regression of a target (n,) on the first n rows.

    The rows of ``table`` have p columns; the regression has no constant. The second result is the
    log evidence of the regression, relative to a regression without predictors: coefficients are
    a priori normal, with variances that follow from the ridge.
    """
    n_columns = table.shape[1]
    matrix, found = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
    evidence, square = 0.0, 0.0
    for i in range(target.size):
        square += target[i] ** 2 / target.size
    for p in range(n_columns):
        for i in range(target.size):
            found[p] += table[i, p] * target[i]
        for q in range(p, n_columns):
            for i in range(target.size):
                matrix[p, q] += table[i, p] * table[i, q]
            matrix[q, p] = matrix[p, q]
        penalty = ridge if p <= N_OWN else COMMON_RIDGE
        matrix[p, p] += penalty
        evidence += 0.5 * math.log(penalty)
    for p in range(n_columns):  # elimination; with a ridge no pivot is near zero
        evidence -= 0.5 * math.log(matrix[p, p])
        if square > 0.0:
            evidence += 0.5 * found[p] ** 2 / matrix[p, p] / square
        for q in range(p + 1, n_columns):
            factor = matrix[q, p] / matrix[p, p]
            found[q] -= factor * found[p]
            for r in range(p, n_columns):
                matrix[q, r] -= factor * matrix[p, r]
    for p in range(n_columns - 1, -1, -1):
        for q in range(p + 1, n_columns):
            found[p] -= matrix[p, q] * found[q]
        found[p] /= matrix[p, p]
    return found, evidence


@kernel
def _fill_corrected(
    quantiles: Matrix, correction: Matrix, scores: Vector, low: float, high: float, out: OutMatrix
) -> None:
    n_levels = scores.size
    last, outer = n_levels - 1, min(max(round(TAIL * n_levels), 1), n_levels - 1)
    for t in range(quantiles.shape[0]):
        shift, factor, said = correction[t, 0], math.exp(correction[t, 1]), quantiles[t]
        for j in range(n_levels):
            score = shift + factor * scores[j]
            place = n_levels * 0.5 * math.erfc(-score / math.sqrt(2.0)) - 0.5
            if np.isnan(place) or np.isnan(said[j]):
                out[t, j] = np.nan
            elif last == 0:
                out[t, j] = _within(said[0], low, high)
            else:
                first = min(max(int(place), 0), last - 1)
                second = first + 1
                if place < 0.0:
                    second = outer
                elif place >= last:
                    first, second = last - outer, last
                slope = (said[second] - said[first]) / (scores[second] - scores[first])
                value = said[first] + slope * (score - scores[first])
                out[t, j] = _within(value, low, high)
