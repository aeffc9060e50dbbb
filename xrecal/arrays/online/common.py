"""Common regrets: means of the regrets of all locations, each in units of the CRPS of its location.

The regrets of a location are gains over its own aggregate, and no other location changes this
aggregate. So a first computation can record how the regrets of each location change in time. A
second computation then uses the means of these regrets, the common regrets, to weight the experts.
The sums over locations are sums of integers, so they do not depend on the order of the locations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from xrecal.arrays.compiled import Floats4, IndexMatrix
from xrecal.typing import FloatArray, IntArray

from .in_common import FINEST, InCommon, OfPlace, in_common
from .state import State


class Common(NamedTuple):
    """Common regrets that are known before each case of each location."""

    regrets: Floats4
    """(M, S, K, J) common regrets at M successive times, for S strategies, K experts and J levels;
    NaN if none are known yet"""
    at: IndexMatrix
    """(L, n) position in ``regrets`` of the common regrets that are known before each case"""


class Timeline(NamedTuple):
    """What the locations have in common at successive times: regrets and predictors of errors."""

    times: FloatArray
    """(M,) ascending times at which cases verified"""
    regrets: FloatArray
    """(M + 1, S, K, J) common regrets before the first time, and after each time; NaN as long as no
    location has regrets"""
    predictors: InCommon

    def before(self, times: FloatArray) -> Common:
        """Return common regrets for n cases of one location that verify at ``times`` (n,).

        The common regrets for a case include all cases, at any location, that verified earlier.
        """
        return Common(self.regrets, np.searchsorted(self.times, times, side="left")[np.newaxis])

    @property
    def last(self) -> tuple[FloatArray, FloatArray]:
        """Return the common regrets (S, K, J) and the mean errors (2,) after all times."""
        return np.asarray(self.regrets[-1]), self.predictors.last


def none_common(state: State) -> FloatArray:
    """Return an array of NaN (1, S, K, J), which means that no common regrets are known."""
    missing: FloatArray = np.full((1, *state.regret.shape[1:]), np.nan)
    return missing


class Sum(NamedTuple):
    """Sum of the regrets of some locations, each in units of the CRPS of its location."""

    total: IntArray
    """(S, K, J) sum, as a multiple of ``FINEST``"""
    n: int
    """Number of locations"""

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        """Return the sum over the locations of both sums."""
        return Sum(self.total + other.total, self.n + other.n)

    def __sub__(self, other: Sum) -> Sum:
        """Return this sum without the locations of ``other``."""
        return Sum(self.total - other.total, self.n - other.n)

    @property
    def mean(self) -> FloatArray:
        """Return the mean over the locations, or NaN if there is no location."""
        if self.n == 0:
            return np.full(self.total.shape, np.nan)
        return np.asarray(self.total / (self.n / FINEST))


def comparable(state: State) -> Sum:
    """Return the regrets (S, K, J) of a state of one location, in units of its CRPS.

    The CRPS is the mean CRPS of the best strategy (way to weight experts) that uses only the
    regrets of the location. In this unit, the function limits the size of a regret to the number of
    cases. Without this limit, a location with almost constant weather and so a very small CRPS
    would decide for all locations. Before the first case, or if all forecasts were perfect, the
    result is an empty sum with n = 0.
    """
    n_strategies = state.regret.shape[1]
    least = state.score[0, :n_strategies].min()
    if state.cases[0] <= 0 or least <= 0:
        return Sum(np.zeros(state.regret.shape[1:], np.int64), 0)
    units = (state.regret[0] / least).clip(-1.0, 1.0) * state.cases[0]
    return Sum(np.rint(units / FINEST).astype(np.int64), 1)


class Record:
    """Record of the predictors of all locations, and of how their regrets change in one round.

    In a round, models learn verified cases, and then issue forecasts until the next round. The
    first of the two computations makes this record. It visits all locations twice: for predictors
    of errors and then, as the predictors in common are known, for regrets.
    """

    def __init__(self, *, with_known: bool) -> None:
        self.with_known = with_known
        """True if locations have regrets from before the round"""
        self.predictors: InCommon | None = None
        """Predictors in common; None as long as the record collects the predictors of locations"""
        self._places: list[OfPlace] = []
        self._new: list[tuple[FloatArray, FloatArray]] = []
        self._changes: dict[float, Sum] = {}

    def add_place(self, of_place: OfPlace) -> None:
        """Store the errors and predictors of a location."""
        self._places.append(of_place)

    def add_new(self, issued: FloatArray, predictors: FloatArray) -> None:
        """Store times of issue (T,) and predictors (T, 3) of forecasts that are not verified."""
        self._new.append((issued, predictors))

    def close_predictors(self) -> None:
        """Compute what the predictors of all locations have in common."""
        self.predictors = in_common(self._places, self._new)

    def add(self, time: float, change: Sum) -> None:
        """Store how the regrets of a location change at the time ``time``.

        If a location has regrets from before the round, add them with a time of minus infinity.
        """
        self._changes[time] = change + self._changes[time] if time in self._changes else change

    def timeline(self, start: Sum | None) -> tuple[Timeline | None, Sum | None]:
        """Return what is in common during the round, and the sum of regrets at the end.

        ``start`` is the sum of regrets before the round, if it is known. Both results are None if
        ``start`` is None and no location has a case.
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
        assert self.predictors is not None
        return Timeline(np.array(after), regrets, self.predictors), sums[-1]


def timelines(
    records: Sequence[Record], begins: Sequence[bool], visit: Callable[[], object]
) -> list[Timeline | None]:
    """Return the timelines of successive rounds.

    If ``begins`` is True for a round, the round has no regrets at its start. Any other round starts
    with the regrets at the end of the previous round. ``visit`` runs all rounds at all locations,
    which first add their predictors to the records, and then their regrets.
    """
    visit()
    for record in records:
        record.close_predictors()
    visit()
    found, end = [], None
    for record, anew in zip(records, begins, strict=True):
        one, end = record.timeline(None if anew else end)
        found.append(one)
    return found
