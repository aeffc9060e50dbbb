"""Regrets that locations have in common: their mean, in units of what each of them is worth.

The increments of the regrets of a location are relative to its own aggregate, and depend on no
other one. So one pass over the locations finds what each has learned by when, and a second one
weighs strategies that share. Sums are of whole numbers: their order changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xrecal.arrays.compiled import Floats4, IndexMatrix
from xrecal.typing import FloatArray, IntArray

from .state import State

FINEST = 2.0**-32
"""Step of a comparable regret, so that sums over a million locations are exact in 64 bits."""


class Common(NamedTuple):
    """What locations had in common before each of their cases."""

    regrets: Floats4
    """(M, S, K, J) comparable regrets; NaN where none are known"""
    at: IndexMatrix
    """(L, n) which of them each case finds"""


class Timeline(NamedTuple):
    """What locations had in common, as it changed while they learned."""

    times: FloatArray
    """(M,) ascending, at which cases had verified"""
    regrets: FloatArray
    """(M + 1, S, K, J) before the first of these, and after each; NaN as long as none are known"""

    def before(self, times: FloatArray) -> Common:
        """What cases (1, n) find that verify at some times (n,): all of earlier ones."""
        return Common(self.regrets, np.searchsorted(self.times, times, side="left")[np.newaxis])

    @property
    def last(self) -> FloatArray:
        """Regrets (S, K, J) after all times."""
        return np.asarray(self.regrets[-1])


def none_common(state: State) -> FloatArray:
    """Regrets (1, S, K, J) where none are known."""
    missing: FloatArray = np.full((1, *state.regret.shape[1:]), np.nan)
    return missing


class Sum(NamedTuple):
    """Comparable regrets of some locations."""

    total: IntArray
    """(S, K, J) in steps of ``FINEST``"""
    n: int
    """Number of the locations"""

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        """Both together."""
        return Sum(self.total + other.total, self.n + other.n)

    def __sub__(self, other: Sum) -> Sum:
        """One without the other."""
        return Sum(self.total - other.total, self.n - other.n)

    @property
    def mean(self) -> FloatArray:
        """Mean over the locations, NaN without any."""
        if self.n == 0:
            return np.full(self.total.shape, np.nan)
        return np.asarray(self.total / (self.n / FINEST))


def comparable(state: State) -> Sum:
    """Regrets (S, K, J) of the only location, over the mean CRPS of its best own strategy.

    At most as large as the number of cases: a location where next to nothing happens would decide
    for all. None before it has learned from a case, or if its forecasts were perfect.
    """
    n_strategies = state.regret.shape[1]
    least = state.score[0, :n_strategies].min()
    if state.cases[0] <= 0 or least <= 0:
        return Sum(np.zeros(state.regret.shape[1:], np.int64), 0)
    units = (state.regret[0] / least).clip(-1.0, 1.0) * state.cases[0]
    return Sum(np.rint(units / FINEST).astype(np.int64), 1)


class Record:
    """What locations learn in one round, as they learn it: filled by a first pass over them."""

    def __init__(self, *, with_known: bool) -> None:
        self.with_known = with_known
        """Whether locations bring what they knew before"""
        self._changes: dict[float, Sum] = {}

    def add(self, time: float, change: Sum) -> None:
        """Add what a location has learned at a time, or brought along at minus infinity."""
        self._changes[time] = change + self._changes[time] if time in self._changes else change

    def timeline(self, start: Sum | None) -> tuple[Timeline | None, Sum | None]:
        """What was common in the round, after a start; and the sum at its end.

        None as long as no location has anything to learn from.
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
    """Timelines of rounds that follow each other; each begins anew, or where the last one ended."""
    found, end = [], None
    for record, anew in zip(records, begins, strict=True):
        one, end = record.timeline(None if anew else end)
        found.append(one)
    return found
