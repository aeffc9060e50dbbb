import numpy as np
import pytest

from xrecal import arrays
from xrecal.arrays.distributions import Empirical, Normal

LEVELS = np.array([0.1, 0.5, 0.9])


def test_ensembles_are_the_functions_of_weighted_ensembles(rng):
    members, y = rng.normal(size=(3, 6)), rng.normal(size=(3, 4))
    weights = rng.random((3, 4, 6))
    shared = Empirical(members, weights)
    np.testing.assert_array_equal(shared.mean(), arrays.weighted_mean(members, weights))
    np.testing.assert_array_equal(shared.std(), arrays.weighted_std(members, weights))
    expected = arrays.weighted_quantile(members, LEVELS, weights)
    np.testing.assert_array_equal(shared.quantile(LEVELS), expected)
    np.testing.assert_array_equal(shared.crps(y), arrays.crps(y, members, weights))
    np.testing.assert_allclose(Empirical(members).mean(), members.mean(-1))


def test_normal_components_count_equally_unless_weighted(rng):
    loc, scale, y = rng.normal(size=(4, 2)), rng.random((4, 2)) + 0.1, rng.normal(size=4)
    plain, halves = Normal(loc, scale), Normal(loc, scale, np.full(2, 0.5))
    for one, other in (
        (plain.mean(), halves.mean()),
        (plain.std(), halves.std()),
        (plain.crps(y), halves.crps(y)),
        (plain.quantile(LEVELS), halves.quantile(LEVELS)),
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(plain.mean(), loc.mean(-1))


@pytest.mark.parametrize("weights", [None, [0.7, 0.3]])
def test_both_forms_agree_in_the_limit(weights, rng):
    """Normals without width are point masses, and many quantiles of a normal are the normal."""
    loc, y = rng.normal(size=(4, 2)), rng.normal(size=4)
    mass = None if weights is None else np.broadcast_to(weights, loc.shape)
    points, narrow = Empirical(loc, mass), Normal(loc, 0 * loc, mass)
    np.testing.assert_allclose(narrow.mean(), points.mean())
    np.testing.assert_allclose(narrow.std(), points.std(), atol=1e-12)
    np.testing.assert_allclose(narrow.crps(y), points.crps(y), atol=1e-12)
    wide = Normal(loc, np.ones_like(loc), mass)
    sampled = Empirical(wide.quantile((np.arange(2000) + 0.5) / 2000))
    np.testing.assert_allclose(sampled.mean(), wide.mean(), atol=1e-4)
    np.testing.assert_allclose(sampled.std(), wide.std(), atol=2e-3)
    np.testing.assert_allclose(sampled.crps(y), wide.crps(y), atol=2e-3)
    np.testing.assert_allclose(sampled.quantile(LEVELS), wide.quantile(LEVELS), atol=5e-3)


def test_missing_forecasts_are_nan():
    for forecast in (
        Empirical(np.full((1, 3), np.nan)),
        Normal(np.full((1, 2), np.nan), np.ones((1, 2))),
    ):
        assert np.isnan(forecast.mean()).all()
        assert np.isnan(forecast.std()).all()
        assert np.isnan(forecast.quantile(LEVELS)).all()
        assert np.isnan(forecast.crps(np.zeros(1))).all()
