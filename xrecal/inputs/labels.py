"""Read the labels of an array once.

Afterwards dates are in UTC, cases and leads have an index, and valid times agree with starts and
leads.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd
import xarray as xr

from .dates import are_dates
from .dims import Labels
from .leads import Dates
from .metadata import VALID_TIME
from .roles import LEAD, START, Roles, is_lead, is_start
from .valid_time import agreeing_times

OF_FIT = "calibration_"
"""Prefix of names of coordinates with labels of past cases, such as cases used as members."""

NAMED_VALID = re.compile(
    r"(forecast)?(valid(ity)?|verif(ication|ying)?|target(end)?)(datetime|time|date)"
)
"""Other names of valid times, in lower case and without underscores."""


Coords: TypeAlias = dict[Hashable, Any]
"""Coordinates to assign, by name."""


def read_labels(obj: Labels, *, name: str) -> Roles[Labels]:
    """Bring labels into the form that other modules expect, and find the roles of dimensions.

    Dates of cftime stay unchanged. Dates with a time zone and Python dates become datetime64 in
    UTC, and so does the start of each period. If a dimension of cases or leads has no index, the
    only coordinate of dates, or of leads, along this dimension becomes the index. Without such a
    coordinate, leads become valid time minus start. If valid times contradict starts plus leads,
    these sums replace the valid times, and the function warns.

    Parameters
    ----------
    obj : DataArray or Dataset
        Forecasts, observations, covariates or thresholds.
    name : str
        Name of the object in messages.

    Returns
    -------
    Roles
        The object with these labels and the same values, and the roles of its dimensions. Lazy
        values stay lazy. Lazy coordinates of dates are computed, because pairing needs the dates.

    Raises
    ------
    ValueError
        If dates of cftime have no calendar.
    """
    variables = obj.coords.variables
    lazy = {
        n: v.compute()
        for n, v in variables.items()
        if v.chunks is not None and (v.dtype.kind == "M" or n == VALID_TIME)
    }
    roles = _with_coords(Roles(obj), lazy)
    given = {
        n: (v.dims, values, v.attrs)
        for n, v in roles.obj.coords.variables.items()
        if n not in obj.xindexes or n in obj.dims  # not one of several levels of an index
        if (v.dtype == object or not isinstance(v.dtype, np.dtype)) and v.chunks is None
        if (values := _dates_of_objects(n, roles.obj.coords[n], name)) is not None
    }
    roles = _with_coords(roles, given)
    roles = _with_coords(roles, _standard_names(roles))
    roles = _with_coords(roles, _indexes(roles))
    if roles.leads or roles.single_leads:
        roles = _with_coords(roles, agreeing_times(roles, name=name))
    return roles


def _with_coords(roles: Roles[Labels], coords: Coords) -> Roles[Labels]:
    """Assign coordinates to an array, and return the roles of the result."""
    return Roles(cast("Labels", roles.obj.assign_coords(coords))) if coords else roles


def _dates_of_objects(label: Hashable, coordinate: xr.DataArray, name: str) -> Dates | None:
    """Convert objects to datetime64 or timedelta64; None for cftime dates and other values."""
    values = coordinate.to_numpy()
    if values.size and all(isinstance(value, datetime.timedelta) for value in values.flat):
        lengths = [pd.Timedelta(value).to_timedelta64() for value in values.flat]
        return np.array(lengths).reshape(values.shape)
    kinds = (datetime.date, pd.Period, float, type(None), type(pd.NaT))
    if not all(isinstance(value, kinds) or hasattr(value, "calendar") for value in values.flat):
        return None
    known = [value for value in values.flat if not _is_missing(value)]
    if known and hasattr(known[0], "calendar"):
        if any(not date.calendar for date in known):
            raise ValueError(
                f"the dates in {label!r} of {name} are cftime objects without a calendar, such as "
                f"{known[0].isoformat()}; give a calendar, such as {name}.assign_coords({label}="
                "[cftime.datetime(*d.timetuple()[:6], calendar='standard') for d in "
                f"{name}.{label}.values])"
            )
        return None
    if not known or any(isinstance(value, float) for value in known):
        return None
    missing = np.datetime64("NaT", "us")
    flat = [missing if _is_missing(value) else _naive(value) for value in values.flat]
    return np.array(flat).reshape(values.shape)


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NaT or value != value


def _naive(value: datetime.date | pd.Period) -> np.datetime64:
    """Return a date, time or start of a period as datetime64, in UTC if it has a time zone."""
    if isinstance(value, pd.Period):
        value = value.start_time
    if isinstance(value, pd.Timestamp):  # to the nanosecond
        return np.datetime64((value.tz_convert(None) if value.tzinfo else value).to_datetime64())
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _standard_names(roles: Roles[Labels]) -> Coords:
    """Return valid times that have another name, with the CF standard name ``time``."""
    obj = roles.obj
    return {
        n: (v.dims, v.to_base_variable().data, {**v.attrs, "standard_name": "time"})
        for n, v in obj.coords.variables.items()
        if n != VALID_TIME and NAMED_VALID.fullmatch(re.sub(r"[\W_]", "", str(n).lower()))
        if are_dates(v) and "standard_name" not in v.attrs
        if (n not in obj.dims and n not in obj.xindexes) or roles.cases == [n]
    }


def _indexes(roles: Roles[Labels]) -> Coords:
    """Return labels, from other coordinates, for dimensions of cases and leads without an index."""
    obj = roles.obj
    bare = [d for d in obj.dims if d not in (*obj.xindexes, *obj.coords, *roles.members)]
    if not bare:
        return {}
    own = {n: c for n, c in obj.coords.items() if not str(n).startswith(OF_FIT)}
    along = {d: {n: c for n, c in own.items() if c.dims == (d,)} for d in bare}
    own_dates = {d: _dates_of_cases(along[d]) for d in bare if not LEAD.has(d)}
    dated = {d: dates for d, dates in own_dates.items() if dates is not None}
    cases = roles.cases or (list(dated) if len(dated) == 1 else [])
    labels = {d: dates for d, dates in dated.items() if d in cases}
    for d in (d for d in bare if d not in cases):
        leads = [c for n, c in along[d].items() if is_lead(n, c)]
        if len(leads) == 1:
            labels[d] = leads[0]
    return {d: (d, c.to_numpy(), c.attrs) for d, c in labels.items() if c.chunks is None}


def _dates_of_cases(along: dict[Hashable, xr.DataArray]) -> xr.DataArray | None:
    """Return the coordinate with the dates along a dimension; None unless exactly one fits best.

    Starts fit best, then other dates; coordinates ``valid_time`` fit least.
    """
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
