from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import xrecal
from tests.marks import forbid_compute
from tests.strategies import (
    FORMS,
    LEVELS,
    PAPER,
    close,
    ensemble_and_truth,
    model_of,
    new_cases,
    points,
    recalibrate_point,
)

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
PLACES = [{"lat": 1}, {"lon": 1}, {"lat": 1, "lon": 1}, {"lat": 2, "lon": 2}]
ALONG = [{"time": 3}, {"time": (1, 4, 2), "lat": 1}]


@pytest.fixture(scope="module")
def model():
    return model_of("ckme")


def products(model, forecast, verified=VERIFIED):
    """Everything a model makes of a forecast, as one Dataset."""
    quantiles = model.quantile(forecast, LEVELS)
    if isinstance(quantiles, xr.Dataset):
        quantiles = quantiles["t2m"]
    scores = model.crps(forecast, verified)
    return xr.merge(
        [model.apply(forecast), quantiles.rename("quantiles"), scores],
        join="exact",
        compat="no_conflicts",
        combine_attrs="drop",
    )


# law: labelled results are those of the array functions at each point -----------------------------


@cache
def of_array_functions(lat, lon):
    """What the array functions make of the cases at one point."""
    cases = (array[..., lat, lon].to_numpy() for array in (HINDCAST, TRUTH, NEW, VERIFIED))
    return recalibrate_point(*cases)


@settings(max_examples=8)
@given(
    st.permutations(NEW.dims),
    st.permutations(VERIFIED.dims),
    st.sampled_from([None, *PLACES, *ALONG]),
)
def test_each_location_on_its_own(dims, verified_dims, chunks):
    model = model_of("ckme", choose="each")
    forecast, verified = NEW.transpose(*dims), VERIFIED.transpose(*verified_dims)
    if chunks is not None:
        forecast = forecast.chunk(chunks)
    applied, scores = model.apply(forecast), model.crps(forecast, verified)
    quantiles = model.quantile(forecast, LEVELS)
    assert applied.t2m_weight.dims == tuple(dims)
    assert scores.dims == tuple(d for d in dims if d != "member")
    assert quantiles.dims == tuple("quantile" if d == "member" else d for d in dims)
    whole_time = chunks is None or "time" not in chunks
    equal = np.testing.assert_array_equal if whole_time else np.testing.assert_allclose
    tolerance = {} if whole_time else {"rtol": 1e-12, "atol": 1e-13}
    for point in points(TRUTH):
        expected = of_array_functions(**point)
        np.testing.assert_array_equal(applied.t2m.isel(point), TRUTH.isel(point))
        weights = applied.t2m_weight.isel(point).transpose("time", "member")
        equal(weights, expected["weights"], **tolerance)
        found = quantiles.isel(point).transpose("time", "quantile")
        equal(found, expected["quantile"], **tolerance)
        equal(scores.isel(point), expected["crps"], **tolerance)


@pytest.mark.each_value
@pytest.mark.parametrize("lazy_fit", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_dask_over_locations_is_bit_equal(form, lazy_fit):
    hindcast, forecast = FORMS[form](HINDCAST), FORMS[form](NEW)
    expected = products(model_of("ckme", form), forecast)
    with forbid_compute():
        model = (hindcast.chunk(lat=1) if lazy_fit else hindcast).recal.fit(TRUTH, PAPER)
        lazy = products(model, forecast.chunk(lon=1), VERIFIED.chunk(lat=1))
    assert all(lazy[name].chunks for name in lazy if name != "t2m" or lazy_fit)
    computed = lazy.compute()
    xr.testing.assert_identical(computed, expected)
    assert lazy.dtypes == computed.dtypes


@pytest.mark.each_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunks", ALONG, ids=str)
def test_dask_along_the_cases_is_equal_up_to_rounding(form, chunks):
    model, forecast = model_of("ckme", form), FORMS[form](NEW)
    close(products(model, forecast.chunk(chunks)).compute(), products(model, forecast))


def test_a_cluster_agrees():
    from distributed import Client, LocalCluster

    lazy = products(HINDCAST.chunk(lat=1, lon=1).recal.fit(TRUTH, PAPER), NEW.chunk(lon=1))
    options = {"processes": False, "dashboard_address": ":0"}
    with LocalCluster(n_workers=1, threads_per_worker=2, **options) as cluster, Client(cluster):
        found = lazy.compute()
    xr.testing.assert_identical(found, products(HINDCAST.recal.fit(TRUTH, PAPER), NEW))


# single forecasts, other forms, several variables -------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_forecast_without_the_calibration_dimension(form, drop):
    model, forecast = model_of("ckme", form), FORMS[form](NEW)
    verified = VERIFIED.isel(time=2, drop=drop)
    single = forecast.isel(time=2, drop=drop)
    found = products(model, single, verified)
    expected = products(model, forecast).isel(time=2, drop=drop)
    close(found.transpose(*expected.dims), expected.transpose(*expected.dims))
    lazy = products(model, single.chunk(lat=1), verified).compute()
    close(lazy.transpose(*found.dims), found.transpose(*found.dims))


def test_single_forecast_is_dated_by_its_scalar_coordinate():
    model = HINDCAST.recal.fit(TRUTH, xrecal.Climatology(window=90))
    scores = model.crps(NEW.isel(time=2), VERIFIED.isel(time=2))
    xr.testing.assert_identical(scores, model.crps(NEW, VERIFIED).isel(time=2))
    with pytest.raises(
        ValueError, match=r"the calendar day needs the dates of forecast: .*scalar coordinate"
    ):
        model.apply(NEW.isel(time=2, drop=True))


@pytest.mark.parametrize("form", ["weighted", "shared", "quantile", "percentile"])
def test_points_with_weights_are_one_kind(model, form):
    forecast = FORMS[form](NEW)
    assert model.crps(forecast, VERIFIED).notnull().all()
    assert model_of("ckme", form).crps(NEW, VERIFIED).notnull().all()


def test_several_variables():
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
    model = hindcast.recal.fit(xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2}), PAPER)
    issued = model.apply(hindcast[["dew", "t2m"]].isel(time=slice(5)))
    for name, forecast in hindcast.items():
        weights = model[name].apply(forecast.isel(time=slice(5)))[f"{name}_weight"]
        assert issued[f"{name}_weight"].identical(weights)


@pytest.mark.parametrize("as_dataset", [False, True])
def test_the_member_dimension_of_the_fit_is_remembered(model, as_dataset):
    hindcast, new = HINDCAST.rename(member="m"), NEW.rename(member="m")
    truth, verified = TRUTH.rename("t2m"), VERIFIED.rename("t2m")
    if as_dataset:
        hindcast, new, truth, verified = (a.to_dataset() for a in (hindcast, new, truth, verified))
    custom = hindcast.recal.fit(truth, PAPER, member_dim="m")
    issued = custom.apply(new)
    assert issued.t2m_weight.dims == ("time", "m", "lat", "lon")
    expected = model.crps(NEW, VERIFIED).to_numpy()
    found = custom.crps(new, verified)
    np.testing.assert_array_equal(found["t2m"] if as_dataset else found, expected)
    own = issued.recal.crps(VERIFIED, member_dim="m")
    np.testing.assert_array_equal(own, expected)


@pytest.mark.parametrize("form", ["quantile", "percentile", "normal", "mixture"])
def test_past_observations_are_members_and_neither_quantiles_nor_components(form):
    issued = model_of("ckme", form).apply(FORMS[form](NEW))
    assert "member" in issued.t2m.dims
    assert "member" not in issued.indexes
