"""The best weights in hindsight, against all weights on a grid."""

import numpy as np
import pytest

from benchmarks.hindsight import best_weights
from xrecal.arrays import quantile_score

LEVELS = (np.arange(40) + 0.5) / 40


def crps(weights, quantiles, observations):
    averaged = np.tensordot(quantiles, weights, (1, 0))
    return 2 * quantile_score(observations, averaged, LEVELS).mean()


@pytest.mark.parametrize("seed", range(3))
def test_no_weights_on_a_grid_have_a_smaller_crps(seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=80)
    centres = y[:, np.newaxis] + rng.normal(size=(80, 3)) + [0.0, 0.5, -1.0]
    quantiles = centres[..., np.newaxis] + rng.uniform(0.5, 2) * (2 * LEVELS - 1)
    weights, found = best_weights(quantiles, y)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert found == pytest.approx(crps(weights, quantiles, y))
    grid = np.linspace(0, 1, 51)
    others = [np.array([a, b, 1 - a - b]) for a in grid for b in grid if a + b <= 1]
    assert found <= min(crps(w, quantiles, y) for w in others) + 1e-6


def test_the_forecast_that_is_right_has_all_the_weight():
    y = np.random.default_rng(0).normal(size=50)
    right = np.repeat(y[:, np.newaxis], LEVELS.size, axis=1)
    weights, found = best_weights(np.stack([right, right + 1], axis=1), y)
    np.testing.assert_allclose(weights, [1, 0], atol=1e-6)
    assert found == pytest.approx(0, abs=1e-6)
