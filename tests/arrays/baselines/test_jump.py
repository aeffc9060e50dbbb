"""Seasons and jumps in the errors of short records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays.baselines import jump
from xrecal.arrays.baselines.jump import season_kept

SEEDS = st.integers(0, 10**6)


def record(seed, n=300, *, season=0.0, jumped=0.0, step=1.0):
    """Means, observations and dates; errors with a season of some amplitude, or a jump."""
    rng = np.random.default_rng(seed)
    days = step * np.arange(n)
    errors = season * np.cos(2 * np.pi * days / 365.25 + rng.uniform(0, 6))
    errors += jumped * (np.arange(n) >= rng.integers(n // 3, 2 * n // 3))
    means = 5 * rng.normal(size=(1, n))
    return means, means + errors + rng.normal(size=(1, n)), days


def log_ratio(means, observations, days):
    """Written out: each model fitted by weighted least squares, one after the other."""
    (x,), (y,) = means, observations
    intercept, slope = jump.fit_line(x, np.empty((x.size, 0)), y)
    size = np.abs(y - intercept - slope * x)
    root = np.sqrt(np.minimum(1, 1.345 * 1.4826 * np.median(size) / size))
    line, angle = np.stack([np.ones(x.size), x], 1), 2 * np.pi * days / 365.25

    def errors(*columns):
        table = root[:, np.newaxis] * np.column_stack([line, *columns])
        return root * y - table @ np.linalg.lstsq(table, root * y, rcond=None)[0]

    of_season = errors(np.cos(angle), np.sin(angle))
    of_jumps = [errors(days >= date) for date in days[1:]]
    better = min(of_season, *of_jumps, key=lambda e: e @ e)
    rho = max(better[1:] @ better[:-1] / (better @ better), 0)
    power = -x.size * (1 - rho) / (1 + rho) / 2
    likelihoods = [(e @ e / (of_season @ of_season)) ** power for e in of_jumps]
    return -np.log(np.mean(likelihoods))


@pytest.mark.parametrize("given_errors", [{}, {"season": 0.5}, {"jumped": 0.6}])
def test_the_share_is_that_of_the_formula(given_errors):
    means, observations, days = record(3, 150, step=3.0, **given_errors)
    probability = 1 / (1 + 99 * np.exp(log_ratio(means, observations, days)))
    expected = 1 - probability * (2 - np.ptp(days) / 365.25)
    np.testing.assert_allclose(season_kept(means, observations, days), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_season_is_kept_and_a_jump_is_not(seed):
    assert season_kept(*record(seed)) > 0.9
    assert season_kept(*record(seed, season=1.5)) > 0.9
    assert season_kept(*record(seed, jumped=4.0)) < 0.1


def test_a_season_that_came_back_is_kept_whatever_the_errors():
    means, observations, days = record(0, jumped=3.0)
    assert season_kept(means, observations, 1.5 * days) > season_kept(means, observations, days)
    np.testing.assert_array_equal(season_kept(means, observations, 2.45 * days), 1)


@given(SEEDS, st.sampled_from([1e-6, 0.5, 1e6]), st.floats(-100, 100))
def test_units_do_not_matter(seed, unit, zero):
    means, observations, days = record(seed, 60, step=5.0, jumped=1.0)
    expected = season_kept(means, observations, days)
    found = season_kept(unit * (means + zero), unit * (observations + zero), days)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@given(SEEDS)
def test_places_are_judged_apart_and_missing_cases_do_not_count(seed):
    one, two = (record(seed, 80, step=4.0, jumped=jumped) for jumped in (1.0, 0.0))
    observations = np.concatenate([one[1], two[1]])
    gone = np.random.default_rng(seed).random(80) < 0.3
    observations[:, gone] = np.nan
    found = season_kept(np.concatenate([one[0], two[0]]), observations, one[2])
    for share, (means, observed, days) in zip(found, (one, two), strict=True):
        alone = season_kept(means[:, ~gone], observed[:, ~gone], days[~gone])
        np.testing.assert_allclose(share, alone)


def test_wild_observations_are_no_jump():
    means, observations, days = record(1, season=1.5)
    observations[:, 170:173] = 1e6
    assert season_kept(means, observations, days) > 0.9


@pytest.mark.parametrize("observed", [0.0, np.nan, "perfect"])
def test_without_errors_there_is_no_evidence(observed):
    means, observations, days = record(0, 50)
    observations = means if observed == "perfect" else np.full_like(observations, observed)
    assert season_kept(means, observations, days) >= 0.9
