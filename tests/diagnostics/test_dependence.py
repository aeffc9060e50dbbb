"""Diagnostics of cases that depend on each other: what tests allow for it, and what warns."""

import warnings

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.arrays.test_serial import autoregressive
from tests.strategies import ensemble_and_truth
from xrecal import arrays
from xrecal.arrays.status import DEPENDENT, NOT_TOLD, SEASONAL

DAYS = xr.date_range("2001-01-01", periods=100, freq="D")
ENSEMBLE, TRUTH = ensemble_and_truth(n=30)


def calibrated(phi, shape=(3, 100), seed=1):
    """Normal forecasts of places whose errors depend on those of the day before."""
    mean, z = autoregressive(np.random.default_rng(seed), phi, (2, *shape))
    loc = xr.DataArray(mean, {"time": DAYS[: shape[1]]}, ["place", "time"], name="t")
    return xrecal.gaussian(loc, xr.ones_like(loc)), loc + z


def test_tests_of_independent_cases_warn_where_these_depend():
    forecast, observed = calibrated(0.9)
    for call, instead in (
        (lambda f, y: f.recal.pit_test(y), "block_length=None"),
        (lambda f, y: f.recal.skce_test(y, n_resamples=20), "test='serial'"),
    ):
        with pytest.warns(UserWarning, match=f"depend on each other at 100% of 3 .*use {instead}"):
            found = call(forecast, observed)
        assert (found.status & DEPENDENT > 0).all()
        with pytest.warns(UserWarning, match="cases depend on each other, but this test"):
            call(forecast.isel(place=0), observed.isel(place=0))
        lazy = call(forecast.chunk(place=1), observed)  # says so in the status alone
        xr.testing.assert_identical(lazy.status.compute(), found.status)


def test_no_warning_of_independent_cases_or_of_tests_that_allow_for_dependence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecast, observed = calibrated(0.0)
        forecast.recal.pit_test(observed)
        forecast.recal.skce_test(observed, n_resamples=20)
        forecast, observed = calibrated(0.9)
        pit = forecast.recal.pit_test(observed, block_length=None)
        skce = forecast.recal.skce_test(observed, test="serial", n_resamples=20)
        forecast.recal.skce_test(observed, test="wild", block_length=20, n_resamples=20)
        summary = forecast.recal.summary(observed, n_resamples=20)
        forecast.recal.summary(observed, n_resamples=20).recal  # noqa: B018
    for found in (pit, skce):
        assert (found.block_length > 5).all()
        np.testing.assert_array_equal(found.p_value.isnull(), found.status & NOT_TOLD > 0)
    np.testing.assert_array_equal(summary.pit_block_length, pit.block_length)
    np.testing.assert_array_equal(summary.skce_block_length, skce.block_length)


def test_summary_has_the_tests_that_are_asked_for():
    forecast, observed = calibrated(0.0)
    lengths = {
        ("serial", 4): (4, 4),
        ("wild", 4): (4, None),
        ("bootstrap", None): (None, None),
        ("serial", 1): (None, 1),
    }
    for (test, length), (of_pit, of_skce) in lengths.items():
        found = forecast.recal.summary(observed, test=test, block_length=length, n_resamples=20)
        for name, expected in (("pit", of_pit), ("skce", of_skce)):
            if expected is None:
                assert f"{name}_block_length" not in found
            else:
                assert (found[f"{name}_block_length"] == expected).all()
        expected = forecast.recal.pit_test(observed, block_length=of_pit or 1).p_value
        np.testing.assert_array_equal(found.pit_p_value, expected)


def test_pooled_places_count_by_date():
    """Places that are copies of one another have the tests of one of them."""
    forecast, observed = calibrated(0.5, (1, 60))
    same = [0, 0, 0]
    for dims in (["time", "place"], ["place", "time"]):
        many, seen = forecast.isel(place=same), observed.isel(place=same)
        both = many.recal.skce_test(seen, dims, test="serial", n_resamples=400)
        alone = forecast.recal.skce_test(observed, "time", test="serial", n_resamples=400)
        assert both.block_length == alone.block_length.item()
        assert both.p_value == pytest.approx(alone.p_value.item(), abs=0.03)
        pit = many.recal.pit_test(seen, dims, block_length=None)
        one = forecast.recal.pit_test(observed, "time", block_length=None)
        assert pit.block_length == one.block_length.item()
        assert pit.p_value == pytest.approx(one.p_value.item(), abs=1e-12)


def test_order_and_chunks_make_no_difference():
    forecast, observed = calibrated(0.6)
    mixed = np.random.default_rng(0).permutation(100)
    for call in (
        lambda f: f.recal.pit_test(observed, block_length=None),
        lambda f: f.recal.skce_test(observed, test="serial", n_resamples=50),
    ):
        expected = call(forecast)
        xr.testing.assert_allclose(call(forecast.isel(time=mixed)), expected, rtol=1e-9)
        xr.testing.assert_identical(call(forecast.chunk(place=1)).compute(), expected)


def test_block_length_is_checked():
    for wrong in (0, 1.5, True, "auto"):
        with pytest.raises(ValueError, match=r"block_length must be a whole number .* got"):
            ENSEMBLE.recal.pit_test(TRUTH, block_length=wrong)
        with pytest.raises(ValueError, match="block_length must be a whole number, at least"):
            xrecal.compare(ENSEMBLE, TRUTH, [xrecal.EMOS()], block_length=wrong)
    with pytest.raises(ValueError, match="give one of block_length and cluster"):
        xrecal.compare(ENSEMBLE, TRUTH, [xrecal.EMOS()], block_length=2, cluster="year")


def test_an_annual_cycle_hides_no_error():
    """A raw forecast whose 90 % interval holds half of the observations is not accepted."""
    rng, n = np.random.default_rng(2), 200
    days = xr.date_range("2001-01-01", periods=n, freq="9D")
    mean = 10 * np.cos(2 * np.pi * days.day_of_year.to_numpy() / 365.25) + rng.normal(size=n)
    loc = xr.DataArray(mean, {"time": days}, ["time"], name="t")
    forecast, observed = xrecal.gaussian(loc, xr.ones_like(loc)), loc + 2.4 * rng.normal(size=n)
    assert 0.4 < forecast.recal.coverage(observed, level=0.9).coverage < 0.6
    found = forecast.recal.skce_test(observed, test="serial")
    assert found.p_value < 0.01
    assert found.status & SEASONAL
    assert "relative to the season" in found.skce.attrs["estimator"]
    undated = forecast.drop_vars("time").recal.skce_test(observed.drop_vars("time"), test="serial")
    assert undated.p_value > 3 * found.p_value
    assert not undated.status & SEASONAL


def test_any_two_methods_against_each_other():
    methods = {"EMOS": xrecal.EMOS(), "IDR": xrecal.IDR()}
    result = xrecal.compare(ENSEMBLE, TRUTH, methods, block_length=1)
    labels = ["raw", "climatology", "EMOS", "IDR"]
    plain = result.pairs(None)
    assert plain.dims == ("method", "other")
    scores = {m: ENSEMBLE.recal.cross_validate(TRUTH, methods[m], by="block", output="crps")
              for m in methods}  # fmt: skip
    difference = (scores["EMOS"] - scores["IDR"]).mean(["lat", "lon"]).to_numpy()
    expected = arrays.diebold_mariano(difference, block_length=1)[1]
    assert plain.sel({"method": "EMOS", "other": "IDR"}) == pytest.approx(expected)
    upper = plain.to_numpy()[np.triu_indices(4, 1)]
    for adjust in ("holm", "bh", "by"):
        found = result.pairs(adjust)
        np.testing.assert_array_equal(found, found.transpose("other", "method"))
        np.testing.assert_allclose(
            found.to_numpy()[np.triu_indices(4, 1)], arrays.adjusted_p_values(upper, adjust)
        )
        assert np.isnan(np.diag(found)).all()
    assert list(result.pairs().method.to_numpy()) == labels


def test_comparison_by_years_and_by_blocks():
    hindcast, observed = ENSEMBLE.isel(lat=0, lon=0), TRUTH.isel(lat=0, lon=0)
    plain = xrecal.compare(hindcast, observed, [xrecal.EMOS()])
    years = xrecal.compare(hindcast, observed, [xrecal.EMOS()], cluster="season")
    np.testing.assert_array_equal(plain.crps, years.crps)
    raw, emos = (
        hindcast.recal.crps(observed),
        hindcast.recal.cross_validate(observed, xrecal.EMOS(), by="block", output="crps"),
    )
    month = observed.time.dt.year * 12 + observed.time.dt.month
    p = arrays.diebold_mariano((emos - raw).to_numpy(), cluster=(month // 3).to_numpy())[1]
    np.testing.assert_allclose(years.p_raw.sel({"method": "EMOS"}), p)
    independent = xrecal.compare(hindcast, observed, [xrecal.EMOS()], block_length=1)
    assert (independent.pit_block_length == 1).all()
    assert (independent.skce_block_length == 1).all()
    pit = hindcast.recal.pit_test(observed, block_length=1).p_value
    assert independent.pit_p_value.sel({"method": "raw"}) == pit
