"""Where the members of a recalibrated forecast sit: past observations, or errors around a centre.

With a centre c and a spread s of each forecast the calibration cases have the errors
``e = (y - c) / s``, and the members of a new forecast are ``c(x) + s(x) e``. All centres have one
form, with the covariates r of the case:

    c = a + b mean + sum g_k r_k        s = sqrt(c0² + d² v) exp(sum h_k r_k)

with v the ensemble's variance, or its squared mean for ratios.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.baselines.crps_regression import fit_location, predict_case
from xrecal.arrays.baselines.idr import fill_coefficients
from xrecal.arrays.compiled import (
    Cube,
    IndexCube,
    IndexMatrix,
    Indices,
    Matrix,
    OutMatrix,
    OutVector,
    Vector,
    inner,
    kernel,
)
from xrecal.typing import IntArray

from .folds import Folds

SUPPORTS = ("observations", "mean", "regression", "standardised", "ratio")
"""Kinds of support, numbered by their place: past observations, errors around the ensemble mean
and around a regression on it, errors divided by the spread that EMOS gives, and ratios of
observation and ensemble mean."""

OBSERVATIONS, MEAN, REGRESSION, STANDARDISED, RATIO = range(5)

# Ratios to a mean next to zero say nothing: this share of the average mean is the least divisor.
SMALLEST_MEAN = 0.01

# Nor do errors in units of a spread next to zero: at least this share of the typical spread.
SMALLEST_SPREAD = 0.05


class Sample(NamedTuple):
    """Moments of n ensembles, their covariates, and what verified."""

    mean: Vector
    """(n,)"""
    variance: Vector
    """(n,)"""
    features: Matrix
    """(n, k)"""
    target: Vector
    """(n,)"""
    low: float
    """Lower bound of the variable, minus infinity without"""
    high: float
    """Upper bound"""


class Limits(NamedTuple):
    """Bounds of the variable, and what was observed between them."""

    low: float
    high: float
    first: float
    """Smallest observation above the lower bound; minus infinity without a bound"""
    last: float
    """Largest observation below the upper bound; infinite without a bound"""


class Targets(NamedTuple):
    """Errors of the training cases of each of F folds, for each of S supports."""

    ranked: IndexCube
    """(F, S, n) training cases by ascending error, then the others"""
    error: Cube
    """(F, S, n) their errors; NaN of the others"""
    centre: Cube
    """(F, S, n) centre of each case"""
    spread: Cube
    """(F, S, n) spread of each case"""
    inner: Matrix
    """(F, 2) smallest and largest target between the bounds"""
    ascending: IndexMatrix
    """(F, n) training cases by ascending target, then the others"""


@kernel
def past_observations(code: int, sample: Sample, coefficients: OutVector) -> None:
    """Fill coefficients without a centre, in place of :func:`fit_centre` where no other is wanted.

    What is not passed need not be compiled, and EMOS takes long to compile.
    """
    for k in range(coefficients.size):
        coefficients[k] = 0.0
    coefficients[2] = 1.0


@kernel
def fit_centre(code: int, sample: Sample, coefficients: OutVector) -> None:
    """Fill coefficients (a, b, c0, d, g, h) of a support from a :class:`Sample`.

    ``coefficients`` may have room for more covariates, whose coefficients are 0.
    """
    mean, of, target = sample.mean, sample.features, sample.target
    n, k = of.shape
    for i in range(coefficients.size):
        coefficients[i] = 0.0
    coefficients[2] = 1.0
    if code == MEAN:
        coefficients[1] = 1.0
    elif code == REGRESSION:
        line, columns, y = np.empty((1, 2 + k)), np.empty((1, 1 + k, n)), np.empty((1, n))
        for i in range(n):
            columns[0, 0, i], y[0, i] = mean[i], target[i]
            for j in range(k):
                columns[0, 1 + j, i] = of[i, j]
        fill_coefficients(columns, y, line)
        coefficients[0], coefficients[1] = line[0, 0], line[0, 1]
        for j in range(k):
            coefficients[4 + j] = line[0, 2 + j]
    elif code == STANDARDISED:
        low, high, first = sample.low, sample.high, coefficients[: 4 + 2 * k]
        fit_location(mean, sample.variance, target, of, low, high, True, first)
        typical = 0.0
        for v in sample.variance:
            typical += coefficients[2] ** 2 + coefficients[3] ** 2 * v
        typical = np.sqrt(typical / n)
        coefficients[2] = max(coefficients[2], SMALLEST_SPREAD * typical) if typical > 0 else 1.0
    elif code == RATIO:
        total = 0.0
        for x in mean:
            total += abs(x)
        coefficients[2] = SMALLEST_MEAN * total / n if total > 0 else 1.0
        coefficients[3] = 1.0


@inner
def centre_of(code: int, coefficients: Any, mean: float, variance: float, of: Any) -> Any:
    """Centre and spread of one forecast with covariates (k,)."""
    return predict_case(coefficients, mean, mean * mean if code == RATIO else variance, of)


@kernel
def fill_centres(
    code: int, coefficients: Vector, mean: Vector, variance: Vector, of: Matrix, out: OutMatrix
) -> None:
    """Centres and spreads (2, n) of forecasts with covariates (n, k)."""
    for i in range(mean.size):
        out[0, i], out[1, i] = centre_of(code, coefficients, mean[i], variance[i], of[i])


@kernel
def error_of(y: float, centre: float, spread: float, low: float, high: float) -> float:
    """Error of an observation in units of the spread; infinite for one on a bound."""
    if y <= low:
        return -np.inf
    return np.inf if y >= high else (y - centre) / spread


@kernel
def inside(observations: Vector, low: float, high: float) -> Any:
    """Smallest and largest observation between the bounds; infinite towards a side without one."""
    first, last = np.inf, -np.inf
    for y in observations:
        if low < y < high:
            first, last = min(first, y), max(last, y)
    if first > last:
        return low, high
    return first if low > -np.inf else low, last if high < np.inf else high


@kernel
def fill_members(
    centre: float, spread: float, error: Vector, limits: Limits, points: OutVector
) -> None:
    """Members (k,) from ascending errors: on a bound, or between the first and last inside."""
    start, stop = 0, error.size
    while start < stop and error[start] == -np.inf:
        points[start] = limits.low
        start += 1
    while stop > start and error[stop - 1] == np.inf:
        stop -= 1
        points[stop] = limits.high
    for i in range(start, stop):
        points[i] = min(max(centre + spread * error[i], limits.first), limits.last)


def rank_errors(folds: Folds, supports: IntArray, sample: Sample, fit: Any) -> Targets:
    """Targets of folds, with centres of each support fitted to the training cases alone.

    ``fit`` is :func:`fit_centre`, or :func:`past_observations` where no centre is wanted.
    """
    cases, n = folds.cases, folds.cases.shape[1]
    shape = (cases.shape[0], supports.size, n)
    targets = Targets(
        np.empty((0, 0, 0), np.int64),  # as NumPy sorts
        np.full(shape, np.nan),
        np.empty(shape),
        np.empty(shape),
        np.empty((shape[0], 2)),
        np.empty((0, 0), np.int64),
    )
    FILL_ERRORS[fit](folds, supports, sample, targets)
    order = np.argsort(targets.error, axis=-1, kind="stable")  # NaN, such as of the others, last
    first = folds.n_out[:, np.newaxis] + np.arange(n)  # those to train on before the others
    cases = np.take_along_axis(cases, first % max(n, 1), axis=-1)
    # Those left out count as infinite.
    value = np.where(first < n, sample.target[cases], np.inf)
    ascending = np.take_along_axis(cases, np.argsort(value, axis=-1, kind="stable"), axis=-1)
    ranked = np.take_along_axis(cases[:, np.newaxis], order, axis=-1)
    error = np.take_along_axis(targets.error, order, axis=-1)
    return targets._replace(ranked=ranked, error=error, ascending=ascending)


def _errors_by(fit: Any) -> Any:
    """Code that fills targets, with centres that a compiled function fits."""

    @kernel
    def fill_errors(folds: Folds, supports: Indices, sample: Sample, targets: Targets) -> None:
        """Fill the errors of the training cases, in their order, and all targets but the ranks."""
        n_folds, n = folds.cases.shape
        of, low, high = sample.features, sample.low, sample.high
        coefficients = np.empty(4 + 2 * of.shape[1])
        for f in range(n_folds):
            train = folds.cases[f, folds.n_out[f] :]
            x, v, y = np.empty(train.size), np.empty(train.size), np.empty(train.size)
            r = np.empty((train.size, of.shape[1]))
            for i in range(train.size):
                case = train[i]
                x[i], v[i], y[i] = sample.mean[case], sample.variance[case], sample.target[case]
                for k in range(of.shape[1]):
                    r[i, k] = of[case, k]
            for s in range(supports.size):
                fit(supports[s], Sample(x, v, r, y, low, high), coefficients)
                centre, spread = targets.centre[f, s], targets.spread[f, s]
                for i in range(n):
                    centre[i], spread[i] = centre_of(
                        supports[s], coefficients, sample.mean[i], sample.variance[i], of[i]
                    )
                for i in range(train.size):
                    case = train[i]
                    targets.error[f, s, i] = error_of(y[i], centre[case], spread[case], low, high)
            targets.inner[f, 0], targets.inner[f, 1] = inside(y, low, high)

    return fill_errors


FILL_ERRORS = {fit: _errors_by(fit) for fit in (fit_centre, past_observations)}
"""Code that fills targets, by what fits centres."""
