import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import points
from xrecal import arrays
from xrecal.diagnostics.evidence import read_evidence
from xrecal.diagnostics.reliability import read_events

from .calls import FORMS, hindcast

ENSEMBLE, TRUTH = hindcast(n=30, step=0.25)
COARSE, COARSE_TRUTH = hindcast(n=9, step=0.5)
BY_PLACE = xr.DataArray(
    [[279.0, 280.0], [281.0, np.nan]], dims=["lon", "lat"], coords={"lat": COARSE.lat}
)
TERCILES = COARSE_TRUTH.quantile([1 / 3, 2 / 3], "time").rename(quantile="tercile")
THRESHOLDS = [279.0, 280.5]
LEVELS = [0.25, 0.5, 0.9]
PARTS = ("miscalibration", "discrimination", "uncertainty")


def calibrated(n=4000, seed=3):
    """Normal forecasts (time, x) that tell the truth, and what verified."""
    rng = np.random.default_rng(seed)
    loc = xr.DataArray(rng.normal(size=(n, 2)), dims=["time", "x"], name="wind")
    return xrecal.gaussian(loc, 0 * loc + 1), loc + rng.normal(size=loc.shape)


# probabilities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ensemble", "weighted"])
def test_probabilities_at_each_point(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.reliability(TRUTH, THRESHOLDS)
    assert found.conditional_probability.dims == ("time", "lat", "lon", "threshold")
    assert found.brier_score.dims == ("lat", "lon", "threshold")
    for point in points(TRUTH):
        y, x = TRUTH.isel(point).to_numpy(), ENSEMBLE.isel(point).to_numpy()
        w = forecast.t2m_weight.isel(point).to_numpy() if form == "weighted" else None
        for i, t in enumerate(THRESHOLDS):
            p = arrays.weighted_exceedance(x, [t], w)[:, 0]
            here = found.isel(threshold=i, **point)
            np.testing.assert_array_equal(here.probability, p)
            conditional, parts = arrays.corp(p, (y > t) * 1.0)
            np.testing.assert_array_equal(here.conditional_probability, conditional)
            for name, part in zip((*PARTS, "brier_score"), parts, strict=True):
                assert here[name] == part


@pytest.mark.parametrize("form", FORMS)
def test_parts_add_up_to_the_brier_score(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.reliability(TRUTH, THRESHOLDS)
    total = found.miscalibration - found.discrimination + found.uncertainty
    np.testing.assert_allclose(total, found.brier_score, atol=1e-14)
    score = forecast.recal.brier_score(TRUTH, THRESHOLDS, "time")
    np.testing.assert_allclose(found.brier_score, score.transpose(*found.brier_score.dims))
    assert (found[list(PARTS)].to_dataarray() >= 0).all()
    p = forecast.recal.exceedance(THRESHOLDS)
    p = p["t2m"] if isinstance(p, xr.Dataset) else p
    xr.testing.assert_allclose(found.probability, p.transpose(*found.probability.dims))


def test_calibrated_probabilities_come_true():
    forecast, truth = calibrated()
    found = forecast.recal.reliability(truth, 0.5)
    inside = (found.probability > 0.1) & (found.probability < 0.9)
    error = abs(found.conditional_probability - found.probability).where(inside)
    assert error.mean() < 0.04
    assert (found.miscalibration < 0.006).all()
    assert (found.discrimination > 0.05).all()
    wrong = xrecal.gaussian(forecast.wind_loc + 1, forecast.wind_scale / 2)
    assert (wrong.recal.reliability(truth, 0.5).miscalibration > 0.05).all()


def test_names_of_thresholds():
    one = ENSEMBLE.recal.reliability(TRUTH, 280.5)
    assert one.conditional_probability.dims == TRUTH.dims
    assert one.threshold.item() == 280.5
    assert one.threshold.attrs == {"units": "K"}
    several = ENSEMBLE.recal.reliability(TRUTH, THRESHOLDS)
    xr.testing.assert_identical(one, several.isel(threshold=1))
    name = "probability that 2 m temperature exceeds the threshold"
    assert one.probability.attrs == {"long_name": name, "units": "1"}
    assert {one[part].attrs["units"] for part in PARTS} == {"1"}


# quantiles ----------------------------------------------------------------------------------------


def test_quantiles_at_each_point():
    found = ENSEMBLE.recal.quantile_reliability(TRUTH, LEVELS)
    assert found.conditional_quantile.dims == ("time", "lat", "lon", "quantile")
    assert found.below.dims == ("lat", "lon", "quantile")
    np.testing.assert_array_equal(found["quantile"], LEVELS)
    for point in points(TRUTH):
        y, x = TRUTH.isel(point).to_numpy(), ENSEMBLE.isel(point).to_numpy()
        for i, level in enumerate(LEVELS):
            q = arrays.weighted_quantile(x, [level])[:, 0]
            here = found.isel(quantile=i, **point)
            np.testing.assert_array_equal(here.forecast_quantile, q)
            conditional, parts = arrays.quantile_reliability(q, y, level)
            np.testing.assert_array_equal(here.conditional_quantile, conditional)
            for name, part in zip((*PARTS, "quantile_score"), parts, strict=True):
                assert here[name] == part
            assert here.below.item() == pytest.approx(np.mean(y <= q), rel=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_parts_add_up_to_the_quantile_score(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.quantile_reliability(TRUTH, LEVELS)
    total = found.miscalibration - found.discrimination + found.uncertainty
    np.testing.assert_allclose(total, found.quantile_score, atol=1e-13)
    score = forecast.recal.quantile_score(TRUTH, LEVELS, "time")
    np.testing.assert_allclose(found.quantile_score, score.transpose(*found.below.dims))
    assert (found[list(PARTS)].to_dataarray() > -1e-13).all()


def test_calibrated_quantiles_come_true():
    forecast, truth = calibrated(2000)
    found = forecast.recal.quantile_reliability(truth, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(found.below.mean("x"), [0.1, 0.5, 0.9], atol=0.015)
    error = abs(found.conditional_quantile - found.forecast_quantile)
    assert error.median() < 0.15
    assert (found.miscalibration < 0.02).all()
    wrong = (forecast + xr.Dataset({"wind_loc": 1.0, "wind_scale": 0.0})).recal
    assert (wrong.quantile_reliability(truth, 0.5).miscalibration > 0.1).all()


def test_names_of_levels():
    one = ENSEMBLE.recal.quantile_reliability(TRUTH, 0.5)
    assert one.conditional_quantile.dims == TRUTH.dims
    assert one["quantile"].item() == 0.5
    several = ENSEMBLE.recal.quantile_reliability(TRUTH, LEVELS)
    xr.testing.assert_identical(one, several.isel(quantile=1))
    units = {name: array.attrs.get("units") for name, array in several.data_vars.items()}
    score = dict.fromkeys((*PARTS, "quantile_score"), "K")
    quantiles = {"forecast_quantile": "K", "conditional_quantile": "K", "below": "1"}
    assert units == score | quantiles | {"n_cases": None, "status": None}


def test_infinite_observations_are_left_out():
    truth = TRUTH.copy()
    truth[3] = np.inf
    found = ENSEMBLE.recal.quantile_reliability(truth, LEVELS)
    expected = ENSEMBLE.recal.quantile_reliability(truth.where(truth < np.inf), LEVELS)
    xr.testing.assert_identical(found, expected)


@pytest.mark.parametrize("q", [0, 1, [0.5, 1.0]])
def test_levels_that_cannot_be(q):
    with pytest.raises(ValueError, match="q must hold levels between 0 and 1, ends excluded"):
        ENSEMBLE.recal.quantile_reliability(TRUTH, q)


# events -------------------------------------------------------------------------------------------


def events(threshold, forecast=COARSE, truth=COARSE_TRUTH):
    return read_events(read_evidence(forecast, truth, None, None), threshold)


@pytest.mark.parametrize("threshold", [280.0, BY_PLACE, COARSE_TRUTH.isel(lat=0, lon=0, drop=True)])
def test_what_happened(threshold):
    found = events(threshold)
    happened = found.label(found.happened)
    expected = (threshold < COARSE_TRUTH) * 1.0
    expected = expected.where(xr.ones_like(COARSE_TRUTH) * threshold >= 0)
    np.testing.assert_array_equal(
        happened.transpose(*COARSE_TRUTH.dims), expected.transpose(*COARSE_TRUTH.dims)
    )
    assert 0 < happened.mean() < 1


@pytest.mark.parametrize("form", FORMS)
def test_probabilities_are_those_of_exceedance(form):
    forecast = FORMS[form](COARSE)
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
    found = events([280.0, 281.0], truth=COARSE_TRUTH.where(COARSE_TRUTH > 279))
    np.testing.assert_array_equal(found.happened.isnull().all("threshold"), COARSE_TRUTH <= 279)


def test_evidence_by_place_and_by_a_dimension_of_thresholds():
    by_place = COARSE.recal.reliability(COARSE_TRUTH, BY_PLACE)
    assert by_place.n_cases[1, 1] == 0
    assert "threshold" not in by_place.coords
    for lat, lon in ((0, 0), (1, 0), (0, 1)):
        at = {"lat": lat, "lon": lon}
        one = COARSE.isel(at).recal.reliability(COARSE_TRUTH.isel(at), BY_PLACE.isel(at).item())
        xr.testing.assert_equal(by_place.isel(at), one.drop_vars("threshold"))
    own = COARSE.recal.reliability(COARSE_TRUTH, TERCILES)
    assert own.brier_score.dims == ("lat", "lon", "tercile")
    with forbid_compute():
        lazy = COARSE.chunk(lat=1).recal.reliability(COARSE_TRUTH, TERCILES.chunk(lon=1))
    xr.testing.assert_identical(lazy.compute(), own)


def test_thresholds_that_do_not_fit():
    with pytest.raises(ValueError, match="forecast is in K but threshold is in degC"):
        COARSE.recal.reliability(COARSE_TRUTH, BY_PLACE.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="labels along 'lat' differ"):
        COARSE.recal.reliability(COARSE_TRUTH, BY_PLACE.assign_coords(lat=[1.0, 2.0]))
    with pytest.raises(TypeError, match="threshold must be a number, a list of numbers or a Data"):
        COARSE.recal.reliability(COARSE_TRUTH, "warm")


@pytest.mark.parametrize("threshold", ["281", None, [True]])
def test_thresholds_are_numbers(threshold):
    message = "threshold must be a number, a list of numbers or a DataArray, got"
    for call in (COARSE.recal.reliability, COARSE.recal.brier_score):
        with pytest.raises(TypeError, match=message):
            call(COARSE_TRUTH, threshold)
