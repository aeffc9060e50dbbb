"""Look up the observations of forecasts with leads at the valid times of the forecasts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace
from xrecal.chunks.run import Named, run
from xrecal.chunks.warnings import warn
from xrecal.typing import IntArray

from .dates import are_dates, calendar_of
from .dims import at_scalars, if_days_agree, require_unique
from .forms import Form
from .leads import (
    MONTHS,
    SECONDS,
    MatchedLeads,
    equal_labels,
    matched_leads,
    read_leads,
    seconds_of,
    time_unit,
)
from .metadata import VALID_TIME
from .roles import Roles, is_lead, is_start
from .valid_time import Times, time_dim

OBSERVED_AT = "observed_at"
"""Name that tasks use for the dimension of observation times; forecast times have another name."""

LONGEST_MONTH = 31 * SECONDS["day"]


def look_up(
    times: Times, forecasts: xr.DataArray, observations: xr.DataArray
) -> tuple[xr.DataArray, int, MatchedLeads | None, str | None] | None:
    """Look up the observation of each forecast at its valid time.

    Parameters
    ----------
    times : Times
        Starts and leads of the forecasts.
    forecasts : DataArray
        Forecasts without members.
    observations : DataArray
        Observations over valid time. Dask arrays stay lazy, in one chunk along starts and leads.

    Returns
    -------
    tuple or None
        The tuple has four items. 1. The observation of each forecast, NaN if missing. 2. The number
        of forecasts with an observation, at the lead where this number is largest. 3. This number
        at each lead, or None if leads are not a dimension. 4. A remark on valid times, or None. If
        the caller must match observations by label, the function returns None instead of the tuple.

    Raises
    ------
    ValueError
        If observation times occur twice or have another calendar, if no valid time has an
        observation, or if valid times are unknown.
    """
    lead = times.lead
    if lead in observations.dims and not times.single:
        return None
    time = time_dim(Roles(observations), times.roles.obj, times.start)
    if time is None:
        return None
    if others := [d for d in observations.dims if d != time]:
        names = (times.name, "observations")
        observations = at_scalars(observations, forecasts, names=names, dims=others)
    if times.single and _are_at_starts(times, observations, time):
        return None
    observed, counts = _at_valid_times(times, at_own_valid_times(observations, time), time)
    n_matched, remark = int(counts.max()), times.remark or None
    if times.single:
        return observed.isel({lead: 0}, drop=True), n_matched, None, remark
    return observed, n_matched, matched_leads(forecasts, lead, counts, dated=True), remark


def at_own_valid_times(observations: xr.DataArray, time: Hashable) -> xr.DataArray:
    """Return observations with their valid times as labels along ``time``.

    Observations may be an analysis of step 0, or a short forecast with a coordinate ``valid_time``.

    Raises
    ------
    ValueError
        If observations have a lead other than 0, and no coordinate ``valid_time``.
    """
    given = observations.coords.get(VALID_TIME)
    if given is not None and given.dims == (time,) and are_dates(given):
        known = given.chunks is None and not bool(given.isnull().any())
        return observations.assign_coords({time: given.variable}) if known else observations
    for lead in Roles(observations).single_leads:
        try:
            leads = read_leads(observations, lead, name="observations")
        except ValueError:  # leads are missing, or have no unit of time
            continue
        if leads.kind != "number" and leads.values[0].astype(np.int64) != 0:
            raise ValueError(
                f"observations have the lead {lead!r}, {observations[lead].to_numpy()}, so labels "
                f"along {time!r} may be starts or valid times; give their valid times: "
                f"observations.assign_coords({VALID_TIME}=...), or drop it: "
                f"observations.drop_vars({lead!r})"
            )
    return observations


def _are_at_starts(times: Times, observations: xr.DataArray, time: Hashable) -> bool:
    """Return whether labels of observations are the starts of forecasts of one lead.

    Labels are starts if the observations have the lead of the forecasts. Labels are also starts
    under three conditions. Their name means starts, or the forecasts have no coordinate
    ``valid_time``. Some label is a start of the forecasts. No label is a valid time of the
    forecasts.

    Raises
    ------
    ValueError
        If the name of the labels means starts, but some labels are starts and some are valid times
        of the forecasts.
    """
    start, lead, along = times.start, times.lead, times.roles.obj
    own = observations.coords.get(VALID_TIME)
    if time != start or (own is not None and own.dims == (time,)):
        return False
    if not times.remark:
        return True
    same = lead in along.coords and lead in Roles(observations).single_leads
    if same and equal_labels(observations[lead], along[lead][0]):
        return True
    if start not in observations.indexes:
        return False
    labels = observations.indexes[start]
    valid, starts = times.valid().to_numpy().ravel(), np.ravel(along[start].to_numpy())
    at_valid, at_start = (labels.isin(dates).any() for dates in (valid, starts))
    if not at_start or not (is_start(start, observations[start]) or VALID_TIME not in along.coords):
        return False
    if at_valid and is_start(start, observations[start]):
        raise ValueError(
            f"labels of observations along {start!r} may be their own dates or the starts of "
            f"{times.name}, {along[lead].to_numpy()[0] if lead in along.coords else 'some time'} "
            f"earlier. Use observations.rename({start}='time') if they are their own dates, or "
            f"observations.assign_coords({VALID_TIME}=...) if they are starts"
        )
    return not at_valid


def _at_valid_times(
    times: Times, observations: xr.DataArray, time: Hashable
) -> tuple[xr.DataArray, IntArray]:
    """Return observations over starts and leads, NaN if missing, and their number at each lead."""
    if time not in observations.indexes:
        raise ValueError(
            f"observations have no labels along {time!r} to match by; add the coordinate"
        )
    forecasts, dates = times.roles.obj, observations.indexes[time]
    require_unique(dates, time, "observations")
    if times.start in forecasts.indexes:
        require_unique(forecasts.indexes[times.start], times.start, times.name)
    valid = times.valid()
    wanted = valid.to_numpy()
    _require_same_calendar(wanted, dates, time, name=times.name)
    place = np.asarray(dates.get_indexer(wanted.ravel())).reshape(wanted.shape)
    counts = (place >= 0).reshape(-1, wanted.shape[-1]).sum(0)
    _require_matches(int(counts.sum()), wanted, dates, time, name=times.name)
    observed = taken_at(observations, forecasts, time, place, valid.dims)
    labels = {d: forecasts[d] for d in valid.dims if d in forecasts.indexes}
    return observed.assign_coords(labels), counts


def taken_at(
    observations: xr.DataArray,
    forecasts: xr.DataArray,
    time: Hashable,
    place: IntArray,
    dims: tuple[Hashable, ...],
) -> xr.DataArray:
    """Return observations at positions over ``dims``; NaN at the position -1."""
    bare = observations.drop_vars([c for c in observations.coords if c not in observations.indexes])
    if len(bare.variable.chunksizes.get(time, ())) > 1:
        # All locations, whole in time, may exceed the memory: chunk them like the forecasts.
        cut = forecasts.variable.chunksizes
        others: dict[Hashable, Any] = {d: cut.get(d, "auto") for d in bare.dims if d != time}
        bare = bare.chunk({**others, time: -1})
    bare = bare.drop_vars([time]).rename({time: OBSERVED_AT})
    taken = run(
        _TakeTask(place),
        {"given": {"observed": (bare, (OBSERVED_AT,))}},
        {"taken": (dict(zip(dims, place.shape, strict=True)), observations.dtype)},
        what="the matching of observations",
    )
    return taken["taken"].assign_attrs(observations.attrs).rename(observations.name)


@dataclass(frozen=True)
class _TakeTask:
    """Task that selects observations (L, ...) at positions in the time series of L locations."""

    place: IntArray
    on_device = True

    def __call__(self, given: Named) -> Named:
        place = namespace(given["observed"]).asarray(self.place)
        taken = given["observed"].take(np.maximum(place, 0), axis=-1)
        missing = place < 0
        return {"taken": np.where(missing, np.nan, taken) if missing.any() else taken}


def _require_matches(
    matched: int, wanted: npt.NDArray[Any], times: Any, time: Hashable, *, name: str
) -> None:
    """Raise ValueError if no valid time has an observation; warn if most have no observation."""
    if matched == 0:
        raise ValueError(
            f"no valid time of {name} (first: {first_of(wanted.ravel())}) has an observation along "
            f"{time!r} (first: {first_of(times)})"
            + if_days_agree(wanted.ravel(), times.to_numpy(), time)
        )
    if matched < wanted.size / 2:
        warn(
            f"only {matched} of {wanted.size} forecasts over starts and leads have an observation "
            f"at their valid time along {time!r}"
        )


def first_of(dates: Any) -> str:
    """Return the first three dates as text."""
    texts = (str(date).replace("T", " ").partition(".")[0] for date in dates[:3])
    return ", ".join(text.removesuffix(" 00:00:00") for text in texts) or "none"


def _require_same_calendar(
    wanted: npt.NDArray[Any], times: Any, time: Hashable, *, name: str
) -> None:
    """Raise ValueError unless valid times and labels of observations have the same calendar."""
    if not times.size:
        return
    mine, theirs = calendar_of(wanted), calendar_of(times)
    if mine == theirs:
        return
    if mine is None:
        remedy = f"for years use observations.assign_coords({time}=observations.{time}.dt.year)"
    elif theirs is None:
        remedy = f"give them dates: observations.assign_coords({time}=DATES)"
    else:
        dates = mine == "datetime64"
        on = ", align_on='date'" if "360_day" in (mine, theirs) else ""
        remedy = (
            f"use observations.convert_calendar({('standard' if dates else mine)!r}, dim={time!r}, "
            f"use_cftime={not dates}{on})"
        )
    raise ValueError(
        f"valid times of {name} are {mine or wanted.dtype} (first: "
        f"{first_of(wanted.ravel()[:1])}), but labels of observations along {time!r} are "
        f"{theirs or times.dtype} (first: {first_of(times[:1])}); {remedy}"
    )


def longest_lead(form: Form) -> float:
    """Return the longest lead in days; 0 without leads, or if leads have no unit of time."""
    labels = {d: part[d] for part in form.parts.values() for d in part.indexes}
    longest = 0.0
    for leads in (label for d, label in labels.items() if d in form.dims and is_lead(d, label)):
        seconds = seconds_of(leads)
        if seconds is None:
            months = MONTHS.get(time_unit(leads.attrs.get("units")) or "", 0)
            seconds = leads.to_numpy().astype(np.float64) * months * LONGEST_MONTH
        longest = max(longest, float(np.max(seconds, initial=0.0)) / SECONDS["day"])
    return longest
