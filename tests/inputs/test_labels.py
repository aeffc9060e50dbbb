"""Dates in any type and zone, and cases and leads that have coordinates but no index."""

import datetime
import warnings

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze, random
from xrecal.inputs.labels import read_labels

N = 40
UTC = pd.date_range("2001-03-01T06:00", periods=N, freq="14D")  # over the change to summer time
TIMES = pd.date_range("2001-03-01T06:00", periods=N + 5, freq="14D")
OBSERVED = random("time", "x", seed=1, sizes={"time": N + 5, "x": 2}, time=TIMES)
LEADS = xr.Variable("lead", [14, 56], {"units": "days"})
HINDCAST = random("init", "lead", "x", "member", sizes={"init": N, "lead": 2, "x": 2})
HINDCAST = HINDCAST.assign_coords(init=UTC, lead=LEADS)
EMOS = xrecal.EMOS()
SEASONS = xr.DataArray(np.linspace(-1, 1, 12), {"month": range(1, 13)})


def local(dates, zone="America/New_York"):
    return dates.tz_localize("UTC").tz_convert(zone)


WAYS = {
    "seconds": lambda dates: dates.to_numpy().astype("M8[s]"),
    "nanoseconds": lambda dates: dates.to_numpy().astype("M8[ns]"),
    "a time zone": local,
    "Timestamps": lambda dates: np.array(list(local(dates, "Asia/Tokyo")), object),
    "Python's dates": lambda dates: np.array(local(dates).to_pydatetime(), object),
    "without zone": lambda dates: np.array([d.to_pydatetime() for d in dates], object),
    "periods": lambda dates: dates.to_period("h"),
}


EXPECTED = HINDCAST.recal.crps(OBSERVED), HINDCAST.recal.exceedance(SEASONS)


@pytest.mark.parametrize("way", WAYS)
def test_dates_of_any_type_and_zone_give_the_same_numbers(way):
    hindcast = HINDCAST.assign_coords(init=WAYS[way](UTC))
    observed = OBSERVED.assign_coords(time=WAYS[way](OBSERVED.indexes["time"]))
    np.testing.assert_array_equal(hindcast.recal.crps(OBSERVED), EXPECTED[0])
    np.testing.assert_array_equal(hindcast.recal.exceedance(SEASONS), EXPECTED[1])
    one = freeze(hindcast.isel(init=3))
    np.testing.assert_array_equal(one.recal.crps(freeze(observed)), EXPECTED[0][3])
    np.testing.assert_array_equal(one.recal.exceedance(SEASONS), EXPECTED[1][3])


def test_valid_times_with_a_time_zone():
    one, later = HINDCAST.isel(lead=0, drop=True), UTC + pd.Timedelta(days=14)
    zoned = one.assign_coords(valid_time=("init", local(later)))
    expected = one.assign_coords(valid_time=("init", later)).recal.crps(OBSERVED)
    np.testing.assert_array_equal(zoned.recal.crps(OBSERVED), expected)


def test_days_without_a_time_are_dates():
    dates = [datetime.date(2000, 1, 1) + datetime.timedelta(days=k) for k in range(3)]
    found = read_labels(
        random("time", sizes={"time": 3}, time=np.array(dates, object)), name="forecast"
    ).obj
    np.testing.assert_array_equal(found["time"], np.array(dates, "M8[D]"))


def test_dates_of_cftime_without_a_calendar_are_refused():
    dates = np.array([cftime.datetime(2001, 3, 1 + k % 28, calendar="") for k in range(N)], object)
    for forecast, observed, message in (
        (HINDCAST.assign_coords(init=dates), OBSERVED, "'init' of forecast"),
        (HINDCAST[3].assign_coords(init=dates[3]), OBSERVED, "'init' of forecast"),
        (HINDCAST[:, 0].assign_coords(valid_time=("init", dates)), OBSERVED, "'valid_time' of for"),
        (HINDCAST, OBSERVED[:N].assign_coords(time=dates), r"'time' of .* observations\.assign_co"),
    ):
        with pytest.raises(ValueError, match=f"the dates in {message}") as error:
            forecast.recal.crps(observed)
        assert "are cftime objects without a calendar, such as 20" in str(error.value)


def test_what_the_message_says_to_type_gives_a_calendar():
    dates = [cftime.datetime(*d.timetuple()[:4], calendar="") for d in UTC[:20]]
    forecast = HINDCAST[:20].assign_coords(init=np.array(dates, object))
    with pytest.raises(ValueError, match="such as forecast") as error:
        forecast.recal.crps(OBSERVED)
    typed = str(error.value).rpartition("such as ")[2]
    dated = eval(typed, {"forecast": forecast, "cftime": cftime})
    times = xr.date_range(
        "2001-03-01T06:00", periods=N + 5, freq="14D", calendar="standard", use_cftime=True
    )
    found = dated.recal.crps(OBSERVED.assign_coords(time=times))
    np.testing.assert_array_equal(found, EXPECTED[0][:20])


# dimensions without an index ----------------------------------------------------------------------


def without_index(array, dim, **names):
    """An array whose labels along a dimension are a coordinate of another name."""
    (new, label) = next(iter(names.items()))
    coordinate = (new, array[dim].to_numpy(), array[dim].attrs)
    return array.drop_vars(dim).rename({dim: new}).assign_coords({label: coordinate})


def test_a_coordinate_of_dates_or_leads_labels_its_dimension():
    hindcast = without_index(HINDCAST, "init", profile="juld")
    observed = without_index(OBSERVED, "time", record="juld")
    found = hindcast.recal.crps(observed)
    np.testing.assert_array_equal(found, EXPECTED[0])
    assert found.dims == ("profile", *EXPECTED[0].dims[1:])
    hindcast = without_index(HINDCAST, "lead", k="hours_since_start")
    np.testing.assert_array_equal(hindcast.recal.crps(OBSERVED), EXPECTED[0])


def test_dates_of_places_are_no_cases():
    installed = ("x", pd.to_datetime(["1990-01-01", "1995-01-01"]))
    hindcast, observed = (a.assign_coords(installed=installed) for a in (HINDCAST, OBSERVED))
    np.testing.assert_array_equal(hindcast.recal.crps(observed), EXPECTED[0])
    assert "x" not in read_labels(hindcast, name="forecast").obj.indexes


def test_lazy_dates_pair_as_dates_in_memory():
    one = HINDCAST.isel(lead=0, drop=True)
    valid = one.init + np.timedelta64(1, "D")
    beside = {"valid_time": valid.chunk(), "height": (2.0 * valid.dt.day).chunk()}
    lazy = one.chunk().assign_coords(beside)
    read = read_labels(lazy, name="forecast").obj
    assert read.valid_time.chunks is None
    assert read.height.chunks is not None
    truth = one.mean("member").rename(init="time").assign_coords(time=valid.to_numpy())
    expected = one.assign_coords(valid_time=valid).recal.crps(truth)
    np.testing.assert_array_equal(lazy.recal.crps(truth), expected)


# valid times that contradict the leads ------------------------------------------------------------

MONTHS = pd.date_range("2000-01-01", periods=48, freq="MS")
MONTHLY = random("time", seed=2, sizes={"time": 48}, time=MONTHS)
SEASONAL = random(
    "time", "forecastMonth", "member", sizes={"time": 30, "forecastMonth": 3}, time=MONTHS[:30]
).assign_coords(forecastMonth=[1, 2, 3])


def valid(months, days=0):
    """Valid times so many months after those of starts and leads, and days."""
    at = np.arange(30)[:, None] + np.arange(3) + months
    return ("time", "forecastMonth"), MONTHS.to_numpy()[at] + np.timedelta64(days, "D")


@pytest.mark.parametrize("name", ["valid_time", "verification"])
@pytest.mark.parametrize("select", [slice(None), [1], 1], ids=str)
def test_months_that_end_at_their_valid_time_are_those_of_the_leads(select, name):
    dims, ends = valid(1)
    attrs = {"standard_name": "time"} if name == "verification" else {}
    plain = SEASONAL.isel(forecastMonth=select)
    ended = SEASONAL.assign_coords({name: (dims, ends, attrs)}).isel(forecastMonth=select)
    message = rf"{name} of forecast contradicts its starts and leads: forecastMonth . after 2000-01"
    with pytest.warns(UserWarning, match=message) as told:
        found = ended.recal.crps(MONTHLY)
    assert len(told) == 1
    np.testing.assert_array_equal(found, plain.recal.crps(MONTHLY))
    with pytest.warns(UserWarning, match="of hindcast contradicts"):
        fits = ended.recal.fit(MONTHLY, EMOS)
    np.testing.assert_array_equal(
        fits.state["slope"], plain.recal.fit(MONTHLY, EMOS).state["slope"]
    )
    with pytest.warns(UserWarning, match="contradicts"):
        dry = ended.recal.exceedance(SEASONS)
    np.testing.assert_array_equal(dry, plain.recal.exceedance(SEASONS))
    assert name in found.coords


def test_what_is_typed_lets_the_valid_time_count():
    ended = SEASONAL.assign_coords(valid_time=valid(1))
    with pytest.warns(UserWarning, match=r"use forecast\.drop_vars\('forecastMonth'\)"):
        ended.recal.crps(MONTHLY)
    found = ended.drop_vars("forecastMonth").recal.crps(MONTHLY)
    later = MONTHLY.assign_coords(time=MONTHS - pd.DateOffset(months=1))
    np.testing.assert_array_equal(found, SEASONAL.recal.crps(later))


@pytest.mark.parametrize(
    ("unit", "shift"), [("months", 14), ("days", 0), ("days", 0.5), ("hours", 0.75)], ids=str
)
def test_dates_within_the_month_or_day_contradict_nothing(unit, shift):
    """The middle of a month and of a day are stamps that archives give to means over them."""
    if unit == "months":
        hindcast, observed = SEASONAL.assign_coords(valid_time=valid(0, shift)), MONTHLY
        observed = observed.assign_coords(time=MONTHS + pd.Timedelta(days=shift))
        expected = SEASONAL.recal.crps(MONTHLY)
    else:
        per_day = {"days": 1, "hours": 24}[unit]
        leads = xr.Variable("lead", [14 * per_day, 56 * per_day], {"units": unit})
        later = HINDCAST.init + xr.DataArray([14, 56], dims="lead") * np.timedelta64(1, "D")
        step = np.timedelta64(int(shift * 86400), "s")
        hindcast = HINDCAST.assign_coords(lead=leads, valid_time=later + step)
        observed, expected = OBSERVED.assign_coords(time=OBSERVED.time + step), EXPECTED[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(hindcast.recal.crps(observed), expected)


@pytest.mark.parametrize("calendar", ["datetime64", "noleap"])
def test_a_day_is_a_contradiction(calendar):
    hindcast, observed = HINDCAST, OBSERVED
    if calendar == "noleap":
        times = xr.date_range(
            "2001-03-01", periods=N + 5, freq="14D", calendar="noleap", use_cftime=True
        )
        hindcast = hindcast.assign_coords(init=times[:N])
        observed = observed.assign_coords(time=times)
    starts = hindcast.indexes["init"]
    late = np.array([[d + datetime.timedelta(days=k + 1) for k in (14, 56)] for d in starts])
    with pytest.warns(UserWarning, match="lead 14 days after 2001-03-01.* is 2001-03-15.*-03-16"):
        found = hindcast.assign_coords(valid_time=(("init", "lead"), late)).recal.crps(observed)
    np.testing.assert_array_equal(found, EXPECTED[0])


def test_dates_of_members_are_no_cases():
    """Each member of what is issued says which past case it is."""
    model = HINDCAST[:, 0].recal.fit(OBSERVED, xrecal.CKME(support="observations", ridge=0.1))
    one = HINDCAST[3, 0]
    issued = model.apply(one)
    assert "calibration_init" in issued.coords
    assert "member" not in read_labels(issued, name="forecast").obj.indexes
    found = issued.recal.crps(OBSERVED)
    np.testing.assert_allclose(found, model.crps(one, OBSERVED), rtol=1e-12)
    lagged = HINDCAST[:, 0].rename(init="day").assign_coords(member=UTC[:5])
    np.testing.assert_array_equal(lagged.recal.crps(OBSERVED), EXPECTED[0][:, 0])
