"""Common regrets of locations: mean regrets, each in units of the CRPS of its location.

The increments of the regrets of a location are relative to its own aggregate, and depend on no
other location. So a first pass over the locations records all regrets by time. A second pass
computes the weights of the strategies that use common regrets. Sums are of integers, so they do not
depend on the order of the locations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xrecal.arrays.compiled import Floats4, IndexMatrix
from xrecal.typing import FloatArray, IntArray

from .state import State

FINEST = 2.0**-32
"""Unit of regrets as integers, so that sums over a million locations are exact in 64 bits."""


class Common(NamedTuple):
    """Common regrets of all locations before each of their cases."""

    regrets: Floats4
    """(M, S, K, J) comparable regrets; NaN if no regrets are known yet"""
    at: IndexMatrix
    """(L, n) index of the regrets that hold before each case"""


class Timeline(NamedTuple):
    """Common regrets of all locations at successive times."""

    times: FloatArray
    """(M,) ascending times at which cases verified"""
    regrets: FloatArray
    """(M + 1, S, K, J) regrets before the first time, and after each time; NaN until some are
    known"""

    def before(self, times: FloatArray) -> Common:
        """Return regrets for cases (1, n) that verify at times (n,): those after earlier times."""
        return Common(self.regrets, np.searchsorted(self.times, times, side="left")[np.newaxis])

    @property
    def last(self) -> FloatArray:
        """Return the regrets (S, K, J) after all times."""
        return np.asarray(self.regrets[-1])


def none_common(state: State) -> FloatArray:
    """Return regrets (1, S, K, J) of NaN, because none are known."""
    missing: FloatArray = np.full((1, *state.regret.shape[1:]), np.nan)
    return missing


class Sum(NamedTuple):
    """Sum of the comparable regrets of some locations."""

    total: IntArray
    """(S, K, J) in steps of ``FINEST``"""
    n: int
    """Number of locations"""

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        """Sum over both sets of locations."""
        return Sum(self.total + other.total, self.n + other.n)

    def __sub__(self, other: Sum) -> Sum:
        """Return the sum without the locations of another sum."""
        return Sum(self.total - other.total, self.n - other.n)

    @property
    def mean(self) -> FloatArray:
        """Return the mean over the locations, NaN without any location."""
        if self.n == 0:
            return np.full(self.total.shape, np.nan)
        return np.asarray(self.total / (self.n / FINEST))


def comparable(state: State) -> Sum:
    """Return regrets (S, K, J) of the only location, divided by the CRPS of its best strategy.

    The CRPS is the mean of the best strategy with own regrets. Regrets are limited to the number of
    cases; otherwise a location with almost constant weather would decide for all locations. The
    result has no location before the first case, or if the forecasts were perfect.
    """
    n_strategies = state.regret.shape[1]
    least = state.score[0, :n_strategies].min()
    if state.cases[0] <= 0 or least <= 0:
        return Sum(np.zeros(state.regret.shape[1:], np.int64), 0)
    units = (state.regret[0] / least).clip(-1.0, 1.0) * state.cases[0]
    return Sum(np.rint(units / FINEST).astype(np.int64), 1)


class Record:
    """Changes of regrets in one round, filled by a first pass over the locations."""

    def __init__(self, *, with_known: bool) -> None:
        self.with_known = with_known
        """True if locations bring earlier regrets"""
        self._changes: dict[float, Sum] = {}

    def add(self, time: float, change: Sum) -> None:
        """Add the change of a location's regrets at a time; minus infinity marks earlier ones."""
        self._changes[time] = change + self._changes[time] if time in self._changes else change

    def timeline(self, start: Sum | None) -> tuple[Timeline | None, Sum | None]:
        """Return the common regrets during the round, given a start; and the sum at its end.

        Both are None if no location has a case.
        """
        sums = [] if start is None else [start]
        times = sorted(self._changes)
        for time in times:
            sums.append(self._changes[time] + sums[-1] if sums else self._changes[time])
        if not sums:
            return None, None
        if start is None and (not times or np.isfinite(times[0])):
            sums.insert(0, Sum(np.zeros_like(sums[0].total), 0))
        after = [time for time in times if np.isfinite(time)]
        regrets = np.stack([one.mean for one in sums[len(sums) - len(after) - 1 :]])
        return Timeline(np.array(after), regrets), sums[-1]


def timelines(records: Sequence[Record], begins: Sequence[bool]) -> list[Timeline | None]:
    """Return timelines of successive rounds; each starts from zero, or from the end before it."""
    found, end = [], None
    for record, anew in zip(records, begins, strict=True):
        one, end = record.timeline(None if anew else end)
        found.append(one)
    return found
