"""Experts corrected by the errors that an online pool stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, moments
from xrecal.typing import FloatArray, IntArray

from .base import Cases, FitArrays

REMEMBERED, USED = 500, 400
"""Number of stored errors, and number of known errors that correct an expert. Further stored errors
belong to forecasts that have not verified."""

RECENT, POOL = "recent_ckme", "pool"
MOVED_POOL, CORRECTED_POOL, CORRECTED_RECENT = "moved_pool", "corrected_pool", "corrected_recent"
CORRECTED = (MOVED_POOL, CORRECTED_POOL, CORRECTED_RECENT)
"""Labels of the experts: the pool corrected in the mean, the pool corrected in mean and spread, and
the recent CKME."""


NONE = np.array([], np.int64)


class Errors(NamedTuple):
    """Errors of the pool and the recent CKME, for the last n cases that updated the weights."""

    case: IntArray
    """(n,) positions, ascending"""
    score: FloatArray
    """(2, n) normal scores"""
    earlier: IntArray
    """(n,) number of errors known when each case was issued"""
    predictors: FloatArray
    """(n, 3) see :func:`predictors`"""

    @classmethod
    def of(
        cls, fitted: FitArrays, cases: Cases, known: IntArray, others: IntArray = NONE
    ) -> tuple[Errors, FloatArray]:
        """Stored errors of a model at its only location, and predictors (T, 3) of other cases."""
        case = fitted["error_case"][0]
        there = case >= 0
        case = case[there].astype(np.int64)
        every = np.concatenate([case, others])
        own = predictors(cases, cases.as_new(every).forecasts, known[every])
        earlier, score = np.searchsorted(case, known[case]), fitted["error"][0][:, there]
        return cls(case, score, earlier, own[: case.size]), own[case.size :]

    def named(self) -> dict[str, FloatArray | IntArray]:
        """Arrays (1, ...) of the model."""
        room = REMEMBERED - self.case.size
        return {
            "error_case": np.pad(self.case, (room, 0), constant_values=-1)[np.newaxis],
            "error": np.pad(self.score, ((0, 0), (room, 0)), constant_values=np.nan)[np.newaxis],
        }

    def plus(
        self,
        case: int,
        said: Mapping[str, FloatArray],
        observed: float,
        own: FloatArray,
        known: int,
    ) -> Errors:
        """Errors with one more case, from quantiles (1, J) of experts and its predictors (1, 3)."""
        from xrecal.arrays.online.corrections import normal_scores

        score = np.array([normal_scores(said[label][0], observed) for label in (POOL, RECENT)])
        if np.isnan(score).any():
            return self
        last = slice(max(self.case.size + 1 - REMEMBERED, 0), None)
        earlier = np.append(self.earlier, np.searchsorted(self.case, known))
        return Errors(
            np.append(self.case, case)[last],
            np.column_stack([self.score, score])[:, last],
            np.maximum(earlier - last.start, 0)[last],
            np.concatenate([self.predictors, own])[last],
        )

    def correct(
        self,
        said: Mapping[str, FloatArray],
        own: FloatArray,
        known: int,
        bounds: tuple[float, float],
    ) -> dict[str, FloatArray]:
        """Quantiles (T, J) of the corrected experts, from errors of the first ``known`` cases."""
        from xrecal.arrays.online.corrections import corrected, corrections

        end = int(np.searchsorted(self.case, known))
        used = slice(max(end - USED, 0), end)
        earlier = np.maximum(self.earlier[used] - used.start, 0)
        of_pool, of_recent = (
            corrections(score[used], earlier, self.predictors[used], own) for score in self.score
        )
        return {
            MOVED_POOL: corrected(said[POOL], of_pool * [1.0, 0.0], bounds),
            CORRECTED_POOL: corrected(said[POOL], of_pool, bounds),
            CORRECTED_RECENT: corrected(said[RECENT], of_recent, bounds),
        }


def predictors(cases: Cases, forecasts: Forecasts, known: IntArray) -> FloatArray:
    """Predictors of the errors of forecasts (1, T), known when they are issued.

    Returns
    -------
    array of float64, shape (T, 3)
        Mean of each forecast minus the last observation among the first ``known`` (T,) cases; mean
        minus the mean of the forecast of that observation, 0 if no observation is known; and the
        standard deviation.
    """
    (means,), (variances,) = moments(forecasts)
    observed = cases.observations[0]
    verified = np.where(np.isfinite(observed), np.arange(observed.size), -1)
    last = np.append(np.maximum.accumulate(verified), -1)[known - 1]  # -1 if none is known
    (means_then,), _ = moments(cases.as_new(last).forecasts)
    departure, change = (
        np.where(last >= 0, means - then, 0.0) for then in (observed[last], means_then)
    )
    return np.stack([departure, change, np.sqrt(variances)], axis=-1)
