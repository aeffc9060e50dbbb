import numpy as np
import properscoring
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze
from tests.marks import forbid_compute
from tests.strategies import FORMS, close, ensemble_and_truth, points
from xrecal import arrays

ENSEMBLE, TRUTH = ensemble_and_truth(n=9)


def test_plain_ensembles_as_properscoring():
    members = ENSEMBLE.transpose("time", "lat", "lon", "member").to_numpy()
    expected = properscoring.crps_ensemble(TRUTH.to_numpy(), members)
    np.testing.assert_allclose(ENSEMBLE.recal.crps(TRUTH), expected, rtol=1e-13)


@pytest.mark.parametrize("dims", [ENSEMBLE.dims, ("lon", "member", "time", "lat")])
@pytest.mark.parametrize("chunks", [None, {"lat": 1}, {"time": 4, "lon": 1}])
def test_weighted_ensembles_at_each_point(dims, chunks):
    forecast = FORMS["shared"](ENSEMBLE)
    forecast = forecast.transpose(*dims) if chunks is None else forecast.chunk(chunks)
    scores = forecast.recal.crps(TRUTH.transpose("lat", "time", "lon")).compute()
    for point in points(TRUTH):
        members = forecast.t2m.isel(point).to_numpy()
        weights = forecast.t2m_weight.isel(point).transpose("time", "member").to_numpy()
        expected = arrays.crps(TRUTH.isel(point).to_numpy(), members, weights)
        np.testing.assert_array_equal(scores.isel(point), expected)


@pytest.mark.parametrize("form", FORMS)
def test_dask_is_equal_and_lazy(form):
    forecast = FORMS[form](ENSEMBLE)
    expected = forecast.recal.crps(TRUTH)
    for chunks in ({"lat": 1}, {"time": 4}):
        with forbid_compute():
            lazy = forecast.chunk(chunks).recal.crps(TRUTH.chunk(lon=1))
        assert lazy.chunks is not None
        close(lazy.compute(), expected)
        assert lazy.dtype == expected.dtype


@pytest.mark.parametrize("form", FORMS)
def test_closed_and_sampled_scores_are_near(form):
    """A forecast and many of its own quantiles have nearly the same score."""
    forecast = FORMS[form](ENSEMBLE)
    levels = (np.arange(400) + 0.5) / 400
    sampled = forecast.recal.quantile(levels)
    sampled = sampled["t2m"] if isinstance(sampled, xr.Dataset) else sampled
    found = sampled.drop_vars("quantile").rename(quantile="member").recal.crps(TRUTH)
    expected = forecast.recal.crps(TRUTH)
    np.testing.assert_allclose(found.transpose(*expected.dims), expected, atol=0.02)


def test_mean_over_dimensions():
    scores = ENSEMBLE.recal.crps(TRUTH.where(TRUTH > 278))
    for dim in ("time", ["time", "lat"], ("lat", "lon"), []):
        found = ENSEMBLE.recal.crps(TRUTH.where(TRUTH > 278), dim)
        xr.testing.assert_allclose(found, scores.mean(dim) if dim else scores)
    with pytest.raises(ValueError, match="dim='member' is not among the dimensions of the scores"):
        ENSEMBLE.recal.crps(TRUTH, "member")


def test_means_of_float32_are_summed_in_float64():
    members = xr.DataArray(np.full((1, 3_000_000, 1), 0.1, "f4"), dims=["member", "time", "x"])
    verified = xr.DataArray(np.zeros((3_000_000, 1), "f4"), dims=["time", "x"])
    found = members.recal.crps(verified, "time")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.float32(0.1))


def test_missing_values_have_no_score():
    forecast, truth = ENSEMBLE.copy(), TRUTH.copy()
    forecast[2, :, 0, 0], truth[3, 1, 1] = np.nan, np.nan
    scores = forecast.recal.crps(truth)
    assert int(scores.isnull().sum()) == 2
    xr.testing.assert_equal(scores, ENSEMBLE.recal.crps(TRUTH).where(scores.notnull()))


def test_observations_are_matched_by_label_and_may_lack_locations():
    scores = ENSEMBLE.recal.crps(TRUTH)
    assert ENSEMBLE[2:].recal.crps(TRUTH[::-1]).equals(scores[2:])
    alike = TRUTH.isel(lat=0, drop=True)
    expected = ENSEMBLE.recal.crps(alike.broadcast_like(TRUTH))
    assert ENSEMBLE.recal.crps(alike).equals(expected)


def test_single_forecast():
    scores = ENSEMBLE.recal.crps(TRUTH)
    found = ENSEMBLE.isel(time=3).recal.crps(TRUTH.isel(time=3))
    xr.testing.assert_identical(found, scores.isel(time=3))


def test_labels_and_attributes():
    scores = ENSEMBLE.recal.crps(TRUTH)
    assert scores.name == "crps"
    assert scores.attrs["units"] == "K"
    assert "not corrected for ensemble size" in scores.attrs["estimator"]
    two = xr.Dataset({"a": ENSEMBLE, "b": ENSEMBLE + 1})
    observed = {"a": TRUTH, "b": TRUTH + 1}
    assert list(two.recal.crps(observed)) == ["a", "b"]
    np.testing.assert_allclose(two.recal.crps(observed)["b"], scores, rtol=1e-10)


def test_invalid_forecasts_are_nan_and_leave_the_others_alone():
    weights = xr.ones_like(ENSEMBLE)
    scores = xrecal.weighted(ENSEMBLE, weights).recal.crps(TRUTH)
    weights[{"time": 3, "lat": 0, "lon": 0}] = -1.0
    bad = xrecal.weighted(ENSEMBLE, weights)
    for result in (bad.recal.crps(TRUTH), bad.recal.mean().to_dataarray()[0]):
        assert int(result.isnull().sum()) == 1
        assert np.isnan(result[{"time": 3, "lat": 0, "lon": 0}])
    found = bad.recal.crps(TRUTH)
    xr.testing.assert_allclose(found, scores.where(found.notnull()))


def test_other_units_are_errors():
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        ENSEMBLE.recal.crps(TRUTH.assign_attrs(units="degC"))


@pytest.mark.parametrize("form", FORMS)
def test_read_only_inputs_stay(form):
    forecast, truth = FORMS[form](ENSEMBLE).copy(deep=True), TRUTH.copy(deep=True)
    before = forecast.copy(deep=True)
    freeze(forecast).recal.crps(freeze(truth))
    assert forecast.identical(before)
