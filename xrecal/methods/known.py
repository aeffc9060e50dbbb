"""Cases that had verified when a forecast was issued: methods may learn only from such cases."""

from __future__ import annotations

import datetime
from collections.abc import Hashable

import numpy as np
import xarray as xr

from xrecal.arrays.splitting import ROUNDING, measure
from xrecal.inputs.covariates import AHEAD
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.lengths import as_span
from xrecal.typing import FloatArray, IntArray

from .base import Cases
from .covariates import Covariates


def known_cases(axis: CaseAxis, ahead: FloatArray, delay: int | str) -> IntArray:
    """Return, for each case, the number of cases that had verified at its issue.

    Parameters
    ----------
    axis : CaseAxis
        Dates of n cases, in ascending order: all are issue dates, or all are valid times.
    ahead : array of float, shape (n,)
        Number of days between the issue of each case and its valid time; negative if the dates are
        valid times.
    delay : int or str
        Time from the valid time of an observation until it is known: a number of steps in time, or
        a length of time such as "2D".

    Returns
    -------
    array of int, shape (n,)
        For each case, the number of verified cases among the cases with an earlier date.
    """
    n = ahead.size
    steps = axis.steps(n)
    span = as_span(delay, "delay")
    dates = steps.astype(np.float64) if axis.days is None else axis.days
    before = np.searchsorted(dates, dates, side="left")
    late = _late(span)
    if axis.days is not None:
        verified, issued = verification_times(axis, ahead) + late, issue_times(axis, ahead)
        before = np.minimum(before, np.searchsorted(verified, issued + ROUNDING, side="right"))
    return _steps_before(steps, before, span)


def known_of(cases: Cases, delay: int | str) -> IntArray:
    """Return, for each case of a location, how many cases had verified at its issue."""
    return known_cases(cases.axis, days_ahead(cases.covariates), delay)


def days_ahead(covariates: Covariates) -> FloatArray:
    """Return the days between issue and valid time of each forecast (n,) of a location.

    They are negative if labels are valid times.
    """
    ahead: FloatArray = covariates.values[0, :, covariates.names.index(AHEAD)]
    return ahead


def issue_times(axis: CaseAxis, ahead: FloatArray) -> FloatArray:
    """Return the times (n,) of issue, in days, or in steps for cases without dates."""
    if axis.days is None:
        return axis.steps(ahead.size).astype(np.float64)
    times: FloatArray = axis.days + np.minimum(ahead, 0.0)
    return times


def verification_times(axis: CaseAxis, ahead: FloatArray) -> FloatArray:
    """Return the times (n,) at which the cases of a location verify, in ascending order.

    Times are in days, or in steps for cases without dates, so times of different locations can be
    compared. ``ahead`` is as for :func:`known_cases`.
    """
    if axis.days is None:
        return axis.steps(ahead.size).astype(np.float64)
    times: FloatArray = np.maximum.accumulate(axis.days + np.maximum(ahead, 0.0))
    return times


def times_known(axis: CaseAxis, ahead: FloatArray, delay: int | str) -> FloatArray:
    """Return, for each case, the time up to which observations are known when it is issued.

    The observations may be of any location. The times (n,) compare with those of
    :func:`verification_times`; the arguments are as for :func:`known_cases`. If labels do not give
    the days to the valid time, so that ``ahead`` is 0, no case of the same date is known.
    """
    span, steps, issued = as_span(delay, "delay"), axis.steps(ahead.size), issue_times(axis, ahead)
    issued = issued + np.where(ahead == 0.0, -ROUNDING, ROUNDING)
    if not isinstance(span, int):
        return issued - _late(span)
    before = np.searchsorted(steps, steps - span, side="right") - 1
    return np.where(before >= 0, issued[before], -np.inf)


def _steps_before(steps: IntArray, counts: IntArray, span: object) -> IntArray:
    """Reduce counts of known cases if the delay ``span`` is a number of steps."""
    if isinstance(span, int) and span > 0:
        newest = np.where(counts > 0, steps[np.maximum(counts - 1, 0)] - span, -1)
        counts = np.searchsorted(steps, newest, side="right")
    return counts.astype(np.int64)


def last_known(axis: CaseAxis, starts: FloatArray, delay: int | str) -> IntArray:
    """Return, for each start, the position of the last observation that is known at the start.

    Parameters
    ----------
    axis : CaseAxis
        Dates of n observations, in ascending order.
    starts : array of float, shape (k,)
        Dates of the starts in days, counted as in ``axis``.
    delay : int or str
        Delay of observations, as for :func:`known_cases`. 0 means that an observation is known at
        its own date.

    Returns
    -------
    array of int, shape (k,)
        Positions among the n observations; -1 if no observation is known.
    """
    assert axis.days is not None
    span = as_span(delay, "delay")
    counts = np.searchsorted(axis.days + _late(span), starts + ROUNDING, side="right")
    return _steps_before(axis.steps(axis.days.size), counts, span) - 1


def _late(span: object) -> float:
    """Return a length of time in days; 0 if the length is a number of steps."""
    return span / datetime.timedelta(days=1) if isinstance(span, datetime.timedelta) else 0.0


def case_that_knows_late(
    axis: CaseAxis, ahead: xr.DataArray, delay: int | str, dim: Hashable
) -> xr.DataArray:
    """Return, for each case, the position of the first case issued after its observation was known.

    Parameters
    ----------
    axis, delay
        Dates of n cases and delay of observations, as for :func:`known_cases`.
    ahead : DataArray
        Days from issue to valid time, over the n cases and optionally their leads.
    dim : hashable
        Name of the dimension of the cases.

    Returns
    -------
    DataArray
        Positions of later cases as int64, over the dimensions of ``ahead``. The position is n if
        none of the n cases was issued after the observation was known.
    """
    values = ahead.transpose(dim, ...).to_numpy()
    found = np.empty(values.shape, np.int64)
    for lead in np.ndindex(values.shape[1:]):
        counts = known_cases(axis, values[:, *lead], delay)
        first = np.maximum.accumulate(counts)
        found[:, *lead] = np.searchsorted(first, np.arange(first.size), side="right")
    bare = ahead.drop_vars(list(ahead.coords)).transpose(dim, ...)
    return bare.copy(data=found)


def has_passed(axis: CaseAxis, first: int, last: int, length: int | str, n: int) -> bool:
    """Return whether the cases ``first`` and ``last`` of n cases are at least ``length`` apart."""
    along = measure("refit", as_span(length, "refit"), n, axis.days)
    position = axis.steps(n) if isinstance(length, int) else along.position
    return bool(position[last] - position[first] >= along.length - ROUNDING)


def first_due(
    axis: CaseAxis, verified: IntArray, known: IntArray, fitted: int, refit: int | str
) -> int:
    """Return the position, in ``verified``, of the first case after which a refit is due.

    A refit of the experts is due after a case under two conditions. First, the time ``refit`` has
    passed since ``fitted``, the last case of the last fit. Second, the forecast of the case came
    from the experts of the last fit; then the forecasts of all later cases came from these experts
    too. If no refit is due, the result is the number of verified cases. ``known`` (n,) has, for
    each case, the number of cases that had verified at its issue.
    """
    for place, case in enumerate(verified):
        passed = has_passed(axis, fitted, int(case), refit, known.size)
        if passed and known[case] > fitted:
            return place
    return verified.size
