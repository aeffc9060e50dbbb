"""Conformal prediction: intervals that contain observations as often as past intervals did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from xrecal.arrays.distributions.forms import Distribution, Empirical, Forecasts, find_bounds
from xrecal.typing import FloatArray, IntArray

from .base import ANY, Cases, Chosen, FitArrays, NewCases, Parameter, equally_likely
from .climatology import similarity_weights
from .pit import KeepsPIT
from .settings import is_positive

ABOVE = 1e-9
"""Level added at the upper end of an interval."""


@dataclass(frozen=True, repr=False)
class ConformalPrediction(KeepsPIT):
    """Central intervals that contain the observation with probability ``1 - alpha``.

    For exchangeable cases this coverage is guaranteed over all forecasts together; with n cases it
    is at most ``2/(n + 1)`` higher. The central interval of an ensemble lies between its quantiles
    at ``alpha/2`` and ``1 - alpha/2``. A margin moves each end, so that the right share of past
    observations lies beyond it [1]_. The end may leave the range of the members, but it does not
    pass a bound of the variable, such as 0 for rain. Normal distributions keep their shape: the
    interval lies between their quantiles at the levels ½ - Q and ½ + Q, with Q the quantile of
    ``|PIT - ½|`` over the calibration cases [2]_. The method learns nothing else from the cases, so
    all cases contribute to the margins, without a split.

    The recalibrated forecast has the two ends of the interval as members of equal weight. Two ends
    describe less than a distribution, so other methods have a better CRPS.

    Parameters
    ----------
    alpha : float
        Probability in (0, 1) that the observation lies outside the interval. With fewer than
        ``2/alpha - 1`` cases an ensemble would need infinite intervals. The method then issues
        intervals with the widest margins of a past case. They contain the next observation with
        probability ``(n - 1)/(n + 1)``.
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Cases have weights by the similarity of their covariates to
        those of the forecast, as in :class:`Climatology`. Coverage is then approximate.

    References
    ----------
    .. [1] Romano, Patterson & Candès (2019), Conformalized quantile regression.
       https://arxiv.org/abs/1905.03222
    .. [2] Chernozhukov, Wüthrich & Zhu (2021), Distributional conformal prediction.
       https://doi.org/10.1073/pnas.2107794118

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.ConformalPrediction(alpha=0.2))
    >>> model.quantile(forecast, [0.1, 0.9]).isel(init=0, location=0).round(1).values
    array([7.6, 8.8])
    """

    alpha: float = 0.1
    condition_on: str | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not is_positive(self.alpha) or self.alpha >= 1:
            raise ValueError(f"ConformalPrediction: alpha must be in (0, 1), got {self.alpha!r}")
        super().__post_init__()

    def slots(self, n: int) -> tuple[IntArray, None]:
        """The two ends of the interval."""
        return np.array([-1, -1]), None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """PIT of the cases, and their distances below and above the forecast's own interval."""
        return {
            **super().parameters(n_features),
            **{
                side: Parameter(
                    f"distance of the observation of each case {side} the interval of its forecast",
                    in_units_of_variable=True,
                    dims={"calibration": -1},
                    within=ANY,
                )
                for side in ("below", "above")
            },
        }

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """PIT and distances (L, n); see :func:`xrecal.arrays.pit_values`."""
        fitted = super().fit_locations(cases, min_samples)
        return {**fitted, **self._misses(cases, fitted["pit"])}

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """PIT and distances (L, n) of the added cases; NaN without a fit."""
        own = super().update_locations(added, fitted, slots)
        return {**own, **self._misses(added, own["pit"])}

    def _misses(self, cases: Cases, pit: FloatArray) -> dict[str, FloatArray]:
        """Distances of observations (L, n) below and above the interval; NaN without a PIT."""
        assert cases.forecasts is not None
        low, high = self._own_interval(cases.forecasts)
        unknown = np.where(np.isnan(pit), np.nan, 0.0)
        return {
            "below": low - cases.observations + unknown,
            "above": cases.observations - high + unknown,
        }

    def _own_interval(self, forecasts: Forecasts) -> FloatArray:
        """Ends (2, L, T) of the central interval of the raw forecasts."""
        levels = np.array([self.alpha / 2, 1 - self.alpha / 2])
        ends = ends_at(forecasts, np.tile(levels, (forecasts.loc.shape[0], 1)))
        return np.moveaxis(ends.astype(np.float64), -1, 0)

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Ends of the intervals; see :func:`xrecal.arrays.conformal_margins`."""
        weights = None
        if self.covariates:
            weights = similarity_weights(fitted["pit"], new, cases, self.covariates)
        if new.forecasts.scale is not None:
            ends = self._between_levels(new.forecasts, fitted["pit"], weights)
        else:
            ends = self._with_margins(new.forecasts, fitted, weights)
            bounds = find_bounds(cases.observations)[:2]
            ends = np.clip(ends, *(bound[:, np.newaxis, np.newaxis] for bound in bounds))
        return equally_likely(ends, new.forecasts.loc.dtype, Empirical)

    def _with_margins(
        self, forecasts: Forecasts, fitted: FitArrays, weights: FloatArray | None
    ) -> FloatArray:
        """Ends (L, T, 2) moved by margins, but not past each other."""
        from xrecal.arrays.baselines.conformal import conformal_margins

        below, above = (
            conformal_margins(fitted[side], self.alpha / 2, weights).reshape(len(fitted[side]), -1)
            for side in ("below", "above")
        )
        low, high = self._own_interval(forecasts)
        low, high = low - below, high + above
        middle = (low + high) / 2
        return np.stack([np.minimum(low, middle), np.maximum(high, middle)], axis=-1)

    def _between_levels(
        self, forecasts: Forecasts, pit: FloatArray, weights: FloatArray | None
    ) -> FloatArray:
        """Ends (L, T, 2) at levels of the forecasts; see :func:`xrecal.arrays.conformal_levels`."""
        from xrecal.arrays.baselines.conformal import conformal_levels, smallest_holding

        if weights is None:
            return ends_at(forecasts, conformal_levels(pit, self.alpha))
        half = smallest_holding(np.abs(pit - 0.5), 1 - self.alpha, weights)
        half = np.minimum(half, 0.5).reshape(-1)
        flat = forecasts.map(lambda part: part.reshape(-1, 1, part.shape[2]))
        ends = ends_at(flat, np.stack([0.5 - half, 0.5 + half], axis=-1))
        return np.asarray(ends.reshape(*forecasts.loc.shape[:2], 2))


def ends_at(forecasts: Forecasts, levels: FloatArray) -> FloatArray:
    """Quantiles (L, T, 2) at a lower and an upper level (L, 2).

    The upper quantile is just above its level: if the CDF of an ensemble equals the level, the
    quantile is the next member.
    """
    from xrecal.arrays.baselines.pit_recalibration import recalibrated_members

    above = np.minimum(levels[:, 1] + ABOVE, 1.0)
    ends = recalibrated_members(forecasts, np.stack([levels[:, 0], above], axis=-1))
    return np.asarray(ends)
