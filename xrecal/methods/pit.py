"""Recalibration by the probability integral transforms (PIT) of past cases."""

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
"""Seed of random numbers. If the CDF jumps at an observation, the PIT of this observation is a
random number between the values on both sides of the jump."""


class KeepsPIT(Settings):
    """Base of methods that learn from the probability integral transforms (PIT) of past cases."""

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameter: PIT of each case."""
        meaning = "probability integral transform of each case"
        return {"pit": Parameter(meaning, dims={"calibration": -1})}

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Compute the PIT (L, n) of the cases; see :func:`xrecal.arrays.pit_values`."""
        pit = _pit(cases, np.arange(cases.observations.shape[1]))
        n_cases = np.isfinite(pit).sum(-1).astype(np.int32)
        few = n_cases < min_samples
        pit[few] = np.nan
        return {"n_cases": n_cases, "status": TOO_FEW * few, "pit": pit}

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Compute the PIT (L, n) of the added cases; NaN at locations without a fit."""
        pit = _pit(added, slots)
        pit[(fitted["status"] & TOO_FEW) > 0] = np.nan
        return {"pit": pit}


@dataclass(frozen=True, repr=False)
class PITRecalibration(KeepsPIT):
    """Recalibration of a CDF F to ``F_Z(F(y))``, where F_Z is the CDF of past PIT values.

    The members are quantiles of the raw forecast; their levels are the PIT values of past cases
    [1]_. The PIT values of recalibrated forecasts are then uniform over all forecasts together, but
    not always over similar forecasts. If an observation equals one or more members, the CDF jumps
    at the observation, and the PIT is a random number between the values on both sides of the jump.
    Every fit to the same cases draws the same number. The PIT of an observation outside the
    ensemble is 0 or 1.

    Parameters
    ----------
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Each past case gets a weight by the similarity of its
        covariates to the covariates of the forecast, as in :class:`Climatology`.

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
        """Return ensembles of quantiles; see :func:`xrecal.arrays.recalibrated_members`."""
        from xrecal.arrays.baselines.pit_recalibration import recalibrated_members

        members = recalibrated_members(new.forecasts, fitted["pit"])
        weights = similarity_weights(fitted["pit"], new, cases, self.covariates)
        weights = np.where(np.isnan(members).all(-1, keepdims=True), np.nan, weights)
        dtype = new.forecasts.loc.dtype
        return Empirical(members.astype(dtype), weights.astype(dtype))


def _pit(cases: Cases, slots: IntArray) -> npt.NDArray[Any]:
    """Compute the PIT (L, n) of cases at the positions ``slots`` (n,) in the state.

    A random number depends only on the position of its case, so the PIT does not depend on the
    chunks of the data.
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
