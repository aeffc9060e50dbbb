"""The valid time of each forecast over starts and leads: when what it predicts happens."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import xarray as xr

from .dims import CALIBRATION, candidates, case_axis
from .leads import Dates, lead_dim, read_leads

VALID_TIME = "valid_time"


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


def known_valid_times(obj: xr.DataArray, dim: Hashable) -> xr.DataArray | None:
    """Valid times where there are leads, and labels tell them; else None."""
    try:
        lead = lead_to_look_up(obj, dim, name="forecast")
        return None if lead is None else valid_times(obj, dim, lead, name="forecast")
    except ValueError:
        return None


def lead_to_look_up(obj: xr.DataArray, dim: Hashable | None, *, name: str) -> Hashable | None:
    """Dimension of leads that make the valid time, with ``dim`` that of the starts; else None."""
    lead = None if dim == VALID_TIME else lead_dim(obj, name=name)
    return None if lead == dim else lead


def happens_later(
    forecasts: xr.DataArray, observations: xr.DataArray, dim: Hashable | None
) -> Hashable | None:
    """Dimension of valid times of observations, for cases that a coordinate dates otherwise.

    Forecasts over starts of one lead, say, whose coordinate ``valid_time`` is over the starts.
    None where labels are to be matched: as both have the same, or as observations have starts.
    """
    coords = forecasts.coords
    if VALID_TIME not in coords or dim == VALID_TIME or coords[VALID_TIME].dims != (dim,):
        return None
    if VALID_TIME in observations.coords or coords[VALID_TIME].chunks is not None:
        return None
    values = coords[VALID_TIME].to_numpy()
    if values.dtype.kind != "M" and not _is_cftime(values):
        return None
    if dim in forecasts.indexes and np.array_equal(forecasts.indexes[dim].to_numpy(), values):
        return None
    time = time_dim(observations, forecasts, dim)
    return None if time == dim and dim != "time" else time


def single_start(obj: xr.DataArray) -> Hashable | None:
    """The scalar coordinate that says when a forecast without a dimension of starts began."""
    scalars = [n for n, c in obj.coords.items() if c.ndim == 0]
    standard = CALIBRATION.standard_names
    by_standard_name = [n for n in scalars if obj[n].attrs.get("standard_name") in standard]
    found = by_standard_name or [n for n in scalars if n in CALIBRATION.names]
    return found[0] if len(found) == 1 else None


def along_lead(obj: xr.DataArray, dim: Hashable, lead: Hashable) -> xr.DataArray:
    """Forecasts of one lead, a scalar coordinate, along it as a dimension of length one.

    Their valid times, over ``dim`` or of a single forecast, are over the lead as well.
    """
    own = [d for d in (dim,) if d in obj.dims]
    times = [n for n, c in _named_as_times(obj, (dim, lead)).items() if list(c.dims) == own]
    whole = obj.expand_dims(lead)
    return whole.assign_coords({n: whole[n].expand_dims(lead) for n in times})


def _named_as_times(
    obj: xr.DataArray, roles: tuple[Hashable | None, ...]
) -> dict[Hashable, xr.DataArray]:
    """Coordinates that are valid times by their name or CF standard name."""
    return {
        n: c
        for n, c in obj.coords.items()
        if n not in roles and (n in (VALID_TIME, "time") or c.attrs.get("standard_name") == "time")
    }


def _coordinate(
    obj: xr.DataArray, roles: tuple[Hashable | None, ...], dims: tuple[Hashable, ...], *, name: str
) -> Dates | None:
    """Values of a coordinate of valid times over ``dims``, where they are known."""
    found = {n: c for n, c in _named_as_times(obj, roles).items() if set(c.dims) == set(dims)}
    if VALID_TIME in obj.coords and VALID_TIME not in (*found, *roles):
        raise ValueError(
            f"the coordinate {VALID_TIME!r} of {name} is over {list(obj[VALID_TIME].dims)}, but "
            f"each forecast over {list(dims)} has a valid time of its own; give it over those, or "
            f"drop it: {name}.drop_vars({VALID_TIME!r})"
        )
    for coordinate in found.values():
        if coordinate.chunks is None:  # else not known without computing: start plus lead
            values: Dates = coordinate.transpose(*dims).to_numpy()
            if values.dtype.kind in "Miu" or _is_cftime(values):
                return values
    return None


def _starts(obj: xr.DataArray, dim: Hashable | None, *, name: str) -> Dates:
    """Dates or years of the starts, as they stand along the dimension or at the one start."""
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


def _is_cftime(values: Dates) -> bool:
    return values.dtype == object and values.size > 0 and hasattr(values.flat[0], "calendar")


def calendar_of(values: Any) -> str | None:
    """How dates count: "datetime64", or the calendar of cftime objects; None for no dates."""
    if values.dtype.kind == "M":
        return "datetime64"
    flat = np.ravel(np.asarray(values))
    return str(flat[0].calendar) if _is_cftime(flat) else None


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
    found = [d for d in free if _holds_times(observations, d)]
    if len(found) > 1:
        raise ValueError(
            f"observations have several dimensions of dates, {found}, but not the lead times of "
            "the forecasts; select, so that one with valid times is left"
        )
    return found[0] if found else None


def _holds_times(observations: xr.DataArray, d: Hashable) -> bool:
    named = d == VALID_TIME or d in candidates(observations, CALIBRATION)
    return named or case_axis(observations, d).year is not None
