from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.special import erfc, erfcx
from scipy.stats import norm

from xrecal.arrays import Forecasts, laplace_expectations, target_bandwidth
from xrecal.arrays.calibration.laplace_kernel import mean_laplace

value = st.integers(-20, 20).map(lambda v: v / 4)
weight = st.sampled_from([0.0, 0.0, 0.3, 1.0, 2.5])


def laplace(a, b, theta):
    return np.exp(-np.abs(np.subtract.outer(a, b)) / theta)


def double_sums(members, weights, y, theta):
    """A and M as written, for lists of members and of weights."""
    n = len(members)
    cross = [[weights[i] @ laplace(members[i], y[j], theta) for j in range(n)] for i in range(n)]
    within = [
        [weights[i] @ laplace(members[i], members[j], theta) @ weights[j] for j in range(n)]
        for i in range(n)
    ]
    return np.array(cross), np.array(within)


def reference(loc, weights, y, theta):
    """As :func:`double_sums`, for arrays (n, m) with NaN for what is missing."""
    there = [~np.isnan(row) for row in loc]
    mass = [w[keep] / w[keep].sum() for w, keep in zip(weights, there, strict=True)]
    return double_sums([row[keep] for row, keep in zip(loc, there, strict=True)], mass, y, theta)


def agree(found, expected, atol=1e-12):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


@st.composite
def ensembles(draw, missing=True):
    """Members (n, m), weights with zeros that sum to one, observations (n,), bandwidth."""
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    points = value | st.just(np.nan) if missing else value
    loc = draw(arrays(np.float64, (n, m), elements=points))
    weights = draw(arrays(np.float64, (n, m), elements=weight))
    loc[:, 0], weights[:, 0] = draw(arrays(np.float64, n, elements=value)), 1.0
    weights /= weights.sum(-1, keepdims=True)
    y = draw(arrays(np.float64, n, elements=value))
    return loc, weights, y, draw(st.sampled_from([0.05, 0.7, 3.0, 100.0]))


# against the formula -----------------------------------------------------------------------------


@given(ensembles())
def test_own_members_give_the_double_sums(case):
    loc, weights, y, theta = case
    found = laplace_expectations(Forecasts(loc, None, weights), y, theta)
    agree(found, reference(loc, weights, y, theta))
    plain = laplace_expectations(Forecasts(loc), y, theta)
    agree(plain, reference(loc, np.ones(loc.shape), y, theta))


@given(ensembles(missing=False))
def test_shared_members_give_the_double_sums(case):
    loc, weights, y, theta = case
    found = laplace_expectations(Forecasts(loc[0], None, weights), y, theta)
    own = np.tile(loc[0], (y.size, 1))
    agree(found, reference(own, weights, y, theta))
    agree(found, laplace_expectations(Forecasts(own, None, weights), y, theta))


@pytest.mark.parametrize("n", [63, 64, 65, 130])
def test_many_forecasts(rng, n):
    loc, y = rng.gamma(1, size=(n, 7)), rng.gamma(1, size=n)
    weights = rng.gamma(0.5, size=loc.shape)
    weights /= weights.sum(-1, keepdims=True)
    found = laplace_expectations(Forecasts(loc, None, weights), y, 0.3)
    agree(found, reference(loc, weights, y, 0.3))
    assert np.array_equal(found[1], found[1].T)


def test_mostly_zero_weights_are_as_if_never_there(rng):
    n = 40
    loc, y, weights = rng.normal(size=(n, n)), rng.normal(size=n), np.zeros((n, n))
    for row in weights:
        row[rng.choice(n, 5, replace=False)] = rng.dirichlet(np.ones(5))
    agree(
        laplace_expectations(Forecasts(loc, None, weights), y, 0.8),
        reference(loc, weights, y, 0.8),
    )
    loc[weights == 0] = np.inf  # whatever they hold
    agree(
        laplace_expectations(Forecasts(loc, None, weights), y, 0.8),
        reference(np.where(weights > 0, loc, 0), weights, y, 0.8),
    )


def test_far_and_near_points_neither_overflow_nor_vanish(rng):
    steps = np.array([0, 1e-9, 1, 29, 31, 60, 200, 800, 1e4, 1e6, 1e300])
    loc = rng.permuted(np.concatenate([steps, -steps, steps + 3]).reshape(11, 3), axis=0)
    y, weights = rng.permuted(steps), np.full(loc.shape, 1 / 3)
    found = laplace_expectations(Forecasts(loc), y, 1.0)
    agree(found, reference(loc, weights, y, 1.0))
    shared = Forecasts(loc.ravel(), None, rng.dirichlet(np.ones(33), 11))
    own = np.tile(shared.loc, (11, 1))
    agree(laplace_expectations(shared, y, 1.0), reference(own, shared.weights, y, 1.0))
    wide = laplace_expectations(Forecasts(loc[:, :1]), y, 1e-300)
    np.testing.assert_array_equal(wide[1], np.equal.outer(loc[:, 0], loc[:, 0]))
    for a in laplace_expectations(Forecasts(loc[:, :1]), y, np.inf):
        np.testing.assert_array_equal(a, 1.0)


def mixtures(loc, scale, weights, y, theta):
    """As sums over components, with the closed form checked below."""
    n, k = loc.shape
    cross, within = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for a in range(k):
                cross[i, j] += weights[i, a] * mean_laplace(loc[i, a] - y[j], scale[i, a], theta)
                for b in range(k):
                    width = np.hypot(scale[i, a], scale[j, b])
                    pair = mean_laplace(loc[i, a] - loc[j, b], width, theta)
                    within[i, j] += weights[i, a] * weights[j, b] * pair
    return cross, within


def test_mixtures_are_sums_over_all_pairs_of_components(rng):
    loc, scale, y = rng.normal(size=(5, 3)), rng.gamma(1, size=(5, 3)), rng.normal(size=5)
    scale[1, 0] = scale[2] = 0.0
    weights = rng.dirichlet(np.ones(3), 5)
    weights[3] = [0, 0.4, 0.6]
    found = laplace_expectations(Forecasts(loc, scale, weights), y, 0.6)
    agree(found, mixtures(loc, scale, weights, y, 0.6))
    loc[3, 0] = np.nan
    agree(laplace_expectations(Forecasts(loc, scale, weights), y, 0.6), found)
    one = laplace_expectations(Forecasts(loc[:, 1:2], scale[:, 1:2]), y, 0.6)
    agree(one, mixtures(loc[:, 1:2], scale[:, 1:2], np.ones((5, 1)), y, 0.6))


# the closed form ---------------------------------------------------------------------------------


def by_quadrature(gap, scale, theta):
    def integrand(x):
        return np.exp(-abs(x) / theta) * norm.pdf(x, gap, scale)

    knots = np.unique([gap - 12 * scale, min(0.0, gap), max(0.0, gap), gap + 12 * scale])
    return sum(
        quad(integrand, a, b, epsabs=1e-15, epsrel=1e-13, limit=400)[0] for a, b in pairwise(knots)
    )


@pytest.mark.each_value
@pytest.mark.parametrize("gap", [0.0, -0.3, 2.0, 15.0, 40.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0, 30.0])
@pytest.mark.parametrize("theta", [0.5, 1.0, 8.0])
def test_closed_form_is_the_integral(gap, scale, theta):
    expected = by_quadrature(gap, scale, theta)
    assert mean_laplace(gap, scale, theta) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def by_scaled_erfc(gap, scale, theta):
    """The formula of the docstring, with SciPy's erfcx."""
    total = 0.0
    for sign in (-1, 1):
        x = (scale / theta + sign * gap / scale) / np.sqrt(2)
        if x >= 0:
            total += np.exp(-((gap / scale) ** 2) / 2) * erfcx(x)
        else:
            total += np.exp((scale / theta) ** 2 / 2 - gap / theta) * erfc(x)
    return total / 2


@given(st.floats(0, 1e3), st.floats(1e-6, 1e3), st.floats(1e-3, 1e3))
def test_closed_form_has_its_digits_everywhere(gap, scale, theta):
    found = mean_laplace(gap, scale, theta)
    assert found == mean_laplace(-gap, scale, theta)
    assert found == pytest.approx(by_scaled_erfc(gap, scale, theta), rel=1e-11, abs=1e-290)
    assert 0 <= found <= 1 + 1e-14


def test_closed_form_where_its_branches_meet():
    """Sums and differences of s/theta and d/s on both sides of the switch, a dense grid."""
    for s in np.linspace(0.2, 40, 60):
        for d in s * np.linspace(0, 45, 61):
            expected = by_scaled_erfc(d, s, 1.0)
            assert mean_laplace(d, s, 1.0) == pytest.approx(expected, rel=1e-12, abs=1e-290)


@pytest.mark.parametrize("scale", [0.0, 1e-320, 1e-200, 1e-9])
def test_without_width_it_is_the_kernel(scale):
    for gap in (0.0, 0.3, 50.0, 1e300):
        assert mean_laplace(gap, scale, 2.0) == pytest.approx(np.exp(-gap / 2), rel=1e-8)


def test_a_very_wide_forecast_has_no_mass_near_by():
    assert mean_laplace(0.0, 1e9, 1.0) == pytest.approx(np.sqrt(2 / np.pi) * 1e-9, rel=1e-12)
    assert 0 <= mean_laplace(1e200, 1e200, 1e-100) < 1e-100


# laws --------------------------------------------------------------------------------------------


@given(ensembles(), st.floats(-50, 50), st.sampled_from([-3.0, 0.01, 20.0]))
def test_unit_and_origin_do_not_matter(case, shift, factor):
    loc, weights, y, theta = case
    for scale in (None, np.abs(np.cos(np.arange(loc.size))).reshape(loc.shape)):
        found = laplace_expectations(Forecasts(loc, scale, weights), y, theta)
        wide = None if scale is None else scale * abs(factor)
        moved = Forecasts(loc * factor + shift, wide, weights)
        other = laplace_expectations(moved, y * factor + shift, theta * abs(factor))
        agree(other, found, atol=1e-10)


# missing values, types, errors -------------------------------------------------------------------


def test_what_is_missing_is_nan_and_nothing_else(rng):
    loc, y = rng.normal(size=(5, 3)), rng.normal(size=5)
    loc[1], y[3], loc[4, 0] = np.nan, np.nan, np.nan
    for forecasts in (Forecasts(loc), Forecasts(loc, np.ones((5, 3)))):
        cross, within = laplace_expectations(forecasts, y, 0.7)
        gone = np.arange(5) == 1
        np.testing.assert_array_equal(np.isnan(within), gone[:, np.newaxis] | gone)
        np.testing.assert_array_equal(np.isnan(cross), gone[:, np.newaxis] | np.isnan(y))
        some = [0, 2]
        part = Forecasts(*(a if a is None else a[some] for a in forecasts))
        grid = np.ix_(some, some)
        agree(laplace_expectations(part, y[some], 0.7), (cross[grid], within[grid]))


BAD = {
    r"bandwidth is 0; give a positive number": {"bandwidth": 0},
    r"bandwidth is nan; give a positive number": {"bandwidth": np.nan},
    r"observations have shape \(3,\), but the forecasts need \(2,\)": {"observations": np.ones(3)},
    r"observations hold infinite values; set them to NaN": {"observations": np.array([1, np.inf])},
    r"forecasts hold infinite members; set them to NaN": {"loc": np.array([[1, 2], [0, np.inf]])},
    r"weights of forecast 1 holds -0.5; give finite numbers >= 0": {
        "weights": np.array([[0.5, 0.5], [1.5, -0.5]])
    },
    r"weights of forecast 0 holds inf; give finite numbers >= 0": {
        "weights": np.array([[0.5, np.inf], [1, 0]])
    },
    r"weights of forecast 1 sum to 0.9, not to one; divide them by their sum": {
        "weights": np.array([[0.5, 0.5], [0.4, 0.5]])
    },
    r"scale of forecast 0 holds -1; give finite numbers >= 0": {
        "scale": np.array([[-1.0, 1], [1, 1]])
    },
    r"scale of forecasts has shape \(2, 1\), but loc has \(2, 2\)": {"scale": np.ones((2, 1))},
    r"loc of forecasts has shape \(2,\); give \(case, member\), or \(member,\) with weights": {
        "loc": np.ones(2)
    },
    r"weights have shape \(2, 3\), but shared members need \(n, 2\)": {
        "loc": np.ones(2),
        "weights": np.ones((2, 3)) / 3,
    },
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said(message):
    given = {"loc": np.ones((2, 2)), "scale": None, "weights": None, "observations": np.ones(2)}
    given |= {"bandwidth": 1.0} | BAD[message]
    forecasts = Forecasts(given["loc"], given["scale"], given["weights"])
    with pytest.raises(ValueError, match=f"^{message}"):
        laplace_expectations(forecasts, given["observations"], given["bandwidth"])


def test_sums_of_float32_weights_pass(rng):
    weights = rng.dirichlet(np.ones(3000), 2).astype(np.float32)
    loc = rng.normal(size=(2, 3000))
    double = weights.astype(np.float64)
    expected = reference(loc, double, np.zeros(2), 1.0)
    agree(laplace_expectations(Forecasts(loc, None, weights), np.zeros(2), 1.0), expected)


# bandwidth ---------------------------------------------------------------------------------------


def median_gap(y):
    gaps = np.abs(np.subtract.outer(y, y))[np.triu_indices(y.size, 1)]
    return np.median(gaps[gaps > 0]) if (gaps > 0).any() else np.nan


@given(arrays(np.float64, st.integers(0, 30), elements=value | st.floats(-1e9, 1e9)))
def test_bandwidth_is_the_exact_median_of_positive_distances(y):
    np.testing.assert_array_equal(target_bandwidth(y), median_gap(y))
    gaps = np.insert(y, 0, np.nan)
    np.testing.assert_array_equal(target_bandwidth(gaps), median_gap(y))


def test_bandwidth_of_many_and_of_dry_days(rng):
    y = rng.gamma(0.3, size=3001)
    y[rng.random(3001) < 0.9] = 0.0
    assert target_bandwidth(y) == median_gap(y)
    assert target_bandwidth(y.astype(np.float32)) == median_gap(y.astype(np.float32).astype(float))
    assert np.isnan(target_bandwidth(np.full(5, 0.3)))
    assert np.isnan(target_bandwidth(np.array([1.0, np.nan])))
    assert target_bandwidth(np.array([0.0, 5e-324])) == 5e-324


def test_bandwidth_errors():
    with pytest.raises(ValueError, match=r"observations must have shape \(n,\), got \(2, 2\)"):
        target_bandwidth(np.ones((2, 2)))
    with pytest.raises(ValueError, match="observations hold infinite values; set them to NaN"):
        target_bandwidth(np.array([1.0, -np.inf]))
