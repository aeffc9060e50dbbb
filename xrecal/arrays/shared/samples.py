"""Sample of cases that does not depend on the chunks in which a fit reads the cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.draws import uniform_at
from xrecal.arrays.predictors import NO_PREDICTORS, stacked, usual_of
from xrecal.typing import FloatArray, IntArray

from .network import Cases

SAMPLE = 10_000
"""Largest number of cases in the sample from which a fit chooses centres, grids, landmarks and
usual values, which replace missing values."""

SEED = 0


class Sample(NamedTuple):
    """Sample of cases that represent all cases."""

    cases: Cases
    draws: FloatArray
    """(n,) ascending hashes of place and date; the sample has the cases with the smallest hashes"""


def draw_sample(cases: Cases, date: IntArray, size: int = SAMPLE) -> Sample:
    """Return the cases of a chunk that may get into the sample of all cases.

    Parameters
    ----------
    cases : Cases
        The function ignores cases without observation or members, or with an infinite or NaN
        covariate.
    date : array of int, shape (n,)
        Index of the date of each case among all dates.
    size : int
        Largest number of cases in the sample.

    Returns
    -------
    Sample

    Notes
    -----
    Each case has a hash, a uniform number that depends only on its place and date. The sample has
    the cases with the smallest hashes. So :func:`join_samples` can make the sample of all cases
    from the samples of several sets of cases [1]_. The time is O(n).

    References
    ----------
    .. [1] Cohen & Kaplan (2007), Summarizing data using bottom-k sketches.
       https://doi.org/10.1145/1281100.1281133
    """
    draws = uniform_at(SEED, cases.place, date)
    return _smallest(cases, draws, np.flatnonzero(usable(cases)), size)


def join_samples(one: Sample, other: Sample, size: int = SAMPLE) -> Sample:
    """Join the samples of two sets of cases: return the sample of both sets together."""
    both = Cases(*(np.concatenate(parts) for parts in zip(one.cases, other.cases, strict=True)))
    draws = np.concatenate([one.draws, other.draws])
    return _smallest(both, draws, np.arange(draws.size), size)


def usable(cases: Cases) -> IntArray:
    """Return True (n,) for each case with members, an observation and finite covariates."""
    mean, variance = cases.moments()
    known = np.isfinite(mean) & np.isfinite(variance) & np.isfinite(cases.observations)
    return np.asarray(known & np.isfinite(cases.covariates).all(1))


def _smallest(cases: Cases, draws: FloatArray, among: IntArray, size: int) -> Sample:
    """Return the ``size`` cases of the rows ``among`` with the smallest ``draws``, ascending."""
    rows = among[np.argsort(draws[among], kind="stable")[:size]]
    return Sample(cases.take(rows), draws[rows])


class Values(NamedTuple):
    """Predictors of a sample of cases, from which a fit computes usual values.

    Usual values replace missing values.
    """

    draws: FloatArray
    """(n,) hashes, as in :class:`Sample`"""
    sample: FloatArray
    """(n, p) predictors of these cases, NaN if missing"""
    ends: FloatArray
    """(3, p) smallest and largest value of each predictor over all cases, then a mark: 0 if the
    predictor is 0 in at least one case, else NaN"""

    def usual(self, periods: Sequence[float | None]) -> FloatArray:
        """Return the usual values of each predictor (1, p, 8), as in :mod:`.predictors`."""
        whole = self.draws.size < SAMPLE
        record = self.sample if whole else np.concatenate([self.sample, self.ends])
        each = [
            usual_of(a[np.newaxis], period) for a, period in zip(record.T, periods, strict=True)
        ]
        return stacked(each) if each else NO_PREDICTORS


def draw_values(values: FloatArray, place: IntArray, date: IntArray) -> Values:
    """Return predictors (n, p) of a sample of cases; infinite values count as missing.

    The integers ``place`` (n,) and ``date`` (n,) determine which cases are in the sample.
    """
    known = np.where(np.isfinite(values), values, np.nan)
    zero = np.where((known == 0).any(0), 0.0, np.nan)
    ends = np.stack(
        [*(of.reduce(known, axis=0, initial=np.nan) for of in (np.fmin, np.fmax)), zero]
    )
    return _fewest(uniform_at(SEED, place, date), known, ends)


def join_values(one: Values, other: Values) -> Values:
    """Join the values of two sets of cases: return the values of both sets together."""
    draws, sample = (np.concatenate(both) for both in zip(one[:2], other[:2], strict=True))
    pairs = zip((np.fmin, np.fmax, np.fmin), one.ends, other.ends, strict=True)
    return _fewest(draws, sample, np.stack([of(a, b) for of, a, b in pairs]))


def _fewest(draws: FloatArray, values: FloatArray, ends: FloatArray) -> Values:
    rows = np.argsort(draws, kind="stable")[:SAMPLE]
    return Values(draws[rows], values[rows], ends)
