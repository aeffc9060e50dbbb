"""Corrections of experts (forecasts that an online pool averages), from their past errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, moments
from xrecal.typing import FloatArray, IntArray

from .base import Cases, FitArrays, NewCases, Parameter
from .known import days_ahead, issue_times, known_of, times_known, verification_times

if TYPE_CHECKING:
    from xrecal.arrays.online.in_common import OfPlace

REMEMBERED, USED = 500, 400
"""Number of errors per expert that the state stores, and number of errors that a correction uses.
The state stores more errors than a correction uses, because the newest errors may not have been
known when the forecast was issued."""

RECENT, POOL = "recent_ckme", "pool"
MOVED_POOL, CORRECTED_POOL, CORRECTED_RECENT = "moved_pool", "corrected_pool", "corrected_recent"
CORRECTED = (MOVED_POOL, CORRECTED_POOL, CORRECTED_RECENT)
"""Labels of the corrected experts: the pool corrected in the mean, the pool corrected in mean and
spread, and the recent CKME corrected in mean and spread."""

KNOWN_IN_COMMON, LAST_IN_COMMON = "known_in_common", "last_in_common"
"""Names of the parameters with predictors of errors that places have in common: those known at the
issue of each stored error, and the last mean errors, which are the same at all places."""

WHOSE, ERROR, SHARED, GROUP = "erring_expert", "remembered_error", "in_common", "erring_places"
"""Names of the dimensions of stored errors, and of predictors that places have in common."""

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
    """(n, 8) predictors of each error: three of its own location, see :func:`predictors`, and those
    that places have in common: two mean errors, and the means of the three predictors"""

    @classmethod
    def of(
        cls, fitted: FitArrays, cases: Cases, delay: int | str, others: IntArray = NONE
    ) -> tuple[Errors, FloatArray]:
        """Return the stored errors of a location, and predictors (T, 8) for cases ``others``."""
        known, case = known_of(cases, delay), fitted["error_case"][0]
        there = case >= 0
        case = case[there].astype(np.int64)
        every = np.concatenate([case, others])
        own = predictors(cases, cases.as_new(every).forecasts, known[every])
        common = [fitted[KNOWN_IN_COMMON][0][there], known_in_common(cases, others, delay)]
        own = np.column_stack([own, np.concatenate(common)])
        earlier, score = np.searchsorted(case, known[case]), fitted["error"][0][:, there]
        return cls(case, score, earlier, own[: case.size]), own[case.size :]

    def named(self) -> dict[str, FloatArray | IntArray]:
        """Return the errors as arrays (1, ...) of the state, padded to their stored sizes."""
        from xrecal.arrays.online.corrections import N_OWN

        room = REMEMBERED - self.case.size
        return {
            "error_case": np.pad(self.case, (room, 0), constant_values=-1)[np.newaxis],
            "error": np.pad(self.score, ((0, 0), (room, 0)), constant_values=np.nan)[np.newaxis],
            KNOWN_IN_COMMON: np.pad(
                self.predictors[:, N_OWN:], ((room, 0), (0, 0)), constant_values=np.nan
            )[np.newaxis],
        }

    def at_issue(self, cases: Cases, new: NewCases, last: FloatArray) -> FloatArray:
        """Return predictors (T, 8) for new forecasts (1, T), issued when all cases are known.

        ``last`` (2,) has the last mean errors. They are left out if the newest stored error knew
        none, as after an update of a single place: they are not of today then.
        """
        from xrecal.arrays.online.corrections import N_OWN

        size = new.forecasts.loc.shape[1]
        own = predictors(cases, new.forecasts, np.full(size, cases.observations.shape[1]))
        stale = self.case.size > 0 and np.isnan(self.predictors[-1, N_OWN])
        errors = np.tile(np.where(stale, np.nan, last), (size, 1))
        others = np.full(own.shape, np.nan) if new.in_common is None else new.in_common[0]
        return np.column_stack([own, errors, others])

    def plus(
        self,
        case: int,
        said: Mapping[str, FloatArray],
        observed: float,
        own: FloatArray,
        known: int,
    ) -> Errors:
        """Return the stored errors and the errors of one more case.

        ``said`` has J quantiles (1, J) of each expert for this case, and ``own`` (1, 8) has the
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


def parameters_of_errors() -> dict[str, Parameter]:
    """Return the parameters of the state from which corrections learn."""
    from xrecal.arrays.online.in_common import N_COMMON, N_GROUPS

    return {
        "error": Parameter("normal scores of the last cases", dims={WHOSE: 2, ERROR: REMEMBERED}),
        "error_case": Parameter(
            "cases of these normal scores", dims={ERROR: REMEMBERED}, dtype=np.int32, of_slots=True
        ),
        KNOWN_IN_COMMON: Parameter(
            "predictors that places have in common, at the issue of these cases",
            dims={ERROR: REMEMBERED, SHARED: N_COMMON},
        ),
        LAST_IN_COMMON: Parameter(
            "last standardised error of forecast means, mean over all places and over those with "
            "the shortest lead",
            dims={GROUP: N_GROUPS},
            of_all_places=True,
        ),
    }


def known_in_common(cases: Cases, which: IntArray, delay: int | str) -> FloatArray:
    """Return the predictors in common (k, 5) at the issue of cases ``which`` (k,) of a location.

    They are NaN without a first pass over places.
    """
    from xrecal.arrays.online.in_common import N_COMMON, N_GROUPS

    found = np.full((which.size, N_COMMON), np.nan)
    common = None if cases.common is None else cases.common.predictors
    if common is not None:
        ahead = days_ahead(cases.covariates)
        times = times_known(cases.axis, ahead, delay)[which]
        found[:, :N_GROUPS] = common.errors_known_at(times)
        found[:, N_GROUPS:] = common.predictors_at(issue_times(cases.axis, ahead)[which])
    return found


def of_place(cases: Cases, delay: int | str) -> OfPlace:
    """Return the standardised errors and predictors of the cases of a location."""
    from xrecal.arrays.online.in_common import OfPlace, standard_of

    assert cases.forecasts is not None
    ahead, known = days_ahead(cases.covariates), known_of(cases, delay)
    (means,), _ = moments(cases.forecasts)
    errors = (cases.observations[0] - means)[:, np.newaxis]
    own = predictors(cases, cases.forecasts, known, unknown=np.nan)
    return OfPlace(
        float(np.median(ahead)) if ahead.size else 0.0,
        verification_times(cases.axis, ahead),
        standard_of(errors).standardised(errors, np.arange(ahead.size))[:, 0],
        issue_times(cases.axis, ahead),
        standard_of(own).standardised(own, last_observed(cases, known) + 1),
    )


def standardised_predictors(cases: Cases, new: Forecasts, delay: int | str) -> FloatArray:
    """Return standardised predictors (T, 3) of new forecasts (1, T), if all cases are known."""
    from xrecal.arrays.online.in_common import standard_of

    assert cases.forecasts is not None
    known, every = known_of(cases, delay), np.full(new.loc.shape[1], cases.observations.shape[1])
    standard = standard_of(predictors(cases, cases.forecasts, known, unknown=np.nan))
    own = predictors(cases, new, every, unknown=np.nan)
    return standard.standardised(own, last_observed(cases, every) + 1)


def last_observed(cases: Cases, known: IntArray) -> IntArray:
    """Return the positions (T,) of the last observations among the first ``known`` (T,) cases.

    They are -1 if there are none.
    """
    observed = cases.observations[0]
    verified = np.where(np.isfinite(observed), np.arange(observed.size), -1)
    positions: IntArray = np.append(np.maximum.accumulate(verified), -1)[known - 1]
    return positions


def predictors(
    cases: Cases, forecasts: Forecasts, known: IntArray, *, unknown: float = 0.0
) -> FloatArray:
    """Compute predictors of the errors of forecasts (1, T), from values known at their issue.

    ``known`` (T,) is the number of cases that are known at the issue of each forecast.

    Returns
    -------
    array of float64, shape (T, 3)
        Three numbers for each forecast. The first is the forecast mean minus the last known
        observation. The second is the forecast mean minus the mean of the earlier forecast of this
        observation. Both are ``unknown`` if no observation is known. The third is the standard
        deviation of the forecast.
    """
    (means,), (variances,) = moments(forecasts)
    last, observed = last_observed(cases, known), cases.observations[0]
    (means_then,), _ = moments(cases.as_new(last).forecasts)
    departure, change = (
        np.where(last >= 0, means - then, unknown) for then in (observed[last], means_then)
    )
    return np.stack([departure, change, np.sqrt(variances)], axis=-1)
