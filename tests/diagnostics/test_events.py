import numpy as np
import pytest
import xarray as xr

from tests.marks import forbid_compute
from xrecal.diagnostics.events import read_events
from xrecal.diagnostics.evidence import read_evidence

from .calls import FORMS, hindcast

ENSEMBLE, TRUTH = hindcast(n=9, step=0.5)
BY_PLACE = xr.DataArray(
    [[279.0, 280.0], [281.0, np.nan]], dims=["lon", "lat"], coords={"lat": ENSEMBLE.lat}
)
TERCILES = TRUTH.quantile([1 / 3, 2 / 3], "time").rename(quantile="tercile")


def events(threshold, forecast=ENSEMBLE, truth=TRUTH):
    return read_events(read_evidence(forecast, truth, None, None), threshold)


@pytest.mark.parametrize("threshold", [280.0, BY_PLACE, TRUTH.isel(lat=0, lon=0, drop=True)])
def test_what_happened(threshold):
    found = events(threshold)
    happened = found.label(found.happened)
    expected = (threshold < TRUTH) * 1.0
    expected = expected.where(xr.ones_like(TRUTH) * threshold >= 0)
    np.testing.assert_array_equal(happened.transpose(*TRUTH.dims), expected.transpose(*TRUTH.dims))
    assert 0 < happened.mean() < 1


@pytest.mark.parametrize("form", FORMS)
def test_probabilities_are_those_of_exceedance(form):
    forecast = FORMS[form](ENSEMBLE)
    for threshold in ([279.0, 281.0], BY_PLACE, TERCILES):
        found = events(threshold, forecast)
        expected = forecast.recal.exceedance(threshold)
        expected = expected["t2m"] if isinstance(expected, xr.Dataset) else expected
        probability = found.label(found.probability).transpose(*expected.dims)
        np.testing.assert_array_equal(probability, expected)


def test_equal_values_do_not_exceed_in_the_type_of_the_forecast():
    rain = xr.DataArray(np.float32([[0.7, 0.2]]), dims=["time", "member"])
    for dtype in (np.float32, np.float64):
        found = events(0.7, rain, xr.DataArray(np.array([0.7], dtype), dims="time"))
        assert found.happened.item() == 0
        assert found.probability.item() == 0
        assert found.happened.dtype == np.float32


def test_missing_observations_are_no_events():
    found = events([280.0, 281.0], truth=TRUTH.where(TRUTH > 279))
    np.testing.assert_array_equal(found.happened.isnull().all("threshold"), TRUTH <= 279)


def test_evidence_by_place_and_by_a_dimension_of_thresholds():
    by_place = ENSEMBLE.recal.reliability(TRUTH, BY_PLACE)
    assert by_place.n_cases[1, 1] == 0
    assert "threshold" not in by_place.coords
    for lat, lon in ((0, 0), (1, 0), (0, 1)):
        at = {"lat": lat, "lon": lon}
        one = ENSEMBLE.isel(at).recal.reliability(TRUTH.isel(at), BY_PLACE.isel(at).item())
        xr.testing.assert_equal(by_place.isel(at), one.drop_vars("threshold"))
    own = ENSEMBLE.recal.reliability(TRUTH, TERCILES)
    assert own.brier_score.dims == ("lat", "lon", "tercile")
    with forbid_compute():
        lazy = ENSEMBLE.chunk(lat=1).recal.reliability(TRUTH, TERCILES.chunk(lon=1))
    xr.testing.assert_identical(lazy.compute(), own)


def test_thresholds_that_do_not_fit():
    with pytest.raises(ValueError, match="forecast is in K but threshold is in degC"):
        ENSEMBLE.recal.reliability(TRUTH, BY_PLACE.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="labels along 'lat' differ"):
        ENSEMBLE.recal.reliability(TRUTH, BY_PLACE.assign_coords(lat=[1.0, 2.0]))
    with pytest.raises(TypeError, match="threshold must be a number, a list of numbers or a Data"):
        ENSEMBLE.recal.reliability(TRUTH, "warm")


@pytest.mark.parametrize("threshold", ["281", None, [True]])
def test_thresholds_are_numbers(threshold):
    message = "threshold must be a number, a list of numbers or a DataArray, got"
    for call in (ENSEMBLE.recal.reliability, ENSEMBLE.recal.brier_score):
        with pytest.raises(TypeError, match=message):
            call(TRUTH, threshold)
