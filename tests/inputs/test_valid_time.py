"""Valid times of forecasts over starts and leads, against a loop over each of them."""

import itertools

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.labelled import random
from tests.marks import DATA, forbid_compute, requires_data
from xrecal.inputs.leads import UNITS
from xrecal.inputs.roles import Roles
from xrecal.inputs.valid_time import (
    known_valid_times,
    time_dim,
    valid_times,
)

STARTS = np.array(["2000-01-31T06:00", "2000-02-29", "2001-08-30T12:00"], "datetime64[ns]")
MONTHS = {"months": 1, "seasons": 3, "years": 12}
FIXED = {
    "seconds": "1s",
    "minutes": "1min",
    "hours": "1h",
    "days": "1D",
    "pentads": "5D",
    "weeks": "7D",
}


def forecasts(
    starts=STARTS, leads=(0, 1, 6, 13), units="days", dim="init", lead="lead", attrs=None
):
    attrs = (attrs or {}) | ({} if units is None else {"units": units})
    return random(
        dim, lead, sizes={dim: len(starts), lead: len(leads)},
        **{dim: starts, lead: (lead, np.asarray(leads), attrs)},
    )  # fmt: skip


def found(array, dim="init", lead="lead"):
    return valid_times(Roles(array), dim, lead, name="hindcast")


def later_by_months(start, months):
    """The same day of a later month, or the nearest one before it that there is."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    for day in range(start.day, 0, -1):
        try:
            return start.replace(year=year, month=month + 1, day=day)
        except ValueError:
            continue
    raise AssertionError


# starts plus leads --------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [*FIXED, *MONTHS])
@pytest.mark.parametrize("resolution", ["s", "us", "ns"])
def test_dates_of_every_start_and_lead(unit, resolution):
    array = forecasts(STARTS.astype(f"datetime64[{resolution}]"), units=unit)
    result = found(array)
    assert result.dims == ("init", "lead")
    assert result.indexes["lead"].equals(array.indexes["lead"])
    for i, j in itertools.product(range(3), range(4)):
        start, lead = pd.Timestamp(STARTS[i]), int(array.lead[j])
        if unit in MONTHS:
            expected = start + pd.DateOffset(months=lead * MONTHS[unit])
        else:
            expected = start + lead * pd.Timedelta(FIXED[unit])
        assert pd.Timestamp(result.values[i, j]) == expected


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "all_leap", "standard", "julian"])
@pytest.mark.parametrize("unit", ["hours", "days", *MONTHS])
def test_dates_of_every_calendar(calendar, unit):
    day = 30 if calendar == "360_day" else 31
    starts = [
        cftime.datetime(1999, 12, day, 6, calendar=calendar),
        cftime.datetime(2000, 1, day, calendar=calendar),
        cftime.datetime(2003, 2, 28, calendar=calendar),
    ]
    array = forecasts(starts, units=unit)
    result = found(array)
    for i, j in itertools.product(range(3), range(4)):
        lead = int(array.lead[j])
        if unit in MONTHS:
            expected = later_by_months(starts[i], lead * MONTHS[unit])
        else:
            expected = starts[i] + lead * pd.Timedelta(FIXED[unit]).to_pytimedelta()
        assert result.values[i, j] == expected
        assert result.values[i, j].calendar == calendar


@pytest.mark.parametrize("alias", UNITS)
def test_spellings_of_units(alias):
    plural = f"{UNITS[alias]}s"
    for spelling in (alias, f" {alias.upper()} "):
        xr.testing.assert_equal(found(forecasts(units=spelling)), found(forecasts(units=plural)))


def test_parts_of_days_and_timedeltas():
    expected = found(forecasts(leads=[0, 12, 36], units="hours"))
    days = forecasts(leads=[0.0, 0.5, 1.5], units="days")
    np.testing.assert_array_equal(found(days), expected)
    exact = found(forecasts(leads=[0.1, 1.1], units="seconds")) - STARTS[:, np.newaxis]
    np.testing.assert_array_equal(exact[0], np.array([100, 1100], "m8[ms]"))
    for unit in ("h", "s", "ns"):
        lengths = forecasts(leads=np.array([0, 12, 36], "m8[h]").astype(f"m8[{unit}]"), units=None)
        np.testing.assert_array_equal(found(lengths), expected)


def test_years():
    for units in ("years", None):
        array = forecasts([1954, 1955, 1960], [1, 2, 10], units)
        expected = [[1955, 1956, 1964], [1956, 1957, 1965], [1961, 1962, 1970]]
        np.testing.assert_array_equal(found(array), expected)


def test_a_single_start():
    cf = forecasts([cftime.DatetimeNoLeap(2000, 1, 31)] * 2, units="months")
    for array in (forecasts(), cf):
        result = found(array.isel(init=1))
        assert result.dims == ("lead",)
        np.testing.assert_array_equal(result, found(array)[1])
    array = random("lead").assign_coords(init=STARTS[0], created=STARTS[1])
    assert Roles(array).single_start == "init"
    other = array.assign_coords(start=((), STARTS[2], {"standard_name": "forecast_reference_time"}))
    assert Roles(other).single_start == "start"
    assert Roles(random("lead")).single_start is None
    assert Roles(array.assign_coords(time=STARTS[1])).single_start is None


# the coordinate -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attrs"), [("valid_time", {}), ("verification", {"standard_name": "time"})]
)
def test_a_coordinate_over_both_counts_first(name, attrs):
    array = forecasts(units=None)
    given = found(forecasts()) + np.timedelta64(3, "h")
    coordinate = given.transpose("lead", "init").variable
    coordinate.attrs = attrs
    result = found(array.assign_coords({name: coordinate}))
    np.testing.assert_array_equal(result, given)
    single = array.assign_coords({name: coordinate}).isel(init=2)
    np.testing.assert_array_equal(found(single), given[2])


def test_a_lazy_coordinate_is_not_computed():
    array = forecasts()
    lazy = array.assign_coords(valid_time=(found(array) + np.timedelta64(3, "h")).chunk())
    with forbid_compute():
        xr.testing.assert_equal(found(lazy), found(array))


@pytest.mark.parametrize("dims", [("init",), ("lead",)])
def test_a_coordinate_of_other_dimensions(dims):
    array = forecasts()
    narrow = found(array).isel({d: 0 for d in ("init", "lead") if d not in dims}, drop=True)
    message = (
        rf"'valid_time' of hindcast is over \['{dims[0]}'\], but each forecast over "
        r"\['init', 'lead'\] has .* drop it: hindcast.drop_vars\('valid_time'\)"
    )
    with pytest.raises(ValueError, match=message):
        found(array.assign_coords(valid_time=narrow))
    assert known_valid_times(Roles(array.assign_coords(valid_time=narrow)), "init") is None
    stations = xr.DataArray(np.zeros(3), dims="x")
    with pytest.raises(ValueError, match=r"over \['init', 'lead', 'x'\]"):
        found((array + stations).assign_coords(valid_time=found(array).expand_dims(x=3, axis=-1)))


def test_where_valid_times_are_not_known():
    assert known_valid_times(Roles(forecasts(units=None, lead="lat")), "init") is None
    assert known_valid_times(Roles(forecasts(units=None)), "init") is None
    xr.testing.assert_equal(known_valid_times(Roles(forecasts()), "init"), found(forecasts()))
    by_valid_time = forecasts(dim="valid_time")
    assert known_valid_times(Roles(by_valid_time), "valid_time") is None


# observations -------------------------------------------------------------------------------------


def test_the_dimension_of_valid_times():
    array = forecasts()

    def of(*dims, **coords):
        return time_dim(Roles(random(*dims, **coords)), array, "init")

    assert of("time", "x") == "time"
    assert of("x", "valid_time") == "valid_time"
    assert of("init") == "init"
    assert of("day", "x", day=STARTS) == "day"
    assert of("day", day=xr.date_range("2000", periods=3, calendar="noleap", use_cftime=True)) == (
        "day"
    )
    assert of("year", year=[1990, 1991, 1992]) == "year"
    assert of("x", x=("x", [1, 2, 3], {"standard_name": "time"})) == "x"
    assert of("x", x=[1, 2, 3]) is None
    with pytest.raises(ValueError, match=r"several dimensions of dates, \['time', 'day'\], but"):
        of("time", "day", day=STARTS)


# errors -------------------------------------------------------------------------------------------

ERRORS = {
    "no units": (
        forecasts(units=None),
        r"lead times along 'lead' of hindcast have no units; set them: "
        r'hindcast.lead.attrs\["units"\] = "days"',
    ),
    "unknown units": (
        forecasts(units="furlongs"),
        r"units 'furlongs', which are not among seconds, .*years; set them: hindcast.lead.attrs",
    ),
    "parts of months": (
        forecasts(leads=[0.5, 1.5], units="months"),
        "'lead' of hindcast are parts of months",
    ),
    "text": (forecasts(leads=["a", "b"]), "must be numbers or timedelta64, got str"),
    "unlabelled": (
        forecasts().drop_vars("lead"),
        r"no lead times along 'lead'; add them: hindcast.assign_coords\(lead=\('lead', \[",
    ),
    "missing": (
        forecasts(leads=[1, np.nan]),
        r"a lead time along 'lead' of hindcast is missing; use hindcast.dropna\('lead'\)",
    ),
    "twice": (
        forecasts(leads=[1, 2, 2]),
        r"'lead' of hindcast must be unique, but 2 occurs .* hindcast.drop_duplicates\('lead'\)",
    ),
    "starts without labels": (
        forecasts().drop_vars("init"),
        "'init' has no labels, and no dates",
    ),
    "starts without dates": (
        forecasts(["a", "b", "c"]),
        r"'init' holds str_?, and no dates of the starts; add them: hindcast.assign_coords\(",
    ),
    "whole numbers and days": (
        forecasts([1, 2, 3]),
        r"hindcast starts at 1 along 'init', which is not a date to which leads can be added",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(case):
    array, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        found(array)


def test_what_the_messages_say_to_type_helps():
    hindcast = forecasts(units=None)
    with pytest.raises(ValueError, match="have no units") as error:
        found(hindcast)
    exec(str(error.value).rpartition("set them: ")[2], {"hindcast": hindcast})
    xr.testing.assert_equal(found(hindcast), found(forecasts()))
    with pytest.raises(ValueError, match=r"no coordinate with its start; .*\(init=DATE\)"):
        found(forecasts().isel(init=0, drop=True), None)


# real data ----------------------------------------------------------------------------------------


@requires_data("gmao_mjo_rmm1.nc", "glofas_discharge.nc", "hefs_lgnn5.nc")
@pytest.mark.parametrize("name", ["gmao_mjo_rmm1", "glofas_discharge", "hefs_lgnn5"])
def test_starts_and_leads_make_the_valid_times_of_real_data(name):
    data = xr.open_dataset(DATA / f"{name}.nc")
    given = data.valid_time
    result = found(data.forecast.isel(member=0).drop_vars("valid_time"))
    np.testing.assert_array_equal(result, given)
