"""Lead times: which dimension has them, their units, and what they add to the date of a start."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from .dims import LEAD, candidates
from .labels import require_unique

Dates: TypeAlias = npt.NDArray[Any]
"""Dates as datetime64 or cftime objects, or years as integers."""

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "pentad": 432000, "week": 604800}
_MONTHS = {"month": 1, "season": 3, "year": 12}
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
    for unit in (*_SECONDS, *_MONTHS)
    for alias in (unit, f"{unit}s", *_ALIASES.get(unit, ()))
}
"""Spellings of the units of leads; months, seasons and years are those of the calendar."""

COUNTED_FROM_ONE = ("forecastMonth", "leadtime_month")
"""Leads of the Climate Data Store: 1 is the month of the start, whatever the units say."""


def lead_dim(obj: xr.DataArray, *, name: str) -> Hashable | None:
    """Dimension of the leads; None if there is none.

    Raises
    ------
    ValueError
        If there are several candidates.
    """
    found = candidates(obj, LEAD)
    if len(found) > 1:
        raise ValueError(
            f"{name} has several dimensions of lead times, {found}; rename those that hold "
            f"something else: {name}.rename({found[1]}=...)"
        )
    return found[0] if found else None


@dataclass(frozen=True)
class MatchedLeads:
    """How many forecasts at each lead have an observation."""

    dim: str
    labels: tuple[str, ...]
    """The first and the last lead; none without labels."""
    units: str
    n_matched: tuple[int, ...]
    dated: bool = False
    """Whether the valid time of each forecast is known."""

    def plus(self, other: MatchedLeads | None) -> MatchedLeads | None:
        """Counts of both, where both have them for the same leads."""
        if other is None or len(other.n_matched) != len(self.n_matched):
            return None
        n_matched = zip(self.n_matched, other.n_matched, strict=True)
        return replace(self, n_matched=tuple(a + b for a, b in n_matched))


def matched_leads(
    obj: xr.DataArray, lead: Hashable, n_matched: npt.NDArray[np.integer[Any]], *, dated: bool
) -> MatchedLeads:
    """Counts, with the leads of ``obj`` as text."""
    labels: tuple[str, ...] = ()
    if lead in obj.indexes and obj.sizes[lead]:
        index = obj.indexes[lead]
        labels = tuple(str(label).removesuffix(" 00:00:00") for label in (index[0], index[-1]))
    units = "" if lead not in obj.coords else str(obj[lead].attrs.get("units", ""))
    return MatchedLeads(str(lead), labels, units, tuple(int(n) for n in n_matched), dated)


@dataclass(frozen=True)
class Leads:
    """Lead times (n,) as something to add to dates."""

    kind: Literal["span", "month", "number"]
    values: npt.NDArray[Any]
    """Lengths as timedelta64, whole months, or plain numbers whose unit is not known."""
    unit: str

    def after(self, starts: Dates) -> Dates | None:
        """Dates (t, n) of all leads after starts (t,); None if they cannot be added."""
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


def read_leads(obj: xr.DataArray, lead: Hashable, *, name: str) -> Leads:
    """Lead times along a dimension.

    Raises
    ------
    ValueError
        If they have no labels, stand there twice, are missing, are no numbers or lengths of time,
        have a unit that is not known, or are parts of months.
    """
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
            "give it"
        )
    values = index.to_numpy()
    if values.dtype.kind == "m":
        return Leads("span", values.astype("timedelta64[us]"), "")
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"lead times along {lead!r} of {name} must be numbers or timedelta64, got "
            f"{type(index[0]).__name__}"
        )
    if lead in COUNTED_FROM_ONE and values.dtype.kind in "iu":
        return Leads("month", values.astype(np.int64) - 1, "month")
    given = obj[lead].attrs.get("units")
    if given is None:
        return Leads("number", values, "")
    unit = UNITS.get(str(given).strip().lower())
    if unit is None:
        raise ValueError(
            f"lead times along {lead!r} of {name} have units {given!r}, which are none of "
            f"{', '.join(f'{u}s' for u in (*_SECONDS, *_MONTHS))}; set them: "
            f'{name}.{lead}.attrs["units"] = "days"'
        )
    if unit in _SECONDS:
        micro = np.round(values.astype(np.float64) * _SECONDS[unit] * 1e6).astype(np.int64)
        return Leads("span", micro.astype("timedelta64[us]"), unit)
    if not (values == np.round(values)).all():
        raise ValueError(
            f"lead times along {lead!r} of {name} are parts of {unit}s, which calendars do not "
            "have; use whole ones, or days"
        )
    return Leads("month", values.astype(np.int64) * _MONTHS[unit], unit)


def unit_of_leads(leads: xr.DataArray) -> str | None:
    """Unit of lead times, whatever its spelling; timedelta64 for lengths, None if not known."""
    if leads.dtype.kind == "m":
        return "timedelta64"
    given = leads.attrs.get("units")
    return None if given is None else UNITS.get(str(given).strip().lower(), str(given))


def span_of(lead: xr.DataArray) -> float | None:
    """Seconds of a single lead; None if it has no unit of a fixed length."""
    seconds = seconds_of(lead)
    return None if seconds is None else float(seconds)


def seconds_of(leads: xr.DataArray) -> npt.NDArray[np.float64] | None:
    """Leads in seconds; None if they have no unit of a fixed length."""
    if leads.dtype.kind == "m":
        return np.asarray(leads.to_numpy() / np.timedelta64(1, "s"), np.float64)
    unit = unit_of_leads(leads)
    if unit not in _SECONDS:
        return None
    return np.asarray(leads.to_numpy() * float(_SECONDS[unit]), np.float64)


def days_of(lengths: xr.DataArray) -> xr.DataArray:
    """Lengths of time as numbers of days."""
    days = lengths.copy(data=lengths.data / np.timedelta64(1, "D"))
    return days.assign_attrs(units="days")


def _months_after(starts: Dates, months: npt.NDArray[Any]) -> Dates:
    """The same day so many months later, or the last one of that month if it is shorter."""
    month = starts.astype("datetime64[M]")
    day = (starts.astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64)
    later = month + months.astype("timedelta64[M]")
    length = (later + 1).astype("datetime64[D]") - later.astype("datetime64[D]")
    time_of_day = starts - starts.astype("datetime64[D]")
    days = np.minimum(day, length.astype(np.int64) - 1).astype("timedelta64[D]")
    return np.asarray(later.astype("datetime64[D]") + days + time_of_day)


def _calendar_months_after(start: Any, months: int) -> Any:
    """As ``_months_after``, of one date of any calendar."""
    years, month = divmod(start.month - 1 + months, 12)
    first = start.replace(year=start.year + years, month=month + 1, day=1)
    return first.replace(day=min(start.day, first.daysinmonth))
