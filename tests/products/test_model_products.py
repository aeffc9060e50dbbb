import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import FORMS, METHODS, PAPER, close, ensemble_and_truth, model_of, new_cases

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
THRESHOLDS = [278.0, 281.5, 284.0]
CLIMATE = TRUTH.quantile([0.2, 0.8], "time").rename(quantile="level").assign_attrs(units="K")
PRODUCTS = {
    "exceedance": (
        lambda model, x: model.exceedance(x, THRESHOLDS),
        lambda x: x.recal.exceedance(THRESHOLDS),
    ),
    "cdf": (lambda model, x: model.cdf(x, THRESHOLDS), lambda x: x.recal.cdf(THRESHOLDS)),
    "by place": (
        lambda model, x: model.exceedance(x, CLIMATE),
        lambda x: x.recal.exceedance(CLIMATE),
    ),
    "members": (lambda model, x: model.members(x, 7, seed=5), lambda x: x.recal.members(7, seed=5)),
    "mean": (lambda model, x: model.mean(x), lambda x: x.recal.mean()),
    "std": (lambda model, x: model.std(x), lambda x: x.recal.std()),
}


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


def ranks(members):
    return np.argsort(np.argsort(members.transpose(..., "member").to_numpy(), axis=-1), axis=-1)


def assert_alike(found, expected):
    """Values up to rounding; the issued distribution may have another member dimension."""
    found, expected = array(found), array(expected)
    expected = expected.transpose(*found.dims)
    assert found.attrs["units"] == expected.attrs["units"]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert found.notnull().all()


@pytest.mark.parametrize("method", METHODS)
def test_products_agree_with_the_distribution_that_is_issued(method):
    model = model_of(method)
    issued = model.apply(NEW)
    for direct, of_issued in PRODUCTS.values():
        assert_alike(direct(model, NEW), of_issued(issued))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_lazily_and_bit_equal(form):
    model, forecast = model_of("ckme", form), FORMS[form](NEW)
    issued, expected, lazy, cut = model.apply(forecast), {}, {}, {}
    with forbid_compute():
        lazy_model = FORMS[form](HINDCAST).chunk(lat=1).recal.fit(TRUTH, PAPER)
    for product, (direct, of_issued) in PRODUCTS.items():
        expected[product] = direct(model, forecast)
        assert_alike(expected[product], of_issued(issued))
        with forbid_compute():
            lazy[product] = direct(lazy_model, forecast.chunk(lon=1))
            cut[product] = direct(model, forecast.chunk(time=3))
    lazy, cut = dask.compute(lazy, cut)
    for product in PRODUCTS:
        xr.testing.assert_identical(lazy[product], expected[product])
        close(cut[product], expected[product])


@pytest.mark.parametrize("types", [("f4", "f8"), ("f8", "f4"), ("f4", "f4")])
@pytest.mark.parametrize("method", ["ckme", "idr", "pool", "pit", "errors"])
def test_thresholds_are_rounded_as_the_members_that_are_issued(method, types):
    of_forecast, of_truth = types
    truth = TRUTH.round(1).astype(of_truth)
    model = HINDCAST.astype(of_forecast).recal.fit(truth, METHODS[method])
    new = NEW.astype(of_forecast)
    thresholds = [279.7, 280.3, 281.1, 282.2]
    assert np.isin(truth, np.array(thresholds, of_truth)).any()
    found = model.exceedance(new, thresholds)
    expected = model.apply(new).recal.exceedance(thresholds).t2m
    np.testing.assert_allclose(found, expected.transpose(*found.dims), atol=1e-6)


def test_single_forecast_and_one_threshold():
    model, today = HINDCAST.recal.fit(TRUTH, PAPER), NEW.isel(time=2)
    found = model.exceedance(today, 281.0)
    assert found.dims == ("lat", "lon")
    assert found.name == "exceedance"
    np.testing.assert_allclose(found, model.exceedance(NEW, [281.0])[2, 0], rtol=1e-12)
    members = model.members(today, 9)
    assert members.dims == ("member", "lat", "lon")
    np.testing.assert_array_equal(
        np.sort(members, axis=0), np.sort(model.members(NEW, 9)[2], axis=0)
    )


def test_members_lie_within_the_distribution_and_differ_in_order():
    model = HINDCAST.recal.fit(TRUTH, PAPER)
    members = model.members(NEW, 40)
    assert members.dims == NEW.dims
    levels = (np.arange(40) + 0.5) / 40
    np.testing.assert_array_equal(np.sort(members, axis=1), model.quantile(NEW, levels))
    here, there = ranks(members.isel(lat=0, lon=0)), ranks(members.isel(lat=1, lon=1))
    assert abs(np.corrcoef(here.ravel(), there.ravel())[0, 1]) < 0.2


def test_pooled_models_number_their_locations():
    model = HINDCAST.recal.fit(TRUTH, PAPER, pool=("lat", "lon"))
    whole, cut = model.members(NEW, 6), model.members(NEW.chunk(lat=1, lon=1, time=2), 6)
    close(cut.compute(), whole)
    assert (ranks(whole.isel(lat=0)) != ranks(whole.isel(lat=1))).any()


def test_covariates_reach_the_products():
    bias = xr.DataArray(np.linspace(0, 1, 48), dims="time", coords={"time": HINDCAST.time})
    now = xr.DataArray(np.linspace(0, 1, 7), dims="time", coords={"time": NEW.time})
    model = HINDCAST.recal.fit(TRUTH, xrecal.CKME(condition_on="extra"), covariates={"extra": bias})
    given = {"covariates": {"extra": now}}
    issued = model.apply(NEW, **given)
    assert_alike(model.exceedance(NEW, 281.0, **given), issued.recal.exceedance(281.0))
    assert_alike(model.members(NEW, 3, **given), issued.recal.members(3))
    assert_alike(model.mean(NEW, **given), issued.recal.mean())
    with pytest.raises(ValueError, match="the covariate 'extra' is not known for forecast"):
        model.std(NEW)


def test_several_variables():
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
    model = hindcast.recal.fit(xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2}), PAPER)
    found = model.exceedance(hindcast, THRESHOLDS)
    assert set(found.data_vars) == {"t2m", "dew"}
    xr.testing.assert_equal(
        found.dew, model["dew"].exceedance(hindcast["dew"], THRESHOLDS).rename("dew")
    )


def test_what_history_tells():
    model = HINDCAST.recal.fit(TRUTH, PAPER)
    told = model.members(NEW, 3, seed=8).attrs["history"]
    assert told.startswith("xrecal: 3 equally likely members, order of seed 8, after recalibration")
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.members(NEW, 0)
