"""Labels of inputs as all else reads them: dates in UTC, an index of cases and leads.

Also valid times that agree with starts and leads. Done once, where inputs are read.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from xrecal.chunks.warnings import warn_once

from .dims import Labelled, text_of
from .leads import MONTHS, Dates, Leads, read_leads
from .roles import (
    CALIBRATION,
    LEAD,
    LEVEL,
    MEMBER,
    START,
    VALID_TIME,
    are_dates,
    candidates,
    is_lead,
    is_start,
    single_leads,
)
from .valid_time import calendar_of, single_start, valid_time_of

OF_FIT = "calibration_"
"""Beginning of coordinates of issued forecasts that name the past case of each member."""

NAMED_VALID = re.compile(
    r"(forecast)?(valid(ity)?|verif(ication|ying)?|target(end)?)(datetime|time|date)"
)
"""Other names of valid times, in lower case and without underscores; CF says ``time``."""

Labels = TypeVar("Labels", xr.DataArray, xr.Dataset)


def read_labels(obj: Labels, *, name: str) -> Labels:
    """Return an object with its dates as datetime64 in UTC, or cftime, and an index of its cases.

    Dates may have a time zone, be periods (which count by their beginning) or Python's own. A
    dimension of cases or leads without an index gets the labels of the one coordinate of dates, or
    of leads, along it; leads without one get the lengths that their valid times give. Starts and
    leads replace valid times that contradict them, with a warning.

    Parameters
    ----------
    obj : DataArray or Dataset
        Forecasts, observations, covariates or thresholds.
    name : str
        The user's name for it, for messages.

    Returns
    -------
    DataArray or Dataset
        The same values, lazy or not. Coordinates of dates are computed if they are lazy: which
        observation belongs to which forecast must not depend on that.

    Raises
    ------
    ValueError
        If dates of cftime have no calendar.
    """
    lazy = [n for n, c in obj.coords.items() if c.chunks is not None and _may_be_dates(n, c)]
    obj = obj.assign_coords({n: obj.coords[n].variable.compute() for n in lazy}) if lazy else obj
    dates = {
        n: (c.dims, values, c.attrs)
        for n, c in obj.coords.items()
        if not _is_level(obj, n)
        if (values := _in_utc(n, c, name)) is not None or (values := _lengths(c)) is not None
    }
    obj = obj.assign_coords(dates) if dates else obj
    obj = _with_leads(_with_index(_with_standard_names(obj)))
    return _with_valid_times(obj, name=name)


def _may_be_dates(name: Hashable, coordinate: xr.DataArray) -> bool:
    return coordinate.dtype.kind == "M" or name == VALID_TIME


def _is_level(obj: Labelled, name: Hashable) -> bool:
    """Return whether a coordinate is one of several that make up an index."""
    return name in obj.xindexes and name not in obj.dims


def _in_utc(label: Hashable, coordinate: xr.DataArray, name: str) -> Dates | None:
    """Dates as datetime64; None for dates of datetime64 or cftime, and for other values."""
    dtype: Any = coordinate.dtype
    if (isinstance(dtype, np.dtype) and dtype.kind != "O") or coordinate.chunks is not None:
        return None
    values = coordinate.to_numpy()
    kinds = (datetime.date, pd.Period, float, type(None), type(pd.NaT))
    if not all(isinstance(value, kinds) or hasattr(value, "calendar") for value in values.flat):
        return None
    known = [value for value in values.flat if not _is_missing(value)]
    if known and hasattr(known[0], "calendar"):
        if any(not date.calendar for date in known):
            raise ValueError(
                f"the dates in {label!r} of {name} are cftime objects without a calendar, such as "
                f"{known[0].isoformat()}; give them theirs, such as {name}.assign_coords({label}="
                "[cftime.datetime(*d.timetuple()[:6], calendar='standard') for d in "
                f"{name}.{label}.values])"
            )
        return None
    if not known or any(isinstance(value, float) for value in known):
        return None
    missing = np.datetime64("NaT", "us")
    flat = [missing if _is_missing(value) else _naive(value) for value in values.flat]
    return np.array(flat).reshape(values.shape)


def _lengths(coordinate: xr.DataArray) -> npt.NDArray[np.timedelta64] | None:
    """Lengths of time that are objects, as timedelta64; None for anything else."""
    if coordinate.dtype != object or coordinate.chunks is not None or not coordinate.size:
        return None
    values = coordinate.to_numpy()
    if not all(isinstance(value, datetime.timedelta) for value in values.flat):
        return None
    return np.array([pd.Timedelta(v).to_timedelta64() for v in values.flat]).reshape(values.shape)


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NaT or value != value


def _naive(value: datetime.date | pd.Period) -> np.datetime64:
    """A date, time or beginning of a period as datetime64; with a time zone, in UTC."""
    if isinstance(value, pd.Period):
        value = value.start_time
    if isinstance(value, pd.Timestamp):  # to the nanosecond
        return np.datetime64((value.tz_convert(None) if value.tzinfo else value).to_datetime64())
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _with_standard_names(obj: Labels) -> Labels:
    """Valid times of another name with the CF standard name by which all else knows them."""
    cases = candidates(obj, CALIBRATION)
    valid = {
        n: (c.dims, c.variable.to_base_variable().data, {**c.attrs, "standard_name": "time"})
        for n, c in obj.coords.items()
        if n != VALID_TIME and NAMED_VALID.fullmatch(re.sub(r"[\W_]", "", str(n).lower()))
        if are_dates(c) and "standard_name" not in c.attrs and not _is_level(obj, n)
        if n not in obj.dims or cases == [n]
    }
    return obj.assign_coords(valid) if valid else obj


def _with_index(obj: Labels) -> Labels:
    """Cases and leads that have no index with the labels of the coordinate along them."""
    members: list[Hashable] = [*candidates(obj, MEMBER), *candidates(obj, LEVEL)]
    bare = [d for d in obj.dims if d not in (*obj.xindexes, *obj.coords, *members)]
    own = {n: c for n, c in obj.coords.items() if not str(n).startswith(OF_FIT)}
    along = {d: {n: c for n, c in own.items() if c.dims == (d,)} for d in bare}
    own_dates = {d: _dates_of_cases(along[d]) for d in bare if not LEAD.has(d)}
    dated = {d: dates for d, dates in own_dates.items() if dates is not None}
    cases = candidates(obj, CALIBRATION) or (list(dated) if len(dated) == 1 else [])
    labels = {d: dates for d, dates in dated.items() if d in cases}
    for d in (d for d in bare if d not in cases):
        leads = [c for n, c in along[d].items() if is_lead(n, c)]
        if len(leads) == 1:
            labels[d] = leads[0]
    found = {d: (d, c.to_numpy(), c.attrs) for d, c in labels.items() if c.chunks is None}
    return obj.assign_coords(found) if found else obj


def _with_leads(obj: Labels) -> Labels:
    """Leads that have no label with the lengths of time from the starts to the valid times.

    Where these are the same for all starts, and no months: those have other lengths next time.
    """
    cases, leads = candidates(obj, CALIBRATION), candidates(obj, LEAD)
    dim = cases[0] if cases else single_start(obj)
    if len(cases) > 1 or len(leads) != 1 or leads[0] in obj.coords or dim not in obj.coords:
        return obj
    (lead,) = leads
    given, starts = valid_time_of(obj, dim, lead), _bare(obj.coords[dim])
    if given is None or lead not in given.dims or not given.size or not are_dates(starts):
        return obj
    valid = _bare(given)
    if calendar_of(valid.to_numpy()) != calendar_of(starts.to_numpy()):
        return obj
    apart = (valid - starts).transpose(lead, ...)
    spans = apart.to_numpy().reshape(apart.sizes[lead], -1)
    each: Any = spans[:, 0]
    whole_months = bool((valid.dt.day == starts.dt.day).all())
    if whole_months or (spans != each[:, np.newaxis]).any() or len({*each}) < len(each):
        return obj
    return obj.assign_coords({lead: (lead, each)})


def _dates_of_cases(along: dict[Hashable, xr.DataArray]) -> xr.DataArray | None:
    """The dates along a dimension, its starts if there are some; None for none or several."""
    dates = [c for c in along.values() if are_dates(c)]
    starts = [c for c in dates if is_start(c.name, c)]
    valid = [c for c in dates if c.name == VALID_TIME]
    rest = starts or [c for c in dates if c.name != VALID_TIME] or valid
    if len(rest) != 1:
        return None
    (labels,) = rest
    if "standard_name" in labels.attrs:
        return labels
    standard = START if starts else "time" if valid else None
    return labels if standard is None else labels.assign_attrs(standard_name=standard)


def _with_valid_times(obj: Labels, *, name: str) -> Labels:
    """Valid times that contradict the starts plus the leads replaced by these, with a warning."""
    cases, leads = candidates(obj, CALIBRATION), candidates(obj, LEAD) or single_leads(obj)
    if len(cases) > 1 or len(leads) != 1 or leads[0] not in obj.coords:
        return obj
    dim, lead = (cases or [single_start(obj)])[0], leads[0]
    given = valid_time_of(obj, dim, lead)
    if given is None or dim not in obj.coords:
        return obj
    starts = _bare(obj.coords[dim])
    try:
        spans = read_leads(obj, lead, name=name)
    except ValueError:  # leads that cannot be read
        return obj
    computed = spans.after(np.ravel(starts.to_numpy())) if are_dates(starts) else None
    if computed is None:
        return obj
    at = {d: slice(None) if d in obj.dims else 0 for d in (dim, lead)}
    later = xr.DataArray(computed, dims=[dim, lead]).isel(at)
    valid = _bare(given).broadcast_like(later).transpose(*later.dims)
    if bool((valid == starts).all()) or not _contradict(valid, later, spans):
        return obj
    first = [_first(array) for array in (starts, later, valid, obj[lead])]
    warn_once(
        f"{given.name} of {name} contradicts its starts and leads: {lead} {first[3]} "
        f"{obj[lead].attrs.get('units', '')} after {first[0]} is {first[1]}, but {given.name} is "
        f"{first[2]}. Starts and leads count. If {given.name} is right, use "
        f"{name}.drop_vars({lead!r})".replace("  ", " ")
    )
    return obj.assign_coords({given.name: later.assign_attrs(given.attrs).variable})


def _contradict(valid: xr.DataArray, later: xr.DataArray, leads: Leads) -> bool:
    """Return whether valid times are as far from starts plus leads as no date of the same lead is.

    That is a day or more; of leads in months, seasons or years another one of these.
    """
    if calendar_of(valid.to_numpy()) != calendar_of(later.to_numpy()):
        return False
    if leads.kind == "month":
        months = [12 * array.dt.year + array.dt.month for array in (valid, later)]
        return bool((abs(months[0] - months[1]) >= MONTHS[leads.unit]).any())
    apart = abs(valid - later)
    day: Any = np.timedelta64(1, "D") if apart.dtype.kind == "m" else datetime.timedelta(days=1)
    return bool((apart >= day).any())


def _bare(coordinate: xr.DataArray) -> xr.DataArray:
    return coordinate.drop_vars(list(coordinate.coords))


def _first(labels: xr.DataArray) -> str:
    return text_of(np.ravel(labels.to_numpy())[0]).replace("T00:00:00.000000000", "")
