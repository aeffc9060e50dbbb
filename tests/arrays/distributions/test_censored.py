from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from tests.rules import scoringrules
from xrecal.arrays.distributions.censored import (
    censored_normal_crps,
    censored_normal_mean_std,
    censored_normal_quantile,
)

BOUNDS = [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 1.0), (0.0, 1.0), (-2.5, -2.0)]


def cdf(t, loc, scale, lower, upper):
    if t < lower:
        return 0.0
    return 1.0 if t >= upper else norm.cdf(t, loc, scale)


def integrated_crps(y, loc, scale, lower, upper):
    """Integral of the squared difference to the observation's step, from the definition."""
    knots = [y, lower, upper, loc, *(loc + scale * np.array([-9.0, -3, 3, 9]))]
    knots = sorted(k for k in knots if np.isfinite(k))
    total = 0.0
    for start, end in pairwise(knots):
        if end > start:
            inside = 1e-12 * (end - start)  # the steps are at the ends
            total += quad(
                lambda t: (cdf(t, loc, scale, lower, upper) - (t >= y)) ** 2,
                start + inside,
                end - inside,
                epsabs=1e-12,
            )[0]
    return total


def integrated_mean_std(loc, scale, lower, upper):
    def expected(power, centre):
        start, end = max(lower, loc - 12 * scale), min(upper, loc + 12 * scale)
        total = 0.0
        if end > start:
            total = quad(
                lambda t: (t - centre) ** power * norm.pdf(t, loc, scale),
                start,
                end,
                points=[p for p in (loc,) if start < p < end],
                epsabs=1e-13,
            )[0]
        for bound, mass in (
            (lower, norm.cdf(lower, loc, scale)),
            (upper, norm.sf(upper, loc, scale)),
        ):
            if mass > 0:
                total += mass * (bound - centre) ** power
        return total

    mean = expected(1, 0.0)
    return mean, np.sqrt(expected(2, mean))


@pytest.mark.each_value
@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize(("loc", "scale"), [(0.3, 0.8), (-2.0, 1.0), (4.0, 0.7), (0.5, 5.0)])
def test_from_the_definition(loc, scale, lower, upper):
    for y in (-2.2, 0.0, 0.4, 1.0, 3.0):  # some are outside the bounds
        expected = integrated_crps(y, loc, scale, lower, upper)
        actual = censored_normal_crps(y, loc, scale, lower, upper)
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)
    actual = censored_normal_mean_std(loc, scale, lower, upper)
    np.testing.assert_allclose(
        actual, integrated_mean_std(loc, scale, lower, upper), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize(("lower", "upper"), BOUNDS[:4])
def test_library_values(rng, lower, upper):
    loc, scale = rng.normal(size=200), rng.gamma(2.0, size=200)
    y = np.clip(rng.normal(size=200), lower, upper)
    expected = scoringrules.crps_cnormal(y, loc, scale, lower, upper)
    actual = censored_normal_crps(y, loc, scale, lower, upper)
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_far_below_the_bound_small_values_stay_exact():
    # Rain that is all but impossible: masses and moments far in the tail, relative to themselves.
    loc = np.array([-5.0, -10.0, -20.0])
    mean, std = censored_normal_mean_std(loc, 1.0, 0.0, np.inf)
    first = [quad(lambda t, m=m: t * norm.pdf(t, m, 1.0), 0, 3)[0] for m in loc]
    second = [quad(lambda t, m=m: t * t * norm.pdf(t, m, 1.0), 0, 3)[0] for m in loc]
    np.testing.assert_allclose(mean, first, rtol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(second), rtol=1e-6)
    assert (censored_normal_crps(0.0, loc, 1.0, 0.0, np.inf) >= 0).all()
    np.testing.assert_allclose(censored_normal_crps(2.0, loc, 1.0, 0.0, np.inf), 2.0, rtol=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-12])
def test_a_point_mass(scale):
    loc = np.array([-1.0, 0.25, 7.0])
    at = [0.0, 0.25, 1.0]
    np.testing.assert_allclose(censored_normal_crps(0.5, loc, scale, 0.0, 1.0), [0.5, 0.25, 0.5])
    np.testing.assert_allclose(censored_normal_crps(3.0, loc, scale, 0.0, 1.0), [3.0, 2.75, 2.0])
    mean, std = censored_normal_mean_std(loc, scale, 0.0, 1.0)
    np.testing.assert_allclose(mean, at)
    np.testing.assert_allclose(std, 0.0, atol=1e-12)
    quantiles = censored_normal_quantile([0.1, 0.9], loc, scale, 0.0, 1.0)
    np.testing.assert_allclose(quantiles, np.stack([at, at], -1))


def test_quantiles_invert_the_distribution_function():
    levels = np.linspace(0.0, 1.0, 41)
    z = censored_normal_quantile(levels, 0.3, 0.8, 0.0, 1.0)
    assert (np.diff(z) >= 0).all()
    assert (z[0], z[-1]) == (0.0, 1.0)
    inside = (z > 0) & (z < 1)
    np.testing.assert_allclose(norm.cdf(z[inside], 0.3, 0.8), levels[inside])
    np.testing.assert_array_equal(z == 0, levels <= norm.cdf(0.0, 0.3, 0.8))
    shuffled = censored_normal_quantile(levels[::-1], 0.3, 0.8, 0.0, 1.0)
    np.testing.assert_array_equal(shuffled, z[::-1])
    np.testing.assert_array_equal(
        censored_normal_quantile([0.0, 1.0], 0.0, 1.0, -np.inf, np.inf), [-np.inf, np.inf]
    )


values = st.floats(-5, 5)
scales = st.floats(0.01, 5)


@given(values, values, scales, values, st.floats(0, 5), st.floats(0.1, 1e3), st.floats(-1e3, 1e3))
@example(0.0, 0.0, 1.0, 1.0, 1e-15, 1.0, 0.0)
def test_units_and_mirror(y, loc, scale, lower, width, factor, offset):
    upper = lower + width
    expected = censored_normal_crps(y, loc, scale, lower, upper)
    mean, std = censored_normal_mean_std(loc, scale, lower, upper)
    assert expected >= 0
    assert lower <= mean <= upper
    assert 0 <= std <= min(scale, width) * (1 + 1e-9)
    moved = [factor * a + offset for a in (loc, lower, upper)]
    arguments = moved[0], factor * scale, *moved[1:]
    tolerance = 1e-9 * (factor + abs(offset))
    actual = censored_normal_crps(factor * y + offset, *arguments)
    np.testing.assert_allclose(actual, factor * expected, rtol=1e-9, atol=tolerance)
    actual = censored_normal_mean_std(*arguments)
    np.testing.assert_allclose(
        actual, [factor * mean + offset, factor * std], rtol=1e-6, atol=tolerance
    )
    mirrored = censored_normal_crps(-y, -loc, scale, -upper, -lower)
    np.testing.assert_allclose(mirrored, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        censored_normal_mean_std(-loc, scale, -upper, -lower), [-mean, std], rtol=1e-9, atol=1e-12
    )


def test_shapes_and_missing_values(rng):
    y, loc = rng.normal(size=(3, 1, 5)), rng.normal(size=(4, 1))
    lower = np.full(5, -1.0)
    for result in (
        censored_normal_crps(y, loc, 1.0, lower, np.inf),
        censored_normal_mean_std(loc + 0 * y, 1.0, lower, np.inf)[1],
        censored_normal_quantile([0.5], loc + 0 * y, 1.0, lower, np.inf)[..., 0],
    ):
        assert (result.shape, result.dtype) == ((3, 4, 5), np.float64)
    complete = [0.5, 0.2, 1.0, 0.0, 2.0]
    for hole in range(5):
        arguments = np.array(complete)
        arguments[hole] = np.nan
        assert np.isnan(censored_normal_crps(*arguments))
        if hole > 0:
            assert np.isnan(censored_normal_mean_std(*arguments[1:])).all()
            assert np.isnan(censored_normal_quantile([0.0, 0.5, 1.0], *arguments[1:])).all()
    assert np.isnan(
        censored_normal_crps([np.inf, 0.0, 0.0], [0.0, np.inf, 0.0], 1.0, 0.0, 2.0)[:2]
    ).all()
    assert np.isnan(censored_normal_mean_std(0.0, np.inf, 0.0, 2.0)).all()


def test_errors():
    with pytest.raises(ValueError, match="scale must not be negative, found -1"):
        censored_normal_crps(0.0, 0.0, -1.0, 0.0, 1.0)
    told = "lower must not exceed upper; for no bound give -inf and inf"
    with pytest.raises(ValueError, match=told):
        censored_normal_mean_std(0.0, 1.0, 2.0, 1.0)
    with pytest.raises(ValueError, match=r"q must be a 1-D array of levels in \[0, 1\]"):
        censored_normal_quantile([1.5], 0.0, 1.0, 0.0, 1.0)
