"""Weights of experts before any case."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays.online.state import prior_weights, with_at_least

EXPERTS, SHARES = st.integers(2, 40), st.floats(0, 1)


def odds(weight):
    return weight / (1 - weight)


@given(EXPERTS, SHARES)
def test_odds_are_between_those_of_equal_weights_and_those_that_are_given(n, share):
    one = n // 2
    weights = prior_weights(n, one, share)
    np.testing.assert_allclose(weights.sum(), 1)
    np.testing.assert_allclose(np.delete(weights, one), (1 - weights[one]) / (n - 1))
    share = min(max(share, 1 / n), 1 - 1 / n)
    np.testing.assert_allclose(odds(weights[one]), np.sqrt(odds(1 / n) * odds(share)))


@given(EXPERTS, SHARES, SHARES)
def test_a_larger_share_gives_no_smaller_weight_and_half_at_most(n, share, other):
    low, high = (prior_weights(n, 0, one)[0] for one in sorted([share, other]))
    assert 1 / n - 1e-12 <= low <= high <= 0.5 + 1e-12


@pytest.mark.parametrize("share", [0.0, 0.1, np.nan])
def test_without_a_larger_share_weights_are_equal(share):
    np.testing.assert_allclose(prior_weights(5, 2, share), 0.2)


@given(EXPERTS, SHARES, SHARES)
def test_one_expert_has_a_share_at_least_and_odds_of_the_others_stay(n, share, least):
    prior = prior_weights(n, 0, share)
    weights = with_at_least(prior, n - 1, least)
    np.testing.assert_allclose(weights.sum(), 1)
    np.testing.assert_allclose(weights[n - 1], max(prior[n - 1], least))
    np.testing.assert_allclose(weights[:-1] * prior[0], weights[0] * prior[:-1], atol=1e-12)
