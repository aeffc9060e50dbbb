"""Positions of recalibrated members: past observations, or past errors around a centre.

Each forecast has a centre c and a spread s. So each calibration case with the observation y has the
error ``e = (y - c) / s``. The members of a new forecast x are ``c(x) + s(x) e`` for all these
errors. All centres and spreads have the same form:

    c = a + b mean + sum g_k r_k
    s = sqrt(c0² + d² v) exp(sum h_k r_k)

Here ``mean`` and v are mean and variance of the ensemble, and r_k are the covariates of the case.
The fit learns the coefficients a, b, g_k, c0, d and h_k. If the errors are ratios of observation to
ensemble mean, v is the squared mean instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xrecal.arrays.baselines.crps_regression import place_coefficients, predict_case
from xrecal.arrays.baselines.lines import NONE, fit_line, fit_shrunk
from xrecal.arrays.baselines.robust import cut, typical_size
from xrecal.arrays.compiled import (
    Cube,
    IndexCube,
    Indices,
    Matrix,
    OutMatrix,
    OutVector,
    Vector,
    inner,
    kernel,
)
from xrecal.arrays.rows import digest
from xrecal.typing import FloatArray, IntArray

from .folds import Folds
from .simplex import PROJECTIONS

SUPPORTS = (
    "observations",
    "mean",
    "regression",
    "standardised",
    "ratio",
    "regression_plain",
    "standardised_plain",
)
"""Names of the supports, the values from which a CKME makes its members. The code of a support is
its position in this tuple. The first five supports are, in this order: past observations; errors
around the ensemble mean; errors around a regression on this mean; errors divided by the spread of
EMOS; ratios of observation to ensemble mean. The centre of a "plain" support ignores predictors."""

OBSERVATIONS, MEAN, REGRESSION, STANDARDISED, RATIO = range(5)

PLAIN = {5: REGRESSION, 6: STANDARDISED}
"""Table from the code of each plain support to the code of the same support with predictors."""

Centres: TypeAlias = dict[bytes, FloatArray]
"""Cache of coefficients of fitted centres. A key is a digest of two things: the code of a support,
and the sample of cases to which the centre was fitted."""

# Least divisor of ratios, as a share of the typical mean: ratios to a mean near zero vary too much.
SMALLEST_MEAN = 0.01

# Least spread, as a share of the typical spread. Errors are divided by the spread, so it must not
# be near zero.
SMALLEST_SPREAD = 0.05

# Smallest divisor of errors; the square of a smaller number is zero in float64.
SMALLEST_DIVISOR = 1e-300


def usable_supports(supports: IntArray, low: float) -> IntArray:
    """Return the positions of the supports that suit a variable with this lower bound.

    Ratios of observation to ensemble mean suit only variables with the lower bound 0, such as rain.
    For other variables the function leaves ratios out, unless there is no other support.
    """
    usable = np.flatnonzero((supports != RATIO) | (low == 0))
    return usable if usable.size else np.arange(supports.size)


class Sample(NamedTuple):
    """Ensemble means, ensemble variances, covariates and observations of n cases."""

    mean: Vector
    """(n,)"""
    variance: Vector
    """(n,)"""
    features: Matrix
    """(n, k)"""
    target: Vector
    """(n,)"""
    low: float
    """Lower bound of the variable, minus infinity if there is none"""
    high: float
    """Upper bound of the variable, infinite if there is none"""
    predictors: Indices = NONE
    """Columns of ``features`` that hold predictors; other columns hold the season and the place"""

    @property
    def others(self) -> IntArray:
        """Columns of ``features`` that hold the season and the place."""
        return np.setdiff1d(np.arange(self.features.shape[1]), self.predictors)

    def conditioned(self, strength: float) -> Sample:
        """Return the sample, without covariates if the kernel does not use them (strength 0)."""
        return self if strength > 0 else self.given(NONE)

    def given(self, columns: IntArray) -> Sample:
        """Return the sample with these covariates alone; none of them counts as a predictor."""
        of = np.ascontiguousarray(self.features[:, columns])
        return self._replace(features=of, predictors=NONE)

    def take(self, cases: IntArray) -> Sample:
        """Return the sample of these cases."""
        mean, variance, features, target = (part[cases] for part in self[:4])
        return self._replace(mean=mean, variance=variance, features=features, target=target)


class Limits(NamedTuple):
    """Bounds of the variable, and the range of members between the bounds."""

    low: float
    high: float
    first: float
    """Smallest value of members above the lower bound, from :func:`inside`"""
    last: float
    """Largest value of members below the upper bound, from :func:`inside`"""


class Targets(NamedTuple):
    """Errors of the training cases, for F folds and S supports."""

    ranked: IndexCube
    """(F, S, n) training cases by ascending error, as positions in the list of training cases of
    the fold. Entries beyond the number of training cases are unused. The array is empty if the
    folds already list training cases in this order"""
    error: Cube
    """(F, S, n) errors of the training cases; NaN beyond the number of training cases"""
    centre: Cube
    """(F, S, n) centre of each case"""
    spread: Cube
    """(F, S, n) spread of each case"""
    inner: Matrix
    """(F, 2) smallest and largest value of members between the bounds, from :func:`inside`"""


def fit_centre(code: int, sample: Sample, coefficients: FloatArray) -> None:
    """Fit the centre of a support, and write its coefficients (a, b, c0, d, g, h).

    If ``coefficients`` has room for more covariates than the sample has, the function sets the
    additional coefficients to 0. A call compiles only the code that its support needs.
    """
    mean, of, target = sample.mean, sample.features, sample.target
    k, limits = of.shape[1], _reached(target, sample.low, sample.high)
    coefficients[:] = 0.0
    coefficients[2] = 1.0
    if code in PLAIN:
        own = np.empty(4 + 2 * sample.others.size)
        fit_centre(PLAIN[code], sample.given(sample.others), own)
        place_coefficients(own, sample.others, coefficients)
    elif code == MEAN:
        coefficients[1] = 1.0
    elif code == REGRESSION:
        line = fit_line(mean, of, target, *limits, sample.predictors)
        coefficients[:2], coefficients[4 : 4 + k] = line[:2], line[2:]
    elif code == STANDARDISED:
        first = coefficients[: 4 + 2 * k]
        known = mean, sample.variance, cut(target), of, sample.predictors
        fit_shrunk(*known, *limits, True, first)
        typical = np.hypot(first[2], first[3] * np.sqrt(typical_size(sample.variance)))
        coefficients[2] = max(first[2], SMALLEST_SPREAD * typical) if typical > 0 else 1.0
    elif code == RATIO:
        typical = typical_size(mean)
        coefficients[2] = SMALLEST_MEAN * typical if typical > 0 else 1.0
        coefficients[3] = 1.0


def _reached(target: FloatArray, low: float, high: float) -> tuple[float, float]:
    """Return the lower and the upper bound; infinite for a bound that no observation reaches."""
    return (
        low if (target <= low).any() else -np.inf,
        high if (target >= high).any() else np.inf,
    )


def known_centre(code: int, sample: Sample, known: Centres) -> FloatArray:
    """Return the coefficients (4 + 2 k,) of a centre; fit the centre if ``known`` lacks it."""
    code = code if sample.predictors.size else PLAIN.get(code, code)
    content = digest((code, *sample))
    if content not in known:
        known[content] = np.empty(4 + 2 * sample.features.shape[1])
        fit_centre(code, sample, known[content])
    return known[content]


@inner
def centre_of(code: int, coefficients: Any, mean: float, variance: float, of: Any) -> Any:
    """Return the centre and spread of one forecast with covariates (k,)."""
    return predict_case(coefficients, mean, mean * mean if code == RATIO else variance, of)


@kernel
def fill_centres(
    code: int, coefficients: Vector, mean: Vector, variance: Vector, of: Matrix, out: OutMatrix
) -> None:
    """Write centres and spreads of forecasts with covariates (n, k) into ``out`` (2, n)."""
    for i in range(mean.size):
        out[0, i], out[1, i] = centre_of(code, coefficients, mean[i], variance[i], of[i])


@kernel
def error_of(y: float, centre: float, spread: float, low: float, high: float) -> float:
    """Return the error of an observation, in units of the spread.

    The error is infinite if the observation lies on a bound.
    """
    if y <= low:
        return -np.inf
    return np.inf if y >= high else (y - centre) / max(spread, SMALLEST_DIVISOR)


@kernel
def inside(observations: Vector, low: float, high: float) -> Any:
    """Return the smallest and largest value that members may have between the bounds.

    If observations lie on a bound, as on dry days, members may lie on this bound, too. All other
    members are at least as far from the bound as the nearest observation off the bound. If no
    observation lies on a bound, members may have all values up to this bound.
    """
    first, last, at_low, at_high = np.inf, -np.inf, False, False
    for y in observations:
        if low < y < high:
            first, last = min(first, y), max(last, y)
        at_low, at_high = at_low or y <= low, at_high or y >= high
    if first > last:
        return low, high
    return first if at_low else low, last if at_high else high


@kernel
def fill_members(
    centre: float, spread: float, error: Vector, limits: Limits, points: OutVector
) -> None:
    """Write members (k,) to ``points``: centre plus spread times each error, for ascending errors.

    Each member lies on a bound, or between the values ``first`` and ``last`` of ``limits``.
    """
    start, stop, first, last = 0, error.size, limits.first, limits.last
    for i in range(stop):  # an explicit loop without calls, which the compiler vectorises
        point = centre + spread * error[i]
        point = first if point < first else point
        points[i] = last if point > last else point
    while start < stop and error[start] == -np.inf:
        points[start] = limits.low
        start += 1
    while stop > start and error[stop - 1] == np.inf:
        stop -= 1
        points[stop] = limits.high


def rank_errors(
    folds: Folds, supports: IntArray, sample: Sample, known: Centres | None = None
) -> Targets:
    """Return errors of the training cases of each fold, around centres fitted to these cases."""
    known = {} if known is None else known
    cases, n = folds.cases, folds.cases.shape[1]
    shape = (cases.shape[0], supports.size, n)
    targets = Targets(
        np.empty((0, 0, 0), np.int64),  # as NumPy sorts
        np.full(shape, np.nan),
        np.empty(shape),
        np.empty(shape),
        np.empty((shape[0], 2)),
    )
    coefficients = np.empty((*shape[:2], 4 + 2 * sample.features.shape[1]))
    for f, n_out in enumerate(folds.n_out.tolist()):
        some = sample.take(cases[f, n_out:])
        for s, code in enumerate(supports.tolist()):
            coefficients[f, s] = known_centre(code, some, known)
    fill_errors(folds, supports, coefficients, sample, targets)
    order = np.argsort(targets.error, axis=-1, kind="stable")  # NaN last
    return targets._replace(ranked=order, error=np.take_along_axis(targets.error, order, axis=-1))


@kernel
def fill_errors(
    folds: Folds, supports: Indices, coefficients: Cube, sample: Sample, targets: Targets
) -> None:
    """Fill all arrays of ``targets`` except ``ranked``.

    Errors are in the order in which the fold lists its training cases. ``coefficients`` (F, S, c)
    holds the coefficients of the centre of each fold and support.
    """
    n_folds, n = folds.cases.shape
    of, low, high = sample.features, sample.low, sample.high
    for f in range(n_folds):
        train = folds.cases[f, folds.n_out[f] :]
        y = np.empty(train.size)
        for i in range(train.size):
            y[i] = sample.target[train[i]]
        for s in range(supports.size):
            centre, spread = targets.centre[f, s], targets.spread[f, s]
            for i in range(n):
                centre[i], spread[i] = centre_of(
                    supports[s], coefficients[f, s], sample.mean[i], sample.variance[i], of[i]
                )
            for i in range(train.size):
                case = train[i]
                targets.error[f, s, i] = error_of(y[i], centre[case], spread[case], low, high)
        targets.inner[f, 0], targets.inner[f, 1] = inside(y, low, high)


class Ranked(NamedTuple):
    """Calibration cases (n,), sorted by their errors."""

    order: Indices
    """Cases by ascending error, as positions in the order of time"""
    error: Vector
    """Errors of the cases, ascending"""
    share: Vector
    """Weight of each case in climatology, for the cases in the order of time"""
    limits: Limits


def _rows_by(project: Any) -> Any:
    """Compile ``fill_rows`` for one projection."""

    @kernel
    def fill_rows(
        signed: Matrix, ranked: Ranked, centred: Matrix, weights: OutMatrix, points: OutMatrix
    ) -> None:
        """Project signed weights (q, n) to probabilities, and compute the members of forecasts.

        The function writes probabilities (q, n) into ``weights`` and members (q, n) into
        ``points``. Before the projection, the function makes the signed weights of a forecast sum
        to one: it adds the missing amount, distributed in proportion to the weights ``share`` of
        climatology. ``centred`` (2, q) holds centre and spread of each forecast.
        """
        order, share = ranked.order, ranked.share
        n = share.size
        beta, row, ascending = np.empty(n), np.empty(n), np.empty(n)
        for t in range(signed.shape[0]):
            mass = 0.0
            for i in range(n):
                mass += signed[t, i]
            for i in range(n):
                c = order[i]
                beta[i] = signed[t, c] + (1.0 - mass) * share[c]
            fill_members(centred[0, t], centred[1, t], ranked.error, ranked.limits, ascending)
            project(beta, ascending, row)
            for i in range(n):
                weights[t, order[i]], points[t, order[i]] = row[i], ascending[i]

    return fill_rows


FILL_ROWS = {name: _rows_by(project) for name, project in PROJECTIONS.items()}
"""Compiled ``fill_rows`` for each projection, by the name of the projection."""
