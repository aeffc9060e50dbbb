"""Predictors that break or are missing: their median takes their place, and all say so."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from xrecal.arrays.predictors import FEWEST

N, LATER = 120, 30
TIME = pd.date_range("2018-01-01", periods=N + LATER, freq="3D")
NAMES = ("wind", "cloud")
METHODS = [
    xrecal.EMOS(),
    xrecal.CKME(ridge=0.1),
    xrecal.IDR(),
    xrecal.Climatology(),
    xrecal.PITRecalibration(),
    xrecal.ConformalPrediction(),
    xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS(), xrecal.IDR())),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
REPLACED = "covariates of forecast are unlike those of the fit.* replaced by their median"


@cache
def cases():
    """Forecasts and what verified at two places, of which both predictors know a part."""
    rng = np.random.default_rng(7)
    signal, noise = rng.normal(size=(2, TIME.size, 2))
    known = {name: rng.normal(size=TIME.size) for name in NAMES}
    truth = signal + known["wind"][:, np.newaxis] + 0.5 * noise
    members = signal[..., np.newaxis] + 0.5 * rng.normal(size=(TIME.size, 2, 5))
    coords = {"time": TIME, "lat": [50.0, 51.0]}
    return (
        xr.DataArray(members, coords, ("time", "lat", "member"), name="t2m"),
        xr.DataArray(truth, coords, ("time", "lat"), name="t2m"),
        {name: xr.DataArray(a, {"time": TIME}, ["time"]) for name, a in known.items()},
    )


def changed(name="wind", at=slice(None), value=np.nan, times=None):
    """The predictors, one of them changed in some cases."""
    known = {one: a.copy() for one, a in cases()[2].items()}
    known[name][at] = value if times is None else times * known[name][at]
    return known


def part(covariates, at):
    return {name: value[at] for name, value in covariates.items()}


PAST, NEW = slice(None, N), slice(N, None)


def fit(method, covariates=None, at=PAST, **options):
    forecast, observed, known = cases()
    given = part(known if covariates is None else covariates, at)
    return forecast[at].recal.fit(
        observed[at], method, condition_on=NAMES, covariates=given, **options
    )


@cache
def fitted(method):
    """A fit to whole predictors, which no test changes."""
    return fit(method)


def quantiles(model, covariates, new=NEW):
    return model.quantile(cases()[0][new], [0.1, 0.5, 0.9], covariates=part(covariates, new))


@each_method
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e3, 0.0])
def test_a_broken_or_missing_value_is_the_median_of_the_record(method, value):
    model, at = fitted(method), [N + 2, N + 5]
    with pytest.warns(UserWarning, match=f"{REPLACED}.*'wind'"):
        found = quantiles(model, changed(at=at, value=value))
    median = float(np.median(cases()[2]["wind"][PAST]))
    xr.testing.assert_identical(found, quantiles(model, changed(at=at, value=median)))
    assert np.isfinite(found).all()


@each_method
def test_a_missing_value_of_the_record_is_its_median(method):
    gaps = changed(at=[3, 40])
    median = float(np.nanmedian(gaps["wind"][PAST]))
    model, expected = fit(method, gaps), fit(method, changed(at=[3, 40], value=median))
    assert (model.state["n_cases"] == N).all()
    assert model.state["covariate_wind"].isnull().sum() == 2
    known = cases()[2]
    xr.testing.assert_allclose(quantiles(model, known), quantiles(expected, known), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS[:2], ids=["EMOS", "CKME"])
def test_an_indicator_learns_what_missing_values_mean(method):
    """The predictor is missing where the forecast is much too low."""
    forecast, observed, known = cases()
    gone = xr.DataArray(np.arange(TIME.size) % 3 == 0, {"time": TIME}, ["time"])
    shifted = observed + 8.0 * gone
    gaps = {**known, "wind": known["wind"].where(~gone)}
    model = forecast[PAST].recal.fit(
        shifted[PAST], method, condition_on=NAMES, covariates=part(gaps, PAST)
    )
    scores = model.crps(forecast[NEW], shifted[NEW], covariates=part(gaps, NEW))
    blind = forecast[PAST].recal.fit(shifted[PAST], type(method)())
    assert int(gone[PAST].sum()) >= FEWEST
    assert scores.mean() < 0.5 * blind.crps(forecast[NEW], shifted[NEW]).mean()


@pytest.mark.parametrize("method", [xrecal.EMOS(), xrecal.LinearPool()], ids=["EMOS", "pool"])
def test_apply_has_a_status_of_each_forecast(method):
    forecast, _, _ = cases()
    broken = changed("cloud", [N + 1, N + 4], times=1000.0)
    broken["wind"][N + 4] = np.nan
    model = fitted(method)
    text = r"'wind', which is missing in 2 of 60 cases; 'cloud' in 4 of 60 cases \("
    with pytest.warns(UserWarning, match=text):
        issued = model.apply(forecast[NEW], covariates=part(broken, NEW))
    status = issued["t2m_status"]
    assert status.attrs["flag_meanings"] == "wind cloud"
    wind, cloud = ((status & bit) > 0 for bit in status.attrs["flag_masks"])
    every = np.arange(LATER)
    for lat in range(2):
        np.testing.assert_array_equal(wind.isel(lat=lat), every == 4)
        np.testing.assert_array_equal(cloud.isel(lat=lat), np.isin(every, [1, 4]))
    given = {name: value.chunk(time=7) for name, value in part(broken, NEW).items()}
    lazy = model.apply(forecast[NEW].chunk(time=7, lat=1), covariates=given)
    assert lazy["t2m_status"].chunks is not None
    xr.testing.assert_identical(lazy["t2m_status"].compute(), status)


def test_what_is_broken_in_one_place_is_ordinary_in_another():
    forecast, observed, known = cases()
    factor = xr.DataArray([1.0, 100.0], {"lat": [50.0, 51.0]}, ["lat"])
    wide = {name: value * factor for name, value in known.items()}
    model = forecast[PAST].recal.fit(
        observed[PAST], xrecal.EMOS(), condition_on=NAMES, covariates=part(wide, PAST)
    )
    same = {**wide, "wind": wide["wind"].copy()}
    same["wind"][N + 3] = 50.0
    with pytest.warns(UserWarning, match="'wind' in 1 of 60 cases"):
        issued = model.apply(forecast[NEW], covariates=part(same, NEW))
    np.testing.assert_array_equal(issued["t2m_status"].isel(time=3), [1, 0])


def test_neither_chunks_nor_the_order_nor_other_forecasts_matter():
    model, broken = fitted(METHODS[-1]), changed(at=[N + 2], value=1e3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = quantiles(model, broken)
        order = np.random.default_rng(0).permutation(np.arange(N, N + LATER))
        xr.testing.assert_allclose(quantiles(model, broken, order).sortby("time"), whole)
        xr.testing.assert_allclose(quantiles(model, broken, [N + 2]), whole.isel(time=[2]))
    forecast = cases()[0][NEW].chunk(time=7, lat=1)
    lazy = {name: value.chunk(time=7) for name, value in part(broken, NEW).items()}
    with forbid_compute():
        found = model.quantile(forecast, [0.1, 0.5, 0.9], covariates=lazy)
    xr.testing.assert_allclose(found.compute(), whole)


def test_a_stored_model_replaces_alike(tmp_path):
    model, broken = fit(xrecal.EMOS(), changed(at=slice(0, 30))), changed(at=[N + 2], value=1e3)
    model.save(tmp_path / "model.nc")
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    assert opened.state["covariate_wind"].isnull().sum() == 30
    with pytest.warns(UserWarning, match=REPLACED):
        expected = quantiles(model, broken)
    with pytest.warns(UserWarning, match=REPLACED):
        xr.testing.assert_identical(quantiles(opened, broken), expected)


@pytest.mark.parametrize("method", METHODS[:3], ids=["EMOS", "CKME", "IDR"])
def test_broken_cases_of_an_update_count_as_missing(method):
    """Else the range of the record would be theirs, and no later one be found."""
    forecast, observed, known = cases()
    first, last, broken = slice(0, 100), slice(100, N), changed(at=[105, 106], times=1000.0)
    model = fit(method, at=first)
    with pytest.warns(UserWarning, match="of hindcast are unlike .* count as missing: 'wind' in 4"):
        updated = model.update(forecast[last], observed[last], covariates=part(broken, last))
    kept = updated.state["covariate_wind"].to_numpy()
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(kept)), [105, 106])
    gaps = {**known, "wind": broken["wind"].where(abs(broken["wind"]) < 9)}
    with pytest.warns(UserWarning, match="'wind', which is missing in 4 of 40 cases"):
        expected = model.update(forecast[last], observed[last], covariates=part(gaps, last))
    xr.testing.assert_identical(quantiles(updated, known), quantiles(expected, known))
    cut = forecast[last].chunk(lat=1)
    with pytest.warns(UserWarning, match="count as missing"):
        lazy = model.update(cut, observed[last], covariates=part(broken, last))
    xr.testing.assert_identical(lazy.state.compute(), updated.state)


def test_an_update_widens_the_range():
    forecast, observed, known = cases()
    high = float(known["wind"][PAST].max())
    low = float(known["wind"][PAST].min())
    further, far = high + 0.4 * (high - low), high + 0.7 * (high - low)
    model, given = fit(xrecal.EMOS()), changed(at=[N], value=further)
    with pytest.warns(UserWarning, match=REPLACED):
        assert quantiles(model, changed(at=[N + 1], value=far)).notnull().all()
    one = slice(N, N + 1)
    wider = model.update(forecast[one], observed[one], covariates=part(given, one))
    quantiles(wider, changed(at=[N + 1], value=far), slice(N + 1, None))  # without a warning


def test_cross_validation_replaces_by_the_record_of_each_fold():
    forecast, observed, _ = cases()
    broken = changed(at=[N - 1], value=1e3)
    result = forecast[PAST].recal.cross_validate(
        observed[PAST],
        xrecal.EMOS(condition_on=NAMES),
        by="block",
        output="crps",
        covariates=part(broken, PAST),
    )
    assert float(result[-1].max()) < 5.0
    assert result.notnull().all()


def test_a_pool_over_places_judges_by_all_of_them():
    broken = changed(at=[N + 2], value=1e3)
    model = fit(xrecal.EMOS(), pool="lat")
    with pytest.warns(UserWarning, match=f"{REPLACED}.*'wind' in 1 of 30"):
        found = quantiles(model, broken)
    median = float(np.median(cases()[2]["wind"][PAST]))
    xr.testing.assert_identical(found, quantiles(model, changed(at=[N + 2], value=median)))


@cache
def ten_predictors():
    """Forecasts, what verified, and ten predictors: one is informative, one acts with another."""
    rng, n = np.random.default_rng(0), 900
    time = pd.date_range("2018-01-01", periods=n)
    drawn, x = rng.normal(size=(n, 10)), rng.normal(size=n)
    y = x + 0.5 * drawn[:, 0] + 0.3 * drawn[:, 1] * x + rng.normal(size=n)
    members = x[:, np.newaxis] + 0.7 * rng.normal(size=(n, 10))
    return (
        xr.DataArray(members, {"time": time}, ("time", "member"), name="y"),
        xr.DataArray(y, {"time": time}, ["time"], name="y"),
        {f"p{i}": xr.DataArray(drawn[:, i], {"time": time}, ["time"]) for i in range(10)},
    )


@cache
def fitted_to(method, without=None):
    """A fit to 600 cases with all predictors but one, and the mean score of the other cases."""
    forecast, observed, known = ten_predictors()
    past, new = slice(0, 600), slice(600, None)
    given = {name: value for name, value in known.items() if name != without}
    model = forecast[past].recal.fit(
        observed[past], method, condition_on=tuple(given), covariates=part(given, past)
    )
    return model, float(
        model.crps(forecast[new], observed[new], covariates=part(given, new)).mean()
    )


BREAKS = {
    "times": lambda value: 100 * value,
    "plus": lambda value: value + 1000,
    "zeros": lambda value: 0 * value,
    "nan": lambda value: np.nan * value,
}


@pytest.mark.parametrize("name", ["p0", "p1", "p9"])
@pytest.mark.parametrize("method", [xrecal.EMOS(), xrecal.LinearPool()], ids=["EMOS", "pool"])
def test_one_of_ten_predictors_breaks(method, name):
    """No worse than the fit without it by 5 %, however it breaks, with a warning that names it."""
    forecast, observed, known = ten_predictors()
    new = slice(600, None)
    (model, _), (_, without) = fitted_to(method), fitted_to(method, name)
    for breaks in BREAKS.values():
        broken = {**known, name: breaks(known[name])}
        with pytest.warns(UserWarning, match=f"{REPLACED}.*: '{name}'"):
            found = model.crps(forecast[new], observed[new], covariates=part(broken, new))
        assert found.mean() <= 1.05 * without


@pytest.mark.parametrize("pool", [None, "lat"])
def test_a_covariate_in_another_unit_is_refused(pool):
    known = {name: value.assign_attrs(units="degC") for name, value in cases()[2].items()}
    model = fit(xrecal.EMOS(), known, pool=pool)
    assert model.state["covariate_wind"].attrs["units"] == "degC"
    quantiles(model, cases()[2])  # which does not state its unit
    other = {**known, "wind": (known["wind"] + 273.15).assign_attrs(units="K")}
    with pytest.raises(ValueError, match=r"'wind' of the fit is in degC but .*\['wind'\] is in K"):
        quantiles(model, other)
