import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as values_of

from xrecal.arrays import systematic_draws, whole_weights
from xrecal.arrays.distributions.draws import uniform_at

CASES = np.arange(4)


@given(
    values_of(np.int64, (4, 6), elements=st.integers(0, 3)),
    st.integers(1, 9),
    st.integers(0, 5),
)
def test_as_the_loop_over_points(totals, n, seed):
    found = systematic_draws(totals, n, seed, CASES)
    for case in range(4):
        whole = totals[case].sum()
        if whole == 0:
            np.testing.assert_array_equal(found[case], -1)
            continue
        expected = []
        for k in range(n):
            point = (k + uniform_at(seed, 0, case)) / n * whole
            item, cumulated = 0, totals[case, 0]
            while cumulated <= point:
                item += 1
                cumulated += totals[case, item]
            expected.append(item)
        np.testing.assert_array_equal(np.sort(found[case]), expected)


def test_without_axes_and_for_the_largest_number():
    found = systematic_draws(np.array([0, 2**62, 0]), 5, 0, np.array(7))
    np.testing.assert_array_equal(found, 1)
    assert found.shape == (5,)


def test_whole_weights_have_one_sum_in_any_order(rng):
    weights = rng.random((1000, 3)).astype("f4")
    weights[5] = np.nan
    whole = whole_weights(weights)
    assert whole.dtype == np.int64
    np.testing.assert_array_equal(whole[5], 0)
    np.testing.assert_allclose(whole * 2.0**-36, np.nan_to_num(weights), atol=1e-11)
    shuffled = rng.permutation(whole)
    np.testing.assert_array_equal(whole.sum(0), shuffled[:300].sum(0) + shuffled[300:].sum(0))
