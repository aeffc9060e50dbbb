"""Read lead times and their units, add leads to dates, and count the observations at each lead."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from .dims import Labelled, require_unique

Dates: TypeAlias = npt.NDArray[Any]
"""Dates as datetime64 or cftime objects, or years as integers."""

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "pentad": 432000, "week": 604800}
"""Number of seconds in each unit of time with a fixed length."""

MONTHS = {"month": 1, "season": 3, "year": 12}
"""Number of months in each unit of the calendar."""

_ALIASES = {
    "second": ("s", "sec", "secs"),
    "minute": ("min", "mins"),
    "hour": ("h", "hr", "hrs"),
    "day": ("d",),
    "week": ("w", "wk", "wks"),
    "month": ("mon", "mons", "mo"),
    "year": ("y", "yr", "yrs"),
}

UNITS = {
    alias: unit
    for unit in (*SECONDS, *MONTHS)
    for alias in (unit, f"{unit}s", *_ALIASES.get(unit, ()))
}
"""Unit of time by spelling; months, seasons and years are units of the calendar."""


def time_unit(units: object) -> str | None:
    """Return the unit of time for an attribute ``units``, in any spelling; None for other units."""
    return UNITS.get(str(units).strip().lower())


def counts_from_one(lead: Hashable) -> bool:
    """Return whether lead 1 is the month of the start, as in files of the Climate Data Store."""
    return str(lead).lower().replace("_", "") in ("forecastmonth", "leadtimemonth")


@dataclass(frozen=True)
class Leads:
    """Lead times (n,) that can be added to dates."""

    kind: Literal["span", "month", "number"]
    values: npt.NDArray[Any]
    """Lengths as timedelta64, whole months, or plain numbers of unknown unit."""
    unit: str

    def after(self, starts: Dates) -> Dates | None:
        """Return t starts plus the n leads, as dates (t, n); None if leads cannot be added."""
        values = self.values[np.newaxis]
        starts = starts[:, np.newaxis]
        if starts.dtype.kind in "iu":
            if self.unit == "year":
                return np.asarray(starts + values // 12)
            whole = self.kind == "number" and self.values.dtype.kind in "iu"
            return np.asarray(starts + values) if whole else None
        if self.kind == "number":
            return None
        if starts.dtype.kind == "M":
            whole_months = self.kind == "month"
            return _months_after(starts, values) if whole_months else np.asarray(starts + values)
        if self.kind == "span":
            return np.asarray(starts + values.astype("timedelta64[us]").astype(object))
        return np.asarray(np.frompyfunc(_calendar_months_after, 2, 1)(starts, values))


def read_leads(obj: Labelled, lead: Hashable, *, name: str) -> Leads:
    """Read the lead times along a dimension, or the single lead of a scalar coordinate.

    Raises
    ------
    ValueError
        If leads have no labels, are duplicated or missing, are not numbers or lengths of time, have
        an unknown unit, or are parts of months.
    """
    if lead in obj.coords and not obj[lead].ndim:
        obj = obj[lead].expand_dims(lead)
    if lead not in obj.indexes:
        raise ValueError(
            f"{name} has no lead times along {lead!r}; add them: "
            f"{name}.assign_coords({lead}=('{lead}', [...], {{'units': 'days'}}))"
        )
    index = obj.indexes[lead]
    require_unique(index, lead, name)
    if index.hasnans:
        raise ValueError(
            f"a lead time along {lead!r} of {name} is missing; use {name}.dropna({lead!r}), or "
            "add the lead time"
        )
    values = index.to_numpy()
    if values.dtype.kind == "m":
        return Leads("span", values.astype("timedelta64[us]"), "")
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"lead times along {lead!r} of {name} must be numbers or timedelta64, got "
            f"{type(index[0]).__name__}"
        )
    if counts_from_one(lead) and values.dtype.kind in "iu":
        return Leads("month", values.astype(np.int64) - 1, "month")
    given = obj[lead].attrs.get("units")
    if given is None:
        return Leads("number", values, "")
    unit = time_unit(given)
    if unit is None:
        raise ValueError(
            f"lead times along {lead!r} of {name} have units {given!r}, which are not among "
            f"{', '.join(f'{u}s' for u in (*SECONDS, *MONTHS))}; set them: "
            f'{name}.{lead}.attrs["units"] = "days"'
        )
    if unit in SECONDS:
        micro = np.round(_seconds(values, unit) * 1e6).astype(np.int64)
        return Leads("span", micro.astype("timedelta64[us]"), unit)
    if not (values == np.round(values)).all():
        raise ValueError(
            f"lead times along {lead!r} of {name} are parts of {unit}s, which differ in "
            "length; use whole numbers, or days"
        )
    return Leads("month", values.astype(np.int64) * MONTHS[unit], unit)


def _months_after(starts: Dates, months: npt.NDArray[Any]) -> Dates:
    """Return the same day some months later; in a month without this day, return the last day."""
    month = starts.astype("datetime64[M]")
    day = (starts.astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64)
    later = month + months.astype("timedelta64[M]")
    length = (later + np.timedelta64(1, "M")).astype("datetime64[D]") - later.astype(
        "datetime64[D]"
    )
    time_of_day = starts - starts.astype("datetime64[D]")
    days = np.minimum(day, length.astype(np.int64) - 1).astype("timedelta64[D]")
    return np.asarray(later.astype("datetime64[D]") + days + time_of_day)


def _calendar_months_after(start: Any, months: int) -> Any:
    """Return the date some months after a date of any calendar, as ``_months_after`` does."""
    years, month = divmod(start.month - 1 + months, 12)
    first = start.replace(year=start.year + years, month=month + 1, day=1)
    return first.replace(day=min(start.day, first.daysinmonth))


def unit_of_leads(leads: xr.DataArray) -> str | None:
    """Return the unit of lead times; "timedelta64" for this type, and None without a unit."""
    if leads.dtype.kind == "m":
        return "timedelta64"
    given = leads.attrs.get("units")
    return None if given is None else time_unit(given) or str(given)


def seconds_of(leads: xr.DataArray) -> npt.NDArray[np.float64] | None:
    """Return leads in seconds; None if leads have no unit of fixed length."""
    if leads.dtype.kind == "m":
        return np.asarray(leads.to_numpy() / np.timedelta64(1, "s"), np.float64)
    unit = unit_of_leads(leads)
    if unit is None or unit not in SECONDS:
        return None
    return _seconds(leads.to_numpy(), unit)


def _seconds(values: npt.NDArray[Any], unit: str) -> npt.NDArray[np.float64]:
    """Convert lengths to seconds; float32 values next to whole seconds become whole seconds."""
    seconds = np.asarray(values, np.float64) * SECONDS[unit]
    if values.dtype != np.float32:
        return seconds
    whole = np.round(seconds)
    near = np.abs(seconds - whole) <= np.finfo(np.float32).eps * np.abs(seconds)
    return np.where(near, whole, seconds)


def equal_labels(a: xr.DataArray, b: xr.DataArray) -> bool:
    """Return whether two single labels are equal; lengths of time may have different units."""
    seconds = [seconds_of(label) for label in (a, b)]
    if seconds[0] is not None and seconds[1] is not None:
        return bool(np.round((seconds[0] - seconds[1]) * 1e6) == 0)
    units = [time_unit(label.attrs.get("units")) for label in (a, b)]
    if None not in units and units[0] != units[1]:
        return False
    return bool(a.to_numpy() == b.to_numpy())


def seconds_in(unit: str) -> int | None:
    """Return the seconds in a unit of time; None for a unit without a fixed length."""
    return SECONDS.get(time_unit(unit) or "")


def span_of(lead: xr.DataArray) -> float | None:
    """Return a single lead in seconds; None if the lead has no unit of fixed length."""
    seconds = seconds_of(lead)
    return None if seconds is None else float(seconds)


def days_of(lengths: xr.DataArray) -> xr.DataArray:
    """Return lengths of time as numbers of days."""
    days = lengths.copy(data=lengths.data / np.timedelta64(1, "D"))
    return days.assign_attrs(units="days")


@dataclass(frozen=True)
class MatchedLeads:
    """Number of forecasts with an observation at each lead."""

    dim: str
    labels: tuple[str, ...]
    """First and last lead, as text; empty without labels."""
    units: str
    n_matched: tuple[int, ...]
    dated: bool = False
    """True if the valid time of each forecast is known."""

    def plus(self, other: MatchedLeads | None) -> MatchedLeads | None:
        """Return these counts plus those of ``other``; None if the numbers of leads differ."""
        if other is None or len(other.n_matched) != len(self.n_matched):
            return None
        n_matched = zip(self.n_matched, other.n_matched, strict=True)
        return replace(self, n_matched=tuple(a + b for a, b in n_matched))


def matched_leads(
    obj: xr.DataArray, lead: Hashable, n_matched: npt.NDArray[np.integer[Any]], *, dated: bool
) -> MatchedLeads:
    """Return counts of matches at each lead, with the first and last lead of ``obj`` as text."""
    labels: tuple[str, ...] = ()
    if lead in obj.indexes and obj.sizes[lead]:
        index = obj.indexes[lead]
        labels = tuple(str(label).removesuffix(" 00:00:00") for label in (index[0], index[-1]))
    units = "" if lead not in obj.coords else str(obj[lead].attrs.get("units", ""))
    return MatchedLeads(str(lead), labels, units, tuple(int(n) for n in n_matched), dated)
