"""All methods given covariates: filled in by ``fit``, from dates, coordinates or values given."""

from functools import cache

import cftime
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import LEVELS, close, ensemble_and_truth, fraction, new_cases, points

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()


def in_summer(array):
    """What is added in summer and taken off in winter."""
    return array - 4 * np.cos(2 * np.pi * xr.DataArray(fraction(array.time), dims="time"))


CONDITIONED = {
    "ckme": xrecal.CKME(),
    "errors": xrecal.CKME(support="errors"),
    "emos": xrecal.EMOS(),
    "idr": xrecal.IDR(),
    "climatology": xrecal.Climatology(),
    "pit": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(),
}


@cache
def seasonal(name):
    """A model whose method the season was given to, which no test changes."""
    return HINDCAST.recal.fit(TRUTH, CONDITIONED[name], condition_on="season")


@pytest.mark.parametrize("name", CONDITIONED)
def test_condition_on_fills_the_field_of_the_method(name):
    method, filled = CONDITIONED[name], seasonal(name)
    assert filled.method == type(method)(
        **{k: getattr(method, k) for k in ("support",) if hasattr(method, k)}, condition_on="season"
    )
    direct = HINDCAST.recal.fit(TRUTH, filled.method)
    assert direct.state.identical(filled.state)
    assert direct.crps(NEW, VERIFIED).identical(filled.crps(NEW, VERIFIED))
    assert method.condition_on is None


def test_condition_on_leaves_what_is_set_and_what_has_no_such_field():
    given = xrecal.EMOS(condition_on="season")
    lead = HINDCAST.assign_coords(lead=("time", np.arange(48.0)))
    assert lead.recal.fit(TRUTH, given, condition_on="lead").method == given
    raw, expected = (
        HINDCAST.recal.fit(TRUTH, xrecal.Raw(), condition_on=names) for names in ("season", None)
    )
    assert raw.crps(NEW, VERIFIED).equals(expected.crps(NEW, VERIFIED))


@pytest.mark.parametrize("name", ["ckme", "errors", "emos", "idr"])
def test_the_season_pays_where_errors_have_one(name):
    hindcast, truth = ensemble_and_truth(n=144, n_lat=1)
    new, verified = new_cases(n=60, n_lat=1)
    truth, verified = in_summer(truth), in_summer(verified)
    alike = hindcast.recal.fit(truth, CONDITIONED[name]).crps(new, verified).mean()
    model = hindcast.recal.fit(truth, CONDITIONED[name], condition_on="season")
    assert model.crps(new, verified).mean() < 0.75 * alike


@pytest.mark.parametrize("name", CONDITIONED)
def test_products_of_conditioned_methods_agree_and_chunks_make_no_difference(name):
    model = seasonal(name)
    lazy = HINDCAST.chunk(lat=1).recal.fit(TRUTH, CONDITIONED[name], condition_on="season")
    issued = model.apply(NEW)
    xr.testing.assert_identical(lazy.apply(NEW.chunk(lon=1)).compute(), issued)
    scores = model.crps(NEW, VERIFIED)
    assert scores.notnull().all()
    xr.testing.assert_allclose(issued.recal.crps(VERIFIED), scores, rtol=1e-12)
    quantiles = model.quantile(NEW, LEVELS)
    own = issued.recal.quantile(LEVELS)["t2m"].transpose(*quantiles.dims)
    xr.testing.assert_allclose(own, quantiles, rtol=1e-12)
    close(model.crps(NEW.chunk(time=3), VERIFIED).compute(), scores)
    close(model.crps(NEW.isel(time=2), VERIFIED.isel(time=2)), scores.isel(time=2))


def dated(array, kind):
    """The same cases with dates of another kind."""
    if kind == "calendar":  # one date a month, as far as the year has passed
        dates = [
            cftime.datetime(y, 1 + int(12 * f), 1 + int(12 * f % 1 * 28), calendar="360_day")
            for y, f in zip(array.time.dt.year.to_numpy(), fraction(array.time), strict=True)
        ]
        return array.assign_coords(time=dates)
    months = array.time - np.timedelta64(90, "D")
    if kind == "valid_time":  # issued a season before
        return array.assign_coords(valid_time=("time", array.time.to_numpy()), time=months)
    return array


@pytest.mark.parametrize("kind", ["calendar", "valid_time"])
def test_season_of_other_dates(kind):
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), condition_on="season")
    hindcast, truth, new, verified = (dated(a, kind) for a in (HINDCAST, TRUTH, NEW, VERIFIED))
    model = hindcast.recal.fit(truth, expected.method)
    rounding = 0.01 if kind == "calendar" else 0.0  # its year has 360 days
    known, found = (m.state.covariate_season.to_numpy() for m in (expected, model))
    assert (abs(known - found) <= rounding).all()
    if kind == "valid_time":
        np.testing.assert_array_equal(model.crps(new, verified), expected.crps(NEW, VERIFIED))
    single = {"time": 2}
    scores = model.crps(new.isel(single), verified.isel(single))
    close(scores, model.crps(new, verified).isel(single))


def test_season_needs_dates():
    bare = [array.drop_vars("time") for array in (HINDCAST, TRUTH)]
    with pytest.raises(ValueError, match="EMOS: condition_on='season' needs dates"):
        bare[0].recal.fit(bare[1], xrecal.EMOS(), condition_on="season")
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), condition_on="season")
    with pytest.raises(ValueError, match=r"the season needs the dates of forecast: .*along 'time'"):
        model.apply(NEW.drop_vars("time"))


@pytest.mark.parametrize("along", ["lat", "lon"])
def test_covariates_are_coordinates_or_given(along):
    height = xr.DataArray([100.0, 2000.0], {along: TRUTH[along]}, [along])
    index = xr.DataArray(np.random.default_rng(1).normal(size=48), {"time": TRUTH.time}, ["time"])
    later = xr.DataArray(np.linspace(-1, 1.1, 7), {"time": NEW.time}, ["time"])
    wide = index + height / 1e3
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(condition_on="nao"), covariates={"nao": index})
    scores = expected.crps(NEW, VERIFIED, covariates={"nao": later})
    with_coordinates = HINDCAST.assign_coords(nao=index).recal.fit(
        TRUTH, xrecal.EMOS(), condition_on="nao"
    )
    found = with_coordinates.crps(NEW.assign_coords(nao=later), VERIFIED)
    assert found.drop_vars("nao").identical(scores)
    assert with_coordinates.state.covariate_nao.identical(expected.state.covariate_nao)
    assert NEW.recal.apply(expected, covariates={"nao": later}).equals(
        expected.apply(NEW, covariates={"nao": later})
    )
    model = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(condition_on="x"), covariates={"x": wide})
    given = {"x": later + height / 1e3}
    for point in points(TRUTH):  # the covariate has one of the two location dimensions
        at = {along: point[along]}
        alone = HINDCAST.isel(point).recal.fit(
            TRUTH.isel(point), model.method, covariates={"x": wide.isel(at)}
        )
        own_given = {"x": given["x"].isel(at)}
        own = alone.crps(NEW.isel(point), VERIFIED.isel(point), covariates=own_given)
        np.testing.assert_array_equal(model.crps(NEW, VERIFIED, covariates=given).isel(point), own)


@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_an_infinite_covariate_leaves_the_case_out_and_a_missing_one_does_not(missing):
    index = xr.DataArray(np.arange(48.0) % 7, {"time": TRUTH.time}, ["time"])
    gap = index.copy()
    gap[4] = missing
    later = xr.DataArray(np.arange(7.0), {"time": NEW.time}, ["time"])
    later[3] = missing
    truth, n, filled = TRUTH.copy(), 48, index.copy()
    filled[4] = 3.0  # the median
    if np.isinf(missing):
        truth[4], n = np.nan, 47
    for name in ("ckme", "errors", "emos", "idr", "climatology", "pit", "conformal"):
        method = CONDITIONED[name]
        model = HINDCAST.recal.fit(TRUTH, method, condition_on="x", covariates={"x": gap})
        expected = HINDCAST.recal.fit(truth, method, condition_on="x", covariates={"x": filled})
        assert (model.state.n_cases == n).all()
        with pytest.warns(UserWarning, match="covariates of forecast are unlike .*'x'"):
            scores = model.crps(NEW, VERIFIED, covariates={"x": later})
        whole = expected.crps(NEW, VERIFIED, covariates={"x": later.where(np.isfinite(later), 3.0)})
        np.testing.assert_allclose(scores, whole, rtol=1e-9)
