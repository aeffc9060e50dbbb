"""Dates of hindcasts with leads: starts or valid times."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.inputs.roles import Roles
from xrecal.inputs.valid_time import are_valid_times, lead_to_look_up

LEADS = [1, 3, 5]
DATES = np.datetime64("2000-01-01", "ns") + np.arange(320) * np.timedelta64(1, "D")
N = 300
METHOD = xrecal.EMOS()


def weather():
    """What happens, with a memory of some days."""
    rng, x = np.random.default_rng(0), np.zeros(DATES.size)
    for i in range(1, x.size):
        x[i] = 0.8 * x[i - 1] + rng.normal()
    return xr.DataArray(x, {"time": DATES}, ["time"], name="t2m")


OBSERVED = weather()


def hindcast(*, valid=False, standard_name=None, **coords):
    """Forecasts of all leads with the errors of each, along starts or valid times."""
    rng = np.random.default_rng(1)
    at = np.arange(N)[:, np.newaxis] + (np.zeros(3, int) if valid else np.array(LEADS))
    truth = OBSERVED.to_numpy()[at] + 0.3 * np.array(LEADS) * rng.normal(size=(N, 3))
    members = truth[..., np.newaxis] + 0.5 * rng.normal(size=(N, 3, 8))
    attrs = {} if standard_name is None else {"standard_name": standard_name}
    labels = {"time": ("time", DATES[:N], attrs), "lead": ("lead", LEADS, {"units": "days"})}
    return xr.DataArray(members, labels | coords, ["time", "lead", "member"], name="t2m")


def over_both(name, sign, attrs=None):
    """A coordinate over dates and leads: dates with the leads added or taken off."""
    days = np.array(LEADS) * np.timedelta64(1, "D")
    return {name: (("time", "lead"), DATES[:N, np.newaxis] + sign * days, attrs or {})}


READINGS = {
    "nothing": ({}, False),
    "CF valid": ({"standard_name": "time"}, True),
    "CF start": ({"standard_name": "forecast_reference_time"}, False),
    "starts of each": (over_both("init", -1), True),
    "CF starts of each": (
        over_both("origin", -1, {"standard_name": "forecast_reference_time"}),
        True,
    ),
    "the same starts": (over_both("init", 0), False),
    "valid times of each": (over_both("valid_time", 1), False),
    "which decide": (over_both("valid_time", 1) | {"standard_name": "time"}, False),
    "as do starts": (over_both("init", -1) | {"standard_name": "forecast_reference_time"}, True),
}


@pytest.mark.parametrize(("given", "valid"), READINGS.values(), ids=READINGS)
def test_coordinates_tell_what_dates_are(given, valid):
    forecasts = hindcast(valid=valid, **given)
    assert are_valid_times(Roles(forecasts), "time", "lead") == valid
    assert lead_to_look_up(Roles(forecasts), "time", name="hindcast") == (None if valid else "lead")
    model = forecasts.recal.fit(OBSERVED, METHOD)  # without a warning
    expected = hindcast().recal.fit(OBSERVED, METHOD)
    at = np.arange(N)[:, np.newaxis] + (0 if valid else np.array(LEADS))
    observed = OBSERVED.to_numpy()[np.broadcast_to(at, (N, 3))]
    np.testing.assert_array_equal(model.variables["t2m"].n_matched, N)
    scores = model.crps(forecasts, OBSERVED)
    np.testing.assert_allclose(
        scores, model.crps(forecasts, forecasts[..., 0].copy(data=observed)), rtol=1e-12
    )
    np.testing.assert_allclose(model.state["slope"], expected.state["slope"], rtol=0.1)


def test_a_dimension_of_starts_stays_one():
    starts = hindcast(standard_name="time").rename(time="init")
    assert not are_valid_times(Roles(starts), "init", "lead")
    assert not are_valid_times(Roles(starts.drop_vars("init")), "init", "lead")


@pytest.mark.parametrize("name", ["time", "init"])
def test_the_text_tells_what_custom_says(name):
    model = hindcast().rename(time=name).recal.fit(OBSERVED, METHOD)
    assert ("valid time = time + lead" in repr(model)) == (name == "time")
    told = hindcast(standard_name="forecast_reference_time").recal.fit(OBSERVED, METHOD)
    assert "valid time =" not in repr(told)


def test_what_is_typed_settles_it():
    told = hindcast(valid=True)
    told["time"].attrs["standard_name"] = "time"
    renamed = hindcast(valid=True).rename(time="valid_time")
    a = told.recal.fit(OBSERVED, METHOD)
    b = renamed.recal.fit(OBSERVED.rename(time="valid_time"), METHOD, dim="valid_time")
    np.testing.assert_array_equal(a.state["slope"], b.state["slope"])
