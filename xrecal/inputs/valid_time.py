"""Times of forecasts: starts, leads, and the valid times that follow from them."""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from xrecal.chunks.warnings import warn_once

from .dates import are_dates, calendar_of, case_axis
from .dims import Labels, text_of
from .leads import MONTHS, Dates, Leads, read_leads
from .metadata import VALID_TIME, standard_name_of
from .roles import Roles


def valid_times(
    roles: Roles[xr.DataArray], dim: Hashable | None, lead: Hashable, *, name: str
) -> xr.DataArray:
    """Return the valid time of each forecast, over starts and leads or, for one start, over leads.

    Valid times come from a coordinate over these dimensions that is called ``valid_time`` or
    ``time``, or has the CF standard name ``time``. Without such a coordinate, they are start plus
    lead. Leads are timedelta64, or numbers with an attribute ``units``. The function adds months,
    seasons (three months) and years in the calendar of the start; if the resulting month lacks the
    day, it takes the last day. Integer starts are years, and their leads are in years or without a
    unit.

    Parameters
    ----------
    roles : Roles
        Forecasts with their coordinates.
    dim : hashable or None
        Dimension of the starts, or the coordinate of a single start.
    lead : hashable
        Dimension of the leads.
    name : str
        The user's name for the forecasts, for messages.

    Returns
    -------
    DataArray
        Valid times as datetime64, as cftime objects, or as integers (years).

    Raises
    ------
    ValueError
        If starts have no dates, leads have no units or occur twice, or the coordinate
        ``valid_time`` has other dimensions.
    """
    obj = roles.obj
    dims = (dim, lead) if dim in obj.dims else (lead,)
    coords = {d: obj[d].variable for d in dims if d in obj.indexes}
    given = _coordinate(roles, dim, lead, name=name)
    if given is not None:
        return xr.DataArray(given, coords, dims)
    leads = read_leads(obj, lead, name=name)
    starts = _starts(obj, dim, name=name)
    dates = leads.after(starts)
    if dates is not None:
        return xr.DataArray(dates if dim in obj.dims else dates[0], coords, dims)
    if leads.kind == "number":
        raise ValueError(
            f"lead times along {lead!r} of {name} have no units; set them: "
            f'{name}.{lead}.attrs["units"] = "days"'
        )
    raise ValueError(
        f"{name} starts at {starts[0]} along {dim!r}, which is not a date to which leads can be "
        f"added; give dates: {name}.assign_coords({dim}=...)"
    )


@dataclass(frozen=True)
class Times:
    """Starts and leads of forecasts whose labels are not valid times."""

    roles: Roles[xr.DataArray]
    """Forecasts with a dimension of leads; it has length one for a single lead."""
    start: Hashable | None
    """Dimension of the starts, or the coordinate of a single start."""
    lead: Hashable
    single: bool
    """True if the given forecasts have no dimension of leads."""
    remark: str
    """Text on where valid times come from; empty if this is obvious."""
    name: str

    def valid(self) -> xr.DataArray:
        """Return the valid times over starts and leads, as :func:`valid_times` does."""
        return valid_times(self.roles, self.start, self.lead, name=self.name)

    def known(self) -> xr.DataArray | None:
        """Return valid times over the dimensions of the forecasts; None if they are unknown."""
        try:
            valid = self.valid()
        except ValueError:
            return None
        return valid.isel({self.lead: 0}, drop=True) if self.single else valid


def read_times(roles: Roles[xr.DataArray], dim: Hashable | None, *, name: str) -> Times | None:
    """Read the starts and leads of forecasts.

    Parameters
    ----------
    roles : Roles
        Forecasts of several leads or of one lead, with their coordinates.
    dim : hashable or None
        Dimension of the cases; None for a single start.
    name : str
        The user's name for the forecasts, for messages.

    Returns
    -------
    Times or None
        None if labels are valid times, or if there is neither a coordinate ``valid_time`` nor a
        lead.

    Raises
    ------
    ValueError
        If there are several dimensions of leads, or several leads as scalar coordinates.
    """
    obj = roles.obj
    start = roles.single_start if dim is None else dim
    lead = lead_to_look_up(roles, dim, name=name)
    if lead is not None:
        # labels that may be starts or valid times: convention decides
        over_both = any({*c.dims} == {dim, lead} for c in obj.coords.values())
        unsure = dim not in (None, VALID_TIME) and not (over_both or roles.is_start(dim))
        remark = f"valid time = {dim} + {lead}" if unsure else ""
        return Times(roles, start, lead, False, remark, name)
    if dim == VALID_TIME:
        return None
    leads = roles.single_leads
    given = valid_time_of(roles, start)
    if given is not None:
        lead = leads[0] if len(leads) == 1 else "lead"
        same = start in obj.coords and bool((given == obj[start]).all())
        remark = "" if same else f"observations are those at {given.name}"
        return Times(along_lead(roles, dim, lead), start, lead, True, remark, name)
    if not leads or start not in obj.coords or are_valid_times(roles, start, None):
        return None
    if len(leads) > 1:
        raise ValueError(
            f"{name} has several lead times for its {start!r}, {leads}; drop those that are not "
            f"lead times: {name}.drop_vars({leads[1]!r})"
        )
    remark = f"valid time = {start} + {leads[0]}"
    times = Times(along_lead(roles, dim, leads[0]), start, leads[0], True, remark, name)
    return None if times.known() is None else times


def known_valid_times(roles: Roles[xr.DataArray], dim: Hashable) -> xr.DataArray | None:
    """Return the valid times of forecasts with leads or a single lead; None if they are unknown."""
    try:
        times = read_times(roles, dim, name="forecast")
    except ValueError:
        return None
    return None if times is None else times.known()


def _times_beside(
    roles: Roles[Labels], dim: Hashable | None, lead: Hashable | None
) -> dict[Hashable, xr.DataArray]:
    """Return the coordinates that hold valid times by their name or CF standard name.

    The result leaves out a coordinate ``time`` that only repeats the labels along ``dim``.
    """
    named = {n: c for n, c in roles.times.items() if n not in (dim, lead)}
    time = named.get("time")
    coords = roles.obj.coords
    if time is not None and time.dims == (dim,) and dim in coords and time.equals(coords[dim]):
        del named["time"]
    return named


def _coordinate(
    roles: Roles[xr.DataArray], dim: Hashable | None, lead: Hashable, *, name: str
) -> Dates | None:
    """Return the values of a coordinate of valid times over ``dim`` and ``lead``, or None."""
    obj = roles.obj
    dims = (dim, lead) if dim in obj.dims else (lead,)
    found = _times_beside(roles, dim, lead)
    over_dims = {n: c for n, c in found.items() if set(c.dims) == set(dims)}
    if VALID_TIME in obj.coords and VALID_TIME not in (*over_dims, dim, lead):
        raise ValueError(
            f"the coordinate {VALID_TIME!r} of {name} is over {list(obj[VALID_TIME].dims)}, but "
            f"each forecast over {list(dims)} has a valid time of its own; give the coordinate "
            f"these dimensions, or drop it: {name}.drop_vars({VALID_TIME!r})"
        )
    for coordinate in over_dims.values():
        if coordinate.chunks is None:  # a lazy one is replaced by start plus lead
            values: Dates = coordinate.transpose(*dims).to_numpy()
            if values.dtype.kind in "iu" or calendar_of(values) is not None:
                return values
    return None


def _starts(obj: xr.DataArray, dim: Hashable | None, *, name: str) -> Dates:
    """Return the dates or years of the starts along ``dim``, or of the single start."""
    labelled = dim in obj.indexes if dim in obj.dims else dim in obj.coords
    values = np.ravel(obj[dim].to_numpy()) if labelled else np.array([])
    if values.size and (values.dtype.kind in "iu" or calendar_of(values) is not None):
        return values
    if dim is None:
        raise ValueError(
            f"{name} has lead times, but no coordinate with its start; add it: "
            f"{name}.assign_coords(init=DATE)"
        )
    what = f"holds {type(values[0]).__name__}" if values.size else "has no labels"
    raise ValueError(
        f"{name} has lead times, but {dim!r} {what}, and no dates of the starts; add them: "
        f"{name}.assign_coords({dim}=DATES)"
    )


def valid_time_of(
    roles: Roles[Labels], dim: Hashable | None, lead: Hashable | None = None
) -> xr.DataArray | None:
    """Return the coordinate of valid times over ``dim``, ``lead`` or both; None without one.

    If there are several starts, a scalar date is their valid time only if it is called
    ``valid_time``.
    """
    named = {
        n: c
        for n, c in _times_beside(roles, dim, lead).items()
        if c.chunks is None and are_dates(c) and {*c.dims} <= {dim, lead}
        if c.ndim or n == VALID_TIME or dim not in roles.obj.dims
        if not bool(c.isnull().all())
    }
    return named.get(VALID_TIME, next(iter(named.values()), None))


def along_lead(
    roles: Roles[xr.DataArray], dim: Hashable | None, lead: Hashable
) -> Roles[xr.DataArray]:
    """Turn the scalar coordinate with the lead of forecasts into a dimension of length one.

    Coordinates of valid times that are over ``dim``, or common to all forecasts, get this dimension
    too.
    """
    obj = roles.obj
    own = [d for d in (dim,) if d in obj.dims]
    times = {
        n: c.expand_dims({d: obj.sizes[d] for d in own if d not in c.dims}).transpose(*own)
        for n, c in _times_beside(roles, dim, lead).items()
        if list(c.dims) == own or (n == VALID_TIME and not c.ndim)
    }
    whole = obj.drop_vars(list(times)).expand_dims(lead)
    along = {n: c.variable.expand_dims(lead) for n, c in times.items()}
    return replace(roles, obj=whole.assign_coords(along))


def time_dim(
    observations: Roles[xr.DataArray], forecasts: xr.DataArray, dim: Hashable | None
) -> Hashable | None:
    """Return the dimension of valid times, for observations without leads; None if there is none.

    This dimension may have the same name as the dimension of the starts of forecasts.

    Raises
    ------
    ValueError
        If there are several such dimensions.
    """
    dated = [
        d
        for d in observations.obj.dims
        if d == dim or d not in forecasts.dims
        if d == VALID_TIME
        or d in observations.cases
        or case_axis(observations.obj, d).year is not None
    ]
    if len(dated) > 1:
        raise ValueError(
            f"observations have several dimensions of dates, {dated}, but not the lead times of "
            "the forecasts; keep one dimension of dates, that of valid times"
        )
    return dated[0] if dated else None


def lead_dim(roles: Roles[Labels], dim: Hashable | None = None, *, name: str) -> Hashable | None:
    """Return the dimension of the leads other than ``dim``, the case dimension; None without leads.

    Raises
    ------
    ValueError
        If there are several candidates.
    """
    dims = roles.leads_beside(dim)
    if len(dims) > 1:
        raise ValueError(
            f"{name} has several dimensions of lead times, {dims}; rename those that hold "
            f"something else: {name}.rename({dims[1]}=...), or mark the dimension that holds "
            f'leads: {name}[{dims[0]!r}].attrs["standard_name"] = "forecast_period"'
        )
    return dims[0] if dims else None


def lead_to_look_up(roles: Roles[Labels], dim: Hashable | None, *, name: str) -> Hashable | None:
    """Return the dimension of the leads; None without leads.

    The result is also None if labels along ``dim`` are valid times, not starts.
    """
    lead = None if dim == VALID_TIME else lead_dim(roles, dim, name=name)
    return None if are_valid_times(roles, dim, lead) else lead


def are_valid_times(roles: Roles[Labels], dim: Hashable | None, lead: Hashable | None) -> bool:
    """Return whether labels along ``dim`` are valid times rather than starts.

    If a coordinate over ``dim`` and ``lead`` holds valid times, the labels are starts. If such a
    coordinate holds starts, the labels are valid times if the starts differ from lead to lead, and
    starts otherwise. Without such a coordinate, the CF standard name and the name of the labels
    decide.
    """
    obj = roles.obj
    if dim is None or dim not in obj.coords:
        return False
    over_both = {n: c for n, c in obj.coords.items() if {*c.dims} == {dim, lead}}
    if any(n in over_both for n in _times_beside(roles, dim, lead)):
        return False
    for name, starts in over_both.items():
        if roles.is_start(name) and starts.chunks is None:
            of_leads = starts.transpose(dim, lead).to_numpy()
            return bool((of_leads != of_leads[:, :1]).any())
    return not roles.is_start(dim) and standard_name_of(obj[dim]) == "time"


def agreeing_times(roles: Roles[Labels], *, name: str) -> dict[Hashable, Any]:
    """Return coordinates that make leads and valid times agree; empty if nothing has to change.

    Leads without labels get the lengths of time from starts to valid times. If valid times
    contradict starts plus leads, these sums replace the valid times, and the function warns.
    """
    obj, cases, leads = roles.obj, roles.cases, roles.leads or roles.single_leads
    dim = cases[0] if cases else roles.single_start
    if len(cases) > 1 or len(leads) != 1 or dim not in obj.coords:
        return {}
    (lead,) = leads
    given, starts = valid_time_of(roles, dim, lead), _bare(obj.coords[dim])
    if given is None or not are_dates(starts):
        return {}
    valid = _bare(given)
    if calendar_of(valid.to_numpy()) != calendar_of(starts.to_numpy()):
        return {}
    if lead not in obj.coords:
        lengths = _lengths(valid, starts, lead) if lead in valid.dims and valid.size else None
        return {} if lengths is None else {lead: (lead, lengths)}
    try:
        spans = read_leads(obj, lead, name=name)
    except ValueError:  # unreadable leads
        return {}
    computed = spans.after(np.ravel(starts.to_numpy()))
    if computed is None:
        return {}
    at = {d: slice(None) if d in obj.dims else 0 for d in (dim, lead)}
    later = xr.DataArray(computed, dims=[dim, lead]).isel(at)
    valid = valid.broadcast_like(later).transpose(*later.dims)
    if bool((valid == starts).all()) or not _contradict(valid, later, spans):
        return {}
    first = [
        text_of(np.ravel(labels.to_numpy())[0]).replace("T00:00:00.000000000", "")
        for labels in (starts, later, valid, obj[lead])
    ]
    warn_once(
        f"{given.name} of {name} contradicts its starts and leads: {lead} {first[3]} "
        f"{obj[lead].attrs.get('units', '')} after {first[0]} is {first[1]}, but {given.name} is "
        f"{first[2]}. xrecal uses starts and leads. If {given.name} is right, use "
        f"{name}.drop_vars({lead!r})".replace("  ", " ")
    )
    return {given.name: later.assign_attrs(given.attrs).variable}


def _lengths(valid: xr.DataArray, starts: xr.DataArray, lead: Hashable) -> Any:
    """Return the length of time from start to valid time of each lead.

    The result is None if lengths differ between starts or are equal for two leads, or if leads are
    whole months, which differ in length.
    """
    apart = (valid - starts).transpose(lead, ...)
    spans = apart.to_numpy().reshape(apart.sizes[lead], -1)
    each: Any = spans[:, 0]
    whole_months = bool((valid.dt.day == starts.dt.day).all())
    differ = (spans != each[:, np.newaxis]).any() or len({*each}) < len(each)
    return None if whole_months or differ else each


def _contradict(valid: xr.DataArray, later: xr.DataArray, leads: Leads) -> bool:
    """Return whether valid times contradict starts plus leads.

    A difference of a day or more is a contradiction. For leads in months, seasons or years, it is a
    difference of at least one month, season or year.
    """
    if leads.kind == "month":
        months = [12 * array.dt.year + array.dt.month for array in (valid, later)]
        return bool((abs(months[0] - months[1]) >= MONTHS[leads.unit]).any())
    apart = abs(valid - later)
    day: Any = np.timedelta64(1, "D") if apart.dtype.kind == "m" else datetime.timedelta(days=1)
    return bool((apart >= day).any())


def _bare(coordinate: xr.DataArray) -> xr.DataArray:
    return coordinate.drop_vars(list(coordinate.coords))
