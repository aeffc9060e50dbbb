"""Experts of the last verified cases, each against a fit made by hand."""

import numpy as np
import pytest

from xrecal.arrays import censored_normal_quantile, fit_emos, predict_emos
from xrecal.arrays.online.rolling import FEWEST, rolling_emos, rolling_errors

LEVELS = (np.arange(9) + 0.5) / 9


def hindcast(seed, n):
    """Means, variances and observations of cases, of which some are missing."""
    rng = np.random.default_rng(seed)
    means, variances = rng.normal(size=n), rng.gamma(3.0, size=n)
    truth = 1.0 + 0.8 * means + rng.normal(size=n)
    truth[rng.random(n) < 0.15] = np.nan
    means[n // 2] = np.nan
    return means, variances, truth


NEW = np.array([0.3, np.nan, -1.2]), np.array([1.0, 2.0, 0.5])


@pytest.mark.parametrize("n", [5, 24, 30, 70])
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.2, np.inf), (-0.5, 1.5)])
def test_experts_learn_from_the_last_verified_cases(n, bounds):
    means, variances, truth = hindcast(n, n)
    emos = rolling_emos((means, variances), truth, NEW, 30, LEVELS, bounds)
    errors = rolling_errors(means, truth, NEW[0], 25, LEVELS, bounds)
    used = np.flatnonzero(np.isfinite(truth) & np.isfinite(means))
    if used.size < FEWEST:
        assert np.isnan([emos, errors]).all()
        return
    here = (np.newaxis, used[-30:])
    lower, upper = bounds
    fitted = fit_emos(means[here], variances[here], truth[here], lower=lower, upper=upper)
    loc, scale = predict_emos(fitted[0], NEW[0][np.newaxis], NEW[1][np.newaxis])
    expected = censored_normal_quantile(LEVELS, loc, scale, lower, upper)
    np.testing.assert_allclose(emos, expected[0])
    past = np.sort((truth - means)[used[-25:]])
    ranks = (np.arange(past.size) + 0.5) / past.size
    expected = NEW[0][:, np.newaxis] + np.interp(LEVELS, ranks, past)
    np.testing.assert_allclose(errors, expected.clip(*bounds))
