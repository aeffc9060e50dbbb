"""Conformal prediction: intervals that cover as often as past ones did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.typing import FloatArray, IntArray

from .base import Cases, NewCases
from .climatology import similarity_weights
from .pit import KeepsPIT
from .setting_checks import is_positive

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution


ABOVE = 1e-9
"""Level added at the upper end of an interval."""


@dataclass(frozen=True, repr=False)
class ConformalPrediction(KeepsPIT):
    """Central intervals that hold the observation with probability ``1 - alpha``.

    From the forecast's quantile at level ½ - Q to that at ½ + Q, with Q the quantile of
    ``|PIT - ½|`` over the calibration cases [1]_. For continuous forecasts (normal distributions)
    and exchangeable cases that is guaranteed, over all forecasts together. An ensemble cannot
    hold what lies outside its members: intervals end there, and cover less where that is common.
    The recalibrated forecast has the two ends of the interval as members of
    equal weight: an interval says no more, so other methods have a better CRPS.

    Parameters
    ----------
    alpha : float
        Probability that the observation lies outside, in (0, 1).
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Cases count by their similarity to those of the forecast, as
        in :class:`Climatology`; coverage is then approximate.

    References
    ----------
    .. [1] Chernozhukov, Wüthrich & Zhu (2021), Distributional conformal prediction.
       https://doi.org/10.1073/pnas.2107794118

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.ConformalPrediction(alpha=0.2))
    >>> model.quantile(forecast, [0.1, 0.9]).isel(init=0, location=0).round(1).values
    array([7.9, 8.6])
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

    def predict_locations(
        self, new: NewCases, cases: Cases, fitted: Mapping[str, npt.NDArray[Any]]
    ) -> Distribution:
        """Ends of the intervals; see :func:`xrecal.arrays.conformal_levels`."""
        from xrecal.arrays.distributions.forms import Empirical

        pit = fitted["pit"]
        n_locations, n_new = new.forecasts.loc.shape[:2]
        if self.covariates:
            weights = similarity_weights(pit, new, cases, self.covariates)
            levels = _weighted_levels(pit, weights, self.alpha).reshape(-1, 2)
            flat = (None if p is None else p.reshape(-1, 1, p.shape[2]) for p in new.forecasts)
            forecasts = Forecasts(*flat)  # type: ignore[arg-type]
        else:
            levels, forecasts = arrays.conformal_levels(pit, self.alpha), new.forecasts
        # Just above the upper level: where the CDF of an ensemble stays at it, the next member.
        levels = np.stack([levels[:, 0], np.minimum(levels[:, 1] + ABOVE, 1.0)], axis=-1)
        ends = arrays.recalibrated_members(forecasts, levels).reshape(n_locations, n_new, 2)
        dtype = new.forecasts.loc.dtype
        return Empirical(ends.astype(dtype), np.where(np.isnan(ends), np.nan, 0.5).astype(dtype))


def _weighted_levels(pit: FloatArray, weights: FloatArray, alpha: float) -> FloatArray:
    """Levels (L, T, 2) between which 1 - alpha of the weight of past cases (L, T, n) lies.

    The new case counts as one of average weight, as it does in the unweighted count.
    """
    apart = np.where(np.isnan(pit), np.inf, np.abs(pit - 0.5))
    order = np.argsort(apart, axis=-1)
    sorted_apart = np.take_along_axis(apart, order, axis=-1)[:, np.newaxis]
    below = np.cumsum(np.take_along_axis(weights, order[:, np.newaxis], axis=-1), axis=-1)
    n = np.isfinite(apart).sum(-1)[:, np.newaxis, np.newaxis]
    enough = below * n >= (1 - alpha) * (n + 1) - 1e-9  # with room for rounding
    least = np.where(enough, sorted_apart, np.inf).min(-1)
    half = np.where(np.isnan(below[..., -1]), np.nan, np.minimum(least, 0.5))
    return np.stack([0.5 - half, 0.5 + half], axis=-1)
