"""Experts of the last verified cases, each against a fit made by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xrecal.arrays import censored_normal_quantile, fit_emos, predict_emos
from xrecal.arrays.online.rolling import FEWEST, rolling_emos, rolling_errors

LEVELS = (np.arange(9) + 0.5) / 9
FREE = np.full(2, -np.inf), np.full(2, np.inf)


def hindcast(seed=0, n=70):
    rng = np.random.default_rng(seed)
    means, variances = rng.normal(size=(2, n)), rng.gamma(3.0, size=(2, n))
    truth = 1.0 + 0.8 * means + rng.normal(size=(2, n))
    truth[rng.random((2, n)) < 0.15] = np.nan
    means[1, 50] = np.nan
    return means, variances, truth, np.maximum(np.arange(n) - 2, 0)


def past(truth, means, known, t, window):
    """Numbers of the cases that are looked back on, one location."""
    cases = np.flatnonzero(np.isfinite(truth[:known]) & np.isfinite(means[:known]))
    return cases[-window:]


@pytest.mark.parametrize("lower", [-np.inf, 0.2])
def test_emos_is_fitted_to_the_last_verified_cases(lower):
    means, variances, truth, known = hindcast()
    bounds = np.array([lower, -np.inf]), np.array([np.inf, np.inf])
    found = rolling_emos((means, variances), truth, known, 30, LEVELS, bounds)
    for t in (5, 24, 30, 50, 69):
        for i in range(2):
            used = past(truth[i], means[i], known[t], t, 30)
            if used.size < FEWEST or np.isnan(means[i, t]):
                assert np.isnan(found[i, t]).all()
                continue
            here = (slice(i, i + 1), used)
            coefficients, _, _ = fit_emos(
                means[here], variances[here], truth[here], lower=bounds[0][i], upper=np.inf
            )
            now = means[i : i + 1, [t]], variances[i : i + 1, [t]]
            loc, scale = predict_emos(coefficients, *now)
            expected = censored_normal_quantile(LEVELS, loc, scale, bounds[0][i], np.inf)
            np.testing.assert_allclose(found[i, t], expected[0, 0])


def test_errors_are_the_last_verified_ones_around_the_mean():
    means, _, truth, known = hindcast(1)
    bounds = np.array([0.5, -np.inf]), np.array([np.inf, 1.5])
    found = rolling_errors(means, truth, known, 25, LEVELS, bounds)
    for t in (5, 27, 50, 69):
        for i in range(2):
            used = past(truth[i], means[i], known[t], t, 25)
            if used.size < FEWEST or np.isnan(means[i, t]):
                assert np.isnan(found[i, t]).all()
                continue
            errors = np.sort(truth[i, used] - means[i, used])
            ranks = (np.arange(errors.size) + 0.5) / errors.size
            expected = means[i, t] + np.interp(LEVELS, ranks, errors)
            expected = expected.clip(bounds[0][i], bounds[1][i])
            np.testing.assert_allclose(found[i, t], expected)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), case=st.integers(0, 69))
def test_nothing_depends_on_what_had_not_verified(seed, case):
    means, variances, truth, known = hindcast(seed)
    changed = truth.copy()
    changed[:, case] += 5.0
    before = known <= case
    for one, other in (
        (rolling_emos((means, variances), y, known, 40, LEVELS, FREE) for y in (truth, changed)),
        (rolling_errors(means, y, known, 40, LEVELS, FREE) for y in (truth, changed)),
    ):
        np.testing.assert_array_equal(one[:, before], other[:, before])
