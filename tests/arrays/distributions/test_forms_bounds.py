import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import find_bounds
from xrecal.arrays.distributions.forms import FEWEST_AT_BOUND, SHARE_AT_BOUND


def reference(y):
    """Ends of the range that 5 % equal, five or more, and over twice as many as the next value."""
    y = y[np.isfinite(y)]
    distinct, counts = np.unique(y, return_counts=True)
    found = [-np.inf, np.inf]
    for end, order in ((0, 1), (1, -1)):
        if distinct.size > 1:
            first, second = counts[::order][:2]
            if first >= max(0.05 * y.size, 5) and first > 2 * second:
                found[end] = distinct[::order][0]
    return tuple(found)


values = st.one_of(st.integers(0, 3).map(float), st.floats(0, 3), st.sampled_from([np.nan]))


@given(arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 50)), elements=values))
def test_automatic_bounds_equal_the_reference(observations):
    lower, upper, violated = find_bounds(observations)
    for i, y in enumerate(observations):
        assert (lower[i], upper[i]) == reference(y)
    assert not violated.any()


@pytest.mark.parametrize(("zeros", "bounded"), [(4, False), (5, True), (99, True), (100, False)])
def test_an_end_that_five_percent_equal_is_a_bound(zeros, bounded, rng):
    y = rng.uniform(1, 2, (1, 100))
    y[0, :zeros] = 0
    for sign, end in ((1, 0), (-1, 1)):
        found = find_bounds(sign * y)
        assert found[end][0] == (0 if bounded else -sign * np.inf)
        if zeros < 99:  # where the single other value is no bound either
            assert np.isinf(found[1 - end][0])
    assert SHARE_AT_BOUND == 0.05


def test_few_or_rounded_values_have_no_bounds(rng):
    assert np.isinf(find_bounds(rng.normal(280, 3, (50, 20)))).sum() == 100
    whole = np.round(rng.normal(280, 2, (200, 60)))
    assert np.isinf(find_bounds(whole)[:2]).mean() > 0.98
    zeros = np.where(np.arange(20) < FEWEST_AT_BOUND, 0.0, rng.uniform(1, 2, (3, 20)))
    np.testing.assert_array_equal(find_bounds(zeros)[0], 0)


def test_given_bounds_count_where_nothing_violates_them():
    y = np.array([[0.0, 1.0, np.nan], [-0.1, 0.5, 0.5], [0.2, 0.3, 1.5], [np.nan] * 3])
    lower, upper, violated = find_bounds(y, (0, 1))
    np.testing.assert_array_equal(violated, [False, True, True, False])
    np.testing.assert_array_equal(lower, [0, -np.inf, -np.inf, 0])
    np.testing.assert_array_equal(upper, [1, np.inf, np.inf, 1])
    one_sided = find_bounds(y, (None, 1))
    np.testing.assert_array_equal(one_sided[2], [False, False, True, False])
    np.testing.assert_array_equal(one_sided[0], -np.inf)
    assert find_bounds(y, (0, None))[1].tolist() == [np.inf] * 4


def test_none_switches_bounds_off(rng):
    lower, upper, violated = find_bounds(np.zeros((2, 9)), None)
    assert (lower == -np.inf).all()
    assert (upper == np.inf).all()
    assert not violated.any()
