import numpy as np
import pytest

from tests.strategies import points
from xrecal import arrays

from .calls import FORMS, hindcast
from .test_reliability import calibrated

ENSEMBLE, TRUTH = hindcast(n=30)
NAMES = (
    "bias",
    "bias_error",
    "rmse",
    "spread",
    "ratio",
    "spread_of_bin",
    "rmse_of_bin",
    "n_in_bin",
)


@pytest.mark.parametrize("form", ["ensemble", "weighted"])
def test_numbers_at_each_point(form):
    gaps = ENSEMBLE.where((ENSEMBLE.member != 1) | (ENSEMBLE.lat > 45))
    forecast = FORMS[form](gaps)
    found = forecast.recal.spread_skill(TRUTH, bins=4)
    assert found["n_in_bin"].dims == ("lat", "lon", "spread_bin")
    np.testing.assert_array_equal(found.spread_bin, range(4))
    for point in points(TRUTH):
        x = gaps.isel(point).to_numpy()
        w = forecast.t2m_weight.isel(point).to_numpy() if form == "weighted" else None
        n_members = (~np.isnan(x)).sum(-1) if w is None else None
        mean, std = arrays.weighted_mean(x, w), arrays.weighted_std(x, w)
        expected = arrays.spread_skill(mean, std**2, TRUTH.isel(point).to_numpy(), 4, n_members)
        for name, value in zip(NAMES, expected, strict=True):
            np.testing.assert_allclose(found[name].isel(point), value, rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_bias_and_error_are_those_of_the_mean(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.spread_skill(TRUTH)
    mean = forecast.recal.mean()
    error = (mean if form in ("ensemble", "quantile", "percentile") else mean["t2m"]) - TRUTH
    np.testing.assert_allclose(found.bias, error.mean("time").transpose("lat", "lon"), rtol=1e-10)
    rmse = np.sqrt((error**2).mean("time")).transpose("lat", "lon")
    np.testing.assert_allclose(found.rmse, rmse, rtol=1e-10)
    np.testing.assert_allclose(found.ratio, found.spread / found.rmse, rtol=1e-12)


def test_exchangeable_members_have_a_ratio_of_one_whatever_their_number():
    rng = np.random.default_rng(8)
    for m in (2, 10):
        members = ENSEMBLE[:1, :1, :, :1].copy(data=[[[[0.0], [0.0]]]])
        members = members.drop_vars("time").pad(time=(0, 3999), member=(0, m - 1))
        members = members.copy(data=rng.normal(size=members.shape)).assign_coords(time=range(4000))
        truth = members[:, 0].copy(data=rng.normal(size=(4000, 2, 1)))
        found = members.recal.spread_skill(truth)
        np.testing.assert_allclose(found.ratio, 1, atol=0.04)
        assert (abs(found.bias) < 4 * found.bias_error).all()
        assert (found.bias_error < 0.04).all()


def test_too_narrow_forecasts_have_a_ratio_below_one():
    forecast, truth = calibrated()
    assert forecast.recal.spread_skill(truth, ...).ratio.item() == pytest.approx(1, abs=0.03)
    narrow = forecast.assign(wind_scale=forecast.wind_scale / 2)
    assert narrow.recal.spread_skill(truth, ...).ratio.item() == pytest.approx(0.5, abs=0.02)


def test_cases_with_one_member_do_not_count():
    one = ENSEMBLE.where((ENSEMBLE.member == 0) | (ENSEMBLE.time > ENSEMBLE.time[4]))
    found, expected = one.recal.spread_skill(TRUTH), ENSEMBLE[5:].recal.spread_skill(TRUTH)
    np.testing.assert_array_equal(found.n_cases, 25)
    np.testing.assert_allclose(found.rmse, expected.rmse, rtol=1e-13)
    assert (found["n_in_bin"].sum("spread_bin") == 25).all()


def test_infinite_observations_do_not_count():
    truth = TRUTH.copy()
    truth[:3] = np.inf
    found = ENSEMBLE.recal.spread_skill(truth)
    np.testing.assert_array_equal(found.n_cases, 27)
    assert np.isfinite(found.rmse).all()


def test_units():
    found = ENSEMBLE.recal.spread_skill(TRUTH)
    units = {name: found[name].attrs.get("units") for name in NAMES}
    assert units == dict.fromkeys(NAMES, "K") | {"ratio": "1", "n_in_bin": None}


@pytest.mark.parametrize("bins", [0, 2.5, True, "3"])
def test_bins_that_cannot_be(bins):
    with pytest.raises(ValueError, match="bins must be a whole number, at least 1, got"):
        ENSEMBLE.recal.spread_skill(TRUTH, bins=bins)
