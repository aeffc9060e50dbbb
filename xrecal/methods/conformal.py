"""Conformal prediction: intervals with the desired share of past observations inside."""

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
"""Number that :func:`ends_at` adds to the level of the upper end of an interval."""


@dataclass(frozen=True, repr=False)
class ConformalPrediction(KeepsPIT):
    """Central intervals that contain the observation with probability ``1 - alpha``.

    If past and new cases are exchangeable, the average coverage of all forecasts is ``1 - alpha``
    or more. With n past cases, it exceeds ``1 - alpha`` by at most ``2/(n + 1)``. The central
    interval of an ensemble lies between its quantiles at ``alpha/2`` and ``1 - alpha/2``. The
    method moves each end of the interval by a margin, so that a share ``alpha/2`` of past
    observations lies beyond the moved end [1]_. The end may leave the range of the members, but it
    does not pass a bound of the variable, such as 0 for rain. If forecasts are normal
    distributions, the interval lies between their quantiles at the levels ½ - Q and ½ + Q. Here Q
    is the quantile of ``|PIT - ½|`` over the past cases, at level ``1 - alpha`` [2]_. The method
    learns nothing else from the cases, so it can use all cases for the margins.

    The recalibrated forecast has the two ends of the interval as members of equal weight. Two
    members describe a distribution poorly, so other methods have a better CRPS.

    Parameters
    ----------
    alpha : float
        Probability in (0, 1) that the observation lies outside the interval. With fewer than
        ``2/alpha - 1`` past cases, the interval of an ensemble would have to be infinite. Instead,
        the method uses the largest distances of past observations from their intervals as margins.
        With n past cases, the interval then contains the next observation with a probability of
        ``(n - 1)/(n + 1)``.
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Each past case gets a weight by the similarity of its
        covariates to the covariates of the forecast, as in :class:`Climatology`. The coverage is
        then approximate.

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
        """Return -1 for both ends of the interval, because they belong to no past case."""
        return np.array([-1, -1]), None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters: PIT and distances of each case.

        Distances are from the observation to the ends of the raw forecast's interval.
        """
        return {
            **super().parameters(n_features),
            **{
                side: Parameter(
                    f"distance by which each observation lies {side} the interval of its forecast",
                    in_units_of_variable=True,
                    dims={"calibration": -1},
                    within=ANY,
                )
                for side in ("below", "above")
            },
        }

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Compute PIT and distances (L, n); see :func:`xrecal.arrays.pit_values`."""
        fitted = super().fit_locations(cases, min_samples)
        return {**fitted, **self._misses(cases, fitted["pit"])}

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Return PIT and distances (L, n) of the added cases; NaN at locations without a fit."""
        own = super().update_locations(added, fitted, slots)
        return {**own, **self._misses(added, own["pit"])}

    def _misses(self, cases: Cases, pit: FloatArray) -> dict[str, FloatArray]:
        """Return distances (L, n) of observations below and above the raw forecast's interval.

        Distances are negative inside the interval, and NaN for a case without a PIT.
        """
        assert cases.forecasts is not None
        low, high = self._own_interval(cases.forecasts)
        unknown = np.where(np.isnan(pit), np.nan, 0.0)
        return {
            "below": low - cases.observations + unknown,
            "above": cases.observations - high + unknown,
        }

    def _own_interval(self, forecasts: Forecasts) -> FloatArray:
        """Return the ends (2, L, T) of the central intervals of raw forecasts."""
        levels = np.array([self.alpha / 2, 1 - self.alpha / 2])
        ends = ends_at(forecasts, np.tile(levels, (forecasts.loc.shape[0], 1)))
        return np.moveaxis(ends.astype(np.float64), -1, 0)

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return the ends of the intervals as two members.

        See :func:`xrecal.arrays.conformal_margins` and :func:`xrecal.arrays.conformal_levels`.
        """
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
        """Return ends (L, T, 2) of intervals, moved by margins but never past each other."""
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
        """Return quantiles of forecasts as the ends (L, T, 2) of intervals.

        See :func:`xrecal.arrays.conformal_levels` for the levels of these quantiles.
        """
        from xrecal.arrays.baselines.conformal import conformal_levels, smallest_holding

        if weights is None:
            return ends_at(forecasts, conformal_levels(pit, self.alpha))
        half = smallest_holding(np.abs(pit - 0.5), 1 - self.alpha, weights)
        half = np.minimum(half, 0.5).reshape(-1)
        flat = forecasts.map(lambda part: part.reshape(-1, 1, part.shape[2]))
        ends = ends_at(flat, np.stack([0.5 - half, 0.5 + half], axis=-1))
        return np.asarray(ends.reshape(*forecasts.loc.shape[:2], 2))


def ends_at(forecasts: Forecasts, levels: FloatArray) -> FloatArray:
    """Return quantiles (L, T, 2) at a lower and an upper level (L, 2).

    The function adds 1e-9 to the upper level. So, if the CDF of an ensemble at a member equals the
    level, the upper quantile is the next member.
    """
    from xrecal.arrays.baselines.pit_recalibration import recalibrated_members

    above = np.minimum(levels[:, 1] + ABOVE, 1.0)
    ends = recalibrated_members(forecasts, np.stack([levels[:, 0], above], axis=-1))
    return np.asarray(ends)
