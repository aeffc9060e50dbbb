"""Where the members of a recalibrated forecast sit: past observations, or errors around a centre.

With a centre c and a spread s of each forecast the calibration cases have the errors
``e = (y - c) / s``, and the members of a new forecast are ``c(x) + s(x) e``. All centres have one
form, with the covariates r of the case:

    c = a + b mean + sum g_k r_k        s = sqrt(c0² + d² v) exp(sum h_k r_k)

with v the ensemble's variance, or its squared mean for ratios.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.baselines.crps_regression import fit_location, predict_case
from xrecal.arrays.baselines.idr import fill_coefficients
from xrecal.arrays.compiled import inner, kernel

SUPPORTS = ("observations", "mean", "regression", "standardised", "ratio")
"""Kinds of support, numbered by their place: past observations, errors around the ensemble mean
and around a regression on it, errors divided by the spread that EMOS gives, and ratios of
observation and ensemble mean."""

OBSERVATIONS, MEAN, REGRESSION, STANDARDISED, RATIO = range(5)

# Ratios to a mean next to zero say nothing: this share of the average mean is the least divisor.
SMALLEST_MEAN = 0.01


# Nor do errors in units of a spread next to zero: at least this share of the typical spread.
SMALLEST_SPREAD = 0.05


@kernel
def past_observations(
    code: int, mean: Any, variance: Any, of: Any, target: Any, low: float, high: float, found: Any
) -> None:
    """Coefficients without a centre: stands in for :func:`fit_centre` where no other is wanted.

    What is not passed need not be compiled, and EMOS takes long to compile.
    """
    for k in range(found.size):
        found[k] = 0.0
    found[2] = 1.0


@kernel
def fit_centre(
    code: int, mean: Any, variance: Any, of: Any, target: Any, low: float, high: float, found: Any
) -> None:
    """Fill coefficients (a, b, c0, d, g, h) of a support from cases (n,), covariates (n, k).

    ``found`` may have room for more covariates, whose coefficients are 0.
    """
    n, k = of.shape
    for i in range(found.size):
        found[i] = 0.0
    found[2] = 1.0
    if code == MEAN:
        found[1] = 1.0
    elif code == REGRESSION:
        line, columns, y = np.empty((1, 2 + k)), np.empty((1, 1 + k, n)), np.empty((1, n))
        for i in range(n):
            columns[0, 0, i], y[0, i] = mean[i], target[i]
            for j in range(k):
                columns[0, 1 + j, i] = of[i, j]
        fill_coefficients(columns, y, line)
        found[0], found[1] = line[0, 0], line[0, 1]
        for j in range(k):
            found[4 + j] = line[0, 2 + j]
    elif code == STANDARDISED:
        fit_location(mean, variance, target, of, low, high, True, found[: 4 + 2 * k])
        typical = 0.0
        for v in variance:
            typical += found[2] ** 2 + found[3] ** 2 * v
        typical = np.sqrt(typical / n)
        found[2] = max(found[2], SMALLEST_SPREAD * typical) if typical > 0 else 1.0
    elif code == RATIO:
        total = 0.0
        for x in mean:
            total += abs(x)
        found[2] = SMALLEST_MEAN * total / n if total > 0 else 1.0
        found[3] = 1.0


@inner
def centre_of(code: int, found: Any, mean: float, variance: float, of: Any) -> Any:
    """Centre and spread of one forecast with covariates (k,)."""
    return predict_case(found, mean, mean * mean if code == RATIO else variance, of)


@kernel
def fill_centres(code: int, found: Any, mean: Any, variance: Any, of: Any, out: Any) -> None:
    """Centres and spreads (2, n) of forecasts with covariates (n, k)."""
    for i in range(mean.size):
        out[0, i], out[1, i] = centre_of(code, found, mean[i], variance[i], of[i])


@kernel
def error_of(y: float, centre: float, spread: float, low: float, high: float) -> float:
    """Error of an observation in units of the spread; infinite for one on a bound."""
    if y <= low:
        return -np.inf
    return np.inf if y >= high else (y - centre) / spread


@kernel
def inside(observations: Any, low: float, high: float) -> Any:
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
    centre: float,
    spread: float,
    error: Any,
    low: float,
    high: float,
    first: float,
    last: float,
    points: Any,
) -> None:
    """Members (k,) from ascending errors: on a bound, or between ``first`` and ``last``."""
    start, stop = 0, error.size
    while start < stop and error[start] == -np.inf:
        points[start] = low
        start += 1
    while stop > start and error[stop - 1] == np.inf:
        stop -= 1
        points[stop] = high
    for i in range(start, stop):
        points[i] = min(max(centre + spread * error[i], first), last)
