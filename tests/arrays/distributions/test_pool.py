"""Held-out forecasts to the weights of their mixture."""

import numpy as np
import pytest

from xrecal.arrays import crps, pool_weights
from xrecal.arrays.distributions.pool import BELIEF, RESAMPLES, SMALLEST, STEPS, belief_left

LEVELS = (np.arange(40) + 0.5) / 40


def normals(rng, n, loc, scale, passes=1):
    """Quantiles (1, P, C, n, Q) of normals for n cases drawn from N(0, 1), and the cases."""
    from scipy.stats import norm

    y = rng.normal(size=n)
    forecasts = [
        np.broadcast_to(norm.ppf(LEVELS, m, s), (n, 40)) for m, s in zip(loc, scale, strict=True)
    ]
    return np.stack([np.stack(forecasts)] * passes)[np.newaxis].copy(), y[np.newaxis]


def mixture_crps(quantiles, weights, y):
    """Mean CRPS of mixtures (C, n, Q) with weights (C,), from the formula."""
    _, n, q = quantiles.shape
    members = quantiles.transpose(1, 0, 2).reshape(n, -1)
    mass = np.broadcast_to(np.repeat(weights, q) / q, members.shape)
    return crps(y, members, mass).mean()


@pytest.mark.parametrize("n", [10, 100])
def test_weights_sum_to_one_and_none_is_too_small_to_matter(rng, n):
    quantiles, y = normals(rng, n, [0, 1, -1, *np.linspace(-2, 2, 9)], [1] * 12)
    (weights,) = pool_weights(quantiles, y)
    assert weights.sum() == pytest.approx(1)
    assert ((weights == 0) | (weights >= SMALLEST * weights.max())).all()
    assert (weights == 0).any()


def test_the_right_component_gets_nearly_all_of_many_cases(rng):
    quantiles, y = normals(rng, 2000, [0, 1.5, -3], [1, 1, 2])
    (weights,) = pool_weights(quantiles, y)
    assert weights[0] > 0.9


def test_two_opposite_biases_are_mixed(rng):
    quantiles, y = normals(rng, 2000, [0.7, -0.7, 5], [0.7, 0.7, 1])
    (weights,) = pool_weights(quantiles, y)
    np.testing.assert_allclose(weights, [0.5, 0.5, 0], atol=0.06)


def test_the_mixture_is_about_as_good_as_the_best_found_by_brute_force(rng):
    quantiles, y = normals(rng, 300, [0.4, -0.6, 0.0], [0.6, 0.8, 2.5])
    (weights,) = pool_weights(quantiles, y)
    grid = [np.array([a, b, 20 - a - b]) / 20 for a in range(21) for b in range(21 - a)]
    best = min(mixture_crps(quantiles[0, 0], w, y[0]) for w in grid)
    ours = mixture_crps(quantiles[0, 0], weights, y[0])
    assert ours <= 1.002 * best


def test_cases_where_a_component_or_the_observation_is_missing_do_not_count(rng):
    quantiles, y = normals(rng, 120, [0, 1], [1, 1])
    gaps_q, gaps_y = quantiles.copy(), y.copy()
    gaps_q[0, 0, 1, ::4] = np.nan
    gaps_y[0, 1::4] = np.nan
    kept = np.arange(120) % 4 >= 2
    np.testing.assert_array_equal(
        pool_weights(gaps_q, gaps_y), pool_weights(quantiles[:, :, :, kept], y[:, kept])
    )


def test_a_component_that_is_mostly_missing_gets_no_weight(rng):
    quantiles, y = normals(rng, 120, [0, 1, -0.5], [1, 1, 1])
    without = pool_weights(quantiles[:, :, [0, 2]], y)
    quantiles[0, 0, 1, 50:] = np.nan
    np.testing.assert_array_equal(pool_weights(quantiles, y)[:, [0, 2]], without)
    assert pool_weights(quantiles, y)[0, 1] == 0


@pytest.mark.parametrize("steps", [1, 7])
def test_weights_are_shares_of_as_many_steps_as_wanted(rng, steps):
    quantiles, y = normals(rng, 100, [0.5, 0, -1], [1, 1, 1])
    (weights,) = pool_weights(quantiles, y, steps=steps, blocks=1)
    shares = weights * steps
    np.testing.assert_allclose(shares, np.round(shares), atol=1e-9)
    assert weights.sum() == pytest.approx(1)


def test_numbers_of_steps_and_blocks_are_whole(rng):
    quantiles, y = normals(rng, 20, [0.5, 0], [1, 1])
    expected = pool_weights(quantiles, y, steps=7, blocks=2)
    found = pool_weights(quantiles, y, steps=np.int32(7), blocks=np.int32(2))
    np.testing.assert_array_equal(found, expected)
    for name in ("steps", "blocks"):
        with pytest.raises(ValueError, match=f"{name} is 2.5; give a whole number from 1"):
            pool_weights(quantiles, y, **{name: 2.5})


def test_one_block_leaves_the_bootstrap_nothing_to_vary(rng):
    quantiles, y = normals(rng, 100, [0.5, 0, -1], [1, 1, 1])
    (weights,) = pool_weights(quantiles, y, blocks=1)
    np.testing.assert_allclose(weights * STEPS, np.round(weights * STEPS), atol=1e-9)


def test_no_belief_is_as_no_raw_forecast(rng):
    quantiles, y = normals(rng, 30, [0.5, 0.0], [1, 1])
    raw = np.broadcast_to(quantiles[0, 0, 0], (1, 30, 40))
    np.testing.assert_array_equal(
        pool_weights(quantiles, y, raw, belief=0.0), pool_weights(quantiles, y)
    )


def test_no_complete_case_gives_nan(rng):
    quantiles, y = normals(rng, 10, [0, 1], [1, 1])
    assert np.isnan(pool_weights(quantiles, np.full_like(y, np.nan))).all()


@pytest.mark.parametrize(("passes", "expected"), [((1, 1), 0.5), ((1, 0), 0.9), ((0, 1), 0.1)])
def test_ways_of_holding_out_count_as_told(rng, passes, expected):
    quantiles, y = normals(rng, 400, [0, 0.8], [1, 1], passes=2)
    quantiles[:, 1] = quantiles[:, 1, ::-1]  # the other component is the better one there
    (weights,) = pool_weights(quantiles, y, passes=passes)
    np.testing.assert_allclose(weights, [expected, 1 - expected], atol=0.1)


def test_the_belief_counts_in_each_way_of_holding_out_as_told(rng):
    quantiles, y = normals(rng, 60, [0, 0.8], [1, 1], passes=2)
    raw = np.broadcast_to(quantiles[0, 0, 1], (1, 60, 40))
    quantiles[:, 1] = quantiles[:, 1, ::-1]
    first, second = (pool_weights(quantiles, y, raw, passes=p)[0] for p in ((1, 0), (0, 1)))
    np.testing.assert_allclose(first, pool_weights(quantiles[:, :1], y, raw)[0], atol=0.02)
    np.testing.assert_allclose(second, first[::-1], atol=0.02)


def test_earlier_cases_alone_count_less(rng):
    quantiles, y = normals(rng, 400, [0, 0.8], [1, 1], passes=2)
    quantiles[:, 1] = quantiles[:, 1, ::-1]
    (weights,) = pool_weights(quantiles, y)
    assert 0.5 < weights[0] < 0.9


def test_locations_and_units_do_not_matter(rng):
    one, y = normals(rng, 80, [0, 1, -0.5], [1, 2, 1])
    other, z = normals(rng, 80, [2, 0.2, 0], [1, 1, 3])
    both = pool_weights(np.concatenate([one, other]), np.concatenate([y, z]))
    np.testing.assert_array_equal(both[:1], pool_weights(one, y))
    np.testing.assert_array_equal(both[1:], pool_weights(other, z))
    np.testing.assert_allclose(pool_weights(273.15 + 1000 * one, 273.15 + 1000 * y), both[:1])


def test_the_raw_forecast_decides_where_cases_are_few(rng):
    quantiles, y = normals(rng, 15, [0.5, 0.0], [1, 1])
    raw = np.broadcast_to(quantiles[0, 0, 0], (1, 15, 40))
    few = pool_weights(quantiles, y, raw)[0, 0] - pool_weights(quantiles, y)[0, 0]
    quantiles, y = normals(rng, 1500, [0.5, 0.0], [1, 1])
    raw = np.broadcast_to(quantiles[0, 0, 0], (1, 1500, 40))
    many = pool_weights(quantiles, y, raw)[0, 0] - pool_weights(quantiles, y)[0, 0]
    assert few > 0.2
    assert abs(many) < 0.05


@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("verified", [-0.2, -3.0])
def test_the_belief_in_the_raw_forecast_is_worth_cases_drawn_from_it(rng, n, verified):
    """Where no component is better than the raw forecast."""
    quantiles, y = normals(rng, n, [0.8, -0.2], [1, 1])
    y[:] = verified
    raw = np.broadcast_to(quantiles[0, 0, 1], (1, n, 40))
    (with_belief,) = pool_weights(quantiles, y, raw)
    scores = np.zeros((2, 2))
    single = [float(crps(np.array(verified), quantiles[0, 0, c, 0])) for c in range(2)]
    worth = BELIEF / 40
    assert min(single) == single[1]
    for case, weight in ((verified, n), *((z, worth) for z in raw[0, 0])):
        for c in range(2):
            for d in range(2):
                a, b = quantiles[0, 0, c, 0], quantiles[0, 0, d, 0]
                apart = np.abs(a[:, np.newaxis] - b).mean()
                scores[c, d] += (
                    weight * 0.5 * (np.abs(a - case).mean() + np.abs(b - case).mean() - apart)
                )
    grid = np.linspace(0, 1, 21)
    losses = [np.array([v, 1 - v]) @ scores @ np.array([v, 1 - v]) for v in grid]
    assert with_belief[0] == pytest.approx(grid[int(np.argmin(losses))], abs=0.06)


def slow_weights(quantiles, y, raw):
    """Weights (C,) from quantiles (C, n, Q), y (n,) and raw (n, Q), by the formulas."""
    n_components, n, _ = quantiles.shape
    ours, of_raw = np.zeros((10, n_components, n_components)), np.zeros(10)
    beliefs = np.zeros_like(ours)

    def apart(a, b):
        return np.abs(np.subtract.outer(a, b)).mean()

    for i in range(n):
        q, block = quantiles[:, i], i * 10 // n
        for c in range(n_components):
            for d in range(n_components):
                for to, total in (([y[i]], ours), (raw[i], beliefs)):
                    miss = apart(q[c], to) + apart(q[d], to) - apart(q[c], q[d])
                    total[block, c, d] += miss / 2
        of_raw[block] += apart(raw[i], [y[i]]) - apart(raw[i], raw[i]) / 2
    alone = np.einsum("bcc->c", ours)
    gain = of_raw - ours[:, np.argmin(alone), np.argmin(alone)]
    z = gain.sum() / (np.std(gain, ddof=1) * np.sqrt(10))
    trust = alone.min() / of_raw.sum() / (1 + (z / 2) ** 2)
    assert 0.1 < trust < 0.5
    total, weights = ours + BELIEF * trust * beliefs / n, np.zeros(n_components)
    state = 20261120
    for _ in range(RESAMPLES):
        sample = np.zeros((n_components, n_components))
        for _ in range(10):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            sample += total[(state >> 33) % 10]
        counts = np.zeros(n_components)
        for step in range(1, STEPS + 1):
            tried = (counts + np.eye(n_components)) / step
            counts[np.argmin(np.einsum("tc,cd,td->t", tried, sample, tried))] += 1
        weights += counts / STEPS / RESAMPLES
    weights[weights < SMALLEST * weights.max()] = 0.0
    return weights / weights.sum()


def test_the_belief_is_less_the_surer_it_is_that_a_component_is_better(rng):
    quantiles, y = normals(rng, 50, [0.0, 0.4, 2.0], [1.0, 1.5, 1.0])
    raw = np.sort(quantiles[0, 0, 0] + 1.0 + rng.normal(size=(50, 1)), -1)
    np.testing.assert_allclose(
        pool_weights(quantiles, y, raw[np.newaxis])[0],
        slow_weights(quantiles[0, 0], y[0], raw),
        atol=1e-12,
    )


def test_a_gain_in_every_block_leaves_no_belief(rng):
    quantiles, y = normals(rng, 20, [0.8, -0.2], [1, 1])
    y[:] = 10.0
    raw = np.broadcast_to(quantiles[0, 0, 1], (1, 20, 40))
    np.testing.assert_array_equal(pool_weights(quantiles, y, raw), pool_weights(quantiles, y))


def test_the_belief_counts_by_the_number_of_cases_that_are_complete(rng):
    quantiles, y = normals(rng, 60, [0.5, 0.0], [1, 1])
    raw = np.broadcast_to(quantiles[0, 0, 0], (1, 60, 40))
    half = y.copy()
    half[0, 30:] = np.nan
    np.testing.assert_array_equal(
        pool_weights(quantiles, half, raw),
        pool_weights(quantiles[:, :, :, :30], y[:, :30], raw[:, :30]),
    )


def test_belief_fades_where_climatology_without_the_case_is_better(rng):
    y = rng.normal(size=(4, 30))
    raw = np.sort(y[..., np.newaxis] + 0.5 * rng.normal(size=(4, 30, 20)), -1)
    raw[1] += 3.0  # refuted
    raw[3] += 1.3  # worse, but not by much
    y[0, 3], raw[2, 5] = np.nan, np.nan
    expected = []
    for cell in range(4):
        known = np.isfinite(y[cell]) & np.isfinite(raw[cell, :, 0])
        verified = y[cell, known]
        others = np.array([np.delete(verified, i) for i in range(verified.size)])
        ratio = crps(verified, raw[cell, known]).mean() / crps(verified, others).mean()
        expected.append(np.clip(2 - ratio, 0, 1))
    np.testing.assert_allclose(belief_left(raw, y), expected, rtol=1e-12)
    assert expected[:2] == [1, 0]
    assert 0.1 < expected[3] < 0.9


def test_each_location_has_its_own_belief(rng):
    quantiles, y = normals(rng, 15, [0.5, 0.0], [1, 1])
    raw = np.broadcast_to(quantiles[0, 0, 0], (1, 15, 40))
    two, verified, raw_of_two = (np.concatenate([part] * 2) for part in (quantiles, y, raw))
    both = pool_weights(two, verified, raw_of_two, belief=np.array([0.0, 40.0]))
    np.testing.assert_array_equal(both[0], pool_weights(quantiles, y)[0])
    np.testing.assert_array_equal(both[1], pool_weights(quantiles, y, raw, belief=40.0)[0])


def test_a_constant_is_no_climatology_to_be_beaten():
    y, raw = np.ones((1, 8)), np.ones((1, 8, 5))
    assert belief_left(raw, y).tolist() == [0.0]
