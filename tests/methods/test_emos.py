import numpy as np
import pytest

import xrecal
from tests.labelled import random
from xrecal import arrays
from xrecal.arrays.forms import Forecasts
from xrecal.arrays.status import NOT_CONVERGED, TOO_FEW
from xrecal.dims import CaseAxis
from xrecal.forms import read_forms
from xrecal.methods.base import State
from xrecal.methods.emos import COEFFICIENTS, _moments


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
def test_fits_on_the_mean_and_variance_of_the_distribution(kind, rng):
    cases = forms(rng)[kind]
    means, variances = moments_by_hand(*cases)
    observations = means + rng.normal(size=means.shape)
    method = xrecal.EMOS()
    fitted = method.fit_locations(cases, observations, CaseAxis(), 20)
    expected, _, _ = arrays.fit_emos(means, variances, observations, 20)
    found = np.stack([fitted[name] for name in COEFFICIENTS], axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(fitted["status"], 0)
    a, b, c, d = found.T[..., np.newaxis]
    normal = method.predict_locations(cases, State(observations, None, fitted), CaseAxis(), None)
    np.testing.assert_allclose(normal.loc[..., 0], a + b * means, rtol=1e-10)
    np.testing.assert_allclose(normal.scale[..., 0], np.sqrt(c**2 + d**2 * variances), rtol=1e-10)
    assert normal.weights is None


def test_labelled_quantiles_have_the_moments_of_their_masses(rng):
    da = random("time", "quantile", quantile=[0.9, 0.1, 0.5, 0.2])
    (form,) = read_forms(da).values()
    whole = form.broadcast().parts
    cases = Forecasts(*(whole.get(p) for p in ("loc", "scale", "weights")))
    cases = Forecasts(*(None if p is None else p.to_numpy()[np.newaxis] for p in cases))
    expected = moments_by_hand(*cases)
    np.testing.assert_allclose(_moments(cases), expected, rtol=1e-12)
    masses = np.broadcast_to([0.3, 0.15, 0.35, 0.2], cases.loc.shape)
    np.testing.assert_allclose(cases.weights, masses, rtol=1e-12)


def test_status(rng):
    cases = Forecasts(rng.normal(size=(3, 40, 5)))
    observations = rng.normal(size=(3, 40))
    observations[1, 19:] = np.nan
    observations[2] = np.nan
    fitted = xrecal.EMOS().fit_locations(cases, observations, CaseAxis(), 20)
    np.testing.assert_array_equal(fitted["n_cases"], [40, 19, 0])
    np.testing.assert_array_equal(fitted["status"], [0, TOO_FEW, TOO_FEW])
    for name in COEFFICIENTS:
        np.testing.assert_array_equal(np.isnan(fitted[name]), [False, True, True])


def test_status_where_the_search_stops_early(rng, monkeypatch):
    def stopped(mean, variance, observations, min_samples):
        n = np.isfinite(observations).sum(-1)
        return np.zeros((len(n), 4)), n, np.zeros(len(n), dtype=bool)

    monkeypatch.setattr(arrays, "fit_emos", stopped, raising=False)
    observations = rng.normal(size=(2, 30))
    observations[1, 5:] = np.nan
    cases = Forecasts(rng.normal(size=(2, 30, 5)))
    fitted = xrecal.EMOS().fit_locations(cases, observations, CaseAxis(), 20)
    np.testing.assert_array_equal(fitted["status"], [NOT_CONVERGED, TOO_FEW])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_members_give_nan_without_warning(value, rng):
    cases = Forecasts(rng.normal(size=(1, 40, 3)))
    observations = rng.normal(size=(1, 40))
    method = xrecal.EMOS()
    fitted = method.fit_locations(cases, observations, CaseAxis(), 20)
    new = rng.normal(size=(1, 3, 3)).astype(np.float32)
    new[0, 1] = value
    found = method.predict_locations(
        Forecasts(new), State(observations, None, fitted), CaseAxis(), None
    )
    for part in (found.loc, found.scale):
        assert part.dtype == np.float32
        np.testing.assert_array_equal(np.isnan(part[0, :, 0]), [False, True, False])


def test_needs_no_dates():
    xrecal.EMOS().check(CaseAxis(), 0)
    assert not xrecal.EMOS().needs_season
