import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import points
from xrecal import arrays

from .calls import FORMS, hindcast

ENSEMBLE, TRUTH = hindcast(n=30, step=0.25)
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
