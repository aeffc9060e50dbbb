import numpy as np
import pytest
import xarray as xr

from tests.strategies import LEVELS

from .calls import FORMS, hindcast

ENSEMBLE, TRUTH = hindcast(n=9, step=0.25)
THRESHOLDS = [279.0, 280.5, 281.5]
BY_PLACE = xr.DataArray(
    [[279.0, 280.0], [281.0, np.nan]], dims=["lon", "lat"], coords={"lat": ENSEMBLE.lat}
)
TERCILES = TRUTH.quantile([1 / 3, 2 / 3], "time").rename(quantile="tercile")


@pytest.mark.parametrize("form", FORMS)
def test_brier_scores_are_of_the_exceedance(form):
    forecast = FORMS[form](ENSEMBLE)
    probability = forecast.recal.exceedance(THRESHOLDS)
    probability = probability["t2m"] if isinstance(probability, xr.Dataset) else probability
    happened = xr.concat([t < TRUTH for t in THRESHOLDS], "threshold")
    found = forecast.recal.brier_score(TRUTH, THRESHOLDS)
    xr.testing.assert_allclose(found, ((probability - happened) ** 2).transpose(*found.dims))


@pytest.mark.parametrize("form", FORMS)
def test_integral_of_brier_scores_is_the_crps(form):
    forecast = FORMS[form](ENSEMBLE)
    grid = np.arange(260.0, 300.0, 0.05)
    found = 0.05 * forecast.recal.brier_score(TRUTH, grid).sum("threshold")
    np.testing.assert_allclose(found, forecast.recal.crps(TRUTH).transpose(*found.dims), atol=0.03)


def test_values_on_a_threshold_do_not_exceed_it_in_either_type():
    """0.7 mm of rain in float64 are 0.7 mm of the forecast's float32."""
    rain = xr.DataArray(np.float32([[0.7, 0.2, 0.0, 0.7]]), dims=["time", "member"])
    for dtype in (np.float32, np.float64):
        observed = xr.DataArray(np.array([0.7], dtype), dims="time")
        assert rain.recal.brier_score(observed, 0.7).item() == 0
        assert rain.recal.brier_score(observed, 0.6).item() == 0.25


def test_coordinates_of_thresholds():
    found = ENSEMBLE.recal.brier_score(TRUTH, THRESHOLDS)
    assert found.dims == ("time", "threshold", "lat", "lon")
    np.testing.assert_array_equal(found.threshold, THRESHOLDS)
    assert found.threshold.attrs == {"units": "K"}
    one = ENSEMBLE.recal.brier_score(TRUTH, 280.5, "time")
    assert one.dims == ("lat", "lon")
    assert one.threshold.item() == 280.5
    own = ENSEMBLE.recal.brier_score(TRUTH, TERCILES, "time")
    assert own.dims == ("tercile", "lat", "lon")
    np.testing.assert_array_equal(own.tercile, [1 / 3, 2 / 3])
    assert "infinite" in ENSEMBLE.recal.brier_score(TRUTH, 280.0, fair=True).attrs["estimator"]
    assert "not corrected" in one.attrs["estimator"]


def test_missing_edges_have_no_score():
    edges = TERCILES.where((TERCILES.lat > 45) | (TERCILES.tercile > 0.5))
    found = ENSEMBLE.recal.ranked_probability_score(TRUTH, edges)
    assert found.dims == TRUTH.dims
    assert set(found.coords) == set(TRUTH.coords)
    assert found.isel(lat=0).isnull().all()
    assert found.isel(lat=1).notnull().all()


def test_edges_that_cannot_be():
    score = ENSEMBLE.recal.ranked_probability_score
    for edges in ([281.0, 279.0], [280.0, 280.0], [], 280.0, np.zeros((2, 2))):
        with pytest.raises(ValueError, match="edges must be increasing numbers, got"):
            score(TRUTH, edges)
    with pytest.raises(ValueError, match=r"edges need a dimension of their own.*\['lon', 'lat'\]"):
        score(TRUTH, BY_PLACE)
    with pytest.raises(ValueError, match="forecast is in K but threshold is in degC"):
        score(TRUTH, TERCILES.assign_attrs(units="degC"))


def test_levels_of_quantile_scores():
    found = ENSEMBLE.recal.quantile_score(TRUTH, LEVELS)
    assert found.dims == ("time", "quantile", "lat", "lon")
    np.testing.assert_array_equal(found["quantile"], LEVELS)
    one = ENSEMBLE.recal.quantile_score(TRUTH, 0.3)
    xr.testing.assert_identical(one, found.sel(quantile=0.3))


@pytest.mark.parametrize("form", FORMS)
def test_twice_the_mean_quantile_score_is_the_crps(form):
    forecast = FORMS[form](ENSEMBLE)
    levels = (np.arange(800) + 0.5) / 800
    found = 2 * forecast.recal.quantile_score(TRUTH, levels, "quantile")
    np.testing.assert_allclose(found, forecast.recal.crps(TRUTH), atol=0.01)


def test_levels_that_cannot_be():
    with pytest.raises(ValueError, match="q must hold levels between 0 and 1, got"):
        ENSEMBLE.recal.quantile_score(TRUTH, [0.5, 1.2])
    with pytest.raises(TypeError, match="threshold must be a number, a list of numbers or a Data"):
        ENSEMBLE.recal.brier_score(TRUTH, "warm")
