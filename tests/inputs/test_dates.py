"""Dates of cases, counted by hand."""

from datetime import timedelta

import cftime
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.labelled import random
from xrecal.inputs.dates import CaseAxis, case_axis, date_axis, spread_of_season, years_of_cases


def along(dim, values, **attrs):
    return random(dim, "x", sizes={dim: len(values)}, **{dim: (dim, values, attrs)})


DATES = [  # fraction of the year, counted by hand
    ("2001-01-01T00:00", 0.0),
    ("2000-02-29T00:00", 59 / 366),
    ("2001-03-01T00:00", 59 / 365),
    ("2000-12-31T23:59", 1 - 1 / (366 * 1440)),
    ("2001-12-31T23:59", 1 - 1 / (365 * 1440)),
    ("1900-12-31T00:00", 364 / 365),  # no leap year
    ("1969-07-02T12:00", 0.5),
]
IN_CALENDARS = [
    ("noleap", (2000, 3, 1), 59 / 365),
    ("noleap", (2000, 12, 31, 23, 59), 1 - 1 / (365 * 1440)),
    ("360_day", (2001, 2, 30), 59 / 360),
    ("360_day", (2001, 12, 30, 23, 59), 1 - 1 / (360 * 1440)),
    ("all_leap", (2001, 2, 29), 59 / 366),
    ("standard", (2000, 2, 29), 59 / 366),
    ("julian", (1900, 12, 31), 365 / 366),
]


def test_season_is_the_fraction_of_the_year_of_its_calendar():
    dates, expected = zip(*DATES, strict=True)
    for unit in ("s", "ms", "ns"):
        found = case_axis(along("time", np.array(dates, dtype=f"datetime64[{unit}]")), "time")
        np.testing.assert_allclose(found.season, expected, rtol=1e-15)
        assert (found.season < 1).all()
        np.testing.assert_array_equal(found.year, [int(date[:4]) for date in dates])
    for calendar, date, season in IN_CALENDARS:
        one = np.array([cftime.datetime(*date, calendar=calendar)], dtype=object)
        found = case_axis(along("time", one), "time")
        np.testing.assert_allclose(found.season, [season], rtol=1e-14)
        np.testing.assert_array_equal(found.year, [date[0]])


def test_calendars_of_the_same_dates_agree():
    dates = xr.date_range("1999-12-20", periods=500, freq="D", use_cftime=False)
    cf = xr.date_range("1999-12-20", periods=500, freq="D", use_cftime=True)
    a, b = (case_axis(along("time", values), "time") for values in (dates, cf))
    np.testing.assert_allclose(a.season, b.season, rtol=1e-14)
    np.testing.assert_array_equal(a.year, b.year)
    np.testing.assert_array_equal(np.diff(a.days), np.diff(b.days))


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_days_count_from_a_fixed_date(unit):
    dates = np.array(["1969-12-31T12:00", "1970-01-01", "2000-03-01"], dtype=f"datetime64[{unit}]")
    found = case_axis(along("time", dates), "time").days
    np.testing.assert_array_equal(found, [-0.5, 0, 11017])
    assert found.dtype == np.float64
    part = case_axis(along("time", dates[1:]), "time").days  # whichever dates stand beside
    np.testing.assert_array_equal(part, found[1:])


@pytest.mark.parametrize(("calendar", "year"), [("noleap", 365), ("360_day", 360), ("julian", 366)])
def test_days_of_other_calendars_count_their_own_days(calendar, year):
    dates = [cftime.datetime(*date, calendar=calendar) for date in [(2000, 1, 1), (2001, 1, 1, 6)]]
    found = case_axis(along("time", np.array(dates, dtype=object)), "time").days
    np.testing.assert_allclose(found, [0, year + 0.25])


def test_cases_are_taken_with_all_that_is_known_of_them():
    axis = CaseAxis(np.arange(2000, 2005), np.linspace(0, 0.8, 5), np.arange(5.0), np.arange(5))
    for cases in (slice(1, 3), np.array([3, 0])):
        found = axis.take(cases)
        for name in ("year", "season", "days", "step"):
            np.testing.assert_array_equal(getattr(found, name), getattr(axis, name)[cases])
    assert CaseAxis().take(slice(2)) == CaseAxis()


def test_each_case_is_a_step_of_its_own_unless_told():
    np.testing.assert_array_equal(CaseAxis().steps(3), [0, 1, 2])
    step = np.array([0, 0, 1])
    assert CaseAxis(step=step).steps(3) is step


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16])
def test_increasing_whole_numbers_are_years(dtype):
    found = case_axis(along("init", np.array([1000, 1980, 9999], dtype=dtype)), "init")
    np.testing.assert_array_equal(found.year, [1000, 1980, 9999])
    assert found.season is None
    assert found.days is None


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2],
        [999, 1000, 1001],
        [9998, 9999, 10000],
        [2001, 2000, 1999],
        np.array([2001, 2000, 1999], dtype=np.uint16),  # their differences wrap around
        [2000, 2000, 2001],
        [2000.0, 2001.0, 2002.0],
        ["2000", "2001", "2002"],
        None,
    ],
    ids=str,
)
def test_other_labels_are_no_dates(labels):
    assert case_axis(random("time", sizes={"time": 3}, time=labels), "time") == CaseAxis()


@pytest.mark.parametrize(
    ("name", "attrs"), [("valid_time", {}), ("verification", {"standard_name": "time"})]
)
def test_valid_time_counts_before_the_label(name, attrs):
    inits = np.array(["2000-01-01", "2000-01-02"], dtype="datetime64[ns]")
    da = along("init", inits).assign_coords(
        {
            name: ("init", inits + np.timedelta64(31, "D"), attrs),
            "created": ("init", inits + np.timedelta64(99, "D")),
        }
    )
    np.testing.assert_allclose(case_axis(da, "init").season, [31 / 366, 32 / 366])


def test_2d_valid_time_does_not_date_the_cases():
    inits = np.array(["2000-01-01", "2000-01-02", "2000-01-03"], dtype="datetime64[ns]")
    valid = inits[:, np.newaxis] + np.array([10, 20, 30], dtype="timedelta64[D]")
    da = along("init", inits).assign_coords(valid_time=(("init", "x"), valid))
    np.testing.assert_allclose(case_axis(da, "init").season, np.arange(3) / 366)
    one_lead = case_axis(da.isel(x=0), "init")
    np.testing.assert_allclose(one_lead.season, (10 + np.arange(3)) / 366)


def test_single_forecast_is_dated_by_a_scalar():
    date = np.datetime64("2001-03-01", "ns")
    da = random("lat", "member")
    assert case_axis(da, "init") == CaseAxis()
    da = da.assign_coords(init=date - np.timedelta64(59, "D"))
    np.testing.assert_allclose(case_axis(da, "init").season, [0.0], atol=1e-15)
    da = da.assign_coords(valid_time=date)
    np.testing.assert_allclose(case_axis(da, "init").season, [59 / 365])
    other = random("time", "member").assign_coords(init=date)  # another dimension than asked for
    assert case_axis(other, "init").year == 2001


# years of cases ----------------------------------------------------------------------------------


def dates_of(first, last, years, calendar=None, freq="D"):
    """Dates of a season in several years, from one MM-DD to another."""
    dates = []
    for year in years:
        end = year + (last < first)
        options = {"use_cftime": calendar is not None, "calendar": calendar or "standard"}
        season = xr.date_range(f"{year}-{first}", f"{end}-{last}", freq=freq, **options)
        dates.append(season.to_numpy())
    return date_axis(np.concatenate(dates)), np.repeat(np.arange(len(dates)), [*map(len, dates)])


@pytest.mark.each_value
@pytest.mark.parametrize("calendar", [None, "noleap", "360_day"])
@pytest.mark.parametrize(
    ("first", "last", "named"),
    [
        ("12-01", "02-28", 1),  # a winter bears the year of its January
        ("11-01", "03-30", 1),
        ("11-15", "12-10", 0),
        ("06-01", "08-30", 0),
        ("01-01", "11-25", 0),
        ("04-01", "02-20", 0),  # most of it in the year that it begins in
    ],
)
def test_years_begin_in_the_largest_gap(first, last, named, calendar):
    axis, season = dates_of(first, last, range(1999, 2006), calendar)
    np.testing.assert_array_equal(years_of_cases(axis), 1999 + season + named)


@pytest.mark.parametrize(
    "dates",
    [
        dates_of("01-01", "12-30", range(1999, 2003)),  # no gap
        dates_of("08-28", "08-01", range(1999, 2003)),  # one of less than 30 days
        dates_of("01-01", "12-30", range(1999, 2003), freq="MS"),  # twelve of a month
        dates_of("01-15", "12-30", range(1999, 2003), freq="ME"),
        dates_of("02-01", "12-30", range(1999, 2003), freq="QS-FEB"),
        dates_of("02-15", "10-10", range(1999, 2003)),  # the largest holds 1 January
        dates_of("07-01", "07-01", range(1999, 2003)),  # a date a year
    ],
)
def test_years_are_those_of_the_calendar_otherwise(dates):
    axis, _ = dates
    np.testing.assert_array_equal(years_of_cases(axis), axis.year)


@pytest.mark.parametrize("calendar", [None, "noleap", "360_day", "all_leap"])
def test_years_begin_on_a_date_that_is_given(calendar):
    axis, _ = dates_of("01-01", "12-30", range(2000, 2005), calendar)
    later = (axis.month_day >= 701).astype(int)
    np.testing.assert_array_equal(years_of_cases(axis, "07-01"), axis.year + later)
    np.testing.assert_array_equal(years_of_cases(axis, "03-01"), axis.year - (axis.month_day < 301))
    np.testing.assert_array_equal(years_of_cases(axis, "01-01"), axis.year)


def test_years_without_dates_are_what_they_are():
    assert years_of_cases(CaseAxis()) is None
    np.testing.assert_array_equal(years_of_cases(CaseAxis(year=np.arange(3))), np.arange(3))


@given(arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 8000)), st.integers(1, 366))
def test_no_year_begins_within_a_shorter_gap_than_another(days, shift):
    """By the days of all years laid over each other."""
    axis = date_axis(np.datetime64("1990-01-01", "s") + np.sort(days + shift) * 86400)
    year = years_of_cases(axis)
    dates = np.unique(axis.season) * 365.25
    gaps = np.diff(dates, append=dates[0] + 365.25)
    if gaps.max() < 30 or gaps[-1] > gaps.max() - 3:
        np.testing.assert_array_equal(year, axis.year)
        return
    at = dates[gaps.argmax()] + gaps.max() / 2
    turned = axis.year + (365.25 * axis.season > at)
    np.testing.assert_array_equal(year - turned, np.full(turned.size, (year - turned)[0]))


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("2003-01-01", 0), ("2004-01-01", 0), ("2003-02-28", 58), ("2004-02-28", 58),
        ("2004-02-29", 58.5), ("2003-03-01", 59), ("2004-03-01", 59), ("2004-03-01T12", 59.5),
        ("2003-12-31", 364), ("2004-12-31", 364), ("1900-03-01", 59), ("2000-12-31T18", 364.75),
    ],
)  # fmt: skip
def test_calendar_days_have_one_place_in_every_year(date, day):
    stamp = np.array([date], "datetime64[ns]")
    np.testing.assert_allclose(date_axis(stamp).day * 365, [day])
    start = xr.date_range(date[:10], date[:10], calendar="standard", use_cftime=True).to_numpy()
    hour = int(date[11:] or 0)
    np.testing.assert_allclose(date_axis(start + timedelta(hours=hour)).day * 365, [day])


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "all_leap"])
def test_in_other_calendars_all_years_are_alike(calendar):
    dates = xr.date_range("2004-01-01", "2005-12-30", calendar=calendar, use_cftime=True)
    axis = date_axis(dates.to_numpy())
    np.testing.assert_array_equal(axis.day, axis.season)


def test_spread_of_the_season_is_in_days_and_knows_no_new_year(rng):
    days = 5 * rng.normal(size=1000)
    for middle in (0.0, 180.0):
        found = spread_of_season((middle + days) / 365.25 % 1)
        assert found == pytest.approx(days.std(), rel=1e-3)
    assert spread_of_season(np.full(30, 0.3)) == pytest.approx(0, abs=1e-5)
    assert spread_of_season(np.arange(12) / 12) > 100
