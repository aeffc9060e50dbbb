"""A sample of cases that is the same however these come in chunks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.draws import uniform_at
from xrecal.typing import FloatArray, IntArray

from .network import Cases

SAMPLE = 10_000
"""Cases from which centres, grids and landmarks are chosen."""

SEED = 0


class Sample(NamedTuple):
    """Cases that stand for all others."""

    cases: Cases
    draws: FloatArray
    """(n,) ascending, a hash of place and date; the sample has the smallest"""


def draw_sample(cases: Cases, date: IntArray, size: int = SAMPLE) -> Sample:
    """Those of some cases that a sample of all may hold.

    Parameters
    ----------
    cases : Cases
        Those that cannot be learned from are left out: without observation or members, or with a
        covariate that is not finite.
    date : array of int, shape (n,)
        Number of the date of each, among all dates.
    size : int
        Cases at most.

    Returns
    -------
    Sample

    Notes
    -----
    The smallest of equally distributed numbers, one for each case that depends on its place and
    date alone: those of several sets of cases, joined, are those of all [1]_. O(n).

    References
    ----------
    .. [1] Cohen & Kaplan (2007), Summarizing data using bottom-k sketches.
       https://doi.org/10.1145/1281100.1281133
    """
    draws = uniform_at(SEED, cases.place, date)
    return _smallest(cases, draws, np.flatnonzero(usable(cases)), size)


def join_samples(one: Sample, other: Sample, size: int = SAMPLE) -> Sample:
    """Sample of the cases of both."""
    both = Cases(*(np.concatenate(parts) for parts in zip(one.cases, other.cases, strict=True)))
    draws = np.concatenate([one.draws, other.draws])
    return _smallest(both, draws, np.arange(draws.size), size)


def usable(cases: Cases) -> IntArray:
    """Whether each case (n,) can be learned from."""
    mean, variance = cases.moments()
    known = np.isfinite(mean) & np.isfinite(variance) & np.isfinite(cases.observations)
    return np.asarray(known & np.isfinite(cases.covariates).all(1))


def _smallest(cases: Cases, draws: FloatArray, among: IntArray, size: int) -> Sample:
    """Cases of some rows with the smallest draws, ascending."""
    rows = among[np.argsort(draws[among], kind="stable")[:size]]
    return Sample(cases.take(rows), draws[rows])
