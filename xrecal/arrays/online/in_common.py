"""Predictors of errors that places have in common: means over places of standardised numbers.

The weather that a forecast misses at one place often reaches other places, or later leads. So the
errors and the forecasts of all places help to predict the error of a forecast. Each place has its
own unit and bias, so its numbers are standardised by earlier numbers of this place. The sums over
places are sums of integers, so they do not depend on the order of the places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Matrix, OutCube, kernel
from xrecal.typing import FloatArray, IntArray

from .corrections import LARGEST, MEAN_SIZE, N_OWN

FINEST = 2.0**-32
"""Unit of integers in sums; in this unit, 64-bit sums over a million places are exact."""

N_GROUPS = 2
"""Number of mean errors: over all places, and over the places with the shortest lead."""

N_COMMON = N_GROUPS + N_OWN
"""Number of predictors that places have in common."""

LEAST_RATE = 0.01
"""Least weight of a new number when it updates the centre and the size of earlier numbers."""

MEDIAN_SIZE = 0.6744897501960817
"""Median absolute value of a standard normal distribution."""

FEWEST = 10
"""A number is standardised only if a place has at least this many earlier numbers."""

LASTS = 10.0
"""If a place has no new error for this many times the interval between its last two cases, its last
error no longer counts."""


class OfPlace(NamedTuple):
    """Standardised errors and predictors of n cases of a place."""

    ahead: float
    """Time from issue to valid time; negative if the labels of cases are valid times"""
    verified: FloatArray
    """(n,) ascending times at which the cases verified"""
    errors: FloatArray
    """(n,) standardised errors of the forecast mean; NaN if missing"""
    issued: FloatArray
    """(n,) times at which the forecasts were issued"""
    predictors: FloatArray
    """(n, 3) standardised predictors, from the forecast and its own place; NaN if missing"""


class InCommon(NamedTuple):
    """Means of standardised errors and predictors over places, at successive times."""

    times: FloatArray
    """(M,) ascending times at which cases verified"""
    errors: FloatArray
    """(M + 1, 2) means of the last known errors before the first time, and after each time: over
    all places, and over the places with the shortest lead. They are NaN if no error is known. The
    second is NaN if all leads are equal."""
    issued: FloatArray
    """(K,) ascending times at which forecasts were issued"""
    predictors: FloatArray
    """(K, 3) means of the predictors of the forecasts issued at each time; NaN if missing"""

    def errors_known_at(self, times: npt.ArrayLike) -> FloatArray:
        """Return the mean errors (k, 2) from cases that verified at ``times`` (k,) or earlier."""
        found: FloatArray = self.errors[np.searchsorted(self.times, times, side="right")]
        return found

    def predictors_at(self, times: FloatArray) -> FloatArray:
        """Return the mean predictors (k, 3) of forecasts issued at ``times`` (k,), or NaN."""
        if self.issued.size == 0:
            return np.full((times.size, N_OWN), np.nan)
        at = np.minimum(np.searchsorted(self.issued, times), self.issued.size - 1)
        there = self.issued[at] == times
        return np.where(there[:, np.newaxis], self.predictors[at], np.nan)

    @property
    def last(self) -> FloatArray:
        """Return the mean errors (2,) after all times."""
        return np.asarray(self.errors[-1])


class Standard(NamedTuple):
    """Centre and size of a number, from all earlier numbers of a place."""

    centre: FloatArray
    """(n + 1, p) centre before each case, and after all cases"""
    size: FloatArray
    """(n + 1, p) size before each case, and after all cases; NaN as long as there are too few"""

    def standardised(self, values: FloatArray, at: IntArray) -> FloatArray:
        """Return values (T, p) in sizes from the centre, as after the first ``at`` (T,) cases.

        Results are within ±3, and 0 if all earlier numbers were equal.
        """
        size = self.size[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = ((values - self.centre[at]) / size).clip(-LARGEST, LARGEST)
        return np.where(size == 0.0, 0.0 * values, found)


def standard_of(values: FloatArray) -> Standard:
    r"""Compute the centre and the size of numbers of a place, before each case.

    Parameters
    ----------
    values : array of float, shape (n, p)
        p numbers for each of n cases in order of time; NaN if missing.

    Returns
    -------
    Standard
        Centres and sizes. Both are NaN before the tenth number.

    Notes
    -----
    The first centre c is the median of the first ten numbers. The first size s is their median
    distance from c, divided by the median distance of standard normal numbers. If this is 0, s is
    their mean distance from c, divided by that of standard normal numbers, :math:`\sqrt{2 / \pi}`.
    Then the k-th number x changes c by :math:`\lambda g`, and s by
    :math:`\lambda (|g| / \sqrt{2 / \pi} - s)`, where :math:`\lambda = \max(0.01, 1 / k)`, and g is
    the gap x - c. If s is above 0, the gap is limited to ±3 s, so a spike changes both only a
    little. The time is O(n p).
    """
    out = np.empty((2, values.shape[0] + 1, values.shape[1]))
    _fill_standard(np.ascontiguousarray(values, np.float64), out)
    return Standard(*out)


def in_common(
    places: Sequence[OfPlace], new: Sequence[tuple[FloatArray, FloatArray]] = ()
) -> InCommon:
    """Compute mean errors after each time at which a case of a place verified, and mean predictors.

    ``new`` has the times of issue (T,) and the standardised predictors (T, 3) of forecasts of
    places that are not verified. The last error of a place counts until the place has a new error,
    or until it is too old, see ``LASTS``. The time is O(N log N) for N cases of all places.
    """
    ahead = {one.ahead for one in places}
    least = min((abs(a) for a in ahead), default=0.0)
    short = [one for one in places if abs(one.ahead) == least] if len(ahead) > 1 else []
    known = (one.verified[np.isfinite(one.errors)] for one in places)
    times = np.unique(np.concatenate([np.empty(0), *known]))
    errors = [_last_known(some, times) for some in (places, short)]
    issued = [(one.issued, one.predictors) for one in places] + [*new]
    return InCommon(times, np.stack(errors, axis=-1), *_means_at(issued))


def _last_known(places: Sequence[OfPlace], times: FloatArray) -> FloatArray:
    """Return means (M + 1,), over places, of the last of their errors at M times."""
    total, count = np.zeros((2, times.size + 2), np.int64)
    for one in places:
        there, interval = np.isfinite(one.errors), np.diff(one.verified, prepend=-np.inf)
        verified, errors = one.verified[there], _integers(one.errors[there])
        begin = np.searchsorted(times, verified) + 1
        too_old = np.searchsorted(times, verified + LASTS * interval[there], side="right") + 1
        end = np.minimum(np.append(begin[1:], times.size + 1), too_old)
        for at, sign in ((begin, 1), (end, -1)):
            np.add.at(total, at, sign * errors)
            np.add.at(count, at, sign)
    return _mean(np.cumsum(total)[:-1], np.cumsum(count)[:-1])


def _means_at(issued: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Return times (K,), and means (K, 3) of the predictors of forecasts issued at each time."""
    every = np.concatenate([np.empty(0), *(times for times, _ in issued)])
    values = np.concatenate([np.empty((0, N_OWN)), *(own for _, own in issued)])
    times, at = np.unique(every, return_inverse=True)
    total, count = np.zeros((2, times.size, N_OWN), np.int64)
    np.add.at(total, at, _integers(np.nan_to_num(values)))
    np.add.at(count, at, np.isfinite(values).astype(np.int64))
    return times, _mean(total, count)


def _integers(values: FloatArray) -> IntArray:
    units: IntArray = np.rint(values / FINEST).astype(np.int64)
    return units


def _mean(total: IntArray, count: IntArray) -> FloatArray:
    """Return means from integer sums; NaN where the sum has no terms."""
    return np.where(count > 0, total / np.maximum(count, 1) * FINEST, np.nan)


@kernel
def _fill_standard(values: Matrix, out: OutCube) -> None:
    for p in range(values.shape[1]):
        centre, size, n, first = np.nan, np.nan, 0, np.empty(FEWEST)
        for i in range(values.shape[0] + 1):
            out[0, i, p], out[1, i, p] = centre, size
            if i == values.shape[0] or np.isnan(values[i, p]):
                continue
            n += 1
            if n > FEWEST:
                gap = values[i, p] - centre
                if size > 0.0:
                    gap = min(max(gap, -LARGEST * size), LARGEST * size)
                rate = max(LEAST_RATE, 1.0 / n)
                centre += rate * gap
                size += rate * (abs(gap) / MEAN_SIZE - size)
                continue
            first[n - 1] = values[i, p]
            if n == FEWEST:
                centre = np.median(first)
                size = np.median(np.abs(first - centre)) / MEDIAN_SIZE
                if size == 0.0:
                    size = float(np.mean(np.abs(first - centre))) / MEAN_SIZE
