"""Climatology: the distribution of past observations. A useful forecast should be better."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.arrays.status import TOO_FEW
from xrecal.inputs.covariates import DAY
from xrecal.inputs.dates import CaseAxis
from xrecal.typing import FloatArray

from .base import Cases, FitArrays, Method, NewCases, missing_forecasts, names_of
from .settings import Settings, is_positive


@dataclass(frozen=True, repr=False)
class Climatology(Settings):
    """Distribution of the past observations, whatever the forecast.

    Parameters
    ----------
    window : float, optional
        Width in days of a window of calendar days, centred on the day of the forecast. The
        recalibrated forecast has only the past observations of calendar days in the window, from
        any year. By default, it has all past observations. A window may extend over the new year.
        In leap years, 1 March is the same calendar day as in other years, and 29 February lies
        half-way between its neighbours. The forecast is NaN if no past case lies in the window.
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Each past observation gets a weight by the similarity of its
        covariates to the covariates of the forecast. For a covariate of period P, the similarity at
        distance d is exp(-2 sin²(πd/P)). For other covariates, the similarity is a Gaussian kernel
        whose width is the median distance.

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.Climatology())
    >>> model.crps(forecast, observations).mean().round(2).item()
    3.01
    """

    window: float | None = None
    condition_on: str | tuple[str, ...] | None = None

    shares_members = True

    def __post_init__(self) -> None:
        if self.window is not None and not is_positive(self.window):
            raise ValueError(
                f"Climatology: window must be a positive number of days, got {self.window!r}"
            )
        super().__post_init__()

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates in ``condition_on``, and the day of the year for a window."""
        day = () if self.window is None else (DAY,)
        return tuple(dict.fromkeys((*names_of(self.condition_on), *day)))

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Return the method and a remark for the user.

        Raises ValueError if the settings have a window and the cases have no dates.
        """
        if self.window is not None and axis.season is None:
            raise ValueError(
                f"Climatology(window={self.window:g}) needs dates (datetime64 or cftime) along "
                "the calibration dimension; use Climatology()"
            )
        return super().check(axis, n_cases)

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return weighted past observations; see :func:`xrecal.arrays.climatology_weights`."""
        from xrecal.arrays.baselines.climatology import in_window

        weights = similarity_weights(cases.observations, new, cases, names_of(self.condition_on))
        if self.window is not None:
            day, new_day = (
                c.covariates.values[..., c.covariates.names.index(DAY)] for c in (cases, new)
            )
            weights = in_window(weights, day, new_day, self.window)
        weights[missing_forecasts(new.forecasts)] = np.nan
        weights[(fitted["status"] & TOO_FEW) > 0] = np.nan
        return Empirical(cases.observations, weights.astype(new.forecasts.loc.dtype))


def similarity_weights(
    values: FloatArray, new: NewCases, cases: Cases, names: tuple[str, ...]
) -> FloatArray:
    """Return weights (L, T, n) of past values (L, n) by the similarity of the named covariates.

    The weights are equal without covariates.
    """
    from xrecal.arrays.baselines.climatology import climatology_weights

    weights: FloatArray = climatology_weights(
        values,
        new.forecasts.loc.shape[1],
        features=cases.covariates.features(names) if names else None,
        new_features=new.covariates.features(names, cases.covariates) if names else None,
    )
    return weights
