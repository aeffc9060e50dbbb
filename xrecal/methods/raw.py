"""The raw forecast, as it was issued."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xrecal.arrays.distributions.forms import (
    N_QUANTILES,
    Distribution,
    Empirical,
    distribution_of,
    equal_mass_levels,
)
from xrecal.arrays.status import TOO_FEW
from xrecal.typing import IntArray

from .base import Cases, FitArrays, NewCases, equally_likely, missing_forecasts
from .settings import Settings


@dataclass(frozen=True, repr=False)
class Raw(Settings):
    """The raw forecast, as a reference and as a component of :class:`LinearPool`.

    The method issues 200 quantiles of the raw forecast, at equally spaced levels, as members.

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.Raw())
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.39
    """

    recalibrates = False

    def slots(self, n: int) -> tuple[IntArray, None]:
        """Return -1 for each quantile, because quantiles belong to no past case."""
        return np.full(N_QUANTILES, -1), None

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return quantiles of the raw forecasts as members."""
        members = distribution_of(new.forecasts).quantile(equal_mass_levels(N_QUANTILES))
        members[missing_forecasts(new.forecasts)] = np.nan
        members[(fitted["status"] & TOO_FEW) > 0] = np.nan
        return equally_likely(members, new.forecasts.loc.dtype, Empirical)
