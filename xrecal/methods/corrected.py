"""Corrections of experts (forecasts that an online pool averages), from their past errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, moments
from xrecal.typing import FloatArray, IntArray

from .base import Cases, FitArrays

REMEMBERED, USED = 500, 400
"""Number of errors per expert that the state stores, and number of errors that a correction uses.
The state stores more errors than a correction uses, because the newest errors may not have been
known when the forecast was issued."""

RECENT, POOL = "recent_ckme", "pool"
MOVED_POOL, CORRECTED_POOL, CORRECTED_RECENT = "moved_pool", "corrected_pool", "corrected_recent"
CORRECTED = (MOVED_POOL, CORRECTED_POOL, CORRECTED_RECENT)
"""Labels of the corrected experts: the pool corrected in the mean, the pool corrected in mean and
spread, and the recent CKME corrected in mean and spread."""


NONE = np.array([], np.int64)


class Errors(NamedTuple):
    """Errors of the pool and the recent CKME, for the last n cases that updated the weights."""

    case: IntArray
    """(n,) positions of the cases, ascending"""
    score: FloatArray
    """(2, n) normal score of each observation, for the pool and for the recent CKME. It is the
    quantile of the standard normal distribution at the PIT of the observation"""
    earlier: IntArray
    """(n,) number of stored errors that were known when the forecast of each case was issued"""
    predictors: FloatArray
    """(n, 3) predictors of each error; see :func:`predictors`"""

    @classmethod
    def of(
        cls, fitted: FitArrays, cases: Cases, known: IntArray, others: IntArray = NONE
    ) -> tuple[Errors, FloatArray]:
        """Return the stored errors of a location, and predictors (T, 3) for cases ``others``."""
        case = fitted["error_case"][0]
        there = case >= 0
        case = case[there].astype(np.int64)
        every = np.concatenate([case, others])
        own = predictors(cases, cases.as_new(every).forecasts, known[every])
        earlier, score = np.searchsorted(case, known[case]), fitted["error"][0][:, there]
        return cls(case, score, earlier, own[: case.size]), own[case.size :]

    def named(self) -> dict[str, FloatArray | IntArray]:
        """Return the errors as arrays (1, ...) of the state, padded to their stored sizes."""
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
        """Return the stored errors and the errors of one more case.

        ``said`` has J quantiles (1, J) of each expert for this case, and ``own`` (1, 3) has the
        predictors of errors in this case. ``known`` is the number of cases whose observations were
        known at the issue of this forecast.
        """
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
        """Return quantiles (T, J) of corrected experts.

        The function learns the corrections from stored errors among the first ``known`` cases.
        """
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
    """Compute predictors of the errors of forecasts (1, T), from values known at their issue.

    ``known`` (T,) is the number of cases that are known at the issue of each forecast.

    Returns
    -------
    array of float64, shape (T, 3)
        Three numbers for each forecast. The first is the forecast mean minus the last known
        observation. The second is the forecast mean minus the mean of the earlier forecast of this
        observation. Both are 0 if no observation is known. The third is the standard deviation of
        the forecast.
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
