"""Tests of auto-calibration on labelled forecasts, against the array functions at every point."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import FORMS, LEVELS, ensemble_and_truth, points
from xrecal import arrays
from xrecal.arrays import Forecasts
from xrecal.arrays.status import FEW, IDENTICAL, INVALID, NO_SPREAD, REFUSED, TOO_FEW
from xrecal.inputs.forms import numbers_of

ENSEMBLE, TRUTH = ensemble_and_truth(n=30)
OPTIONS = {"n_resamples": 60, "seed": 5}


def normalised(forecast):
    """A forecast whose weights sum to one, which weighted ones need not otherwise."""
    if isinstance(forecast, xr.Dataset) and "t2m_weight" in forecast and "member" in forecast.dims:
        weight = forecast["t2m_weight"]
        attrs = weight.attrs
        forecast = forecast.assign(t2m_weight=(weight / weight.sum("member")).assign_attrs(attrs))
    return forecast


def of_arrays(forecast, form, point, number):
    """Error, p-value and status at one point by the array function."""
    one = normalised(forecast).isel(point)
    parts = {
        "ensemble": lambda: Forecasts(one.transpose("time", "member").to_numpy()[None]),
        "weighted": lambda: Forecasts(
            one.t2m.transpose("time", "member").to_numpy()[None],
            None,
            one.t2m_weight.transpose("time", "member").to_numpy()[None],
        ),
        "shared": lambda: Forecasts(
            one.t2m.to_numpy()[None],
            None,
            one.t2m_weight.transpose("time", "member").to_numpy()[None],
        ),
        "quantile": lambda: Forecasts(
            (x := one.transpose("time", "quantile").to_numpy())[None],
            None,
            np.broadcast_to(masses(LEVELS), x.shape)[None],
        ),
        "percentile": lambda: Forecasts(
            (x := one.transpose("time", "percentile").to_numpy())[None],
            None,
            np.broadcast_to(masses(one.percentile.to_numpy() / 100), x.shape)[None],
        ),
        "normal": lambda: Forecasts(
            one.t2m_loc.to_numpy()[None, :, None], one.t2m_scale.to_numpy()[None, :, None]
        ),
        "mixture": lambda: Forecasts(
            one.t2m_loc.transpose("time", "component").to_numpy()[None],
            np.full((1, 30, 3), 1.5),
            np.broadcast_to([0.5, 0.25, 0.25], (1, 30, 3)),
        ),
    }[form]()
    y = TRUTH.isel(point).to_numpy()[None]
    number = np.array([number])
    settings = arrays.SkceSettings("bootstrap", **OPTIONS)
    return arrays.skce_locations(parts, y, settings, location_numbers=number)


def masses(levels):
    """What each quantile stands for: between the midpoints to its neighbours."""
    edges = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]])
    return np.diff(edges)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_at_every_point(form):
    forecast = normalised(FORMS[form](ENSEMBLE))
    result = forecast.recal.skce_test(TRUTH, **OPTIONS)
    for number, point in enumerate(points(TRUTH)):  # locations count with dimensions by name
        value, p_value, status, _ = of_arrays(FORMS[form](ENSEMBLE), form, point, number)
        found = result.isel(point)
        np.testing.assert_allclose(found.skce, value[0], rtol=1e-12, atol=1e-15)
        assert found.p_value.item() == pytest.approx(p_value[0], abs=1e-15)
        assert found.status.item() == status[0] == 0
        assert found.n_cases.item() == 30
    np.testing.assert_allclose(forecast.recal.skce(TRUTH).skce, result.skce, rtol=1e-14)


@pytest.mark.parametrize("test", ["bootstrap", "wild", "montecarlo", "block"])
def test_every_test_tells_good_from_bad(test):
    rng = np.random.default_rng(1)
    centre = xr.DataArray(rng.normal(size=(3, 120)), dims=["x", "time"])
    members = centre + xr.DataArray(rng.normal(size=(3, 120, 20)), dims=["x", "time", "member"])
    truth = members.isel(member=0, drop=True)
    good = members.isel(member=slice(1, None)).recal.skce_test(truth, test=test, n_resamples=200)
    bad = (members + 2).recal.skce_test(truth, test=test, n_resamples=200)
    assert (good.p_value > 0.01).all()
    assert (bad.p_value < 0.01).all()
    assert (bad.skce > good.skce).all()
    assert {"bootstrap": "Arcones", "wild": "wild", "montecarlo": "drawn", "block": "block"}[
        test
    ] in bad.p_value.attrs["long_name"]


def test_observations_pooled_into_ensembles_do_not_blame_few_members():
    rng = np.random.default_rng(2)
    members = xr.DataArray(rng.normal(size=(600, 6)), dims=["time", "member"])
    truth = xr.DataArray(rng.normal(size=600), dims="time")
    assert members.recal.skce_test(truth, n_resamples=200).p_value < 0.02
    exact = members.recal.skce_test(truth, n_resamples=200, augmented=True)
    assert exact.p_value > 0.05
    assert "pooled into their ensembles" in exact.skce.attrs["estimator"]
    assert (members / 2).recal.skce_test(truth, n_resamples=200, augmented=True).p_value < 0.02


def test_several_dimensions_of_cases_are_one_after_the_other():
    both = ENSEMBLE.recal.skce_test(TRUTH, ["lat", "time"], test="wild", block_length=3, **OPTIONS)
    stacked = ENSEMBLE.stack(case=("lat", "time")).reset_index("case", drop=True)
    observed = TRUTH.stack(case=("lat", "time")).reset_index("case", drop=True)
    one = stacked.recal.skce_test(observed, "case", test="wild", block_length=3, **OPTIONS)
    np.testing.assert_array_equal(both.p_value, one.p_value)
    np.testing.assert_allclose(both.skce, one.skce, rtol=1e-12)
    everything = ENSEMBLE.recal.skce(TRUTH, ...)
    assert everything.skce.dims == ()
    assert everything.n_cases == 120


def test_status_of_each_location():
    forecast = xrecal.weighted(ENSEMBLE.copy(), xr.full_like(ENSEMBLE, 0.2).drop_attrs())
    truth = TRUTH.copy()
    truth[1:, 0, 0] = np.nan  # one case
    truth[5:, 0, 1] = np.nan  # five
    truth[:, 1, 0] = 280.0  # constant
    forecast["t2m_weight"][{"time": 2, "lat": 1, "lon": 1}] = 0.3  # not summing to one
    with pytest.warns(UserWarning, match=r"do not sum to one in 1 of 120 .*; their sum is 1\.5\."):
        found = forecast.recal.skce_test(truth, **OPTIONS)
    np.testing.assert_array_equal(found.status, [[TOO_FEW, FEW], [NO_SPREAD, REFUSED]])
    np.testing.assert_array_equal(found.p_value.isnull(), [[True, False], [True, True]])
    np.testing.assert_array_equal(found.skce.isnull(), [[True, False], [True, True]])
    np.testing.assert_array_equal(found.n_cases, [[1, 5], [30, 30]])
    flags = found.status.attrs
    named = dict(zip(flags["flag_masks"], flags["flag_meanings"].split(), strict=True))
    assert named[FEW] == "few_cases"
    assert named[REFUSED] == "weights_or_scales_refused"
    negative = forecast.assign(t2m_weight=-forecast.t2m_weight)
    with pytest.warns(UserWarning, match=r"their sum is -1\.5 to -1\. Results that need them"):
        assert (negative.recal.skce(TRUTH).status == REFUSED).all()


def test_identical_forecasts_are_compared_without_regard_to_them():
    same = ENSEMBLE.isel(time=0, drop=True).expand_dims(time=ENSEMBLE.time)
    found = same.recal.skce(TRUTH)
    assert (found.status == IDENTICAL).all()
    assert found.skce.notnull().all()


def test_censored_forecasts_are_tested_by_quantiles():
    loc, scale = ENSEMBLE.mean("member", keep_attrs=True), ENSEMBLE.std("member", keep_attrs=True)
    bounded = xrecal.gaussian(loc, scale, lower=279.0)
    found = bounded.recal.skce_test(TRUTH, **OPTIONS)
    levels = (np.arange(200) + 0.5) / 200
    expected = bounded.recal.quantile(levels).recal.skce_test({"t2m": TRUTH}, **OPTIONS)
    np.testing.assert_array_equal(found.skce, expected.skce)
    np.testing.assert_array_equal(found.p_value, expected.p_value)
    assert found.skce.attrs["estimator"].endswith(
        "of 200 quantiles, relative to the season where the status reports it"
    )


def test_few_blocks_are_flagged():
    wild = ENSEMBLE.recal.skce_test(TRUTH, test="wild", block_length=4, **OPTIONS)
    assert (wild.status == FEW).all()  # seven blocks
    long = ENSEMBLE.recal.skce_test(TRUTH, test="block", block_length=40)
    assert (long.status == TOO_FEW).all()
    assert long.p_value.isnull().all()


def test_infinite_observations_are_no_cases():
    truth = TRUTH.copy()
    truth[:3] = np.inf
    found = ENSEMBLE.recal.skce(truth)
    assert (found.n_cases == 27).all()
    assert (found.status == INVALID).all()


def test_seeds_change_resamples_and_nothing_else():
    bad = ENSEMBLE + 0.2
    first, again, other = (
        bad.recal.skce_test(TRUTH, n_resamples=20, seed=seed, test="montecarlo")
        for seed in (1, 1, 2)
    )
    xr.testing.assert_identical(first, again)
    np.testing.assert_array_equal(first.skce, other.skce)


def test_locations_have_numbers_of_their_own():
    """Two equal locations draw other resamples, as many tests of a map should."""
    (form,) = xrecal.inputs.forms.read_forms(ENSEMBLE).values()
    assert len(numbers_of(form, "time")) == 3
    alike = xr.concat([ENSEMBLE.isel(lat=0, lon=0)] * 20, "x").drop_vars(["lat", "lon"])
    truth = TRUTH.isel(lat=0, lon=0, drop=True) + 1.8
    p = alike.recal.skce_test(truth, n_resamples=200, test="wild").p_value
    assert np.unique(p).size > 1


def test_errors():
    with pytest.raises(ValueError, match="test is 'normal'; give one of"):
        ENSEMBLE.recal.skce_test(TRUTH, test="normal")
    with pytest.raises(ValueError, match="n_resamples must be a whole number, at least 1, got 0"):
        ENSEMBLE.recal.skce_test(TRUTH, n_resamples=0)
    with pytest.raises(
        ValueError, match="block_length is for test='serial', 'wild' or 'block', not"
    ):
        ENSEMBLE.recal.skce_test(TRUTH, block_length=3)
    with pytest.raises(ValueError, match=r"block_length must be .*, at least 2, got 1"):
        ENSEMBLE.recal.skce_test(TRUTH, test="block", block_length=1)
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 0\.5"):
        ENSEMBLE.recal.skce_test(TRUTH, seed=0.5)
    with pytest.raises(
        ValueError, match=r"augmented=True is for plain ensembles, but 't2m' is .*norm"
    ):
        FORMS["normal"](ENSEMBLE).recal.skce(TRUTH, augmented=True)
