"""Dates of cases: year, season and day of each, from datetime64, cftime or years.

Years of cases begin in the largest gap of their calendar, so that no season is divided.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.typing import FloatArray, IntArray

from .metadata import VALID_TIME, standard_name_of

WITH_LEAP_YEARS = ("standard", "gregorian", "proleptic_gregorian", "julian")
"""Calendars of cftime in which some years have a 29 February."""


@dataclass(frozen=True)
class CaseAxis:
    """Dates of the cases along one dimension, each field (n,) or None if unknown."""

    year: IntArray | None = None
    season: FloatArray | None = None
    """Fraction of the year, in [0, 1)."""
    days: FloatArray | None = None
    """Days since a fixed date of the calendar."""
    step: IntArray | None = None
    """Step in time, in ascending order; by default each case is a step."""
    month_day: IntArray | None = None
    """Month and day of the month, as 100 times the month plus the day."""
    day: FloatArray | None = None
    """Calendar day as a fraction of a year of 365 days, in [0, 1), the same in every year."""

    def take(self, cases: slice | IntArray) -> CaseAxis:
        """Dates of some cases."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return CaseAxis(**{n: part if part is None else part[cases] for n, part in parts.items()})

    def steps(self, n: int) -> IntArray:
        """Step in time of each of ``n`` cases."""
        return np.arange(n) if self.step is None else self.step


SHORTEST_GAP = 30
"""Least number of days without a case, on any date of the year, for years to begin there."""

ALIKE = 3
"""Largest difference, in days, between gaps that count as equal, such as between monthly dates."""

DAYS_OF_YEAR = 365.25


def spread_of_season(season: FloatArray) -> float:
    """Circular standard deviation of fractions of the year (n,), in days."""
    length = max(float(abs(np.exp(2j * np.pi * season).mean())), 1e-9)
    return DAYS_OF_YEAR / (2 * np.pi) * float(np.sqrt(max(-2 * np.log(length), 0.0)))


def years_of_cases(axis: CaseAxis, year_start: str | None = None) -> IntArray | None:
    """Year of each case (n,), without dividing a season of the cases; None without dates.

    Years begin on the date ``year_start``, MM-DD. By default they begin in the largest gap that the
    dates of all cases leave in the calendar: each winter from December to February is one year,
    named by its January. They begin on 1 January if no gap has 30 days or more, or if the largest
    gap contains 1 January.
    """
    if axis.year is None or axis.season is None or axis.month_day is None:
        return axis.year
    if year_start is not None:
        month, day = map(int, year_start.split("-"))
        after, early = axis.month_day >= 100 * month + day, month <= 6
    else:
        start = _largest_gap(axis.season)
        after, early = axis.season >= start, start < 0.5
    # Each year has the name of the calendar year that contains most of it.
    return axis.year - 1 + after if early else axis.year + after


def clusters_of_cases(axis: CaseAxis, cluster: str) -> IntArray:
    """Number of the whole year or season of each case (n,).

    Years begin as in :func:`years_of_cases`; seasons are December to February, and so on.

    Raises
    ------
    ValueError
        If ``cluster`` is neither "year" nor "season", or cases have no dates.
    """
    if cluster not in ("year", "season"):
        raise ValueError(f"cluster is {cluster!r}; give 'year' or 'season', or leave it out")
    year = years_of_cases(axis)
    if year is None or (cluster == "season" and axis.month_day is None):
        raise ValueError(
            f"cluster={cluster!r} needs dates along the dimension of the cases (datetime64 or "
            "cftime); leave it out"
        )
    if cluster == "year":
        return year
    assert axis.year is not None
    assert axis.month_day is not None
    return (12 * axis.year + axis.month_day // 100) // 3


def _largest_gap(season: FloatArray) -> float:
    """Middle of the largest gap between fractions of the year; 0 if it is short or contains 0."""
    dates = np.unique(season)
    gaps = np.diff(dates, append=dates[:1] + 1)  # the last gap contains the end of the year
    largest = gaps.max(initial=0)
    least = max(SHORTEST_GAP / DAYS_OF_YEAR, gaps[-1:].sum() + ALIKE / DAYS_OF_YEAR)
    if largest < least:
        return 0.0
    at = int(gaps.argmax())
    return float(dates[at] + largest / 2)


def are_dates(label: xr.DataArray | xr.Variable) -> bool:
    """Return whether labels are dates: datetime64, or objects of cftime."""
    if label.dtype.kind == "M":
        return True
    known = label.dtype == object and label.chunks is None
    return known and calendar_of(label.to_numpy()) is not None


def calendar_of(values: Any) -> str | None:
    """Calendar of dates: "datetime64", or that of cftime objects; None for no dates."""
    if values.dtype.kind == "M":
        return "datetime64"
    flat = np.ravel(np.asarray(values)) if values.dtype == object else np.empty(0)
    return str(flat[0].calendar) if flat.size and hasattr(flat[0], "calendar") else None


def case_axis(obj: xr.DataArray, dim: Hashable) -> CaseAxis:
    """Dates along ``dim``: from its valid times, or else from its own coordinate.

    Increasing integers from 1000 to 9999 are years. If ``obj`` lacks the dimension, it may have a
    scalar coordinate, which dates a single forecast.
    """
    for label in date_candidates(obj, dim):
        if label.chunks is not None or bool(label.isnull().any()):
            continue  # dates must be complete and in memory
        values = label.to_numpy().reshape(-1)
        dated = date_axis(values)
        if dated is not None:
            return dated
        if np.issubdtype(values.dtype, np.integer):
            year = values.astype(np.int64)  # differences of unsigned integers are never negative
            if ((year >= 1000) & (year <= 9999)).all() and (np.diff(year) > 0).all():
                return CaseAxis(year=year)
    return CaseAxis()


def date_axis(values: Any) -> CaseAxis | None:
    """Years, seasons and days of datetime64 or cftime objects (n,); None for other values."""
    if np.issubdtype(values.dtype, np.datetime64):
        return _standard_dates(values)
    if values.dtype == object and values.size and hasattr(values[0], "dayofyr"):
        return _calendar_dates(values)
    return None


def date_candidates(obj: xr.DataArray, dim: Hashable) -> list[xr.DataArray]:
    """Coordinates that may date the cases along a dimension, valid times first."""
    dims = (dim,) if dim in obj.dims else ()
    along = {name: c for name, c in obj.coords.items() if c.dims == dims and c.size}
    valid = [
        c
        for name, c in along.items()
        if name != dim and (name == VALID_TIME or standard_name_of(c) == "time")
    ]
    return valid + ([along[dim]] if dim in along else [])


def _standard_dates(dates: Any) -> CaseAxis:
    start = dates.astype("datetime64[Y]")
    length = (start + np.timedelta64(1, "Y")).astype("datetime64[s]") - start.astype(
        "datetime64[s]"
    )
    elapsed = dates.astype("datetime64[s]") - start.astype("datetime64[s]")
    days = dates.astype("datetime64[s]").astype(np.int64) / 86400
    month = dates.astype("datetime64[M]")
    of_month = (dates.astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64) + 1
    month_day = 100 * (month.astype(np.int64) % 12 + 1) + of_month
    year = start.astype(np.int64) + 1970
    day = calendar_day(elapsed / np.timedelta64(1, "D"), length > np.timedelta64(365, "D"))
    return CaseAxis(year, elapsed / length, days, month_day=month_day, day=day)


def _calendar_dates(dates: Any) -> CaseAxis:
    """Dates of another calendar, as cftime objects.

    The length of the year is that of the calendar.
    """
    year = np.array([d.year for d in dates])
    start = [d.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0) for d in dates]
    parts = [(d - s) / (s.replace(year=d.year + 1) - s) for d, s in zip(dates, start, strict=True)]
    origin = dates[0].replace(year=2000, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    days = [(d - origin).total_seconds() / 86400 for d in dates]
    month_day = np.array([100 * d.month + d.day for d in dates])
    day = season = np.array(parts)
    if dates[0].calendar in WITH_LEAP_YEARS:
        passed = [(d - s).total_seconds() / 86400 for d, s in zip(dates, start, strict=True)]
        leap = [(s.replace(year=s.year + 1) - s).days > 365 for s in start]
        day = calendar_day(np.array(passed), np.array(leap))
    return CaseAxis(year, season, np.array(days), month_day=month_day, day=day)


def calendar_day(passed: FloatArray, leap: npt.NDArray[np.bool_]) -> FloatArray:
    """Fractions of a year of 365 days, from the days passed since the year began.

    1 March is the same in every year; 29 February lies half-way between its neighbours.
    """
    extra = np.select([passed >= 60, passed >= 59], [1.0, 0.5], 0.0)
    return np.asarray((passed - np.where(leap, extra, 0.0)) / 365)
