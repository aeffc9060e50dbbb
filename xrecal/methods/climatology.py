"""Past observations as the forecast: what every forecast must beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.arrays.status import TOO_FEW
from xrecal.dims import CaseAxis
from xrecal.typing import FloatArray

from .base import Output, Parameter, State, is_positive, missing_forecasts

if TYPE_CHECKING:
    from xrecal.arrays.distributions import Distribution
    from xrecal.arrays.forms import Forecasts


@dataclass(frozen=True)
class Climatology:
    """Equal weights for past observations, whatever the forecast says.

    Parameters
    ----------
    window : float, optional
        Width in days of the part of the year around the forecast's date whose observations
        count; all do if not given. A date with no past case in its window gets NaN.
    """

    window: float | None = None

    parameters: ClassVar[Mapping[str, Parameter]] = {}
    keeps_cases: ClassVar[bool] = False
    output: ClassVar[Output] = "weighted"

    def __post_init__(self) -> None:
        if self.window is not None and not is_positive(self.window):
            raise ValueError(
                f"Climatology: window must be a positive number of days, got {self.window!r}"
            )

    @property
    def needs_season(self) -> bool:
        """Dates are needed for a window."""
        return self.window is not None

    def check(self, axis: CaseAxis, n_cases: int) -> None:
        """Raise ValueError if a window is asked for and the cases have no dates."""
        if self.needs_season and axis.season is None:
            raise ValueError(
                f"Climatology(window={self.window:g}) needs dates (datetime64 or cftime) along "
                "the calibration dimension; use Climatology()"
            )

    def fit_locations(
        self, cases: Forecasts, observations: FloatArray, axis: CaseAxis, min_samples: int
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Count cases; there is nothing else to fit."""
        n_cases = np.isfinite(observations).sum(-1).astype(np.int32)
        return {"n_cases": n_cases, "status": TOO_FEW * (n_cases < min_samples)}

    def predict_locations(
        self, forecasts: Forecasts, state: State, axis: CaseAxis, season: FloatArray | None
    ) -> Distribution:
        """Equal weights; see :func:`xrecal.arrays.climatology_weights`."""
        from xrecal.arrays.distributions import Empirical

        weights = arrays.climatology_weights(
            state.observations,
            forecasts.loc.shape[1],
            window=self.window,
            season=axis.season,
            new_season=season,
        )
        weights[missing_forecasts(forecasts)] = np.nan
        weights[(state.parameters["status"] & TOO_FEW) > 0] = np.nan
        return Empirical(state.observations, weights.astype(forecasts.loc.dtype))
