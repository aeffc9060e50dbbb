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
from xrecal.methods.covariates import Covariates

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
VECTORS = VectorCKME(xrecal.CKME(), ("u", "v"), (None, None), (None, None))
ONLINE = xrecal.OnlinePool((xrecal.CKME(), xrecal.EMOS()))


def cases_of(rng, n_locations, n=N):
    x = rng.normal(size=(n_locations, n, 5))
    observed = 2.0 * x.mean(-1) + rng.normal(size=(n_locations, n))
    return as_cases(Forecasts(x), observed, covariates_of(rng, n_locations, n), axis_of(n))


def online_cases(rng, n_locations):
    cases = cases_of(rng, n_locations, 90)
    ahead = Covariates(np.zeros((n_locations, 90, 1)), (AHEAD,), (None,))
    return as_cases(cases.forecasts, cases.observations, ahead, cases.axis)


def vector_cases(rng, n_locations):
    cases = cases_of(rng, n_locations)
    both = Forecasts(np.tile(cases.forecasts.loc, 2))
    return replace(cases, forecasts=both, partners=(cases.observations + 1.0,))


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
    for name in ("support", "strength", "pool_weight", "tail_shape"):
        if name in shared:
            np.testing.assert_array_equal(fitted[name], shared[name], name)
    ridges = [name for name in shared if name.endswith("ridge")]
    assert ridges
    for name in ridges:  # its product with the number of cases is what is chosen
        of_fit = name.replace(".", "_")
        np.testing.assert_array_equal(fitted[of_fit], shared[name] * 80 / N, name)
    new = as_new(cases.forecasts, cases.covariates)
    issued = method.predict_locations(new, cases, fitted).quantile(np.array([0.1, 0.9]))
    assert np.isfinite(issued).all()


def test_experts_are_fitted_with_given_choices(rng, monkeypatch):
    method, cases = ONLINE, online_cases(rng, 2)
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
    assert method.choice_sizes == method.evidence_sizes == method.together({}) == {}
    assert method.with_own({}, {}, np.full(2, 0.5)) == {}
    found, expected = method.fit_locations(cases, 20, {}), method.fit_locations(cases, 20)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], name)


def test_choices_of_vectors_are_those_of_their_fit(rng):
    method, cases = VECTORS, vector_cases(rng, 2)
    choices = method.choose_locations(cases, 20)
    found, expected = method.fit_locations(cases, 20, choices), method.fit_locations(cases, 20)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], name)


# of several places -------------------------------------------------------------------------------


@pytest.fixture(params=[*SEARCHING, "vectors", "online"])
def searched(request, rng):
    """A method, cases of three places, and what it chooses there."""
    if request.param in SEARCHING:
        method, cases = SEARCHING[request.param], cases_of(rng, 3)
    elif request.param == "vectors":
        method, cases = VECTORS, vector_cases(rng, 3)
    else:
        method, cases = ONLINE, online_cases(rng, 3)
    cases.observations[1, :20] = np.nan
    return method, cases, method.choose_locations(cases, 20)


def with_unknown(choices):
    """Choices, and behind them those of a place that was not searched."""
    return {
        name: np.concatenate([a, np.full((1, *a.shape[1:]), np.nan)]) for name, a in choices.items()
    }


def ridges_of(choices):
    """Ridges times their numbers of cases, by the names of these."""
    names = [name.removesuffix("ridge") for name in choices if name.endswith("ridge")]
    assert names
    return {name: choices[f"{name}ridge"] * choices[f"{name}cases"] for name in names}


def test_choices_and_evidence_have_their_names_and_sizes(searched):
    method, _, choices = searched
    assert not set(method.choice_sizes) & set(method.evidence_sizes)
    sizes = {**method.choice_sizes, **method.evidence_sizes}
    assert {name: np.shape(a) for name, a in choices.items()} == {
        name: (3, *size) for name, size in sizes.items()
    }
    whole = method.together(choices)
    assert set(method.choice_sizes) <= set(whole)
    assert {name: np.shape(a) for name, a in whole.items()} == {
        name: (1, *sizes[name]) for name in whole
    }


def test_neither_order_nor_a_place_without_choices_changes_those_of_all(searched):
    method, _, choices = searched
    expected = method.together(choices)
    more = with_unknown(choices)
    for some in ([0, 1, 2, 3], [3, 1, 0, 2]):
        found = method.together({name: a[some] for name, a in more.items()})
        for name in expected:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, err_msg=name)


def test_own_choices_count_by_their_share(searched):
    method, _, choices = searched
    own = with_unknown(choices)
    of_all = {name: np.repeat(a, 4, axis=0) for name, a in method.together(own).items()}
    alone = [method.together({name: a[[i]] for name, a in choices.items()}) for i in range(3)]
    for share in (0.0, 1.0):
        found = method.with_own(of_all, own, np.full(4, share))
        assert set(found) == set(method.choice_sizes)
        for name, a in found.items():
            few = a if share == 0 else a[3:]  # the last place has none of its own
            np.testing.assert_allclose(few, of_all[name][-len(few) :], rtol=1e-12, err_msg=name)
        for name, a in ridges_of(found).items() if share else ():
            expected = [float(ridges_of(one)[name][0]) for one in alone]
            apart = np.log10(a[:3] / expected)
            assert np.abs(apart).max() < 0.25, name  # half a step of the grid: losses are moved


def test_a_fit_with_choices_of_all_places_divides_the_ridge_by_its_cases(searched):
    method, cases, choices = searched
    of_all = {name: np.repeat(a, 3, axis=0) for name, a in method.together(choices).items()}
    fitted = method.fit_locations(cases, 20, of_all)
    n_cases = np.isfinite(cases.observations).sum(-1)
    np.testing.assert_array_equal(fitted["n_cases"], n_cases)
    slow = [name for name in ridges_of(of_all) if not name.startswith(("earlier:", "recent"))]
    assert slow
    for name in slow:  # others are fitted to a part of the cases
        ridge = ridges_of(of_all)[name] / n_cases
        found = fitted[f"{name}ridge".replace(".", "_")]
        np.testing.assert_allclose(found, ridge, rtol=1e-12, err_msg=name)


def test_a_ckme_alone_takes_a_larger_ridge_than_in_a_pool(rng):
    method = xrecal.CKME(support="standardised", tails=None)
    choices = method.choose_locations(cases_of(rng, 3), 20)
    alone, in_pool = (method.together(choices, in_pool=there) for there in (False, True))
    assert alone["ridge"] > in_pool["ridge"]
    pool = xrecal.LinearPool((method, xrecal.EMOS()))
    component = pool.components[0]
    named = component.named_as_choices(choices)
    assert component.together(named)[f"{component.label}.ridge"] == in_pool["ridge"]
