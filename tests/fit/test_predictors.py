"""Covariates other than the season, in the centres of errors and in EMOS."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal

N, PLACES, SEASON = 260, 2, ("season",)
NAMES = ("season", "wind", "noise")
POOL = xrecal.LinearPool((xrecal.CKME(support="standardised_both", tails=None), xrecal.EMOS()))
METHODS = {"ckme": xrecal.CKME(support="errors"), "emos": xrecal.EMOS(), "pool": POOL}


def simulate(seed=0):
    """Forecasts whose errors depend on the sign of the wind, alike at both places."""
    rng = np.random.default_rng(seed)
    time = np.datetime64("2001-01-01", "ns") + np.arange(N) * np.timedelta64(7, "D")
    of = {"time": time, "place": ["a", "b"]}
    signal, wind, noise = rng.normal(size=(3, N, PLACES))
    members = signal[..., np.newaxis] + 0.3 * rng.normal(size=(N, PLACES, 5))
    truth = signal + 2.0 * (wind > 0) * np.sign(signal) + 0.3 * rng.normal(size=(N, PLACES))
    forecast = xr.DataArray(members, of, ["time", "place", "member"], name="t")
    truth, wind, noise = (xr.DataArray(a, of, ["time", "place"]) for a in (truth, wind, noise))
    return forecast, truth, {"wind": wind, "noise": noise}


FORECAST, TRUTH, PREDICTORS = simulate()
PAST, NEW = ({"time": part} for part in (slice(200), slice(200, None)))


def part(where):
    """Forecasts, observations and predictors of some dates."""
    covariates = {name: values.isel(where) for name, values in PREDICTORS.items()}
    return FORECAST.isel(where), TRUTH.isel(where), covariates


@cache
def fitted(name):
    """A model of the past, which no test changes."""
    forecast, truth, covariates = part(PAST)
    return forecast.recal.fit(truth, METHODS[name], condition_on=NAMES, covariates=covariates)


def test_kinds_of_errors_are_those_that_differ():
    plain = {"regression_plain", "standardised_plain"}
    for support in ("auto", "errors", "standardised_both"):
        alone, given = (
            set(xrecal.CKME(support=support, condition_on=names).supports)
            for names in (SEASON, NAMES)
        )
        assert given - alone == given & plain
        assert alone.isdisjoint(plain)
        assert alone <= given
    assert xrecal.CKME(support="standardised_plain").supports == ("standardised_plain",)
    shapes = xrecal.CKME(support="errors", compare="shapes", condition_on=NAMES)
    assert shapes.supports == ("standardised", "ratio", "standardised_plain")
    with pytest.raises(ValueError, match="got support='regression_plain'"):
        xrecal.CKME(support="regression_plain", compare="shapes")


def test_a_pool_has_both_centres_where_there_are_predictors():
    labels = [c.label for c in xrecal.LinearPool(condition_on=NAMES).components]
    assert labels == [
        "ckme_season_wind_noise_standardised", "ckme_season_wind_noise_standardised_plain",
        "ckme_shapes_season_wind_noise_standardised",
        "ckme_shapes_season_wind_noise_standardised_plain",
        "ckme_wind_noise", "idr_season_wind_noise", "climatology", "raw",
    ]  # fmt: skip
    description = fitted("pool").state["pool_weight"].description
    assert "in units of the spread that EMOS without predictors gives" in description


def test_a_plain_centre_has_no_coefficients_of_predictors():
    state = fitted("pool").state
    centre = state["ckme_season_wind_noise_standardised_plain_centre"]
    assert centre.sizes["place"] == PLACES
    columns = centre.to_numpy().reshape(PLACES, -1)
    # Four of the forecast; twice two of the season, two predictors and their indicators.
    assert (columns[:, [6, 7, 8, 9, 12, 13, 14, 15]] == 0).all()
    assert (columns[:, 4:6] != 0).all()


def test_predictors_that_no_line_shows_are_found_around_the_plain_centre():
    forecast, truth, covariates = part(NEW)
    scores = {}
    for name in METHODS:
        past, known, _ = part(PAST)
        plain = past.recal.fit(known, METHODS[name], condition_on="season")
        scores[name] = fitted(name).crps(forecast, truth, covariates=covariates).mean().item()
        scores[name] /= plain.crps(forecast, truth).mean().item()
    assert scores["ckme"] < 0.85
    assert scores["pool"] < 0.9
    assert scores["emos"] < 1.01


@pytest.mark.parametrize("name", METHODS)
def test_chunks_files_and_updates_make_no_difference(name, tmp_path):
    model, (forecast, truth, covariates) = fitted(name), part(NEW)
    expected = model.crps(forecast, truth, covariates=covariates)
    model.save(tmp_path / "model.nc")
    again = xrecal.open_recalibrator(tmp_path / "model.nc")
    xr.testing.assert_equal(again.crps(forecast, truth, covariates=covariates), expected)
    past, known, given = part(PAST)
    lazy = past.chunk(place=1).recal.fit(known, METHODS[name], condition_on=NAMES, covariates=given)
    xr.testing.assert_equal(
        lazy.crps(forecast.chunk(place=1), truth, covariates=covariates).compute(), expected
    )
    updated = model.update(forecast, truth, covariates=covariates)
    assert updated.crps(forecast, truth, covariates=covariates).mean() < expected.mean()
