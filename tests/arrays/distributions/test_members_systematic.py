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


def test_numbers_of_draws_are_as_even_as_can_be(rng):
    totals = whole_weights(rng.dirichlet(np.ones(8), size=2000))
    found = systematic_draws(totals, 10, 3, np.arange(2000))
    expected = 10 * totals / totals.sum(-1, keepdims=True)
    counts = (found[..., np.newaxis] == np.arange(8)).sum(1)
    assert (counts >= np.floor(expected)).all()
    assert (counts <= np.ceil(expected)).all()
    np.testing.assert_allclose((counts - expected).mean(0), 0, atol=0.05)


def test_order_is_drawn_by_seed_and_case_alone(rng):
    totals = np.ones((300, 12), np.int64)
    found = systematic_draws(totals, 12, 0, np.arange(300))
    np.testing.assert_array_equal(np.sort(found), np.broadcast_to(np.arange(12), (300, 12)))
    np.testing.assert_allclose(found.mean(0), 5.5, atol=1)
    part = systematic_draws(totals[40:50], 12, 0, np.arange(40, 50))
    np.testing.assert_array_equal(part, found[40:50])
    assert (systematic_draws(totals, 12, 1, np.arange(300)) != found).any()


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
