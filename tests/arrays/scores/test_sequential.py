import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import crps, normal_crps, score_e_values

share = st.floats(-1, 1) | st.just(np.nan) | st.just(0.0)
shares = st.integers(1, 30).flatmap(lambda n: arrays(np.float64, (2, n), elements=share))


def slow_e_values(gain, bound, lag):
    """Products of one location, each bet from the cases that had verified."""
    known = ~np.isnan(gain + bound) & (bound > 0)
    x = np.where(known, gain, 0) / np.where(known, bound, 1)
    products, found = np.ones(lag), []
    for t in range(x.size):
        past = x[: max(t - lag + 1, 0)]
        bet = np.clip(past.sum() / (1 + (past**2).sum()), 0, 0.5)
        products[t % lag] *= 1 + bet * x[t]
        found.append(products.max() / lag)
    return np.array(found) if (~np.isnan(gain + bound)).any() else np.full(x.size, np.nan)


@given(shares, st.integers(1, 4))
def test_products_of_bets(x, lag):
    bound = np.abs(x[::-1]).copy()
    gain = x * bound
    found = score_e_values(gain, bound, lag)
    for row in range(2):
        expected = slow_e_values(gain[row], bound[row], min(lag, x.shape[1]))
        np.testing.assert_allclose(found[row], expected, rtol=1e-12)


@given(shares)
def test_laws(x):
    bound = np.ones_like(x)
    found = score_e_values(x, bound)
    assert not (found < 0).any()
    known = ~np.isnan(x[:, :-1]).all(1)
    earlier = score_e_values(x[:, :-1], bound[:, :-1])
    np.testing.assert_array_equal(found[known, :-1], earlier[known])
    np.testing.assert_allclose(score_e_values(3 * x, 3 * bound), found, rtol=1e-12)
    assert not (score_e_values(-abs(x), bound) > 1).any()


@given(arrays(np.float64, (4, 2, 9), elements=st.floats(-5, 5)), st.floats(-9, 9))
def test_twice_the_distance_of_quantiles_bounds_the_difference_of_scores(q, y):
    first, second = np.sort(q, axis=-1).transpose(1, 0, 2)
    gain = crps(np.full(4, y), first) - crps(np.full(4, y), second)
    assert (abs(gain) <= 2 * abs(first - second).mean(-1) + 1e-12).all()


@pytest.mark.parametrize("lag", [1, 5])
def test_equal_forecasts_are_seldom_told_apart(rng, lag):
    parts = rng.normal(size=(300, 1000 + lag - 1))
    y = sum(parts[:, i : i + 1000] for i in range(lag)) / np.sqrt(lag)
    high, low, best = (normal_crps(y, loc, np.ones(())) for loc in (0.5, -0.5, 0.0))
    reached = score_e_values(high - low, np.full(y.shape, 2.0), lag) >= 20
    assert reached.any(-1).mean() < 0.05 + 3 * 0.0126
    found = score_e_values(high - best, np.full(y.shape, 1.0), lag) >= 20
    assert found.any(-1).mean() > 0.5


def test_lags_of_places(rng):
    gain = rng.uniform(-1, 1, (2, 3, 9))
    found = score_e_values(gain, np.ones(gain.shape), np.array([1, 2, 3]))
    np.testing.assert_array_equal(found[:, 2], score_e_values(gain[:, 2], np.ones((2, 9)), 3))
    assert score_e_values(np.empty((2, 0)), np.empty((2, 0))).shape == (2, 0)


def test_errors():
    message = "a gain of 2 is larger than its bound, 1; compute both from the same pair"
    with pytest.raises(ValueError, match=message):
        score_e_values(np.array([0.0, 2.0]), np.ones(2))
    with pytest.raises(ValueError, match="lag is 0; give whole numbers of cases from 1"):
        score_e_values(np.zeros(2), np.ones(2), 0)
