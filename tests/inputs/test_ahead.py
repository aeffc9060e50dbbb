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


def starts(*dims):
    return random("init", *dims, "member", sizes={"init": 4, "lead": 2}, init=STARTS)


def leads(labels, **attrs):
    return starts("lead").assign_coords(lead=("lead", labels, attrs))


def labelled_by_valid_times(forecasts):
    """The same dates as valid times, by their standard name."""
    labelled = forecasts.rename(init="time")
    labelled["time"].attrs["standard_name"] = "time"
    return labelled


CASES = {
    "starts and leads": (leads([24, 60], units="hours"), [[1, 2.5]] * 4),
    "months of the calendar": (
        leads([1, 2], units="months"), [[30, 59], [29, 59], [28, 59], [28, 59]]
    ),
    "a coordinate of valid times": (
        starts().assign_coords(valid_time=("init", STARTS + np.timedelta64(36, "h"))), [1.5] * 4
    ),
    "a single lead": (starts().assign_coords(lead=((), 3, {"units": "days"})), [3] * 4),
    "leads of valid times": (
        labelled_by_valid_times(leads([1, 5], units="days")), [[-1, -5]] * 4
    ),
    "a single start": (starts().isel(init=0), 0),
    "a single start with leads": (leads([1, 5], units="days").isel(init=0), [1, 5]),
    "nothing": (starts(), [0] * 4),
    "no labels": (starts().drop_vars("init"), [0] * 4),
    "leads without a unit": (leads([1, 2]), [0] * 4),
    "leads of no known unit": (leads([1, 2], units="furlongs"), [0] * 4),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_days_from_the_start_to_the_valid_time(case):
    forecasts, expected = CASES[case]
    dim = "time" if "time" in forecasts.dims else "init"
    found = ahead(forecasts, dim)
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found, expected)
