"""Ensemble model output statistics: the Gaussian regression that forecasters use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.arrays.status import NOT_CONVERGED, TOO_FEW
from xrecal.dims import CaseAxis
from xrecal.typing import FloatArray

from .base import Output, Parameter, State

if TYPE_CHECKING:
    from xrecal.arrays.distributions import Distribution
    from xrecal.arrays.forms import Forecasts

COEFFICIENTS = ("intercept", "slope", "spread_intercept", "spread_slope")


@dataclass(frozen=True)
class EMOS:
    """Nonhomogeneous Gaussian regression by minimum CRPS.

    ``N(a + b mean, c² + d² variance)`` of the ensemble's mean and variance [1]_. The recalibrated
    forecast is a normal distribution, ``NAME_loc`` and ``NAME_scale``.

    References
    ----------
    .. [1] Gneiting et al. (2005), Calibrated probabilistic forecasting using ensemble model
       output statistics and minimum CRPS estimation. https://doi.org/10.1175/MWR2904.1
    """

    parameters: ClassVar[Mapping[str, Parameter]] = {
        "intercept": Parameter("a of the location a + b mean", True),
        "slope": Parameter("b of the location a + b mean"),
        "spread_intercept": Parameter("c of the variance c² + d² variance", True),
        "spread_slope": Parameter("d of the variance c² + d² variance"),
    }
    keeps_cases: ClassVar[bool] = False
    output: ClassVar[Output] = "normal"

    @property
    def needs_season(self) -> bool:
        """No date is needed."""
        return False

    def check(self, axis: CaseAxis, n_cases: int) -> None:
        """Any cases will do."""

    def fit_locations(
        self, cases: Forecasts, observations: FloatArray, axis: CaseAxis, min_samples: int
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Coefficients at each location; see :func:`xrecal.arrays.fit_emos`."""
        mean, variance = _moments(cases)
        coefficients, n_cases, converged = arrays.fit_emos(
            mean, variance, observations, min_samples
        )
        few = n_cases < min_samples
        status = np.where(few, TOO_FEW, np.where(converged, 0, NOT_CONVERGED))
        fitted = dict(zip(COEFFICIENTS, coefficients.T, strict=True))
        return {"n_cases": n_cases, "status": status, **fitted}

    def predict_locations(
        self, forecasts: Forecasts, state: State, axis: CaseAxis, season: FloatArray | None
    ) -> Distribution:
        """Normal distributions; see :func:`xrecal.arrays.predict_emos`."""
        from xrecal.arrays.distributions import Normal

        coefficients = np.stack([state.parameters[name] for name in COEFFICIENTS], axis=-1)
        loc, scale = arrays.predict_emos(coefficients, *_moments(forecasts))
        dtype = forecasts.loc.dtype
        return Normal(loc[..., np.newaxis].astype(dtype), scale[..., np.newaxis].astype(dtype))


def _moments(forecasts: Forecasts) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (L, n); NaN where a forecast is missing or invalid."""
    from xrecal.arrays.distributions import Empirical, Normal
    from xrecal.arrays.forms import without_invalid

    loc, scale, weights = without_invalid(forecasts)
    forecast: Distribution = Empirical(loc, weights)
    if scale is not None:
        forecast = Normal(loc, np.where(scale < 0, np.nan, scale), weights)
    return forecast.mean(), forecast.std() ** 2
