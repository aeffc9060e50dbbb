"""Weights of experts before any case."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays.online.state import prior_weights

EXPERTS, SHARES = st.integers(2, 40), st.floats(0, 1)


@given(EXPERTS, SHARES)
def test_half_of_the_fourth_power_goes_to_one_and_the_rest_to_all_alike(n, share):
    one = n // 2
    weights = prior_weights(n, one, share)
    np.testing.assert_allclose(weights.sum(), 1)
    others = np.delete(weights, one)
    np.testing.assert_allclose(others, others[0])
    np.testing.assert_allclose(weights[one] - others[0], share**4 / 2, atol=1e-12)


@given(EXPERTS, SHARES, SHARES)
def test_a_larger_share_gives_no_smaller_weight_and_the_others_keep_half(n, share, other):
    low, high = (prior_weights(n, 0, one)[0] for one in sorted([share, other]))
    assert 1 / n - 1e-12 <= low <= high <= 0.5 + 0.5 / n + 1e-12


@pytest.mark.parametrize("share", [0.0, np.nan])
def test_without_a_share_weights_are_equal(share):
    np.testing.assert_allclose(prior_weights(5, 2, share), 0.2)
