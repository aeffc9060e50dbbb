"""What methods choose, apart from what they fit with it."""

from dataclasses import replace

import numpy as np
import pytest

import xrecal
from xrecal.arrays import Forecasts
from xrecal.arrays.ckme.search import Search
from xrecal.arrays.distributions import pool as mixtures
from xrecal.inputs.covariates import AHEAD
from xrecal.methods import VectorCKME, pool
from xrecal.methods.base import Covariates

from .of_arrays import as_cases, as_new, axis_of, covariates_of

N = 60
POOL = xrecal.LinearPool((xrecal.CKME(tails=None), xrecal.EMOS(), xrecal.Raw()))
SEARCHING = {
    "ckme": xrecal.CKME(),
    "ckme_season": xrecal.CKME(bandwidth="cv", half_life="cv", condition_on="season"),
    "ckme_shapes": xrecal.CKME(support="errors", compare="shapes"),
    "pool": xrecal.LinearPool(condition_on="season"),
    "pool_of_supports": POOL,
}
CHOOSING_NOTHING = [
    xrecal.EMOS(), xrecal.IDR(), xrecal.Climatology(), xrecal.PITRecalibration(),
    xrecal.ConformalPrediction(), xrecal.Raw(),
]  # fmt: skip
searching = pytest.mark.parametrize("method", SEARCHING.values(), ids=SEARCHING)


def cases_of(rng, n_locations, n=N):
    x = rng.normal(size=(n_locations, n, 5))
    observed = 2.0 * x.mean(-1) + rng.normal(size=(n_locations, n))
    return as_cases(Forecasts(x), observed, covariates_of(rng, n_locations, n), axis_of(n))


@searching
def test_a_fit_is_a_fit_with_its_choices(method, rng):
    cases = cases_of(rng, 3)
    cases.observations[2, 10:] = np.nan  # too few
    choices = method.choose_locations(cases, 20)
    found = method.fit_locations(cases, 20, choices)
    expected = method.fit_locations(cases, 20)
    assert list(found) == list(expected)
    for name in expected:
        ratio = name.startswith("ckme_ratio_")  # not usable, and without weight
        if not (ratio and name.endswith("centre")):
            np.testing.assert_array_equal(found[name], expected[name], name)
    if "ckme_ratio_centre" in found:
        np.testing.assert_array_equal(found["pool_weight"][:2, 4], 0.0)


@searching
def test_a_fit_with_choices_of_another_place_searches_nothing(method, rng, monkeypatch):
    one = method.choose_locations(cases_of(rng, 1, 80), 20)
    shared = {name: np.repeat(array, 3, axis=0) for name, array in one.items()}

    def fail(*_, **__):
        pytest.fail("a search began, or cases were held out")

    monkeypatch.setattr(Search, "__init__", fail)
    monkeypatch.setattr(pool, "held_out_by_refits", fail)
    monkeypatch.setattr(mixtures, "pool_weights", fail)
    cases = cases_of(rng, 3)
    fitted = method.fit_locations(cases, 20, shared)
    for name in ("ridge", "support", "strength", "pool_weight", "tail_shape"):
        if name in shared:
            np.testing.assert_array_equal(fitted[name], shared[name], name)
    new = as_new(cases.forecasts, cases.covariates)
    issued = method.predict_locations(new, cases, fitted).quantile(np.array([0.1, 0.9]))
    assert np.isfinite(issued).all()


def test_experts_are_fitted_with_given_choices(rng, monkeypatch):
    method, cases = xrecal.OnlinePool((xrecal.CKME(), xrecal.EMOS())), cases_of(rng, 2, 90)
    ahead = Covariates(np.zeros((2, 90, 1)), (AHEAD,), (None,))
    cases = as_cases(cases.forecasts, cases.observations, ahead, cases.axis)
    one = method.choose_locations(cases.take(slice(1)), 20)
    monkeypatch.setattr(Search, "__init__", lambda *_, **__: pytest.fail("a search began"))
    shared = {name: np.repeat(array, 2, axis=0) for name, array in one.items()}
    fitted = method.fit_locations(cases, 20, shared)
    np.testing.assert_array_equal(fitted["pool_weight"], shared["pool_weight"])
    assert np.isfinite(fitted["expert_weight"]).all()


@pytest.mark.parametrize("method", CHOOSING_NOTHING, ids=lambda m: type(m).__name__)
def test_methods_that_search_nothing_choose_nothing(method, rng):
    cases = cases_of(rng, 2)
    assert method.choose_locations(cases, 20) == {}
    found, expected = method.fit_locations(cases, 20, {}), method.fit_locations(cases, 20)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], name)


def test_choices_of_vectors_are_those_of_their_fit(rng):
    method = VectorCKME(xrecal.CKME(), ("u", "v"), (None, None), (None, None))
    cases = cases_of(rng, 2)
    both = Forecasts(np.tile(cases.forecasts.loc, 2))
    cases = replace(cases, forecasts=both, partners=(cases.observations + 1.0,))
    choices = method.choose_locations(cases, 20)
    found, expected = method.fit_locations(cases, 20, choices), method.fit_locations(cases, 20)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], name)
