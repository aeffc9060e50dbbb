"""Robust measures of typical size, which outliers in the record hardly change.

Records have spikes, fill values and changes of unit. A least-squares line follows such outliers,
which makes all forecasts wrong. The line with the smallest CRPS follows the majority of cases,
because the CRPS grows with the error and not with its square.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import Matrix, Vector, kernel
from xrecal.arrays.order_statistics import median, select
from xrecal.typing import FloatArray

REACH = 20.0
"""A value of a predictor is plausible if it is at most this number of typical deviations from the
median."""

EDGE = 8.0
"""For a standard deviation, each value counts as at most this number of typical deviations from the
median. In 100 cases, one outlier at this limit adds about a fifth to the standard deviation."""

FAR = 1000.0
"""Before the fit of a line, observations and errors of the ensemble mean are limited to this number
of typical deviations from their median. Beyond this limit, only the sign matters."""

TIED = 1e-12
"""Deviations below this share of the median count as rounding errors."""


def typical_size(values: FloatArray, most: float = 0.99) -> float:
    """Return the mean absolute value of the nonzero values (n,); 0 if all values are zero.

    The function limits absolute values to their quantile ``most``. It ignores zeros, because most
    values may be zero, as at a dry place.
    """
    return float(_typical_size(np.ascontiguousarray(values, np.float64), most))


@kernel
def _typical_size(values: Vector, most: float) -> float:
    """Compute the result of :func:`typical_size`, in compiled code."""
    size, k, total = np.empty(values.size), 0, 0.0
    for value in values:
        if value != 0.0:
            size[k] = abs(value)
            k += 1
    if k == 0:
        return 0.0
    ranked = size[:k].copy()
    largest = select(ranked, int(most * (k - 1)))
    for i in range(k):
        total += min(size[i], largest)
    return total / k


@kernel
def deviations(values: Vector) -> Any:
    """Return the median of values (n,), and the typical size of deviations from the median.

    The size is 0 if all values are equal.
    """
    if values.size == 0:
        return 0.0, 0.0
    middle = median(values)
    apart = values - middle
    for i in range(apart.size):
        if not abs(apart[i]) > TIED * abs(middle):
            apart[i] = 0.0
    return middle, _typical_size(apart, 0.95)


@kernel
def believed(predictors: Matrix) -> Any:
    """Mark cases (n,) whose predictors (n, k) are all plausible, which means near the median.

    A case with a predictor far from all others would draw the fitted line to its own observation.
    """
    near = np.ones(predictors.shape[0], np.bool_)
    for k in range(predictors.shape[1]):
        column = predictors[:, k].copy()
        middle, typical = deviations(column)
        for i in range(column.size):
            near[i] = near[i] and (typical == 0.0 or abs(column[i] - middle) <= REACH * typical)
    return near


def cut(values: FloatArray, past: FloatArray | None = None, far: float = FAR) -> FloatArray:
    """Limit values (n,) to ``far`` typical deviations from the median.

    The function computes median and deviations from ``past``, or from ``values`` if ``past`` is
    None. The default limit is very large. It changes only values so large that rounding would hide
    all other values.
    """
    of = np.ascontiguousarray(values if past is None else past, np.float64)
    middle, typical = deviations(of)
    if typical == 0.0:
        return values
    return np.asarray(np.clip(values, middle - far * typical, middle + far * typical))


def without_wild_errors(mean: FloatArray, observations: FloatArray) -> FloatArray:
    """Return observations (n,), moved to limit errors of the ensemble mean as :func:`cut` does."""
    errors = observations - mean
    near = cut(errors)
    return np.where(near == errors, observations, mean + near)
