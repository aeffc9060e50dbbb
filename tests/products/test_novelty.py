"""The novelty of forecasts to a model."""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, model_of, new_cases
from xrecal import arrays
from xrecal.arrays import Forecasts

HINDCAST, TRUTH = ensemble_and_truth()
NEW, _ = new_cases()
FAR = (NEW + 60).assign_attrs(NEW.attrs)


@pytest.fixture(scope="module")
def model():
    return model_of("ckme")


@pytest.mark.parametrize("chunks", [None, {"lat": 1}, {"time": 3}])
@pytest.mark.parametrize("dims", [NEW.dims, ("lat", "member", "lon", "time")])
def test_it_is_that_of_the_array_function_at_each_place(model, dims, chunks):
    forecast = NEW.transpose(*dims)
    forecast = forecast if chunks is None else forecast.chunk(chunks)
    novelty = model.novelty(forecast)
    assert novelty.dims == tuple(d for d in dims if d != "member")
    assert (novelty.chunks is not None) == (chunks is not None)
    assert novelty.name == "novelty"
    assert novelty.attrs["units"] == "1"
    for lat, lon in np.ndindex(2, 2):
        at = {"lat": slice(lat, lat + 1), "lon": slice(lon, lon + 1)}
        past, truth, new = (a.isel(at).stack(p=("lat", "lon")) for a in (HINDCAST, TRUTH, NEW))
        cases = Forecasts(past.transpose("p", "time", "member").to_numpy())
        y = truth.transpose("p", "time").to_numpy()
        expected = arrays.ckme_novelty(
            Forecasts(new.transpose("p", "time", "member").to_numpy()),
            cases,
            y,
            arrays.fit_ckme(cases, y),
        )
        np.testing.assert_allclose(
            novelty.isel(lat=lat, lon=lon).transpose("time").to_numpy(), expected[0], atol=1e-9
        )


def test_methods_that_compare_nothing_have_none():
    model = model_of("emos")
    with pytest.raises(TypeError, match="EMOS\\(\\) does not compare forecasts with past ones"):
        model.novelty(NEW)
    pool = xrecal.LinearPool((xrecal.EMOS(), xrecal.IDR()), condition_on=())
    with pytest.raises(TypeError, match="knows no novelty; CKME and LinearPool with a CKME do"):
        HINDCAST.recal.fit(TRUTH, pool).novelty(NEW)


@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
def test_novel_forecasts_in_memory_are_told(model):
    told = r"28 of 28 forecasts of 't2m' are unlike all that the model has learned from"
    with pytest.warns(UserWarning, match=told):
        novelty = model.novelty(FAR)
    assert (novelty > 0.9).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.novelty(NEW)
        model.novelty(FAR.chunk({"lat": 1}))


def test_a_pool_has_that_of_its_ckme(model):
    pool = xrecal.LinearPool((xrecal.EMOS(), xrecal.CKME()), condition_on=())
    pooled = HINDCAST.recal.fit(TRUTH, pool)
    xr.testing.assert_allclose(pooled.novelty(NEW), model.novelty(NEW))


def test_missing_forecasts_have_none(model):
    missing = NEW.where(NEW.time != NEW.time[2])
    novelty = model.novelty(missing)
    assert novelty.isel(time=2).isnull().all()
    assert novelty.drop_isel(time=2).notnull().all()
