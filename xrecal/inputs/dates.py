"""Dates of cases: the year, season and day of each case, from datetime64, cftime or years.

By default a year begins in the longest part of the calendar that has no cases, so that no season
of cases is divided.
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
    """Dates of n cases along one dimension. Attributes have shape (n,), or are None if unknown."""

    year: IntArray | None = None
    season: FloatArray | None = None
    """Fraction of the year, in [0, 1)."""
    days: FloatArray | None = None
    """Days since a fixed date of the calendar."""
    step: IntArray | None = None
    """Number of the date of each case, ascending; None if each case has a date of its own."""
    month_day: IntArray | None = None
    """Calendar day, as 100 times the month plus the day of the month."""
    day: FloatArray | None = None
    """Fraction of a year of 365 days, in [0, 1); a calendar day has the same value in all years."""

    def take(self, cases: slice | IntArray) -> CaseAxis:
        """Return the dates of some of the cases."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return CaseAxis(**{n: part if part is None else part[cases] for n, part in parts.items()})

    def steps(self, n: int) -> IntArray:
        """Return a number for each of ``n`` cases; cases of the same date have the same number."""
        return np.arange(n) if self.step is None else self.step


SHORTEST_GAP = 30
"""Years may begin in a gap, a part of the calendar without cases, of at least this many days."""

ALIKE = 3
"""Two gaps in the calendar, such as those between monthly dates, count as equally long if their
lengths differ by less than this many days."""

DAYS_OF_YEAR = 365.25


def spread_of_season(season: FloatArray) -> float:
    """Return the circular standard deviation, in days, of fractions of the year (n,)."""
    length = max(float(abs(np.exp(2j * np.pi * season).mean())), 1e-9)
    return DAYS_OF_YEAR / (2 * np.pi) * float(np.sqrt(max(-2 * np.log(length), 0.0)))


def years_of_cases(axis: CaseAxis, year_start: str | None = None) -> IntArray | None:
    """Return the year to which each case (n,) belongs; None without dates.

    Years begin on the date ``year_start``, MM-DD. By default they begin in the largest gap that the
    dates of all cases leave in the calendar, so that no season of cases is divided. For example, if
    all cases are in December to February, each winter is one year, with the number of the year of
    its January. Years begin on 1 January if no gap has 30 days or more. They also begin on
    1 January if the gap that contains this day is the largest, or shorter than the largest by less
    than 3 days.
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
    """Return a number for each case (n,) that is equal for all cases of one year or one season.

    Years begin as in :func:`years_of_cases`. Seasons have three months, such as December to
    February.

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
            "cftime); leave cluster out"
        )
    if cluster == "year":
        return year
    assert axis.year is not None
    assert axis.month_day is not None
    return (12 * axis.year + axis.month_day // 100) // 3


def _largest_gap(season: FloatArray) -> float:
    """Return the middle of the largest gap between fractions of the year.

    The result is 0, which is 1 January, if the largest gap is short, or if the gap that contains 1
    January is about as large.
    """
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
    """Return "datetime64", or the calendar of cftime objects; None if values are not dates."""
    if values.dtype.kind == "M":
        return "datetime64"
    flat = np.ravel(np.asarray(values)) if values.dtype == object else np.empty(0)
    return str(flat[0].calendar) if flat.size and hasattr(flat[0], "calendar") else None


def case_axis(obj: xr.DataArray, dim: Hashable) -> CaseAxis:
    """Return the dates along ``dim``, from its valid times or else from its own coordinate.

    Increasing integers from 1000 to 9999 are years. If ``obj`` lacks the dimension, a scalar
    coordinate may give the date of the single forecast.
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
    """Return years, seasons and days of datetime64 or cftime dates (n,); None for other values."""
    if np.issubdtype(values.dtype, np.datetime64):
        return _standard_dates(values)
    if values.dtype == object and values.size and hasattr(values[0], "dayofyr"):
        return _calendar_dates(values)
    return None


def date_candidates(obj: xr.DataArray, dim: Hashable) -> list[xr.DataArray]:
    """Return the coordinates that may hold the dates of the cases, valid times first."""
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
    """Return years, seasons and days of cftime dates; their calendar gives the length of a year."""
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
    """Return fractions of a year of 365 days, from the days since the year began.

    1 March has the same fraction in every year. 29 February is half-way between 28 February and
    1 March.
    """
    extra = np.select([passed >= 60, passed >= 59], [1.0, 0.5], 0.0)
    return np.asarray((passed - np.where(leap, extra, 0.0)) / 365)
