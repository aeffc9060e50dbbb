"""Cases of many places in memory; a shared fit (one fit for all places) sums over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, distribution_of, equal_mass_levels
from xrecal.arrays.predictors import NO_PREDICTORS
from xrecal.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from xrecal.arrays.shared.network import Cases as ArrayCases

DRAWN_MEMBERS = 50
"""Number of quantiles that represent a normal distribution, or an ensemble whose members have
unequal weights."""

IN_MEMORY = 20_000
"""Largest number of cases that a shared fit processes at once, if all cases are in memory."""


class OfDates(NamedTuple):
    """Part and weight of each of n cases or dates. A fold of cross-validation consists of parts."""

    part: IntArray
    """(n,) index of the part of each case"""
    weight: FloatArray
    """(n,) weight of each case"""

    @classmethod
    def alike(cls, n: int) -> OfDates:
        """Return part 0 and weight 1 for each of n cases that are not cases of the fit."""
        return cls(np.zeros(n, np.int64), np.ones(n))

    def repeat(self, n: int) -> OfDates:
        """Repeat the part and the weight of each date for its n cases."""
        return OfDates(np.repeat(self.part, n), np.repeat(self.weight, n))


class InMemory:
    """Engine of a shared fit: it runs functions over all cases in memory, some cases at a time."""

    def __init__(
        self,
        cases: ArrayCases,
        date: IntArray,
        step: int = IN_MEMORY,
        usual: FloatArray = NO_PREDICTORS,
    ) -> None:
        self.cases, self.date, self.step, self.usual = cases, date, step, usual

    def total(self, function: Callable[..., Any], join: Callable[..., Any], *given: Any) -> Any:
        """Run a function on some of the cases at a time, and join all results.

        See :class:`xrecal.arrays.shared.passes.Engine`.
        """
        whole = None
        for first in range(0, max(self.date.size, 1), self.step):
            rows = slice(first, first + self.step)
            part = function(self.cases.take(rows), self.date[rows], *given)
            whole = part if first == 0 else join(whole, part)
        return whole

    def once(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function once; see :class:`xrecal.arrays.shared.passes.Engine`."""
        return function(*args)


def members_of(forecasts: Forecasts) -> FloatArray:
    """Return members (..., n, m) of forecasts.

    An ensemble with equal weights keeps its members; other forecasts get 50 quantiles as members.
    """
    if forecasts.scale is None and forecasts.weights is None:
        members = np.asarray(forecasts.loc, np.float64)
        return np.where(np.isfinite(members), members, np.nan)
    quantiles = distribution_of(forecasts).quantile(equal_mass_levels(DRAWN_MEMBERS))
    return np.asarray(quantiles, np.float64)
