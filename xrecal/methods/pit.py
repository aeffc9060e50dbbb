"""Recalibration of the probability integral transform, and conformal intervals from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.inputs.dims import CaseAxis
from xrecal.typing import FloatArray

from .base import (
    Cases,
    Conditioned,
    MemberPerCase,
    Method,
    NewCases,
    Output,
    Parameter,
    check_names,
    period_of_cases,
)

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution

SEED = 0
"""Of the random numbers that place an observation within a jump of the forecast's CDF."""


@dataclass(frozen=True, repr=False)
class PITRecalibration(Conditioned, MemberPerCase):
    """Recalibrated CDF ``F_Z(F(y))``, with F_Z the law of the PIT of past observations.

    The forecast's quantiles at the levels that past observations had [1]_. That makes the PIT
    flat over all forecasts together, which is less than calibrated given each of them. Where an
    observation equals members, its PIT is drawn at random between the two values of the CDF, the
    same for every fit; outside an ensemble it is 0 or 1.

    Parameters
    ----------
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Past PIT values count by their similarity to those of the
        forecast, as in :class:`Climatology`.

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

    keeps_cases: ClassVar[bool] = False
    output: ClassVar[Output] = "weighted"

    def __post_init__(self) -> None:
        check_names("PITRecalibration", self.condition_on)

    @property
    def shares_members(self) -> bool:
        """Each forecast has its own quantiles as members."""
        return False

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """PIT of the cases."""
        return {
            "pit": Parameter(
                "probability integral transform of each case", dims={"calibration": -1}
            )
        }

    def check(self, axis: CaseAxis, n_cases: int) -> tuple[Method, str | None]:
        """Raise ValueError if the season is asked for and cases have no dates."""
        return self, period_of_cases(axis, self.covariates, method=type(self).__name__)

    def fit_locations(self, cases: Cases, min_samples: int) -> Mapping[str, npt.NDArray[Any]]:
        """PIT of the cases; see :func:`xrecal.arrays.pit_values`."""
        return past_pit(cases, min_samples)

    def update_locations(
        self, added: Cases, fitted: Mapping[str, npt.NDArray[Any]], n_kept: int
    ) -> Mapping[str, npt.NDArray[Any]]:
        """PIT of the added cases."""
        return {"pit": added_pit(added, fitted, n_kept)}

    def predict_locations(
        self, new: NewCases, cases: Cases, fitted: Mapping[str, npt.NDArray[Any]]
    ) -> Distribution:
        """Quantiles at the past levels; see :func:`xrecal.arrays.recalibrated_members`."""
        from xrecal.arrays.distributions.forms import Empirical

        members = arrays.recalibrated_members(new.forecasts, fitted["pit"])
        weights = similar_cases(new, cases, fitted["pit"], self.covariates)
        weights = np.where(np.isnan(members).all(-1, keepdims=True), np.nan, weights)
        dtype = new.forecasts.loc.dtype
        return Empirical(members.astype(dtype), weights.astype(dtype))


def past_pit(cases: Cases, min_samples: int) -> Mapping[str, npt.NDArray[Any]]:
    """PIT of the cases (L, n), randomised by case alone so that no chunking can change it."""
    from xrecal.arrays.status import TOO_FEW

    pit = _pit(cases, 0)
    n_cases = np.isfinite(pit).sum(-1).astype(np.int32)
    few = n_cases < min_samples
    pit[few] = np.nan
    return {"n_cases": n_cases, "status": TOO_FEW * few, "pit": pit}


def added_pit(
    added: Cases, fitted: Mapping[str, npt.NDArray[Any]], n_kept: int
) -> npt.NDArray[Any]:
    """PIT of further cases (L, n), with random numbers of their own; NaN without a fit."""
    from xrecal.arrays.status import TOO_FEW

    pit = _pit(added, n_kept)
    pit[(fitted["status"] & TOO_FEW) > 0] = np.nan
    return pit


def _pit(cases: Cases, first: int) -> npt.NDArray[Any]:
    """PIT (L, n) of cases counted from ``first`` on."""
    assert cases.forecasts is not None
    n_locations, n = cases.observations.shape
    uniform = arrays.hash_uniform(SEED, np.zeros(1, np.int64), first + n)[:, first:]
    pit: npt.NDArray[Any] = arrays.pit_values(
        cases.forecasts, cases.observations, np.broadcast_to(uniform, (n_locations, n))
    )
    return pit


def similar_cases(
    new: NewCases, cases: Cases, pit: FloatArray, names: tuple[str, ...]
) -> FloatArray:
    """Weights (L, T, n) of past PIT values by covariates; equal ones without."""
    weights = arrays.climatology_weights(
        pit,
        new.forecasts.loc.shape[1],
        features=cases.covariates.features(names) if names else None,
        new_features=new.covariates.features(names) if names else None,
    )
    return np.asarray(weights)
