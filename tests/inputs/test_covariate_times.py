"""Covariates along dates of their own: looked up at the start or at the valid time."""

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute

N, LATER = 40, 6
STARTS = pd.date_range("2019-01-01", periods=N + LATER, freq="7D")
LEADS = np.array([1, 3], "timedelta64[D]").astype("timedelta64[ns]")
DAYS = pd.date_range("2018-12-01", "2020-01-31")
PAST, NEW = {"init": slice(None, N)}, {"init": slice(N, None)}
EMOS = xrecal.EMOS()


def made():
    """Forecasts over starts and leads at two places, observations and an index by date."""
    rng = np.random.default_rng(5)
    index = xr.DataArray(rng.normal(size=DAYS.size), {"time": DAYS}, ["time"], name="index")
    places = {"station": ["a", "b"]}
    truth = xr.DataArray(
        rng.normal(size=(DAYS.size, 2)), {"time": DAYS, **places}, ["time", "station"], name="t2m"
    )
    truth = truth + index
    valid = xr.DataArray(STARTS, {"init": STARTS}, ["init"]) + xr.DataArray(
        LEADS, {"lead": LEADS}, ["lead"]
    )
    signal = truth.sel(time=valid).drop_vars("time")
    noise = xr.DataArray(rng.normal(size=(*signal.shape, 4)), dims=[*signal.dims, "member"])
    return (signal + noise).rename("t2m"), truth, index


FORECAST, TRUTH, INDEX = made()
VALID = xr.DataArray(STARTS, {"init": STARTS}, ["init"]) + FORECAST.lead
AT_VALID = INDEX.sel(time=VALID).drop_vars("time")
AT_START = INDEX.sel(time=FORECAST.init).drop_vars("time")


def fit(index, hindcast=FORECAST.isel(PAST), **options):  # noqa: B008
    return hindcast.recal.fit(TRUTH, EMOS, covariates={"index": index}, **options)


def quantiles(model, index, forecast=FORECAST.isel(NEW)):  # noqa: B008
    return model.quantile(forecast, [0.2, 0.8], covariates={"index": index})


@pytest.mark.parametrize(("known", "expected"), [("valid", AT_VALID), ("start", AT_START)])
def test_the_attribute_says_which_date_is_looked_up(known, expected):
    index = INDEX.assign_attrs(known=known)
    model, given = fit(index), fit(expected)
    xr.testing.assert_equal(model.state.covariate_index, given.state.covariate_index)
    found = quantiles(model, index)
    xr.testing.assert_identical(found, quantiles(given, expected))
    xr.testing.assert_identical(quantiles(model, INDEX), found)  # as the fit knows it
    pooled = fit(index, pool="lead")
    xr.testing.assert_allclose(
        quantiles(pooled, index), quantiles(fit(expected, pool="lead"), expected)
    )


@pytest.mark.parametrize("known", ["valid", "start"])
def test_one_start_and_one_lead_find_their_value(known):
    index = INDEX.assign_attrs(known=known)
    model = fit(index)
    whole = quantiles(model, index)
    for at in ({"init": 2}, {"lead": 1}, {"init": 2, "lead": 1}):
        found = quantiles(model, index, FORECAST.isel(NEW).isel(at))
        expected = whole.isel(at).transpose(*found.dims)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    one = FORECAST.isel(lead=1)
    alone = fit(index, one.isel(PAST))
    found = quantiles(alone, index, one.isel(NEW))
    np.testing.assert_allclose(found, whole.isel(lead=1), rtol=1e-6)


def test_any_order_and_name_of_dates_and_places():
    own = (INDEX + xr.DataArray([0.0, 1.0], {"station": ["a", "b"]}, ["station"])).assign_attrs(
        known="valid"
    )
    expected = quantiles(fit(own), own)
    rng = np.random.default_rng(1)
    mixed = own.isel(time=rng.permutation(DAYS.size), station=[1, 0]).transpose("station", "time")
    mixed = mixed.rename(time="date")
    xr.testing.assert_identical(quantiles(fit(mixed), mixed), expected)
    beside = own.rename(station="site").drop_vars("site").assign_coords(name=("site", ["a", "b"]))
    hindcast, forecast = (
        FORECAST.isel(at)
        .rename(station="site")
        .drop_vars("site")
        .assign_coords(name=("site", ["b", "a"]))
        for at in (PAST, NEW)
    )
    truth = TRUTH.rename(station="site").drop_vars("site").assign_coords(name=("site", ["b", "a"]))
    model = hindcast.recal.fit(truth, EMOS, covariates={"index": beside})
    turned = beside.isel(site=[1, 0])
    expected = hindcast.recal.fit(truth, EMOS, covariates={"index": turned})
    found = quantiles(model, beside, forecast)
    xr.testing.assert_identical(found, quantiles(expected, turned, forecast))


@pytest.mark.parametrize("known", ["valid", "start"])
def test_dask_gives_the_same(known):
    own = INDEX.expand_dims(station=["a", "b"]).assign_attrs(known=known) * 1.0
    own = own.assign_attrs(known=known)
    expected = quantiles(fit(own), own)
    cut = own.chunk(station=1)
    with forbid_compute():
        model = fit(cut, FORECAST.isel(PAST).chunk(station=1))
        found = quantiles(model, cut, FORECAST.isel(NEW).chunk(station=1))
    xr.testing.assert_allclose(found.compute(), expected, rtol=1e-12)


def test_a_forecast_of_its_own_enters_with_mean_and_spread():
    rng = np.random.default_rng(2)
    noise = xr.DataArray(rng.normal(size=(DAYS.size, 5)), dims=["time", "number"])
    ensemble = (INDEX + noise).rename("index").assign_attrs(known="valid")
    model = fit(ensemble)
    assert [*model.variables["t2m"].periods] == ["index", "index_spread"]
    mean = ensemble.mean("number").sel(time=VALID.isel(PAST)).drop_vars("time")
    kept = model.state.covariate_index.transpose("calibration", "lead")
    np.testing.assert_allclose(kept, mean, rtol=1e-12)


def test_labels_of_the_name_of_the_starts_are_starts_unless_they_say_otherwise():
    hindcast, forecast = (FORECAST.isel(at).rename(init="time") for at in (PAST, NEW))
    model, expected = fit(INDEX, hindcast), fit(AT_START)
    xr.testing.assert_equal(
        quantiles(model, INDEX, forecast).rename(time="init"), quantiles(expected, AT_START)
    )
    index = INDEX.assign_attrs(known="valid")
    found = quantiles(fit(index, hindcast), index, forecast).rename(time="init")
    xr.testing.assert_equal(found, quantiles(fit(AT_VALID), AT_VALID))


def later(name, days):
    """Values of the index after the start, dated by a coordinate."""
    dates = FORECAST.init + np.timedelta64(days, "D")
    return INDEX.sel(time=dates).drop_vars("time").assign_coords({name: dates})


ERRORS = {
    "nothing said": (
        lambda: fit(INDEX),
        r"the covariate 'index' is along 'time', but hindcast is over starts along 'init' and "
        r"leads. If the covariate is a forecast, look it up at the valid time"
        r".*\.assign_attrs\(known='valid'\).*\.assign_attrs\(known='start'\).*known_at",
    ),
    "another word": (
        lambda: fit(INDEX.assign_attrs(known="now")),
        "the covariate 'index' has known='now'; it must be 'start' or 'valid'",
    ),
    "too short": (
        lambda: fit(INDEX.sel(time=slice("2019-02-01", None)).assign_attrs(known="valid")),
        "'index' has no value along 'time' for 9 of 80 valid times of hindcast, first 2019-01-02",
    ),
    "too short at starts": (
        lambda: fit(INDEX.sel(time=slice("2019-02-01", None)).assign_attrs(known="start")),
        "'index' has no value for 5 of 40 labels along 'init' of hindcast, first 2019-01-01",
    ),
    "labels twice": (
        lambda: fit(xr.concat([INDEX, INDEX], "time").assign_attrs(known="valid")),
        "labels along 'time' of the covariate 'index' must be unique",
    ),
    "looked up at the valid time": (
        lambda: fit(INDEX.sel(time=VALID)),
        r"'index' is known only at 2019-01-02.* by its coordinate 'time', after the start "
        r"2019-01-01.*, in 80 of 80 cases; use the last value known at the start: observa",
    ),
    "after the start": (lambda: fit(later("time", 2)), "'index' is known only at 2019-01-03"),
    "observed after the start": (
        lambda: fit(later("valid_time", 1).assign_attrs(known="start")),
        "'index' is known only at 2019-01-02.* by its coordinate 'valid_time', after the start",
    ),
    "a forecast after the start": (
        lambda: quantiles(fit(AT_START), later("time", 2)),
        "'index' is known only at 2019-10-10",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(case):
    function, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        function()


@pytest.mark.parametrize(
    "index",
    [
        later("time", 0),
        later("time", -3),
        later("valid_time", 2),
        later("time", 2).assign_attrs(known="valid"),
        AT_VALID.assign_coords(valid_time=VALID),
    ],
)
def test_dates_that_do_not_matter(index):
    assert fit(index).state["n_cases"].min() == N


def test_dates_of_other_calendars():
    index = INDEX.convert_calendar("noleap").assign_attrs(known="valid")
    with pytest.raises(ValueError, match="has no value along 'time' for 80 of 80 valid times"):
        fit(index)
    index = INDEX.convert_calendar("standard", use_cftime=True).assign_attrs(known="valid")
    hindcast = FORECAST.isel(PAST).convert_calendar("standard", dim="init", use_cftime=True)
    truth = TRUTH.convert_calendar("standard", use_cftime=True)
    model = hindcast.recal.fit(truth, EMOS, covariates={"index": index})
    assert isinstance(hindcast.init.to_numpy()[0], cftime.datetime)
    kept = model.state.covariate_index, fit(AT_VALID).state.covariate_index
    np.testing.assert_array_equal(*kept)
