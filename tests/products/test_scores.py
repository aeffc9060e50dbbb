"""Scores of recalibrated forecasts, inside the chunk, against those of what apply issues."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import METHODS, ensemble_and_truth, model_of, new_cases
from xrecal import arrays

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


@pytest.mark.parametrize("method", METHODS)
def test_pit_is_that_of_the_issued_forecasts(method):
    model = model_of(method)
    found = model.pit(NEW, VERIFIED, seed=3)
    issued = NEW.recal.apply(model).recal.pit(VERIFIED, seed=3)
    issued = issued["t2m"] if isinstance(issued, xr.Dataset) else issued
    np.testing.assert_allclose(found, issued.transpose(*found.dims), atol=1e-9)
    assert found.name == "pit"
    assert found.attrs["units"] == "1"
    assert "seed 3" in found.attrs["estimator"]


def test_chunks_make_no_difference():
    model = HINDCAST.recal.fit(TRUTH)
    expected = model.pit(NEW, VERIFIED)
    for chunks in ({"lat": 1}, {"time": 3}):
        with forbid_compute():
            lazy = model.pit(NEW.chunk(chunks), VERIFIED.chunk(lon=1))
        np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)


def test_jumps_are_drawn_by_location_and_case():
    """On a support of two values every case is within a jump."""
    coarse = TRUTH.copy(data=np.where(TRUTH > 280, 281.0, 279.0))
    model = HINDCAST.recal.fit(coarse, xrecal.Climatology())
    verified = VERIFIED.copy(data=np.where(VERIFIED > 280, 281.0, 279.0))
    found, other = model.pit(NEW, verified, seed=1), model.pit(NEW, verified, seed=2)
    assert np.unique(found).size == found.size
    assert not (found == other).any()
    low = (coarse < 280).mean("time")
    u = arrays.uniform_at(1, np.arange(4).reshape(2, 2)[:, :, None], np.arange(7))
    u = xr.DataArray(u, dims=["lat", "lon", "time"])
    expected = xr.where(verified < 280, low * u, low + (1 - low) * u).transpose(*found.dims)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_errors():
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS())
    with pytest.raises(ValueError, match="seed must be a whole number, got 'a'"):
        model.pit(NEW, VERIFIED, seed="a")
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        model.pit(NEW, VERIFIED.assign_attrs(units="degC"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [280.5, [280.0, 281.0], TRUTH.mean("time")])
def test_brier_score_is_that_of_the_exceedance(method, threshold):
    model = model_of(method)
    found = model.brier_score(NEW, VERIFIED, threshold)
    probability = model.exceedance(NEW, threshold)
    value = probability.threshold if isinstance(threshold, list) else threshold
    expected = (probability - (value < VERIFIED)) ** 2
    np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-12, atol=1e-15)
    assert found.dims == probability.dims
    assert found.name == "brier_score"
    assert found.attrs["units"] == "1"
    over = ["time", "lat"]
    mean = model.brier_score(NEW, VERIFIED, threshold, over)
    np.testing.assert_allclose(mean, found.mean(over), rtol=1e-12)


def test_brier_score_is_lazy_and_missing_where_the_truth_is():
    model = HINDCAST.recal.fit(TRUTH)
    verified = VERIFIED.copy()
    verified[2] = np.nan
    expected = model.brier_score(NEW, verified, 280.5)
    assert expected.isnull().all(["lat", "lon"])[2]
    with forbid_compute():
        lazy = model.brier_score(NEW.chunk(lat=1), verified, 280.5)
    np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_log_score_is_that_of_the_issued_forecasts(method):
    model = model_of(method)
    found = model.log_score(NEW, VERIFIED)
    issued = NEW.recal.apply(model).recal.log_score(VERIFIED)
    np.testing.assert_allclose(found, issued.transpose(*found.dims), rtol=1e-9, atol=1e-9)
    assert found.notnull().all()
    assert np.isfinite(found).all() or method == "idr"  # which may leave a single member
    assert found.dims == VERIFIED.dims
    assert found.name == "log_score"
    assert found.attrs["units"] == "1"
    assert "Gaussian kernels" in found.attrs["estimator"]
    over = ["time", "lat"]
    np.testing.assert_allclose(model.log_score(NEW, VERIFIED, over), found.mean(over), rtol=1e-12)


def test_log_score_is_lazy_and_missing_where_the_truth_is():
    model = HINDCAST.recal.fit(TRUTH)
    verified = VERIFIED.copy()
    verified[2] = np.nan
    expected = model.log_score(NEW, verified)
    assert expected.isnull().all(["lat", "lon"])[2]
    with forbid_compute():
        lazy = model.log_score(NEW.chunk(lat=1, time=3), verified.chunk(lon=1))
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        model.log_score(NEW, VERIFIED.assign_attrs(units="degC"))
