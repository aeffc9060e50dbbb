import math
from itertools import pairwise

import numpy as np
import properscoring
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from tests.rules import scoringrules
from xrecal.arrays.distributions.normal import (
    mean_absolute_normal,
    normal_crps,
    normal_mean_std,
    normal_quantile,
    normal_squared_energy_distance,
)


def random_mixture(rng, n, k, points=0):
    scale = rng.gamma(2.0, size=(n, k))
    scale[:, :points] = 0.0
    return rng.normal(0.0, 3.0, (n, k)), scale, rng.uniform(0.1, 1.0, (n, k))


def mixture_cdf(z, loc, scale, weights):
    step = np.where(z >= loc, 1.0, 0.0)
    smooth = norm.cdf(z, loc, np.where(scale > 0, scale, 1.0))
    return np.sum(weights / weights.sum() * np.where(scale > 0, smooth, step))


def integral(function, loc, scale):
    points = np.unique(np.concatenate([np.ravel(loc), [np.min(loc - 12 * scale - 1)]]))
    points = np.append(points, np.max(loc + 12 * scale + 1))
    return sum(quad(function, a, b, epsabs=1e-11, limit=200)[0] for a, b in pairwise(points))


st_mixture = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 4)).map(
    lambda s: random_mixture(np.random.default_rng(s[0]), s[1], s[2], points=s[0] % (s[2] + 1))
)


# distances ---------------------------------------------------------------------------------------


def test_mean_absolute_normal():
    for loc, scale in [(0.0, 1.0), (1.3, 0.4), (-2.0, 3.0), (5.0, 0.01), (1e5, 1e-9)]:
        expected = scale * math.sqrt(2 / math.pi) * math.exp(-0.5 * (loc / scale) ** 2)
        expected += loc * (1 - 2 * norm.cdf(-loc / scale))
        np.testing.assert_allclose(mean_absolute_normal(loc, scale), expected, rtol=1e-13)
    assert mean_absolute_normal(-3.0, 0.0) == 3.0


@pytest.mark.parametrize(("k", "points"), [(1, 0), (3, 0), (3, 1)])
def test_distance_is_twice_the_integrated_squared_cdf_difference(rng, k, points):
    x, y = random_mixture(rng, 3, k, points), random_mixture(rng, 2, 2)
    actual = normal_squared_energy_distance(*x[:2], *y[:2], x_weights=x[2], y_weights=y[2])
    for i in range(3):
        for j in range(2):
            a, b = [v[i] for v in x], [v[j] for v in y]
            expected = 2 * integral(
                lambda z, a=a, b=b: (mixture_cdf(z, *a) - mixture_cdf(z, *b)) ** 2,
                np.append(a[0], b[0]),
                np.append(a[1], b[1]),
            )
            np.testing.assert_allclose(actual[i, j], expected, rtol=1e-8)


def test_distance_skips_missing_components(rng):
    loc, scale, weights = random_mixture(rng, 4, 3)
    expected = normal_squared_energy_distance(loc[:, :2], scale[:, :2], x_weights=weights[:, :2])
    for hole in range(3):
        holed = [a.copy() for a in (loc, scale, weights)]
        holed[hole][:, 2] = 0.0 if hole == 2 else np.nan
        actual = normal_squared_energy_distance(holed[0], holed[1], x_weights=holed[2])
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)
    loc[1] = np.nan
    actual = normal_squared_energy_distance(loc, scale, x_weights=weights)
    assert np.all(np.isnan(actual[1]))
    assert np.all(np.isnan(actual[:, 1]))
    assert np.isfinite(np.delete(np.delete(actual, 1, 0), 1, 1)).all()


# CRPS --------------------------------------------------------------------------------------------


def test_crps_of_normals(rng):
    y, loc, scale = rng.normal(size=(2, 5)), rng.normal(size=5), rng.gamma(2.0, size=(2, 5))
    crps = normal_crps(y, loc, scale)
    assert crps.shape == (2, 5)
    np.testing.assert_allclose(crps, properscoring.crps_gaussian(y, loc, scale), rtol=1e-10)
    np.testing.assert_allclose(crps, scoringrules.crps_normal(y, loc, scale), rtol=1e-10)
    np.testing.assert_array_equal(normal_crps(y, loc, 0.0), np.abs(y - loc))
    assert normal_crps(1.0, 0.0, 0.0) == 1.0


def test_crps_of_mixtures(rng):
    y = rng.normal(size=6)
    loc, scale, weights = random_mixture(rng, 6, 4)
    crps = normal_crps(y, loc, scale, weights)
    normalised = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        crps, scoringrules.crps_mixnorm(y, loc, scale, normalised), rtol=1e-10
    )
    np.testing.assert_allclose(
        normal_crps(y, loc, scale), normal_crps(y, loc, scale, np.ones(4)), rtol=1e-15
    )
    scale[:, 0] = 0.0
    for i in range(2):
        expected = integral(
            lambda z, i=i: (mixture_cdf(z, loc[i], scale[i], weights[i]) - (z >= y[i])) ** 2,
            np.append(loc[i], y[i]),
            np.append(scale[i], 0.0),
        )
        np.testing.assert_allclose(normal_crps(y[i], loc[i], scale[i], weights[i]), expected, 1e-8)


# quantiles, mean, standard deviation -------------------------------------------------------------

LEVELS = np.array([0.5, 1e-12, 0.1, 0.9, 0.999, 1 - 1e-12])


def test_quantiles_of_normals(rng):
    loc, scale = rng.normal(size=(2, 3)), rng.gamma(2.0, size=(2, 3))
    expected = norm.ppf(LEVELS, loc[..., None], scale[..., None])
    np.testing.assert_allclose(normal_quantile(LEVELS, loc, scale), expected, rtol=1e-12)
    np.testing.assert_array_equal(normal_quantile([0.0, 1.0], 2.0, 1.0), [-np.inf, np.inf])
    assert normal_quantile([], [0.0, 1.0], 1.0).shape == (2, 0)
    np.testing.assert_array_equal(normal_quantile([0.0, 0.3, 1.0], 2.0, 0.0), [2.0, 2.0, 2.0])


def test_quantiles_of_mixtures_are_roots_of_the_cdf(rng):
    loc, scale, weights = random_mixture(rng, 5, 3)
    quantiles = normal_quantile(LEVELS, loc, scale, weights)
    assert quantiles.shape == (5, 6)
    for i in range(5):
        mixture = loc[i], scale[i], weights[i]
        for q, z in zip(LEVELS[:5], quantiles[i], strict=False):
            root = brentq(lambda u, m=mixture, q=q: mixture_cdf(u, *m) - q, -80, 80, xtol=1e-13)
            np.testing.assert_allclose(z, root, rtol=1e-9)
    np.testing.assert_allclose(
        normal_quantile(LEVELS, -loc, scale, weights),  # both tails keep their digits
        -normal_quantile(1 - LEVELS, loc, scale, weights),
        rtol=1e-5,
    )


def test_quantiles_of_far_apart_components():
    quantiles = normal_quantile([0.25, 0.5, 0.75], [0.0, 1e6], [1.0, 1e-3], [0.5, 0.5])
    np.testing.assert_allclose(quantiles[[0, 2]], [0.0, 1e6], atol=1e-6)
    assert 5.0 < quantiles[1] < 1e6
    assert normal_quantile([0.5], [-1.0, 1.0], [1.0, 1.0], [1.0, 1.0]) == pytest.approx(
        0, abs=1e-14
    )


def test_quantiles_with_point_masses():
    levels = [0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 1.0]
    loc, scale, weights = [0.0, 1.0], [0.0, 0.2], [0.5, 0.5]  # half the days dry
    quantiles = normal_quantile(levels, loc, scale, weights)
    assert quantiles[0] == -np.inf
    assert quantiles[2] == quantiles[3] == 0.0
    np.testing.assert_allclose(quantiles[4:6], norm.ppf([0.2, 0.4], 1.0, 0.2), rtol=1e-7)
    assert quantiles[6] == np.inf


@given(st_mixture)
def test_quantiles_are_monotone_and_invert_the_cdf(mixture):
    levels = np.linspace(0.0, 1.0, 41)
    quantiles = normal_quantile(levels, *mixture)
    assert np.all(quantiles[:, 1:] >= quantiles[:, :-1])
    np.testing.assert_array_equal(normal_quantile(levels[::-1], *mixture)[:, ::-1], quantiles)
    for i, row in enumerate(quantiles[:, 1:-1]):
        parts = [a[i] for a in mixture]
        for q, z in zip(levels[1:-1], row, strict=True):
            assert mixture_cdf(z, *parts) >= q - 1e-12
            assert mixture_cdf(z - 1e-9, *parts) <= q


def test_mean_and_standard_deviation(rng):
    loc, scale, weights = random_mixture(rng, 3, 2, points=1)
    mean, std = normal_mean_std(loc, scale, weights)
    w = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mean, np.sum(w * loc, axis=1), rtol=1e-14)
    second = np.sum(w * (loc**2 + scale**2), axis=1)
    np.testing.assert_allclose(std, np.sqrt(second - mean**2), rtol=1e-10)
    mean, std = normal_mean_std(loc, scale)
    np.testing.assert_array_equal(mean, loc)
    np.testing.assert_allclose(std, scale)


# rules of all ------------------------------------------------------------------------------------


def test_missing_components_are_left_out():
    nan = np.nan
    loc = np.array([[0.0, 1.0], [nan, 1.0], [0.0, 1.0], [0.0, nan], [0.0, np.inf]])
    weights = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    missing = [False, False, True, False, True]
    results = [
        normal_crps(np.zeros(5), loc, 1.0, weights),
        normal_quantile([0.3], loc, 1.0, weights)[:, 0],
        *normal_mean_std(loc, np.ones(2), weights),
    ]
    for result in results:
        np.testing.assert_array_equal(np.isnan(result), missing)
    assert results[0][1] == normal_crps(0.0, 1.0, 1.0)
    np.testing.assert_array_equal(
        np.isnan(normal_crps([nan, 0, 0], [0, nan, 0], [1, 1, nan])), [True] * 3
    )


def test_errors():
    one = np.ones(2)
    with pytest.raises(ValueError, match="scale must not be negative, found -1"):
        normal_crps(0.0, 0.0, -1.0)
    with pytest.raises(ValueError, match="weights must be finite and not negative"):
        normal_mean_std(one, one, [1.0, -1.0])
    with pytest.raises(ValueError, match="weights must be finite and not negative"):
        normal_squared_energy_distance([one], [one], x_weights=[[1.0, np.inf]])
    with pytest.raises(ValueError, match="give scale and weights the shape of loc"):
        normal_quantile([0.5], one, np.ones(3))
    with pytest.raises(ValueError, match="loc must have components on its last axis"):
        normal_crps(0.0, 0.0, 1.0, [1.0])
    for q in ([1.1], [-0.1], [np.nan], 0.5):
        with pytest.raises(ValueError, match=r"q must be a 1-D array of levels in \[0, 1\]"):
            normal_quantile(q, 0.0, 1.0)
    with pytest.raises(ValueError, match="y is incomplete; give y_loc and y_scale"):
        normal_squared_energy_distance(one, one, one)
    with pytest.raises(ValueError, match="y is incomplete"):
        normal_squared_energy_distance(one, one, y_weights=one)
    with pytest.raises(ValueError, match=r"shape \(n,\) or \(n, k\), found \(1, 1, 2\)"):
        normal_squared_energy_distance([[one]], [[one]])
