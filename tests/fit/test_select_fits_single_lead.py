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
    bare = HINDCAST.drop_vars("valid_time").rename(time="init").assign_coords(step=30)
    with pytest.raises(
        ValueError, match=r"has a single step: use forecast.expand_dims\('step'\), so that"
    ):
        bare.recal.crps(OBSERVED)


def test_a_single_step_after_starts_needs_no_valid_time():
    bare = HINDCAST.drop_vars("valid_time").rename(time="init")
    wanted = HINDCAST.recal.crps(OBSERVED).rename(time="init").drop_vars("valid_time")
    xr.testing.assert_allclose(bare.recal.crps(OBSERVED), wanted)
    whole = bare.expand_dims("step").recal.crps(OBSERVED)
    xr.testing.assert_allclose(whole.isel(step=0), wanted)
    xr.testing.assert_allclose(bare[4].recal.crps(OBSERVED), wanted[4])
    model = bare.recal.fit(OBSERVED, EMOS)
    assert "valid time = init + step" in str(model)
    by_valid_time = HINDCAST.recal.fit(OBSERVED, EMOS)
    for name in ("intercept", "slope"):
        np.testing.assert_array_equal(model.state[name], by_valid_time.state[name])
    starts = HINDCAST.time.drop_vars(["valid_time", "step"])
    starts = starts.assign_attrs(standard_name="forecast_reference_time")
    told = HINDCAST.drop_vars("valid_time").assign_coords(time=starts)
    np.testing.assert_allclose(told.recal.crps(OBSERVED), wanted)


@pytest.mark.parametrize("at", [1, -1])
def test_scores_of_one_lead_pair_as_those_of_a_model(at):
    leads = xr.DataArray([6, 30], dims="lead", attrs={"units": "hours"})
    many = random("init", "lead", "number", "lat", init=STARTS, sizes={"lead": 2, "lat": 3})
    many = many.assign_coords(lead=leads)
    model = many.recal.fit(OBSERVED, EMOS)
    one = many.isel(lead=at)
    expected = many.recal.crps(OBSERVED).isel(lead=at)
    xr.testing.assert_allclose(one.recal.crps(OBSERVED), expected.transpose("init", "lat"))
    xr.testing.assert_allclose(
        model.apply(one).recal.crps(OBSERVED),
        model.crps(one, OBSERVED).transpose("init", "lat"),
        rtol=1e-10,
    )
    same = many.recal.spread_skill(OBSERVED).isel(lead=at)
    xr.testing.assert_allclose(one.recal.spread_skill(OBSERVED).rmse, same.rmse)


def test_labels_of_time_beside_a_lead_stay_what_they_are():
    """They may be valid times by now, and nothing tells that they are starts."""
    observed = expected(HINDCAST).assign_coords(time=STARTS)
    one = HINDCAST.drop_vars("valid_time")
    xr.testing.assert_allclose(
        one.recal.crps(observed),
        one.drop_vars("step").recal.crps(observed).assign_coords(step=one.step),
    )


# the dimension of the cases -----------------------------------------------------------------------


@pytest.mark.parametrize("method", [EMOS, xrecal.CKME(support="observations", ridge=0.1)], ids=repr)
def test_issued_forecasts_name_the_dimension_of_their_cases(method):
    hindcast = random("case", "number", "lat", sizes={"case": 30})
    hindcast = hindcast.assign_coords(case=np.arange(30.0))
    observed = random("case", "lat", seed=2, sizes={"case": 30}).assign_coords(case=np.arange(30.0))
    model = hindcast.recal.fit(observed, method, dim="case")
    issued = model.apply(hindcast), model.quantile(hindcast, [0.1, 0.5, 0.9])
    unseen = hindcast.recal.cross_validate(
        observed, method, dim="case", by="block", q=[0.2, 0.5, 0.8]
    )
    for forecast in (*issued, unseen, model.members(hindcast, 5)):
        found = forecast.recal.pit_histogram(observed, bins=4)
        expected = forecast.recal.pit_histogram(observed, "case", bins=4)
        xr.testing.assert_identical(found, expected)
        renamed = forecast.rename(case="time").assign_coords(time=STARTS)
        renamed.recal.pit_histogram(observed.rename(case="time").assign_coords(time=STARTS), bins=4)
    with pytest.raises(ValueError, match="none of the known calibration dimensions"):
        hindcast.recal.pit_histogram(observed, bins=4)
    usual = HINDCAST.recal.fit(OBSERVED, EMOS).apply(HINDCAST)
    assert all("calibration_dim" not in v.attrs for v in usual.data_vars.values())


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
