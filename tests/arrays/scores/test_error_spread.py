import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, skew, skewnorm

from tests.rules import scoringrules
from xrecal.arrays import (
    censored_normal_mean_std,
    censored_normal_skewness,
    error_spread,
    normal_mean_std,
    normal_skewness,
    weighted_skewness,
)


def test_equals_scoringrules(rng):
    y, members = rng.normal(size=20), rng.gamma(2.0, size=(20, 9))
    mean, std = members.mean(-1), members.std(-1, ddof=1)
    deviations = (members - mean[:, np.newaxis]) / std[:, np.newaxis]
    # Their skewness is not that of the sample: its sum is not multiplied by the number of members.
    skewness = (deviations**3).sum(-1) / (8 * 7)
    expected = scoringrules.error_spread_score(y, members)
    np.testing.assert_allclose(error_spread(y, mean, std, skewness), expected, rtol=1e-12)


def test_is_proper():
    """Smallest for the moments of what verifies; no smaller for another skewness."""
    truth = skewnorm(4.0)
    mean, variance, skewness = (float(m) for m in truth.stats("mvs"))
    y = truth.ppf((np.arange(20_000) + 0.5) / 20_000)

    def score(m, s, g):
        return error_spread(y, m, s, g).mean()

    best = score(mean, np.sqrt(variance), skewness)
    for other in ((0.1, 1, 0), (-0.1, 1, 0), (0, 1.2, 0), (0, 0.8, 0), (0, 1, 0.3), (0, 1, -0.3)):
        m, s, g = mean + other[0], np.sqrt(variance) * other[1], skewness + other[2]
        assert score(m, s, g) > best


def test_missing_and_errors():
    found = error_spread([np.nan, np.inf, 1.0, 1.0], [0.0, 0.0, np.nan, 1.0], 0.0, 0.0)
    np.testing.assert_array_equal(found, [np.nan, np.nan, np.nan, 0.0])
    with pytest.raises(ValueError, match="std must not be negative, found -1"):
        error_spread(0.0, 0.0, -1.0, 0.0)


# skewness of the forms ---------------------------------------------------------------------------


def test_skewness_of_members_equals_scipy(rng):
    members = rng.gamma(1.5, size=(3, 4, 11))
    np.testing.assert_allclose(weighted_skewness(members), skew(members, axis=-1), rtol=1e-12)
    weights = rng.integers(0, 4, (4, 11)).astype(float)
    expected = [skew(np.repeat(x, w.astype(int))) for x, w in zip(members[0], weights, strict=True)]
    np.testing.assert_allclose(weighted_skewness(members[0], weights), expected, rtol=1e-10)
    shared = weighted_skewness(members[0, 0], weights)
    expected = [skew(np.repeat(members[0, 0], w.astype(int))) for w in weights]
    np.testing.assert_allclose(shared, expected, rtol=1e-10)
    gaps = np.where(members > 2, np.nan, members)
    expected = skew(gaps, axis=-1, nan_policy="omit")
    np.testing.assert_allclose(weighted_skewness(gaps), expected, rtol=1e-10)
    assert weighted_skewness(np.full(5, 0.1)) == 0
    assert np.isnan(weighted_skewness(np.full(5, np.nan)))


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=8), st.sampled_from([1e-150, 2.0, 1e150]))
def test_laws_of_skewness(values, factor):
    x = np.array(values, float)
    found = weighted_skewness(x)
    np.testing.assert_allclose(weighted_skewness(-x), -found, atol=1e-12)
    np.testing.assert_allclose(weighted_skewness(factor * x), found, rtol=1e-9, atol=1e-9)
    points = normal_skewness(x, 0.0, np.ones(x.size))
    np.testing.assert_allclose(points, found, rtol=1e-9, atol=1e-9)


def test_skewness_of_mixtures_by_integration():
    loc, scale, weights = np.array([0.0, 3.0, 1.0]), np.array([1.0, 0.5, 2.0]), np.array([5, 2, 3])
    mean, std = normal_mean_std(loc, scale, weights)

    def density(x):
        return (weights * norm.pdf(x, loc, scale)).sum() / 10

    expected = quad(lambda x: ((x - mean) / std) ** 3 * density(x), -20, 20, limit=200)[0]
    assert normal_skewness(loc, scale, weights) == pytest.approx(expected, abs=1e-8)
    np.testing.assert_array_equal(normal_skewness([1.0, 2.0], 3.0), 0.0)
    assert np.isnan(normal_skewness([np.nan], 1.0)).all()


@pytest.mark.parametrize(
    ("loc", "scale", "lower", "upper"),
    [(0, 1, 0, np.inf), (2, 3, -1, 4), (-2, 1, 0, np.inf), (1, 2, -np.inf, 0), (5, 1, 0, 6)],
)
def test_skewness_of_censored_normals_by_integration(loc, scale, lower, upper):
    mean, std = censored_normal_mean_std(loc, scale, lower, upper)

    def cube(x):
        return ((np.clip(x, lower, upper) - mean) / std) ** 3 * norm.pdf(x, loc, scale)

    ends = [e for e in (lower, upper) if np.isfinite(e)]
    expected = quad(cube, loc - 12 * scale, loc + 12 * scale, points=ends, limit=400)[0]
    found = censored_normal_skewness(loc, scale, lower, upper)
    assert found == pytest.approx(expected, abs=1e-7)
    assert censored_normal_skewness(-loc, scale, -upper, -lower) == pytest.approx(-found, abs=1e-9)


def test_skewness_of_point_masses():
    np.testing.assert_array_equal(censored_normal_skewness([1.0, -9.0], 0.0, 0.0, np.inf), 0.0)
    assert np.isnan(censored_normal_skewness(np.nan, 1.0, 0.0, np.inf))
    assert censored_normal_skewness(3.0, 1.0, -np.inf, np.inf) == pytest.approx(0.0, abs=1e-12)
