"""What a model makes of missing values, labels, attributes and types, and what it refuses."""

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze
from tests.strategies import FORMS, METHODS, PAPER, close, ensemble_and_truth, model_of, new_cases

from .test_recalibrated import products

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


@pytest.fixture(scope="module")
def model():
    return model_of("ckme")


# missing data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_missing_forecasts_give_nan(method):
    fitted, new = model_of(method), NEW.copy()
    new[3, :, 0, 1], new[5, :, 1, 0] = np.nan, np.inf
    expected = fitted.crps(NEW, VERIFIED)
    for scores in dask.compute(*(fitted.crps(cut, VERIFIED) for cut in (new, new.chunk(lat=1)))):
        assert np.isnan(scores[3, 0, 1])
        assert np.isnan(scores[5, 1, 0])
        assert int(scores.isnull().sum()) == 2
        filled = scores.where(scores.notnull(), expected)
        if METHODS[method].in_common:  # forecasts of a time depend on each other, a little
            np.testing.assert_allclose(filled[[3, 5]], expected[[3, 5]], atol=0.05)
            filled[[3, 5]] = expected[[3, 5]]
        close(filled, expected)


def test_missing_members_are_left_out(model):
    padded = xr.concat([NEW, NEW[:, :2] * np.nan], "member")
    close(products(model, padded), products(model, NEW))


def test_unused_slots_have_no_weight():
    truth = TRUTH.copy()
    truth[4:9, 0, 0] = np.nan
    issued = HINDCAST.recal.fit(truth[2:], PAPER).apply(NEW)
    unused = truth.where(truth.time >= truth.time[2]).isnull().to_numpy()
    np.testing.assert_array_equal(issued.t2m.isnull(), unused)
    weights = issued.t2m_weight.transpose("time", "member", ...)
    assert (weights.where(xr.DataArray(unused, dims=["member", "lat", "lon"])).fillna(0) == 0).all()
    np.testing.assert_allclose(weights.sum("member"), 1)


# labels, types, inputs ----------------------------------------------------------------------------


def test_labels_and_attributes_come_back(model):
    grid = {"orography": (("lat", "lon"), np.arange(4.0).reshape(2, 2)), "run": "operational"}
    hindcast = HINDCAST.assign_coords(grid | {"run": "hindcast"})
    new = NEW.assign_coords(grid | {"orography": (("lat", "lon"), np.ones((2, 2)))})
    fitted = hindcast.recal.fit(TRUTH, PAPER)
    for result in (fitted.apply(new), fitted.quantile(new, 0.5), fitted.crps(new, VERIFIED)):
        assert result.run == "operational"
        assert (result.orography == 1).all()
        np.testing.assert_array_equal(result.time, new.time)
    issued = model.apply(NEW.to_dataset().assign_attrs(history="made", source="model"))
    assert issued.attrs["history"].splitlines()[0] == "made"
    assert issued.attrs["history"].splitlines()[1].startswith("xrecal: recalibrated by CKME(")
    assert issued.attrs["source"] == "model"
    beside = {"ancillary_variables": "t2m_weight t2m_novelty"}
    assert issued.t2m.attrs == HINDCAST.attrs | beside
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


@pytest.mark.parametrize("method", METHODS)
def test_float32_stays(method):
    hindcast, truth = ensemble_and_truth(n=24, n_lon=1, dtype=np.float32)
    new, verified = new_cases(n_lon=1, dtype=np.float32)
    model = hindcast.recal.fit(truth, METHODS[method])
    for given in (new, new.chunk(lat=1)):
        found = products(model, given, verified)
        types = set(found.dtypes.values()), set(found.compute().dtypes.values())
        assert types == ({np.dtype("f4")}, {np.dtype("f4")})


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
    "missing location": (
        lambda model: model.apply(NEW[:, :, 0].drop_vars("lat")),
        r"it lacks \['lat'\]",
    ),
    "fewer locations": (
        lambda model: model.apply(NEW[:, :, :1].assign_coords(lat=[99.0])),
        "differ along 'lat': 2 against 1",
    ),
    "extra": (
        lambda model: model.apply(NEW.expand_dims(lead=3)),
        r"the model has no \['lead'\]: select or rename",
    ),
    "other labels": (
        lambda model: model.apply(NEW.assign_coords(lat=[45, 47.0])),
        "labels along 'lat' differ, first at position 1: 46.0 in model.state, 47.0 in forecast",
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


@pytest.mark.parametrize("n", [2, 5])
def test_a_location_that_only_the_weights_have(n, rng):
    times = xr.date_range("2000-01-01", periods=40)
    weights = xr.DataArray(
        rng.random((40, 2, 5)), {"time": times}, ("time", "site", "member"), name="t2m_weight"
    )
    members = xr.DataArray(rng.normal(size=(40, 5)), {"time": times}, ("time", "member"))
    truth = xr.DataArray(rng.normal(size=(40, 2)), {"time": times}, ("time", "site"))
    narrow = xrecal.weighted(members.rename("t2m"), weights)
    wide = xrecal.weighted(members.rename("t2m").expand_dims(site=2, axis=1), weights)
    model = wide.recal.fit(truth, PAPER)
    new = {"time": slice(0, n)}  # once as many times as sites
    expected = model.crps(wide.isel(new), truth)
    for fitted in (model, narrow.recal.fit(truth, PAPER)):
        found = fitted.crps(narrow.isel(new), truth).transpose(*expected.dims)
        xr.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_one_forecast_at_one_station(method):
    station = {"lat": 0, "lon": 1}
    fitted = HINDCAST.isel(station).recal.fit(TRUTH.isel(station), METHODS[method])
    today, verified = NEW.isel(station).isel(time=0), VERIFIED.isel(station).isel(time=0)
    expected = fitted.crps(NEW.isel(station), VERIFIED.isel(station)).isel(time=0)
    score = fitted.crps(today, verified)
    assert score.dims == ()
    assert float(score) == pytest.approx(float(expected))
    applied = fitted.apply(today)
    assert float(applied.recal.crps(verified)) == pytest.approx(float(expected), rel=1e-6)
    for result in (applied.recal.mean(), applied.recal.std()):
        assert np.isfinite(float(next(iter(result.values()))))


def test_members_without_their_weights_are_refused(model):
    calibrated = model.apply(NEW)
    with pytest.raises(ValueError, match=r"without their weights, t2m_weight; use the Dataset"):
        calibrated.t2m.recal.mean()


@pytest.mark.parametrize("n_labels", [47, 30])
def test_lazy_observations_that_lack_cases(n_labels):
    fewer = TRUTH.isel(time=slice(0, n_labels))
    expected = HINDCAST.recal.fit(fewer, PAPER)
    lazy = HINDCAST.chunk(lat=1).recal.fit(fewer.chunk(time=-1), PAPER)
    assert lazy.compute().state.identical(expected.state)
    assert int(expected.state.n_cases.max()) == n_labels


def test_units_of_the_observations_are_kept():
    bare = HINDCAST.drop_attrs()
    with pytest.warns(UserWarning, match="units of hindcast not stated, taken as K"):
        fitted = bare.recal.fit(TRUTH.assign_attrs(units="K"), PAPER)
    assert fitted.state.observations.attrs["units"] == "K"
    assert fitted.quantile(NEW.drop_attrs(), 0.5).attrs["units"] == "K"
    assert fitted.apply(NEW.drop_attrs()).t2m.attrs["units"] == "K"


def test_a_forecast_that_lost_its_units_is_told():
    fitted = HINDCAST.recal.fit(TRUTH, PAPER)
    with pytest.warns(UserWarning, match="units of forecast not stated, taken as K"):
        fitted.quantile(NEW.drop_attrs(), 0.5)
