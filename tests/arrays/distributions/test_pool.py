"""Held-out forecasts to weights, and averages of quantiles."""

from itertools import combinations

import numpy as np
import pytest

from xrecal.arrays import pool_weights
from xrecal.arrays.distributions.pool import (
    DOUBT,
    POWER,
    SMALLEST,
    average_quantiles,
    evidence_against,
    mean_weights,
    pool_scores,
    relative_crps,
)

LEVELS = (np.arange(40) + 0.5) / 40


def normals(rng, n, loc, scale, passes=1):
    """Quantiles (1, P, C, n, Q) of normals for n cases drawn from N(0, 1), and the cases."""
    from scipy.stats import norm

    y = rng.normal(size=n)
    forecasts = [
        np.broadcast_to(norm.ppf(LEVELS, m, s), (n, 40)) for m, s in zip(loc, scale, strict=True)
    ]
    return np.stack([np.stack(forecasts)] * passes)[np.newaxis].copy(), y[np.newaxis]


@pytest.mark.parametrize("n", [10, 100])
def test_weights_sum_to_one_and_none_is_too_small_to_matter(rng, n):
    quantiles, y = normals(rng, n, [0, 1, -1, *np.linspace(-2, 2, 9)], [1] * 12)
    (weights,) = pool_weights(quantiles, y)
    assert weights.sum() == pytest.approx(1)
    assert ((weights == 0) | (weights >= SMALLEST * weights.max())).all()
    assert (weights == 0).any()


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


def test_no_complete_case_gives_nan(rng):
    quantiles, y = normals(rng, 10, [0, 1], [1, 1])
    assert np.isnan(pool_weights(quantiles, np.full_like(y, np.nan))).all()
    assert np.isnan(pool_weights(np.full_like(quantiles, np.nan), y)).all()


def test_locations_and_units_do_not_matter(rng):
    one, y = normals(rng, 80, [0, 1, -0.5], [1, 2, 1])
    other, z = normals(rng, 80, [2, 0.2, 0], [1, 1, 3])
    both = pool_weights(np.concatenate([one, other]), np.concatenate([y, z]))
    np.testing.assert_array_equal(both[:1], pool_weights(one, y))
    np.testing.assert_array_equal(both[1:], pool_weights(other, z))
    np.testing.assert_allclose(pool_weights(273.15 + 1000 * one, 273.15 + 1000 * y), both[:1])


def slow_scores(quantiles, y):
    """S (C, C) of quantiles (C, n, Q), from the formula."""
    n_components, n, _ = quantiles.shape
    scores = np.zeros((n_components, n_components))
    for i in range(n):
        for c in range(n_components):
            for d in range(n_components):
                a, b = quantiles[c, i], quantiles[d, i]
                apart = np.abs(np.subtract.outer(a, b)).mean()
                scores[c, d] += (np.abs(a - y[i]).mean() + np.abs(b - y[i]).mean() - apart) / 2 / n
    return scores


def slow_weights(scores):
    """Best weights (C,) of all that are best on some of the components, by their conditions."""
    n, single = len(scores), np.diag(scores)
    pull, drawn_to = 0.1 * single.min(), single**-15.0 / (single**-15.0).sum()
    best, smallest = None, np.inf
    for size in range(1, n + 1):
        for some in map(list, combinations(range(n), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size] = 2 * (scores[np.ix_(some, some)] + pull * np.eye(size))
            system[-1, -1] = 0
            weights = np.zeros(n)
            right = np.append(2 * pull * drawn_to[some], 1)
            weights[some] = np.linalg.solve(system, right)[:-1]
            loss = weights @ scores @ weights + pull * ((weights - drawn_to) ** 2).sum()
            if weights.min() >= 0 and loss < smallest:
                best, smallest = weights, loss
    best[best < SMALLEST * best.max()] = 0
    return best / best.sum()


@pytest.mark.parametrize("n", [3, 25])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_the_formula(n, seed):
    rng = np.random.default_rng(seed)
    loc, scale = rng.normal(size=5), rng.gamma(2, 0.5, size=5) + 0.1
    quantiles, y = normals(rng, n, loc, scale, passes=2)
    quantiles[:, 1] += 0.3 * rng.normal(size=quantiles[:, 1, :, :, :1].shape)
    expected = slow_weights(sum(slow_scores(one, y[0]) for one in quantiles[0]) / 2)
    np.testing.assert_allclose(pool_weights(quantiles, y)[0], expected, atol=1e-8)


def test_each_way_of_holding_out_counts_alike_however_many_cases_it_has(rng):
    quantiles, y = normals(rng, 40, [0, 0.5, -1], [1, 1.5, 1], passes=2)
    quantiles[:, 1] += 0.3 * rng.normal(size=(*quantiles[:, 1].shape[:3], 1))
    quantiles[:, 1, :, :30] = np.nan
    scores = slow_scores(quantiles[0, 0], y[0]) + slow_scores(quantiles[0, 1, :, 30:], y[0, 30:])
    np.testing.assert_allclose(pool_weights(quantiles, y)[0], slow_weights(scores / 2), atol=1e-8)
    quantiles[:, 1] = np.nan
    np.testing.assert_array_equal(pool_weights(quantiles, y), pool_weights(quantiles[:, :1], y))


def test_a_perfect_component_is_all(rng):
    quantiles, y = normals(rng, 30, [0.3, -0.4], [1, 1.2])
    quantiles[0, 0, 0] = y[0, :, np.newaxis]
    np.testing.assert_array_equal(pool_weights(quantiles, y), [[1, 0]])


# averages of quantiles ----------------------------------------------------------------------------


def slow_average(quantiles, weights, low, high):
    """Average (Q,) of quantiles (C, Q): bounds by their mixed probability, the rest given them."""
    n_quantiles = quantiles.shape[1]
    inside = [one[(one > low) & (one < high)] for one in quantiles]
    below = weights @ (quantiles <= low).mean(1)
    above = weights @ (quantiles >= high).mean(1)
    averages = []
    for level in (np.arange(n_quantiles) + 0.5) / n_quantiles:
        if level <= below or level >= 1 - above:
            averages.append(low if level <= below else high)
            continue
        part, total = (level - below) / (1 - below - above), 0.0
        for one, weight in zip(inside, weights, strict=True):
            if one.size:
                known = (np.arange(one.size) + 0.5) / one.size
                total += weight * one.size * np.interp(part, known, one)
        averages.append(total / n_quantiles / (1 - below - above))
    return averages


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0, np.inf), (-np.inf, 1), (0, 1)])
def test_averages_are_those_of_the_formula(rng, bounds):
    quantiles = np.sort(rng.normal(size=(6, 3, 20)) + rng.normal(size=(6, 3, 1)), -1)
    quantiles = np.clip(quantiles, *bounds)
    weights = rng.dirichlet(np.ones(3), size=6)
    found = average_quantiles(quantiles, weights, np.array([bounds] * 6))
    expected = [slow_average(q, w, *bounds) for q, w in zip(quantiles, weights, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert (np.diff(found) >= 0).all()


def test_what_has_no_weight_does_not_matter(rng):
    quantiles = np.sort(rng.normal(size=(2, 3, 20)), -1)
    weights, bounds = np.array([[0.3, 0, 0.7], [0.5, 0, 0.5]]), np.array([[0.0, np.inf]] * 2)
    expected = average_quantiles(quantiles[:, ::2], weights[:, ::2], bounds)
    quantiles[:, 1] = np.nan
    np.testing.assert_array_equal(average_quantiles(quantiles, weights, bounds), expected)


def test_the_diagonal_of_scores_is_the_crps_of_each_component(rng):
    quantiles, y = normals(rng, 50, [0, 1, 2], [1, 1, 1])
    scores = pool_scores(quantiles, y)
    apart = np.abs(quantiles[0, 0] - y[0][:, np.newaxis]).mean((1, 2))
    own = np.abs(quantiles[0, 0, :, 0, :, np.newaxis] - quantiles[0, 0, :, 0, np.newaxis]).mean(
        (1, 2)
    )
    expected = apart - own / 2
    np.testing.assert_allclose(scores[0].diagonal(), expected, rtol=1e-10)
    np.testing.assert_allclose(relative_crps(scores)[0], expected / expected.min(), rtol=1e-10)


def test_the_mean_of_weights_is_over_places_that_have_any():
    weights = np.array([[0.5, 0.5, 0.0], [np.nan] * 3, [0.9, 0.097, 0.003]])
    found = mean_weights(weights)
    np.testing.assert_allclose(found, [[0.7 / 0.9985, 0.2985 / 0.9985, 0.0]], rtol=1e-12)
    assert np.isnan(mean_weights(weights[[1]])).all()


def test_components_earn_their_mass_by_cases_where_none_is_better_alone():
    even, n = np.ones((4, 3)), np.full(4, 40.0)
    assert evidence_against(even, 0, n) == pytest.approx(40 / (40 + DOUBT))
    better = even.copy()
    better[:, 0] = 1.1
    assert evidence_against(better, 0, n) == pytest.approx(40 / (40 + DOUBT * 1.1**-POWER))
    assert evidence_against(np.array([[5.0, 1.0, 2.0]]), 0, n[:1]) > 1 - 1e-6


def test_chance_at_one_place_is_no_evidence():
    """Each place has another component that looks better; in the mean none is."""
    crps = np.ones((3, 4))
    crps[:, 0] = 1.05
    crps[[0, 1, 2], [1, 2, 3]], crps[[1, 2, 0], [1, 2, 3]] = 1.0, 1.3
    crps[[2, 0, 1], [1, 2, 3]] = 1.3
    n = np.full(3, 40.0)
    assert evidence_against(crps, 0, n) == pytest.approx(40 / (40 + DOUBT))


def test_places_without_scores_say_nothing():
    crps, n = np.array([[1.0, 1.2], [np.nan, np.nan]]), np.array([50.0, 1000.0])
    assert evidence_against(crps, 0, n) == evidence_against(crps[:1], 0, n[:1])
    assert evidence_against(crps[1:], 0, n[1:]) == 1.0
