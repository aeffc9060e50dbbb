from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from tests.rules import scoringrules
from xrecal.arrays import (
    censored_normal_crps,
    censored_threshold_crps,
    normal_crps,
    normal_threshold_crps,
)

INF = np.inf
INTERVALS = [(-INF, INF), (-0.5, 0.7), (-INF, 0.3), (0.3, INF), (2.0, 9.0), (0.0, 0.0)]
MIXTURES = [
    ([0.3], [1.2], [1.0]),
    ([0.0, 1.0], [1.0, 0.5], [0.3, 0.7]),
    ([-1.0, 0.0, 2.0], [0.4, 2.0, 1e-3], [1.0, 2.0, 1.0]),  # weights need not sum to one
    ([0.5, 0.5], [1.0, 2.0], [0.5, 0.5]),
    ([0.3, 0.3, -0.5], [0.0, 1.0, 0.0], [0.2, 0.6, 0.2]),  # points, on thresholds
    ([0.0, 1.0], [0.0, 0.0], [0.4, 0.6]),
]


def cdf(z, loc, scale, weights):
    mass = [
        w * (norm.cdf(z, m, s) if s > 0 else float(z >= m))
        for m, s, w in zip(loc, scale, weights, strict=True)
    ]
    return sum(mass) / sum(weights)


def integrated(y, lower, upper, distribution_function, knots):
    """The defining integral, between jumps."""
    lower, upper = max(lower, -30.0), min(upper, 30.0)
    knots = np.unique(np.clip([y, lower, upper, *knots], lower, upper))
    return sum(
        quad(lambda z: (distribution_function(z) - (z >= y)) ** 2, a + 1e-13, b - 1e-13)[0]
        for a, b in pairwise(knots)
        if b - a > 1e-12
    )


@pytest.mark.each_value
@pytest.mark.parametrize(("lower", "upper"), INTERVALS)
@pytest.mark.parametrize(("loc", "scale", "weights"), MIXTURES)
def test_mixtures_from_the_definition(loc, scale, weights, lower, upper):
    knots = [m + d * s for m, s in zip(loc, scale, strict=True) for d in (-8, -3, 0, 3, 8)]
    for y in (-3.0, 0.0, 0.3, 1.1):
        expected = integrated(y, lower, upper, lambda z: cdf(z, loc, scale, weights), knots)
        found = normal_threshold_crps(np.array(y), loc, scale, weights, lower=lower, upper=upper)
        assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("lower", "upper"), INTERVALS)
@pytest.mark.parametrize(("below", "above"), [(-INF, INF), (0.0, INF), (-0.2, 0.5), (-9.0, -5.0)])
def test_censored_from_the_definition(below, above, lower, upper):
    def distribution_function(z):
        return 0.0 if z < below else 1.0 if z >= above else norm.cdf(z, 0.2, 0.8)

    for y in (-1.0, 0.0, 0.4, 3.0):
        knots = [k for k in (below, above) if np.isfinite(k)] + [-6.0, -1.0, 0.2, 2.0, 7.0]
        expected = integrated(y, lower, upper, distribution_function, knots)
        found = censored_threshold_crps(
            np.array(y), 0.2, 0.8, below, above, lower=lower, upper=upper
        )
        assert found == pytest.approx(expected, abs=1e-8)


def test_whole_line_is_the_crps(rng):
    y, loc, scale = rng.normal(size=40), rng.normal(size=(40, 4)), rng.gamma(2, size=(40, 4))
    weights = rng.gamma(1, size=(40, 4))
    found = normal_threshold_crps(y, loc, scale, weights)
    np.testing.assert_allclose(found, normal_crps(y, loc, scale, weights), atol=1e-13)
    expected = scoringrules.crps_mixnorm(y, loc, scale, weights / weights.sum(-1, keepdims=True))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    expected = censored_normal_crps(y, loc[:, 0], scale[:, 0], 0.0, INF)
    found = censored_threshold_crps(y, loc[:, 0], scale[:, 0], 0.0, INF)
    np.testing.assert_allclose(found, expected)


def test_far_in_the_tail_all_but_nothing_is_left():
    found = normal_threshold_crps(np.array(0.0), [0.0, 1.0], [1.0, 1.0], lower=8.0)
    expected = quad(lambda z: (0.5 * norm.sf(z) + 0.5 * norm.sf(z - 1)) ** 2, 8, 12, epsabs=1e-40)
    assert 0 <= found == pytest.approx(expected[0], abs=1e-16)


value, scale = st.floats(-5, 5), st.sampled_from([0.0, 0.01, 0.5, 3.0])


@pytest.mark.parametrize("offset", [0.0, 280.0])
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_intervals_add_up_where_components_are_points(rng, offset, factor):
    """Observations and thresholds lie on points, whose distances are rounded."""
    loc = offset + factor * rng.normal(size=(500, 2))
    scale = factor * rng.choice([0.0, 1e-12, 0.1, 1.0, 50.0], size=(500, 2))
    y = np.where(rng.random(500) < 0.5, loc[:, 0], offset + factor * rng.normal(size=500))
    threshold = np.where(rng.random(500) < 0.5, loc[:, 1], y)
    weights = np.array([0.3, 0.7])
    below = normal_threshold_crps(y, loc, scale, weights, upper=threshold)
    above = normal_threshold_crps(y, loc, scale, weights, lower=threshold)
    expected = normal_crps(y, loc, scale, weights)
    np.testing.assert_allclose(below + above, expected, rtol=1e-9, atol=1e-14 * (factor + offset))


@given(value, st.tuples(value, value), st.tuples(scale, scale), value, value, st.floats(0.1, 10))
def test_laws(y, loc, scale, one, other, factor):
    low, high = min(one, other), max(one, other)
    at, loc, scale = np.array(y), np.array(loc), np.array(scale)
    weights = np.array([0.3, 0.7])

    def score(sign, *ends):
        moved = sign * factor * loc + 2, factor * scale, weights
        ends = sorted(sign * factor * end + 2 for end in ends)
        return normal_threshold_crps(sign * factor * at + 2, *moved, lower=ends[0], upper=ends[1])

    inside = normal_threshold_crps(at, loc, scale, weights, lower=low, upper=high)
    assert inside >= 0
    np.testing.assert_allclose(score(1, low, high), factor * inside, atol=1e-11)
    np.testing.assert_allclose(score(-1, low, high), factor * inside, atol=1e-11)
    below = normal_threshold_crps(at, loc, scale, weights, upper=low)
    above = normal_threshold_crps(at, loc, scale, weights, lower=high)
    total = normal_crps(at, loc, scale, weights)
    np.testing.assert_allclose(below + inside + above, total, atol=1e-12)


def test_shapes_missing_values_and_inputs(rng):
    y, loc, scale = rng.normal(size=(2, 5)), rng.normal(size=(2, 5, 2)), np.ones((2, 5, 2))
    loc[0, 1, 0] = np.nan  # a missing component
    loc[0, 2] = np.nan
    y[0, 3] = np.nan
    loc[0, 4, 1] = INF
    lower = np.zeros((2, 5))
    lower[1, 0] = np.nan
    found = normal_threshold_crps(y, loc, scale, lower=lower, upper=1.5)
    assert found.shape == y.shape
    expected = [[False, False, True, True, True], [True, False, False, False, False]]
    np.testing.assert_array_equal(np.isnan(found), expected)
    one = normal_threshold_crps(y[0, 1], loc[0, 1, 1:], [1.0], lower=0.0, upper=1.5)
    assert found[0, 1] == pytest.approx(float(one))
    for hole in range(5):
        arguments = np.array([0.5, 0.2, 1.0, 0.0, 2.0])
        arguments[hole] = np.nan
        assert np.isnan(censored_threshold_crps(*arguments, lower=0.1))


def test_errors():
    with pytest.raises(ValueError, match="lower must not exceed upper, found 2 and 1"):
        normal_threshold_crps(np.zeros(2), [[0.0]], [1.0], lower=2, upper=1)
    with pytest.raises(ValueError, match="lower must not exceed upper, found 2 and 1"):
        censored_threshold_crps(np.zeros(2), 0.0, 1.0, 0.0, INF, lower=2, upper=1)
    with pytest.raises(ValueError, match="scale must not be negative, found -1"):
        normal_threshold_crps(np.zeros(1), [[0.0]], [-1.0], lower=0)
