"""Forecasts of a single lead whose valid time is another than their label says."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random

STARTS = xr.date_range("2000-01-01", periods=30)
LATER = np.timedelta64(30, "h")
OBSERVED = random("time", "lat", time=STARTS + np.timedelta64(6, "h"), seed=1, sizes={"lat": 3})
HINDCAST = random("time", "number", "lat", time=STARTS).assign_coords(
    step=LATER, valid_time=("time", STARTS + LATER)
)  # as GRIB files of one step are read
EMOS = xrecal.EMOS()
Q = [0.1, 0.9]


def expected(forecasts):
    """Each with the observation at its valid time, found one by one."""
    return xr.concat(
        [
            OBSERVED.sel(time=valid).drop_vars("time")
            if valid in OBSERVED.indexes["time"]
            else OBSERVED[0].drop_vars("time") * np.nan
            for valid in forecasts.valid_time.values
        ],
        forecasts.time.drop_vars(["valid_time", "step"]),
    )


def test_observations_are_those_at_the_valid_time():
    found = HINDCAST.recal.crps(OBSERVED)
    by_hand = HINDCAST.drop_vars("valid_time").recal.crps(expected(HINDCAST))
    xr.testing.assert_allclose(found.drop_vars("valid_time"), by_hand)
    assert int(found.isnull().sum()) == 3  # the last day is not observed


def test_fits_say_so():
    model = HINDCAST.recal.fit(OBSERVED, EMOS)
    by_hand = HINDCAST.drop_vars("valid_time").recal.fit(expected(HINDCAST), EMOS)
    xr.testing.assert_allclose(model.quantile(HINDCAST, Q), by_hand.quantile(HINDCAST, Q))
    assert "observations are those at valid_time" in str(model)
    assert "29 of 30 matched" in str(model)
    np.testing.assert_allclose(
        model.crps(HINDCAST, OBSERVED),
        by_hand.crps(HINDCAST.drop_vars("valid_time"), expected(HINDCAST)),
    )


def test_a_single_forecast():
    one = HINDCAST.isel(time=4)
    xr.testing.assert_allclose(one.recal.crps(OBSERVED), HINDCAST.recal.crps(OBSERVED)[4])


@pytest.mark.parametrize("dim", ["init", "forecast_reference_time"])
def test_observations_over_starts_are_matched_by_label(dim):
    forecasts = HINDCAST.rename(time=dim)
    observed = expected(HINDCAST).rename(time=dim)
    xr.testing.assert_allclose(
        forecasts.recal.crps(observed), HINDCAST.recal.crps(OBSERVED).rename(time=dim)
    )
    xr.testing.assert_allclose(
        forecasts.recal.crps(OBSERVED), HINDCAST.recal.crps(OBSERVED).rename(time=dim)
    )


def test_observations_that_have_valid_times_too_are_matched_by_label():
    observed = expected(HINDCAST).assign_coords(valid_time=HINDCAST.valid_time)
    xr.testing.assert_allclose(HINDCAST.recal.crps(observed), HINDCAST.recal.crps(OBSERVED))


def test_valid_times_equal_to_labels_change_nothing():
    same = HINDCAST.assign_coords(time=HINDCAST.valid_time.values)
    found = same.recal.crps(OBSERVED)
    assert int(found.isnull().sum()) == 3
    assert "valid_time" not in str(same.recal.fit(OBSERVED, EMOS))


def test_error_where_no_valid_time_is_observed():
    with pytest.raises(ValueError, match=r"no valid time of forecast .*np.timedelta64\(6, 'h'\)\)"):
        HINDCAST.recal.crps(random("time", "lat", time=STARTS, sizes={"lat": 3}))


def test_a_single_step_without_valid_time_is_told_what_to_do():
    bare = HINDCAST.drop_vars("valid_time").rename(time="init")
    with pytest.raises(ValueError, match=r"of a single step: forecast.expand_dims\('step'\) is"):
        bare.recal.crps(OBSERVED)
    found = bare.expand_dims("step").recal.crps(OBSERVED)
    xr.testing.assert_allclose(
        found.isel(step=0).drop_vars("step"),
        HINDCAST.recal.crps(OBSERVED).rename(time="init").drop_vars(["step", "valid_time"]),
    )


@pytest.mark.parametrize("name", ["forecastMonth", "leadtime_month"])
@pytest.mark.parametrize("attrs", [{}, {"units": "1"}, {"units": "months"}])
def test_months_of_the_climate_data_store_count_from_one(name, attrs):
    starts = xr.date_range("2000-01-01", periods=24, freq="MS")
    observed = random("time", time=xr.date_range("2000-01-01", periods=30, freq="MS"))
    forecasts = random("init", name, "number", init=starts, sizes={"init": 24})
    forecasts = forecasts.assign_coords({name: (name, [1, 2, 3], attrs)})
    found = forecasts.recal.crps(observed)
    for month in (1, 2, 3):
        at = observed[month - 1 : month + 23].rename(time="init").assign_coords(init=starts)
        one = forecasts.sel({name: month}, drop=True).recal.crps(at)
        xr.testing.assert_allclose(found.sel({name: month}, drop=True), one)
