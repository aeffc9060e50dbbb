import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import xrecal

from .labelled import freeze
from .marks import forbid_compute
from .strategies import (
    FORMS,
    LEVELS,
    METHODS,
    close,
    ensemble_and_truth,
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
    return HINDCAST.recal.fit(TRUTH)


def products(model, forecast, verified=VERIFIED):
    """Everything a model makes of a forecast, as one Dataset."""
    return xr.merge(
        [
            model.apply(forecast),
            model.quantile(forecast, LEVELS).rename("quantiles"),
            model.crps(forecast, verified),
        ],
        join="exact",
        compat="no_conflicts",
        combine_attrs="drop",
    )


# law: labelled results are those of the array functions at each point -----------------------------


@settings(max_examples=8)
@given(
    st.permutations(NEW.dims),
    st.permutations(VERIFIED.dims),
    st.sampled_from([None, *PLACES, *ALONG]),
)
def test_each_location_on_its_own(dims, verified_dims, chunks):
    model = HINDCAST.recal.fit(TRUTH)
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
        truth, members = TRUTH.isel(point).to_numpy(), HINDCAST.isel(point).to_numpy()
        new, y = NEW.isel(point).to_numpy(), VERIFIED.isel(point).to_numpy()
        expected = recalibrate_point(members, truth, new, y)
        np.testing.assert_array_equal(applied.t2m.isel(point), truth)
        weights = applied.t2m_weight.isel(point).transpose("time", "member")
        equal(weights, expected["weights"], **tolerance)
        equal(
            quantiles.isel(point).T
            if quantiles.isel(point).dims[0] != "time"
            else quantiles.isel(point),
            expected["quantile"],
            **tolerance,
        )
        equal(scores.isel(point), expected["crps"], **tolerance)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_products_agree_with_the_distribution_that_is_issued(form, method):
    model = FORMS[form](HINDCAST).recal.fit(TRUTH, METHODS[method])
    forecast = FORMS[form](NEW)
    issued = model.apply(forecast)
    scores, expected = model.crps(forecast, VERIFIED), issued.recal.crps(VERIFIED)
    xr.testing.assert_allclose(scores.drop_vars("quantile", errors="ignore"), expected, rtol=1e-12)
    assert scores.notnull().all()
    quantiles, own = model.quantile(forecast, LEVELS), issued.recal.quantile(LEVELS)
    if isinstance(quantiles, xr.DataArray):
        own = own["t2m"]
    xr.testing.assert_allclose(own.transpose("quantile", ...), quantiles.transpose("quantile", ...))
    assert issued.recal.std().notnull().all()
    again = issued.recal.fit(VERIFIED, min_samples=3)
    assert np.isfinite(again.crps(issued, VERIFIED)).all()


@pytest.mark.parametrize("lazy_fit", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_dask_over_locations_is_bit_equal(form, lazy_fit):
    hindcast, forecast = FORMS[form](HINDCAST), FORMS[form](NEW)
    expected = products(hindcast.recal.fit(TRUTH), forecast)
    with forbid_compute():
        model = (hindcast.chunk(lat=1) if lazy_fit else hindcast).recal.fit(TRUTH)
        lazy = products(model, forecast.chunk(lon=1), VERIFIED.chunk(lat=1))
    assert all(lazy[name].chunks for name in lazy if name != "t2m" or lazy_fit)
    computed = lazy.compute()
    xr.testing.assert_identical(computed, expected)
    assert lazy.dtypes == computed.dtypes


@pytest.mark.parametrize("form", FORMS)
def test_dask_along_the_cases_is_equal_up_to_rounding(form):
    model, forecast = FORMS[form](HINDCAST).recal.fit(TRUTH), FORMS[form](NEW)
    for chunks in ALONG:
        close(products(model, forecast.chunk(chunks)).compute(), products(model, forecast))


def test_lazy_model_makes_lazy_results():
    with forbid_compute():
        lazy = products(HINDCAST.chunk(lat=1).recal.fit(TRUTH), NEW)
    assert all(variable.chunks for variable in lazy.data_vars.values())
    xr.testing.assert_identical(lazy.compute(), products(HINDCAST.recal.fit(TRUTH), NEW))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_schedulers_agree(scheduler):
    lazy = products(HINDCAST.chunk(lat=1, lon=1).recal.fit(TRUTH), NEW.chunk(lon=1))
    with dask.config.set(scheduler=scheduler):
        xr.testing.assert_identical(lazy.compute(), products(HINDCAST.recal.fit(TRUTH), NEW))


def test_a_cluster_agrees():
    from distributed import Client, LocalCluster

    lazy = products(HINDCAST.chunk(lat=1, lon=1).recal.fit(TRUTH), NEW.chunk(lon=1))
    options = {"processes": False, "dashboard_address": None}
    with LocalCluster(n_workers=1, threads_per_worker=2, **options) as cluster, Client(cluster):
        found = lazy.compute()
    xr.testing.assert_identical(found, products(HINDCAST.recal.fit(TRUTH), NEW))


# single forecasts, other forms, several variables -------------------------------------------------


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_forecast_without_the_calibration_dimension(form, drop):
    model, forecast = FORMS[form](HINDCAST).recal.fit(TRUTH), FORMS[form](NEW)
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
    with pytest.raises(ValueError, match="needs the dates of the forecasts.*scalar one"):
        model.apply(NEW.isel(time=2, drop=True))


@pytest.mark.parametrize("form", ["weighted", "shared", "quantile", "percentile"])
def test_points_with_weights_are_one_kind(model, form):
    forecast = FORMS[form](NEW)
    assert model.crps(forecast, VERIFIED).notnull().all()
    assert FORMS[form](HINDCAST).recal.fit(TRUTH).crps(NEW, VERIFIED).notnull().all()


def test_several_variables():
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
    truth = xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2})
    new, verified = hindcast[["dew", "t2m"]].isel(time=slice(5)), truth.isel(time=slice(5))
    model = hindcast.recal.fit(truth)
    for name in ("t2m", "dew"):
        alone = hindcast[name].recal.fit(truth[name])
        scores = model.crps(new, verified)[name]
        xr.testing.assert_equal(scores, alone.crps(new[name], verified[name]).rename(name))
        quantiles = model.quantile(new[[name]], 0.5)[name]
        xr.testing.assert_equal(quantiles, alone.quantile(new[name], 0.5))
        assert model.apply(new)[f"{name}_weight"].identical(
            alone.apply(new[name])[f"{name}_weight"]
        )
    assert model.quantile(new["dew"], 0.5).identical(model["dew"].quantile(new["dew"], 0.5))


@pytest.mark.parametrize("as_dataset", [False, True])
def test_the_member_dimension_of_the_fit_is_remembered(model, as_dataset):
    hindcast, new = HINDCAST.rename(member="m"), NEW.rename(member="m")
    truth, verified = TRUTH.rename("t2m"), VERIFIED.rename("t2m")
    if as_dataset:
        hindcast, new, truth, verified = (a.to_dataset() for a in (hindcast, new, truth, verified))
    custom = hindcast.recal.fit(truth, member_dim="m")
    issued = custom.apply(new)
    assert issued.t2m_weight.dims == ("time", "m", "lat", "lon")
    expected = model.crps(NEW, VERIFIED).to_numpy()
    found = custom.crps(new, verified)
    np.testing.assert_array_equal(found["t2m"] if as_dataset else found, expected)
    own = issued.recal.crps(VERIFIED, member_dim="m")
    np.testing.assert_array_equal(own, expected)


@pytest.mark.parametrize("form", ["quantile", "percentile", "normal", "mixture"])
def test_past_observations_are_members_and_neither_quantiles_nor_components(form):
    issued = FORMS[form](HINDCAST).recal.fit(TRUTH).apply(FORMS[form](NEW))
    assert "member" in issued.t2m.dims
    assert "member" not in issued.indexes


# missing data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_forecasts_give_nan(method, chunks, value):
    fitted, new = HINDCAST.recal.fit(TRUTH, METHODS[method]), NEW.copy()
    new[3, :, 0, 1] = value
    scores = fitted.crps(new if chunks is None else new.chunk(chunks), VERIFIED).compute()
    expected = fitted.crps(NEW, VERIFIED)
    assert np.isnan(scores[3, 0, 1])
    close(scores.where(scores.notnull(), expected), expected)
    assert int(scores.isnull().sum()) == 1


def test_missing_members_are_left_out(model):
    padded = xr.concat([NEW, NEW[:, :2] * np.nan], "member")
    close(products(model, padded), products(model, NEW))


def test_unused_slots_have_no_weight():
    truth = TRUTH.copy()
    truth[4:9, 0, 0] = np.nan
    issued = HINDCAST.recal.fit(truth[2:]).apply(NEW)
    unused = truth.where(truth.time >= truth.time[2]).isnull().to_numpy()
    np.testing.assert_array_equal(issued.t2m.isnull(), unused)
    weights = issued.t2m_weight.transpose("time", "member", ...)
    assert (weights.where(xr.DataArray(unused, dims=["member", "lat", "lon"])).fillna(0) == 0).all()
    np.testing.assert_allclose(weights.sum("member"), 1)


# labels, types, inputs ----------------------------------------------------------------------------


def test_labels_and_attributes_come_back(model):
    grid = {"latitude": (("lat", "lon"), np.arange(4.0).reshape(2, 2)), "run": "operational"}
    hindcast = HINDCAST.assign_coords(grid | {"run": "hindcast"})
    new = NEW.assign_coords(grid | {"latitude": grid["latitude"][0:1] + (np.ones((2, 2)),)})
    fitted = hindcast.recal.fit(TRUTH)
    for result in (fitted.apply(new), fitted.quantile(new, 0.5), fitted.crps(new, VERIFIED)):
        assert result.run == "operational"
        assert (result.latitude == 1).all()
        np.testing.assert_array_equal(result.time, new.time)
    issued = model.apply(NEW.to_dataset().assign_attrs(history="made", source="model"))
    assert issued.attrs["history"].splitlines()[0] == "made"
    assert issued.attrs["history"].splitlines()[1].startswith("xrecal: recalibrated by CKME(")
    assert issued.attrs["source"] == "model"
    assert issued.t2m.attrs == HINDCAST.attrs | {"ancillary_variables": "t2m_weight"}
    assert issued.t2m_weight.attrs["role"] == "member_weight"
    np.testing.assert_array_equal(issued.calibration_time, TRUTH.time)
    quantiles = model.quantile(NEW, [0.1, 0.9])
    assert quantiles.name == "t2m"
    assert quantiles.attrs["units"] == "K"
    assert quantiles.attrs["history"].startswith("xrecal: quantiles after recalibration by CKME(")
    np.testing.assert_array_equal(quantiles["quantile"], [0.1, 0.9])
    assert model.quantile(NEW, 0.1).dims == ("time", "lat", "lon")
    assert model.crps(NEW, VERIFIED).attrs["units"] == "K"


def test_normal_output_keeps_the_attributes_of_the_variable():
    issued = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).apply(NEW)
    assert issued.t2m_loc.attrs == HINDCAST.attrs
    assert issued.t2m_scale.attrs["units"] == "K"
    weighted = FORMS["weighted"](HINDCAST).recal.fit(TRUTH, xrecal.EMOS())
    assert weighted.apply(FORMS["weighted"](NEW)).t2m_loc.attrs == HINDCAST.attrs


@pytest.mark.parametrize("chunks", [None, {"lat": 1}])
@pytest.mark.parametrize("method", METHODS)
def test_float32_stays(method, chunks):
    hindcast, truth = ensemble_and_truth(dtype=np.float32)
    new, verified = new_cases(dtype=np.float32)
    given = new if chunks is None else new.chunk(chunks)
    found = products(hindcast.recal.fit(truth, METHODS[method]), given, verified)
    assert set(found.dtypes.values()) == set(found.compute().dtypes.values()) == {np.dtype("f4")}


def test_mean_scores(model):
    scores = model.crps(NEW, VERIFIED)
    for dim in ("time", ["time", "lat"], ["time", "lat", "lon"]):
        xr.testing.assert_allclose(model.crps(NEW, VERIFIED, dim), scores.mean(dim))


def test_results_do_not_share_memory_with_inputs(model):
    new, verified = freeze(NEW.copy()), freeze(VERIFIED.copy())
    before = new.copy(deep=True)
    products(model, new, verified)
    assert new.identical(before)


ERRORS = {
    "form": (
        lambda model: model.apply(FORMS["normal"](NEW)),
        "fitted on forecasts of the form 'ensemble' and cannot take 'normal'",
    ),
    "units": (
        lambda model: model.apply((NEW - 273.15).assign_attrs(units="degC")),
        r"hindcast is in K but forecast is in degC.*forecast \+ 273.15",
    ),
    "missing location": (lambda model: model.apply(NEW[:, :, 0]), r"it lacks \['lat'\]"),
    "fewer locations": (
        lambda model: model.apply(NEW[:, :, :1]),
        "differ along 'lat': 2 against 1",
    ),
    "extra": (
        lambda model: model.apply(NEW.expand_dims(lead=3)),
        r"unknown are \['lead'\], select or rename",
    ),
    "other labels": (
        lambda model: model.apply(NEW.assign_coords(lat=[45, 47.0])),
        "labels along 'lat' differ, first at position 1: 46.0 in model.state, 47.0 in forecast",
    ),
    "another order": (
        lambda model: model.apply(NEW[:, :, ::-1]),
        r"another order; use forecast.reindex\(\{'lat': model.state\['lat'\]\}\)",
    ),
    "members in chunks": (
        lambda model: model.apply(NEW.chunk(member=2)),
        r"forecast has 'member' in 3 chunks.*forecast.chunk\(\{'member': -1\}\)",
    ),
    "unknown variable": (
        lambda model: model.apply(xr.Dataset({"t2m": NEW, "snow": NEW})),
        r"the model has no variable 'snow'; it was fitted on \['t2m'\]",
    ),
    "level": (lambda model: model.quantile(NEW, [0.5, 1.1]), "q must hold levels between 0 and 1"),
    "levels": (lambda model: model.quantile(NEW, [[0.5]]), "q must hold levels between 0 and 1"),
    "dim of the mean": (
        lambda model: model.crps(NEW, VERIFIED, "member"),
        "dim='member' is not among the dimensions of the scores",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(model, case):
    call, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        call(model)
