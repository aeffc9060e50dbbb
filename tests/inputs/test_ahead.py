import numpy as np
import pytest
import xarray as xr

from tests.labelled import random
from xrecal.inputs.covariates import days_ahead
from xrecal.inputs.forms import read_forms

STARTS = xr.date_range("2001-01-29", periods=4, freq="D", use_cftime=False)


def ahead(forecasts, dim="init"):
    ((_, form),) = read_forms(forecasts, None, name="forecast").items()
    return days_ahead(form, dim)


def starts(*dims, **coords):
    return random("init", *dims, "member", sizes={"init": 4}, init=STARTS, **coords)


def test_starts_and_leads():
    days = xr.Variable("lead", [24, 60], {"units": "hours"})
    found = ahead(starts("lead", "lat").isel(lead=[0, 1]).assign_coords(lead=days))
    np.testing.assert_array_equal(found.transpose("init", "lead"), [[1, 2.5]] * 4)


def test_months_are_those_of_the_calendar():
    months = xr.Variable("lead", [1, 2], {"units": "months"})
    found = ahead(starts("lead").isel(lead=[0, 1]).assign_coords(lead=months))
    np.testing.assert_array_equal(found[0], [30, 59])
    np.testing.assert_array_equal(found[3], [28, 59])


def test_a_coordinate_of_valid_times():
    later = STARTS + np.timedelta64(36, "h")
    found = ahead(starts().assign_coords(valid_time=("init", later)))
    np.testing.assert_array_equal(found, 1.5)
    assert found.dims == ("init",)


def test_a_single_lead():
    lead = xr.Variable((), 3, {"units": "days"})
    found = ahead(starts().assign_coords(lead=lead))
    np.testing.assert_array_equal(found, [3] * 4)
    assert found.dims == ("init",)


def test_leads_of_valid_times():
    days = xr.Variable("lead", [1, 5], {"units": "days"})
    forecasts = random("time", "lead", "member", sizes={"time": 4, "lead": 2}, time=STARTS)
    forecasts["time"].attrs["standard_name"] = "time"
    found = ahead(forecasts.assign_coords(lead=days), "time")
    np.testing.assert_array_equal(found.transpose("time", "lead"), [[1, 5]] * 4)


@pytest.mark.parametrize(
    "forecasts",
    [
        starts(),
        starts().drop_vars("init"),
        starts("lead").assign_coords(lead=[1, 2, 3]),
        starts("lead").assign_coords(lead=xr.Variable("lead", [1, 2, 3], {"units": "furlongs"})),
    ],
)
def test_none_where_nothing_tells(forecasts):
    found = ahead(forecasts)
    np.testing.assert_array_equal(found, np.zeros(4))
    assert found.dims == ("init",)


def test_a_single_forecast():
    assert ahead(starts().isel(init=0)).item() == 0
    days = xr.Variable("lead", [1, 5], {"units": "days"})
    one = starts("lead").isel(lead=[0, 1], init=0).assign_coords(lead=days)
    np.testing.assert_array_equal(ahead(one), [1, 5])
