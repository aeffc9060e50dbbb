"""Cases of many places in memory, in the form for sums over them."""

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
"""Number of members that represent a distribution of another form."""

IN_MEMORY = 20_000
"""Number of cases processed at once."""


class OfDates(NamedTuple):
    """Parts and weights of n cases, or dates, for sums."""

    part: IntArray
    """(n,) part of the folds"""
    weight: FloatArray
    """(n,)"""

    @classmethod
    def alike(cls, n: int) -> OfDates:
        """Equal parts and weights of n forecasts, which are not added to sums."""
        return cls(np.zeros(n, np.int64), np.ones(n))

    def repeat(self, n: int) -> OfDates:
        """Repeat parts and weights for n cases of each date."""
        return OfDates(np.repeat(self.part, n), np.repeat(self.weight, n))


class InMemory:
    """Runs passes over cases in memory, in pieces."""

    def __init__(
        self,
        cases: ArrayCases,
        date: IntArray,
        step: int = IN_MEMORY,
        usual: FloatArray = NO_PREDICTORS,
    ) -> None:
        self.cases, self.date, self.step, self.usual = cases, date, step, usual

    def total(self, function: Callable[..., Any], join: Callable[..., Any], *given: Any) -> Any:
        """See :class:`xrecal.arrays.shared.passes.Engine`."""
        whole = None
        for first in range(0, max(self.date.size, 1), self.step):
            rows = slice(first, first + self.step)
            part = function(self.cases.take(rows), self.date[rows], *given)
            whole = part if first == 0 else join(whole, part)
        return whole

    def once(self, function: Callable[..., Any], *args: Any) -> Any:
        """See :class:`xrecal.arrays.shared.passes.Engine`."""
        return function(*args)


def members_of(forecasts: Forecasts) -> FloatArray:
    """Members (..., n, m) of forecasts in any form: their own, or quantiles of equal mass."""
    if forecasts.scale is None and forecasts.weights is None:
        members = np.asarray(forecasts.loc, np.float64)
        return np.where(np.isfinite(members), members, np.nan)
    quantiles = distribution_of(forecasts).quantile(equal_mass_levels(DRAWN_MEMBERS))
    return np.asarray(quantiles, np.float64)
