"""Regressions with predictors: their ridge, and how far they help or hurt."""

import math

import numpy as np
import pytest

from xrecal.arrays import fit_emos, normal_crps, predict_emos
from xrecal.arrays.baselines.lines import BLOCKS, RIDGES, choose_ridge, fit_line


def simulate(rng, n, slopes):
    """Cases with a season, and predictors that add their slopes to the observation."""
    x, v, year = rng.normal(3, 2, n), rng.gamma(2, size=n), rng.uniform(size=n)
    p = rng.normal(size=(n, len(slopes)))
    season = np.column_stack([np.sin(2 * np.pi * year), np.cos(2 * np.pi * year)])
    y = 1 + 0.8 * x + season @ [1.0, -0.5] + p @ slopes + rng.normal(size=n)
    return x, v, np.column_stack([season, p]), y


def slow_ridge(known, predictors, error):
    """The ridge by least squares with rows that pull, one block and ridge after another."""

    def standard(columns):
        return (columns - columns.mean(0)) / columns.std(0)

    design = np.column_stack([np.ones(error.size), standard(known), standard(predictors)])
    q, p = 1 + known.shape[1], predictors.shape[1]
    blocks = np.arange(error.size) * BLOCKS // error.size
    loss = {}
    for f in range(BLOCKS):
        held = blocks == f
        for ridge in RIDGES:
            root = 1e6 if math.isinf(ridge) else math.sqrt(ridge * (~held).sum())
            rows = np.concatenate([design[~held], root * np.eye(q + p)[q:]])
            line = np.linalg.lstsq(rows, np.append(error[~held], np.zeros(p)))[0]
            loss[ridge, f] = np.abs(error[held] - design[held] @ line).mean()
    best = min(RIDGES, key=lambda ridge: sum(loss[ridge, f] for f in range(BLOCKS)))
    for ridge in sorted(RIDGES, reverse=True):
        above = np.array([loss[ridge, f] - loss[best, f] for f in range(BLOCKS)])
        if above.mean() <= above.std(ddof=1) / math.sqrt(BLOCKS):
            return ridge
    raise AssertionError


@pytest.mark.parametrize("seed", range(12))
def test_the_ridge_is_that_of_the_slow_reference(seed):
    rng = np.random.default_rng(seed)
    n, slopes = int(rng.integers(60, 400)), rng.normal(size=12) * rng.choice([0, 0.05, 0.2, 1])
    x, _, r, y = simulate(rng, n, slopes)
    known = np.column_stack([x, r[:, :2]])
    found = choose_ridge(known, r[:, 2:], y - y.mean())
    assert found == slow_ridge(known, r[:, 2:], y - y.mean())
    twice = np.column_stack([known, x])  # a regressor that repeats another
    assert choose_ridge(twice, 1e6 * r[:, 2:] - 3, 1e-3 * (y - y.mean())) == found


def test_wild_errors_hardly_matter(rng):
    x, _, r, y = simulate(rng, 300, np.full(5, 0.4))
    assert choose_ridge(x[:, np.newaxis], r, y - y.mean()) <= 0.1
    y[[7, 100, 250]] = 1e6, -1e7, 1e12
    assert choose_ridge(x[:, np.newaxis], r, y - np.median(y)) <= 0.1
    assert choose_ridge(x[:30, np.newaxis], r[:30], y[:30]) == math.inf


def crps_ratio(rng, n, slopes):
    """CRPS with predictors over that without, on cases of their own."""
    x, v, r, y = simulate(rng, n + 1000, slopes)
    scores = []
    for k in (2 + len(slopes), 2):
        columns = np.arange(2, k)
        past, new = slice(n), slice(n, None)
        given = x[None, past], v[None, past], y[None, past], r[past, :k]
        fitted = fit_emos(*given, in_spread=False, predictors=columns)[0]
        loc, scale = predict_emos(fitted, x[None, new], v[None, new], r[new, :k])
        scores.append(normal_crps(y[None, new], loc, scale).mean())
    return scores[0] / scores[1]


@pytest.mark.parametrize("n", [40, 80, 150, 300])
def test_noise_hardly_hurts(n):
    ratios = [crps_ratio(np.random.default_rng(seed), n, np.zeros(30)) for seed in range(10)]
    assert np.mean(ratios) <= 1.01
    assert max(ratios) <= 1.05


@pytest.mark.parametrize(("n", "most"), [(80, 0.88), (150, 0.8), (300, 0.77)])
def test_what_is_known_helps(n, most):
    slopes = np.append(np.full(4, 0.5), np.zeros(16))
    ratios = [crps_ratio(np.random.default_rng(seed), n, slopes) for seed in range(10)]
    assert np.mean(ratios) <= most


def test_without_predictors_nothing_changes(rng):
    x, v, r, y = simulate(rng, 200, np.zeros(8))
    for in_spread in (False, True):
        given = {"in_spread": in_spread}
        found = fit_emos(x[None], v[None], y[None], r, predictors=np.arange(2, 10), **given)[0][0]
        expected = fit_emos(x[None], v[None], y[None], r[:, :2], **given)[0][0]
        np.testing.assert_array_equal(found[[0, 1, 2, 3, 4, 5, 14, 15]], expected)
        np.testing.assert_array_equal(np.delete(found[4:], [0, 1, 10, 11]), 0.0)


def test_a_line_with_many_predictors_stays_near_the_forecast(rng):
    x, _, r, y = simulate(rng, 100, np.append(0.8, np.zeros(29)))
    line = fit_line(x, r, y, predictors=np.arange(2, 32))
    np.testing.assert_allclose(line[:2], [1, 0.8], atol=0.5)
    assert 0.3 < line[4] < 1
    assert np.abs(line[5:]).max() < 0.3
