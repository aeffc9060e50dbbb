"""Recalibration by the probability integral transforms (PIT) of the calibration cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.arrays.status import TOO_FEW
from xrecal.typing import IntArray

from .base import Cases, Chosen, FitArrays, NewCases, Parameter
from .climatology import similarity_weights
from .settings import Settings

SEED = 0
"""Seed of the random numbers that place an observation within a jump of the forecast's CDF."""


class KeepsPIT(Settings):
    """Base of methods that learn only the PIT of the calibration cases."""

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """PIT of the cases."""
        meaning = "probability integral transform of each case"
        return {"pit": Parameter(meaning, dims={"calibration": -1})}

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """PIT of the cases (L, n); see :func:`xrecal.arrays.pit_values`."""
        pit = _pit(cases, np.arange(cases.observations.shape[1]))
        n_cases = np.isfinite(pit).sum(-1).astype(np.int32)
        few = n_cases < min_samples
        pit[few] = np.nan
        return {"n_cases": n_cases, "status": TOO_FEW * few, "pit": pit}

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """PIT of the added cases (L, n), with new random numbers; NaN without a fit."""
        pit = _pit(added, slots)
        pit[(fitted["status"] & TOO_FEW) > 0] = np.nan
        return {"pit": pit}


@dataclass(frozen=True, repr=False)
class PITRecalibration(KeepsPIT):
    """Recalibrated CDF ``F_Z(F(y))``, with F_Z the distribution of the PIT of past observations.

    The members are the forecast's quantiles at the levels of the past observations in their own
    forecasts [1]_. This makes the PIT uniform over all forecasts together, but not given the
    forecast. If an observation equals members, its PIT is a random number between the two values of
    the CDF, the same for every fit. The PIT of an observation outside the ensemble is 0 or 1.

    Parameters
    ----------
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Past PIT values have weights by the similarity of their
        covariates to those of the forecast, as in :class:`Climatology`.

    References
    ----------
    .. [1] Kuleshov, Fenner & Ermon (2018), Accurate uncertainties for deep learning using
       calibrated regression. https://arxiv.org/abs/1807.00263

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.PITRecalibration())
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.39
    """

    condition_on: str | tuple[str, ...] | None = None

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Quantiles at past levels; see :func:`xrecal.arrays.recalibrated_members`."""
        from xrecal.arrays.baselines.pit_recalibration import recalibrated_members

        members = recalibrated_members(new.forecasts, fitted["pit"])
        weights = similarity_weights(fitted["pit"], new, cases, self.covariates)
        weights = np.where(np.isnan(members).all(-1, keepdims=True), np.nan, weights)
        dtype = new.forecasts.loc.dtype
        return Empirical(members.astype(dtype), weights.astype(dtype))


def _pit(cases: Cases, slots: IntArray) -> npt.NDArray[Any]:
    """PIT (L, n) of the cases at these positions (n,).

    Random numbers depend on the case alone, so chunks cannot change them.
    """
    from xrecal.arrays.baselines.pit_recalibration import pit_values
    from xrecal.arrays.distributions.draws import hash_uniform

    assert cases.forecasts is not None
    n_locations, n = cases.observations.shape
    uniform = hash_uniform(SEED, np.zeros(1, np.int64), slots.max(initial=-1) + 1)[:, slots]
    pit: npt.NDArray[Any] = pit_values(
        cases.forecasts, cases.observations, np.broadcast_to(uniform, (n_locations, n))
    )
    return pit
