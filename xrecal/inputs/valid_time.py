"""Times of forecasts: their starts and leads, and the valid times that follow from these."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from .dates import case_axis
from .dims import Labelled
from .leads import Dates, read_leads
from .metadata import standard_name_of
from .roles import CALIBRATION, LEAD, VALID_TIME, are_dates, candidates, is_start, single_leads


def valid_times(
    obj: xr.DataArray, dim: Hashable | None, lead: Hashable, *, name: str
) -> xr.DataArray:
    """Valid time of each forecast over ``dim`` and ``lead``, or ``lead`` alone for a single start.

    That of a coordinate ``valid_time`` (or of the CF standard name ``time``) over both, else the
    start plus the lead. Leads are timedelta64, or numbers with an attribute ``units``; months,
    seasons (of three months) and years are added in the calendar of the start, to the last day of
    a month that is shorter. Starts that are whole numbers are years, with leads in years or of no
    unit.

    Parameters
    ----------
    obj : DataArray
        Forecasts with their coordinates.
    dim : hashable or None
        Dimension of the starts; a coordinate of one date if ``obj`` lacks it.
    lead : hashable
        Dimension of the leads.
    name : str
        What the user calls the forecasts, for messages.

    Returns
    -------
    DataArray
        datetime64, cftime objects, or integers.

    Raises
    ------
    ValueError
        If starts have no dates or leads no units, leads are there twice, or the coordinate has
        other dimensions.
    """
    dims = (dim, lead) if dim in obj.dims else (lead,)
    coords = {d: obj[d].variable for d in dims if d in obj.indexes}
    given = _coordinate(obj, (dim, lead), dims, name=name)
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
        f"{name} starts at {starts[0]} along {dim!r}, which is no date to which leads can be "
        f"added; give dates: {name}.assign_coords({dim}=...)"
    )


@dataclass(frozen=True)
class Times:
    """Starts and leads of forecasts whose labels are no valid times."""

    forecasts: xr.DataArray
    """Forecasts along the lead, also those of a single one."""
    start: Hashable | None
    """Dimension of the starts, or the coordinate of a single one."""
    lead: Hashable
    single: bool
    """True where the given forecasts have no dimension of leads."""
    remark: str
    """Source of the valid times; empty where it is obvious."""
    name: str

    def valid(self) -> xr.DataArray:
        """Valid times over the starts and leads, as :func:`valid_times` returns them."""
        return valid_times(self.forecasts, self.start, self.lead, name=self.name)

    def known(self) -> xr.DataArray | None:
        """Valid times over the dimensions that forecasts have; None where labels do not say."""
        try:
            valid = self.valid()
        except ValueError:
            return None
        return valid.isel({self.lead: 0}, drop=True) if self.single else valid


def read_times(obj: xr.DataArray, dim: Hashable | None, *, name: str) -> Times | None:
    """Read the starts and leads of forecasts.

    Parameters
    ----------
    obj : DataArray
        Forecasts with leads, or of one lead, with their coordinates.
    dim : hashable or None
        Dimension of the cases; None for a single start.
    name : str
        The user's name for the forecasts, for messages.

    Returns
    -------
    Times or None
        None where labels are valid times, or no coordinate ``valid_time`` and no lead says when
        forecasts are valid.

    Raises
    ------
    ValueError
        If there are several dimensions of leads, or several leads as scalar coordinates.
    """
    start = single_start(obj) if dim is None else dim
    lead = lead_to_look_up(obj, dim, name=name)
    if lead is not None:
        unsure = dim is not None and _may_be_either(obj, dim, lead)
        return Times(
            obj, start, lead, False, f"valid time = {dim} + {lead}" if unsure else "", name
        )
    if dim == VALID_TIME:
        return None
    leads = single_leads(obj)
    given = valid_time_of(obj, start)
    if given is not None:
        lead = leads[0] if len(leads) == 1 else "lead"
        same = start in obj.coords and bool((given == obj[start]).all())
        remark = "" if same else f"observations are those at {given.name}"
        return Times(along_lead(obj, dim, lead), start, lead, True, remark, name)
    if not leads or start not in obj.coords or are_valid_times(obj, start, None):
        return None
    if len(leads) > 1:
        raise ValueError(
            f"{name} has several lead times beside its {start!r}, {leads}; drop those that are "
            f"none: {name}.drop_vars({leads[1]!r})"
        )
    remark = f"valid time = {start} + {leads[0]}"
    times = Times(along_lead(obj, dim, leads[0]), start, leads[0], True, remark, name)
    return None if times.known() is None else times


def known_valid_times(obj: xr.DataArray, dim: Hashable) -> xr.DataArray | None:
    """Valid times of forecasts with leads, or of one lead; None where labels do not say."""
    try:
        times = read_times(obj, dim, name="forecast")
    except ValueError:
        return None
    return None if times is None else times.known()


def _named_as_times(
    obj: Labelled, roles: tuple[Hashable | None, ...]
) -> dict[Hashable, xr.DataArray]:
    """Coordinates that are valid times by their name or CF standard name.

    Not a coordinate ``time`` from which a dimension without an index got its labels.
    """
    named = {
        n: c
        for n, c in obj.coords.items()
        if n not in roles and (n in (VALID_TIME, "time") or standard_name_of(c) == "time")
    }
    time = named.get("time")
    if time is not None and time.dims == roles[:1] and time.equals(obj.coords.get(roles[0])):
        del named["time"]
    return named


def _coordinate(
    obj: xr.DataArray, roles: tuple[Hashable | None, ...], dims: tuple[Hashable, ...], *, name: str
) -> Dates | None:
    """Values of a coordinate of valid times over ``dims``, where they are known."""
    over_dims = {n: c for n, c in _named_as_times(obj, roles).items() if set(c.dims) == set(dims)}
    if VALID_TIME in obj.coords and VALID_TIME not in (*over_dims, *roles):
        raise ValueError(
            f"the coordinate {VALID_TIME!r} of {name} is over {list(obj[VALID_TIME].dims)}, but "
            f"each forecast over {list(dims)} has a valid time of its own; give it over those, or "
            f"drop it: {name}.drop_vars({VALID_TIME!r})"
        )
    for coordinate in over_dims.values():
        if coordinate.chunks is None:  # else not known without computing: start plus lead
            values: Dates = coordinate.transpose(*dims).to_numpy()
            if values.dtype.kind in "Miu" or _is_cftime(values):
                return values
    return None


def _starts(obj: xr.DataArray, dim: Hashable | None, *, name: str) -> Dates:
    """Dates or years of the starts along the dimension, or of the one start."""
    labelled = dim in obj.indexes if dim in obj.dims else dim in obj.coords
    values = np.ravel(obj[dim].to_numpy()) if labelled else np.array([])
    if values.size and (values.dtype.kind in "Miu" or _is_cftime(values)):
        return values
    if dim is None:
        raise ValueError(
            f"{name} has lead times, but no coordinate says when it starts; add it: "
            f"{name}.assign_coords(init=DATE)"
        )
    what = f"holds {type(values[0]).__name__}" if values.size else "has no labels"
    raise ValueError(
        f"{name} has lead times, but {dim!r} {what} and not the dates of the starts; add them: "
        f"{name}.assign_coords({dim}=DATES)"
    )


def single_start(obj: Labelled) -> Hashable | None:
    """The scalar coordinate that says when a forecast without a dimension of starts began."""
    scalars = [n for n, c in obj.coords.items() if c.ndim == 0]
    standard = CALIBRATION.standard_names
    by_standard_name = [n for n in scalars if standard_name_of(obj[n]) in standard]
    starts = by_standard_name or [n for n in scalars if CALIBRATION.has(n)]
    return starts[0] if len(starts) == 1 else None


def valid_time_of(
    obj: Labelled, dim: Hashable | None, lead: Hashable | None = None
) -> xr.DataArray | None:
    """The coordinate of valid times over ``dim`` and ``lead``, or part of these; None if none is.

    A single date for all of several starts counts if it is called ``valid_time``.
    """
    named = {
        n: c
        for n, c in _named_as_times(obj, (dim, lead)).items()
        if c.chunks is None and are_dates(c) and {*c.dims} <= {dim, lead}
        if c.ndim or n == VALID_TIME or dim not in obj.dims
        if not bool(c.isnull().all())
    }
    return named.get(VALID_TIME, next(iter(named.values()), None))


def along_lead(obj: xr.DataArray, dim: Hashable | None, lead: Hashable) -> xr.DataArray:
    """Forecasts of one lead, a scalar coordinate, along it as a dimension of length one.

    Their valid times, over ``dim`` or of all of them, are over the lead as well.
    """
    own = [d for d in (dim,) if d in obj.dims]
    times = {
        n: c.expand_dims({d: obj.sizes[d] for d in own if d not in c.dims}).transpose(*own)
        for n, c in _named_as_times(obj, (dim, lead)).items()
        if list(c.dims) == own or (n == VALID_TIME and not c.ndim)
    }
    whole = obj.drop_vars(list(times)).expand_dims(lead)
    return whole.assign_coords({n: c.variable.expand_dims(lead) for n, c in times.items()})


def time_dim(
    observations: xr.DataArray, forecasts: xr.DataArray, dim: Hashable | None
) -> Hashable | None:
    """Dimension of valid times of observations that lack the leads of forecasts; None if none.

    Also that of the name of the forecasts' starts: what verified has no starts.

    Raises
    ------
    ValueError
        If there are several.
    """
    free = [d for d in observations.dims if d == dim or d not in forecasts.dims]
    dated = [d for d in free if _holds_times(observations, d)]
    if len(dated) > 1:
        raise ValueError(
            f"observations have several dimensions of dates, {dated}, but not the lead times of "
            "the forecasts; select, so that one with valid times is left"
        )
    return dated[0] if dated else None


def _holds_times(observations: xr.DataArray, d: Hashable) -> bool:
    named = d == VALID_TIME or d in candidates(observations, CALIBRATION)
    return named or case_axis(observations, d).year is not None


def _is_cftime(values: Dates) -> bool:
    return values.dtype == object and values.size > 0 and hasattr(values.flat[0], "calendar")


def calendar_of(values: Any) -> str | None:
    """Calendar of dates: "datetime64", or that of cftime objects; None for no dates."""
    if values.dtype.kind == "M":
        return "datetime64"
    flat = np.ravel(np.asarray(values))
    return str(flat[0].calendar) if _is_cftime(flat) else None


def lead_dim(obj: xr.DataArray, dim: Hashable | None = None, *, name: str) -> Hashable | None:
    """Dimension of the leads besides ``dim``, that of the cases; None if there is none.

    Raises
    ------
    ValueError
        If there are several candidates.
    """
    dims = [d for d in candidates(obj, LEAD, dim) if d != dim]
    if len(dims) > 1:
        raise ValueError(
            f"{name} has several dimensions of lead times, {dims}; rename those that hold "
            f"something else: {name}.rename({dims[1]}=...), or mark the one that holds leads: "
            f'{name}[{dims[0]!r}].attrs["standard_name"] = "forecast_period"'
        )
    return dims[0] if dims else None


def lead_to_look_up(obj: xr.DataArray, dim: Hashable | None, *, name: str) -> Hashable | None:
    """Dimension of leads that make the valid time, with ``dim`` that of the starts; else None."""
    lead = None if dim == VALID_TIME else lead_dim(obj, dim, name=name)
    return None if are_valid_times(obj, dim, lead) else lead


def are_valid_times(obj: xr.DataArray, dim: Hashable | None, lead: Hashable | None) -> bool:
    """Return whether labels along ``dim`` are valid times rather than starts.

    A coordinate over ``dim`` and ``lead`` decides, of valid times or of starts that differ from
    lead to lead, then the CF standard name of the labels.
    """
    if dim is None or dim not in obj.coords:
        return False
    over_both = {n: c for n, c in obj.coords.items() if {*c.dims} == {dim, lead}}
    if any(n in over_both for n in _named_as_times(obj, (dim, lead))):
        return False
    for name, starts in over_both.items():
        if is_start(name, starts) and starts.chunks is None:
            of_leads = starts.transpose(dim, lead).to_numpy()
            return bool((of_leads != of_leads[:, :1]).any())
    return not is_start(dim, obj[dim]) and standard_name_of(obj[dim]) == "time"


def _may_be_either(obj: xr.DataArray, dim: Hashable, lead: Hashable) -> bool:
    """Return whether labels along ``dim`` may be starts or valid times, so that custom decides."""
    over_both = any({*c.dims} == {dim, lead} for c in obj.coords.values())
    return dim != VALID_TIME and not is_start(dim, obj[dim]) and not over_both
