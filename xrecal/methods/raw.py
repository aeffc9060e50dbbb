"""The forecast as it was issued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from xrecal.inputs.dates import CaseAxis
from xrecal.typing import IntArray

from .base import (
    N_QUANTILES,
    Cases,
    FitArrays,
    Method,
    NewCases,
    Output,
    Parameter,
    Shown,
    count_cases,
    equal_mass_levels,
    missing_forecasts,
)

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution


@dataclass(frozen=True, repr=False)
class Raw(Shown):
    """The forecast as it was issued: a component of :class:`LinearPool` where it needs no help.

    The recalibrated forecast has 200 equal-mass quantiles of the given one as members.

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.Raw())
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.39
    """

    condition_on: ClassVar[None] = None
    covariates: ClassVar[tuple[str, ...]] = ()
    shares_members: ClassVar[bool] = False
    keeps_cases: ClassVar[bool] = False
    output: ClassVar[Output] = "weighted"

    def slots(self, n: int) -> tuple[IntArray, None]:
        """Quantiles that come from no past case."""
        return np.full(N_QUANTILES, -1), None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Nothing is chosen."""
        return {}

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Any cases will do."""
        return self, None

    def fit_locations(self, cases: Cases, min_samples: int) -> Mapping[str, npt.NDArray[Any]]:
        """Count cases; there is nothing to fit."""
        return count_cases(cases, min_samples)

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """No parameters."""
        return {}

    def predict_locations(
        self, new: NewCases, cases: Cases, fitted: Mapping[str, npt.NDArray[Any]]
    ) -> Distribution:
        """Quantiles of the forecasts."""
        from xrecal.arrays.distributions.forms import Empirical, distribution_of
        from xrecal.arrays.status import TOO_FEW

        members = distribution_of(new.forecasts).quantile(equal_mass_levels(N_QUANTILES))
        members[missing_forecasts(new.forecasts)] = np.nan
        members[(fitted["status"] & TOO_FEW) > 0] = np.nan
        weights = np.where(np.isnan(members), np.nan, 1 / N_QUANTILES)
        dtype = new.forecasts.loc.dtype
        return Empirical(members.astype(dtype), weights.astype(dtype))
