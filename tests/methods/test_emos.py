import numpy as np
import pytest

import xrecal
from tests.labelled import random
from xrecal.arrays.baselines import emos
from xrecal.arrays.distributions.censored import censored_normal_quantile
from xrecal.arrays.distributions.forms import Forecasts, moments
from xrecal.arrays.distributions.missing import forecasts_from
from xrecal.arrays.status import NOT_CONVERGED, TOO_FEW
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import read_forms
from xrecal.methods.emos import COEFFICIENTS

from .of_arrays import as_cases, as_new, covariates_of


def moments_by_hand(loc, scale=None, weights=None):
    """Mean and variance of each forecast, member by member."""
    means, variances = np.empty(loc.shape[:2]), np.empty(loc.shape[:2])
    for i in np.ndindex(loc.shape[:2]):
        w = np.ones(loc.shape[2]) if weights is None else weights[i]
        there = ~np.isnan(loc[i])
        w, x = w[there] / w[there].sum(), loc[i][there]
        within = 0.0 if scale is None else scale[i][there] ** 2
        means[i] = np.sum(w * x)
        variances[i] = np.sum(w * (within + (x - means[i]) ** 2))
    return means, variances


def forms(rng, n=60):
    loc = 2 * rng.normal(size=(2, n, 1)) + rng.normal(size=(2, n, 4))
    scale, weights = rng.uniform(0.2, 1, loc.shape), rng.uniform(0.0, 1, loc.shape)
    ragged = np.where(rng.random(loc.shape) < 0.3, np.nan, loc)
    ragged[..., 0] = loc[..., 0]
    masses = np.broadcast_to([0.15, 0.2, 0.35, 0.3], loc.shape)
    return {
        "plain": Forecasts(loc),
        "ragged": Forecasts(ragged),
        "weighted": Forecasts(loc, None, weights),
        "ragged weighted": Forecasts(ragged, None, weights),
        "quantiles": Forecasts(np.sort(loc, axis=-1), None, masses),
        "normal": Forecasts(loc[..., :1], scale[..., :1]),
        "mixture": Forecasts(loc, scale),
        "weighted mixture": Forecasts(loc, scale, weights),
    }


KINDS = list(forms(np.random.default_rng(0), 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bounds", [None, "auto"])
def test_fits_on_the_mean_and_variance_of_the_distribution(kind, bounds, rng):
    cases = forms(rng)[kind]
    means, variances = moments_by_hand(*cases)
    observations = means + rng.normal(size=means.shape)
    method = xrecal.EMOS(bounds=bounds)
    fitted = method.fit_locations(as_cases(cases, observations), 20)
    expected, _, _ = emos.fit_emos(means, variances, observations, min_samples=20)
    found = np.stack([fitted[name] for name in COEFFICIENTS], axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(fitted["status"], 0)
    a, b, c, d = found.T[..., np.newaxis]
    normal = method.predict_locations(as_new(cases), as_cases(None, observations), fitted)
    np.testing.assert_allclose(normal.loc[..., 0], a + b * means, rtol=1e-10)
    scale = np.sqrt(c**2 + d**2 * variances)
    if kind == "ragged":  # other numbers of members than those of the hindcast in the mean
        inverse = 1 / np.isfinite(cases.loc).sum(-1)
        known = np.where(inverse < 1, 1 - inverse, np.inf)
        excess = (inverse.mean(-1, keepdims=True) - inverse) / known
        own = variances * (1 - excess)
        fewer = excess < 0  # their variance is shrunk to the mean of all
        mean, spread = variances.mean(-1, keepdims=True), variances.var(-1, keepdims=True)
        k, usual = 1 / inverse, 1 / inverse.mean(-1, keepdims=True)
        square = (mean**2 + spread) / (1 + 2 / (usual - 1))
        chance = 2 * square * (1 / np.where(k > 1, k - 1, np.inf) - 1 / (usual - 1))
        own = np.where(fewer, mean + spread / (spread + chance) * (own - mean), own)
        noise = b**2 * excess * np.where(fewer, own / (1 - excess), variances)
        square = c**2 + d**2 * own
        scale = np.sqrt(np.maximum(square - noise, square / 4))
    np.testing.assert_allclose(normal.scale[..., 0], scale, rtol=1e-10)
    if bounds is None:
        assert normal.weights is None
    else:  # that no observation reaches
        assert (normal.lower == -np.inf).all()
        assert (normal.upper == np.inf).all()


def test_labelled_quantiles_have_the_moments_of_their_masses(rng):
    da = random("time", "quantile", quantile=[0.9, 0.1, 0.5, 0.2])
    (form,) = read_forms(da).values()
    whole = form.broadcast().parts
    cases = forecasts_from({name: part.to_numpy()[np.newaxis] for name, part in whole.items()})
    expected = moments_by_hand(*cases)
    np.testing.assert_allclose(moments(cases), expected, rtol=1e-12)
    masses = np.broadcast_to([0.3, 0.15, 0.35, 0.2], cases.loc.shape)
    np.testing.assert_allclose(cases.weights, masses, rtol=1e-12)


@pytest.mark.parametrize("vary_spread", [False, True])
def test_covariates_enter_location_and_perhaps_scale(vary_spread, rng):
    cases, covariates = forms(rng, 90)["plain"], covariates_of(rng, 2, 90)
    means, variances = moments_by_hand(*cases)
    features = covariates.features(("season", "lead"))
    of, known = features.values, {"in_spread": vary_spread, "predictors": features.predictors}
    observations = (
        means + of @ [1.0, 2.0, 0.5, 0.0] + np.exp(0.5 * of[..., 2]) * rng.normal(size=(2, 90))
    )
    method = xrecal.EMOS(condition_on=("season", "lead"), vary_spread=vary_spread)
    assert ("spread_feature" in method.parameters(3)) == vary_spread
    fitted = method.fit_locations(as_cases(cases, observations, covariates), 20)
    expected, _, _ = emos.fit_emos(means, variances, observations, of, **known)
    assert expected[:, 8:].any() == vary_spread
    found = [fitted[name][:, np.newaxis] for name in COEFFICIENTS]
    found = np.concatenate([*found, fitted["location_feature"], fitted["spread_feature"]], axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    new = forms(rng, 7)["plain"]
    new_covariates = covariates_of(rng, 2, 7)
    normal = method.predict_locations(
        as_new(new, new_covariates), as_cases(None, observations, covariates), fitted
    )
    loc, scale = emos.predict_emos(
        found,
        *moments_by_hand(*new),
        new_covariates.features(("season", "lead"), covariates).values,
    )
    np.testing.assert_allclose(normal.loc[..., 0], loc, rtol=1e-10)
    np.testing.assert_allclose(normal.scale[..., 0], scale, rtol=1e-10)
    missing = new_covariates.values.copy()
    missing[0, 2, 1], missing[0, 3, 0] = np.nan, np.inf
    new_covariates = type(covariates)(missing, covariates.names, covariates.periods)
    found = method.predict_locations(
        as_new(new, new_covariates), as_cases(None, observations, covariates), fitted
    )
    np.testing.assert_array_equal(np.isnan(found.mean()[0]), np.arange(7) == 3)  # the season


def test_rain_is_censored_at_zero(rng):
    cases = forms(rng)["plain"]
    observations = np.maximum(cases.loc.mean(-1) + rng.normal(size=(2, 60)), 0)
    observations[1] += 5  # whose lowest value, which many equal, is a bound as well
    method = xrecal.EMOS()
    fitted = method.fit_locations(as_cases(cases, observations), 20)
    np.testing.assert_array_equal(fitted["lower"], [0, 5])
    np.testing.assert_array_equal(fitted["upper"], np.inf)
    found = method.predict_locations(as_new(cases), as_cases(None, observations), fitted)
    levels = np.array([0.01, 0.5, 0.99])
    quantiles = found.quantile(levels)
    bound = np.array([[[0.0]], [[5.0]]])
    assert (quantiles >= bound).all()
    assert (quantiles[..., 0] == bound[..., 0]).any(-1).all()
    expected = censored_normal_quantile(
        levels, found.loc[..., 0], found.scale[..., 0], np.broadcast_to(bound[..., 0], (2, 60)),
        np.full((2, 60), np.inf),
    )  # fmt: skip
    np.testing.assert_array_equal(quantiles, expected)
    off = xrecal.EMOS(bounds=None)
    assert {"lower", "upper"} <= set(method.parameters(0))
    assert not {"lower", "upper"} & set(off.parameters(0))
    free = off.fit_locations(as_cases(cases, observations), 20)
    assert (
        off.predict_locations(as_new(cases), as_cases(None, observations), free).quantile(levels)
        < 0
    ).any()


def test_status(rng):
    cases = Forecasts(rng.normal(size=(3, 40, 5)))
    observations = rng.normal(size=(3, 40))
    observations[1, 19:] = np.nan
    observations[2] = np.nan
    fitted = xrecal.EMOS().fit_locations(as_cases(cases, observations), 20)
    np.testing.assert_array_equal(fitted["n_cases"], [40, 19, 0])
    np.testing.assert_array_equal(fitted["status"], [0, TOO_FEW, TOO_FEW])
    for name in (*COEFFICIENTS, "lower", "upper"):
        np.testing.assert_array_equal(np.isnan(fitted[name]), [False, True, True])


def test_status_where_the_search_stops_early(rng, monkeypatch):
    def stopped(mean, variance, observations, features, **settings):
        n = np.isfinite(observations).sum(-1)
        return np.zeros((len(n), 4)), n, np.zeros(len(n), dtype=bool)

    monkeypatch.setattr(emos, "fit_emos", stopped)
    observations = rng.normal(size=(2, 30))
    observations[1, 5:] = np.nan
    cases = Forecasts(rng.normal(size=(2, 30, 5)))
    fitted = xrecal.EMOS().fit_locations(as_cases(cases, observations), 20)
    np.testing.assert_array_equal(fitted["status"], [NOT_CONVERGED, TOO_FEW])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_members_give_nan_without_warning(value, rng):
    observations = rng.normal(size=(1, 40))
    method, cases = xrecal.EMOS(), as_cases(Forecasts(rng.normal(size=(1, 40, 3))), observations)
    fitted = method.fit_locations(cases, 20)
    new = rng.normal(size=(1, 3, 3)).astype(np.float32)
    new[0, 1] = value
    found = method.predict_locations(as_new(Forecasts(new)), cases, fitted)
    for part in (found.loc, found.scale):
        assert part.dtype == np.float32
        np.testing.assert_array_equal(np.isnan(part[0, :, 0]), [False, True, False])


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_vary_spread_is_a_switch(value):
    with pytest.raises(ValueError, match="EMOS: vary_spread must be True or False, got "):
        xrecal.EMOS(vary_spread=value)


def test_needs_no_dates():
    assert xrecal.EMOS().check(CaseAxis(), 0) == (xrecal.EMOS(), None)
    assert xrecal.EMOS().covariates == ()
