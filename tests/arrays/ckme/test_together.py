import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays.ckme.embedding import Choices
from xrecal.arrays.ckme.together import together, with_own

KERNELS = [(1.0, 0.0), (4.0, 0.0), (4.0, 1.0)]
SUPPORTS = ["observations", "mean", "standardised"]
MIDDLE = (np.arange(7, 21) + 0.5) / 28
"""Levels of quantiles of seven values that are the same in each of these steps"""
CODES = {"observations": 0, "mean": 1, "standardised": 3}


def place(losses, exponents, n=40.0, ridge=0.1, half_life=np.inf):
    """Choices of one place with tables (G, S) of losses and exponents."""
    tables = {"losses": np.ravel(losses), "exponents": np.ravel(exponents)}
    return Choices(0, 1.0, 0.0, ridge, half_life, 1.0, cases=n, **tables)


def of_places(*places):
    return together(Choices.joined(places, 9), KERNELS, SUPPORTS)


def random_places(seed, n_places=7):
    rng = np.random.default_rng(seed)
    losses = rng.uniform(0.5, 1.5, (n_places, 3, 3)) * rng.uniform(0.1, 100, (n_places, 1, 1))
    exponents = rng.uniform(-4, 0, (n_places, 3, 3))
    return losses, exponents, rng.integers(20, 400, n_places).astype(float)


@given(st.integers(0, 1000))
def test_kernel_and_support_have_the_smallest_mean_of_relative_losses(seed):
    losses, exponents, n = random_places(seed)
    found = of_places(*map(place, losses, exponents, n))
    relative = np.minimum(losses / losses.min((1, 2), keepdims=True), 2.0).mean(0)
    g, s = np.unravel_index(relative.argmin(), (3, 3))
    assert (found.widening[0], found.strength[0]) == KERNELS[g]
    assert found.support[0] == CODES[SUPPORTS[s]]
    inner = np.quantile(exponents[:, g, s] + np.log10(n), MIDDLE, method="inverted_cdf")
    np.testing.assert_allclose(found.ridge * found.cases, 10 ** inner.mean(), rtol=1e-12)


@given(st.integers(0, 1000), st.permutations(range(7)))
def test_neither_order_nor_units_of_places_matter(seed, order):
    losses, exponents, n = random_places(seed)
    found = of_places(*map(place, losses, exponents, n))
    unit = 10.0 ** np.arange(-3, 4)[:, np.newaxis, np.newaxis]
    moved = of_places(*map(place, (unit * losses)[order], exponents[order], n[order]))
    for name, a, b in zip(Choices._fields, moved, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=name)


def test_a_candidate_that_fails_at_one_place_is_not_out_of_the_question():
    good, bad = np.full((3, 3), 2.0), np.full((3, 3), 2.0)
    good[1, 1], bad[1, 1], bad[0, 0], good[0, 0] = 1.0, np.inf, 1.0, 1.9
    exponents = np.zeros((3, 3))
    found = of_places(*[place(good, exponents)] * 9, place(bad, exponents))
    assert found.widening[0] == 4.0
    assert found.support[0] == CODES["mean"]


def test_where_past_observations_are_chosen_errors_stand_beside():
    losses = np.full((3, 3), 2.0)
    losses[2, 0], losses[0, 2], losses[0, 1] = 1.0, 1.2, 1.5
    found = of_places(place(losses, np.zeros((3, 3))))
    assert found.support[0] == CODES["observations"]
    assert found.beside[0] == CODES["standardised"]


@given(st.integers(0, 1000), st.floats(0.0, 1.0))
def test_own_evidence_counts_by_its_share(seed, share):
    """From the formula: means of relative losses, and of logarithms of ridges times cases."""
    losses, exponents, n = random_places(seed)
    every = Choices.joined([*map(place, losses, exponents, n), Choices(0)], 9)
    one = together(every, KERNELS, SUPPORTS)
    of_all = Choices(*(np.repeat(a, 8, axis=0) for a in one))
    found = with_own(of_all, every, np.full(8, share), KERNELS, SUPPORTS)
    relative = np.minimum(losses / losses.min((1, 2), keepdims=True), 2.0)
    for i in range(7):
        both = (1 - share) * relative.mean(0) + share * relative[i]
        g, s = np.unravel_index(both.argmin(), (3, 3))
        assert (found.widening[i], found.strength[i]) == KERNELS[g]
        assert found.support[i] == CODES[SUPPORTS[s]]
        shared = one.exponents.reshape(3, 3)[g, s]
        expected = (1 - share) * shared + share * (exponents[i, g, s] + np.log10(n[i]))
        np.testing.assert_allclose(np.log10(found.ridge[i]), expected, rtol=1e-12, atol=1e-12)
    assert found.ridge[7] == pytest.approx(one.ridge[0])  # that place has no evidence


def test_places_without_a_choice_have_no_say():
    losses, exponents, n = random_places(3)
    nothing = Choices(0)
    found = of_places(nothing, *map(place, losses, exponents, n), nothing)
    expected = of_places(*map(place, losses, exponents, n))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_any_choice_there_is_none():
    assert np.isnan(of_places(Choices(0), Choices(0)).ridge)


def test_a_ridge_that_is_given_is_that_of_all():
    places = [place(np.ones((3, 3)), np.zeros((3, 3)), np.nan, ridge=0.25) for _ in range(3)]
    found = of_places(*places)
    assert found.ridge[0] == 0.25
    assert np.isnan(found.cases[0])
    assert found.at(0).ridge_for(1000) == 0.25


@pytest.mark.parametrize("n", [10, 40, 1000])
def test_a_fit_to_other_cases_keeps_the_product_of_ridge_and_number(n):
    one = Choices(0, 1.0, 0.0, 0.1, np.inf, cases=40.0)
    assert one.ridge_for(n) == pytest.approx(4.0 / n, rel=1e-15)
