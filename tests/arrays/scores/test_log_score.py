import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.arrays.scores.ensembles import cases, value
from tests.rules import scoringrules
from xrecal.arrays import (
    censored_normal_log_score,
    log_score,
    normal_log_score,
    quantile_log_score,
    quantile_pit,
)

INF, NAN = np.inf, np.nan


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


# members -----------------------------------------------------------------------------------------


def bandwidth(members, weights):
    """By the formula: quartiles are means of the quantile function over a part of the mass."""
    order = np.argsort(members)
    x, w = members[order], weights[order] / weights.sum()
    part = (w**2).sum()
    std = np.sqrt((w * (x - w @ x) ** 2).sum() / (1 - part))

    def integral(level):
        return np.interp(level, np.cumsum([0, *w]), np.cumsum([0, *(w * x)]))

    low, high = (
        (integral(level * (1 - part) + part) - integral(level * (1 - part))) / part
        for level in (0.25, 0.75)
    )
    return 1.06 * min(std, (high - low) / 1.34) * part**0.2, std


@pytest.mark.parametrize("n", [2, 3, 8, 51])
def test_plain_ensembles_as_scoringrules(rng, n):
    members, y = rng.gamma(2, size=(40, n)), rng.gamma(2, size=40)
    with np.errstate(divide="ignore"):  # its densities vanish far out
        expected = scoringrules.logs_ensemble(y, members)
    found = np.where(np.isinf(expected), np.inf, log_score(y, members))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isfinite(expected).sum() > 10
    for k in range(5):  # and by the formula, with the quartiles of NumPy
        x = members[k]
        spread = min(np.std(x, ddof=1), np.subtract(*np.quantile(x, [0.75, 0.25])) / 1.34)
        kernels = scipy.stats.norm.logpdf(y[k], x, 1.06 * spread * n**-0.2)
        assert log_score(y[k], x) == pytest.approx(np.log(n) - scipy.special.logsumexp(kernels))


def test_weighted_ensembles_as_scipy(rng):
    members, weights, y = rng.normal(size=9), rng.gamma(1, size=(20, 9)), rng.normal(size=20)
    found = log_score(y, members, weights)
    for k in range(20):
        width, std = bandwidth(members, weights[k])
        kde = scipy.stats.gaussian_kde(members, width / std, weights[k])
        assert found[k] == pytest.approx(-kde.logpdf(y[k])[0], rel=1e-9)


@given(cases(), st.floats(-50, 50), st.floats(0.1, 20))
def test_laws(case, shift, factor):
    y, members, weights = case
    found = log_score(y, members, weights)
    moved = log_score(factor * y + shift, factor * members + shift, weights)
    same(moved, found + np.log(factor))
    same(log_score(-y, -members, weights), found)


def test_far_out_scores_stay_finite():
    members = np.array([0.0, 1.0, 2.0])
    width = bandwidth(members, np.ones(3))[0]
    expected = 0.5 * (998 / width) ** 2 + np.log(3 * width * np.sqrt(2 * np.pi))
    assert log_score(np.array(1000.0), members) == pytest.approx(expected)
    assert log_score(np.array(1e300), 1e-300 * members) == INF


@pytest.mark.parametrize("members", [[0.1], [0.1, 0.1, 0.1], [0.1, 5.0], [NAN, 0.1]])
def test_members_without_spread_are_a_point(members):
    weights = np.array([float(v == 0.1) for v in members])
    y = np.array([0.1, 0.0, 0.2])
    found = log_score(y, np.array(members), np.tile(weights, (3, 1)))
    np.testing.assert_array_equal(found, [NAN, INF, INF])


# quantiles ---------------------------------------------------------------------------------------

LEVELS = np.array([0.5, 0.1, 0.9, 0.75])


@given(
    arrays(np.float64, 4, elements=st.integers(-20, 20), unique=True), st.integers(-45, 45), value
)
def test_the_levels_are_those_of_the_pit(quantiles, y, shift):
    y, z = np.array(y / 2 + 0.25), np.sort(quantiles)
    found = quantile_log_score(y, quantiles, LEVELS)
    low, high = (quantile_pit(quantiles, LEVELS, y, np.array(u)) for u in (0.0, 1.0))
    if z[0] < y < z[-1]:
        width = z[z > y].min() - z[z < y].max()
        assert np.exp(-found) * width == pytest.approx(high - low)
    else:
        assert found == INF
    same(quantile_log_score(y + shift, quantiles[::-1] + shift, LEVELS[::-1]), found)
    same(quantile_log_score(3 * y, 3 * quantiles, LEVELS), found + np.log(3))
    same(quantile_log_score(-y, -quantiles, 1 - LEVELS), found)


def test_on_quantiles_and_beyond_them():
    levels, z = np.array([0.2, 0.4, 0.8]), np.array([1.0, 2.0, 4.0])

    def score(y, quantiles=z):
        return quantile_log_score(np.array(y), np.asarray(quantiles), levels)

    for y in (1.0, 1.5, 2.0, 3.0, 4.0):
        assert score(y) == pytest.approx(-np.log(0.2))
    for y in (0.999, 4.001, -1e300):
        assert score(y) == INF
    assert score(1.5, [1.0, 2.0, NAN]) == pytest.approx(-np.log(0.2))
    assert score(3.0, [NAN, 1.0, 5.0]) == pytest.approx(-np.log(0.1))
    assert score(3.0, [0.0, 0.0, 8.0]) == pytest.approx(-np.log(0.05))
    for y, quantiles in (
        (0.0, [0.0, 0.0, 8.0]),
        (8.0, [0.0, 8.0, 8.0]),
        (0.0, [0.0, 0.0, 0.0]),
        (NAN, z),
        (INF, z),
        (1.5, [1.0, NAN, NAN]),
        (1.5, [NAN, NAN, NAN]),
        (1.5, [1.0, 2.0, INF]),
        (1.5, [-INF, 2.0, INF]),
    ):
        assert np.isnan(score(y, quantiles)), (y, quantiles)
    assert np.isnan(quantile_log_score(np.zeros(3), np.zeros((3, 1)), [0.5])).all()


# normal distributions ----------------------------------------------------------------------------


def test_normal_distributions_as_libraries(rng):
    y, loc, scale = rng.normal(size=(3, 20))
    scale = np.abs(scale) + 0.1
    found = normal_log_score(y, loc, scale)
    np.testing.assert_allclose(found, -scipy.stats.norm.logpdf(y, loc, scale), rtol=1e-12)
    np.testing.assert_allclose(found, scoringrules.logs_normal(y, loc, scale), rtol=1e-12)
    far = normal_log_score([-1e4, 1e4], 0.0, 1.0)
    np.testing.assert_allclose(far, -scipy.stats.norm.logpdf(1e4))
    assert normal_log_score(1.0, 0.0, 1e-200) == INF


def test_mixtures_as_scoringrules(rng):
    y, weights = rng.normal(size=30), rng.gamma(1, size=(30, 4))
    loc, scale = rng.normal(size=(30, 4)), rng.uniform(0.2, 2, (30, 4))
    weights[0, 1] = 0.0
    share = weights / weights.sum(-1, keepdims=True)
    expected = scoringrules.logs_mixnorm(y, loc, scale, share)
    np.testing.assert_allclose(normal_log_score(y, loc, scale, weights), expected, rtol=1e-12)
    equal = normal_log_score(y, loc, scale)
    np.testing.assert_allclose(equal, normal_log_score(y, loc, scale, np.ones(4)), rtol=1e-12)


@given(value, value, st.floats(0.1, 5), st.floats(-50, 50), st.floats(0.1, 20))
def test_normal_laws(y, loc, scale, shift, factor):
    found = normal_log_score(y, loc, scale)
    moved = normal_log_score(factor * y + shift, factor * loc + shift, factor * scale)
    same(moved, found + np.log(factor))
    same(normal_log_score(y, [loc, loc], [scale, scale], [0.3, 0.9]), found)
    free = censored_normal_log_score(y, loc, scale, -INF, INF)
    np.testing.assert_array_equal(free, found)


def test_components_without_width_are_points():
    y = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(normal_log_score(y, 1.0, 0.0), [INF, NAN, INF])
    found = normal_log_score(y, [1.0, 0.0], [0.0, 1.0], [0.5, 0.5])
    expected = np.log(2) - scipy.stats.norm.logpdf(y)
    np.testing.assert_allclose(found, [expected[0], NAN, expected[2]])
    unused = normal_log_score(y, [1.0, 0.0], [0.0, 1.0], [0.0, 0.5])
    np.testing.assert_allclose(unused, -scipy.stats.norm.logpdf(y))


def test_missing_normal_distributions():
    y, one = np.array([NAN, INF, 0.0, 0.0, 0.0]), np.ones(5)
    loc, scale = np.array([0, 0, NAN, INF, 0.0]), np.array([1, 1, 1, 1, NAN])
    assert np.isnan(normal_log_score(y, loc, scale)).all()
    assert np.isnan(censored_normal_log_score(y, loc, scale, -one, one)).all()
    left = normal_log_score([0.5], [[0.0, NAN]], [[1.0, 1.0]], [0.4, 0.6])
    np.testing.assert_allclose(left, -scipy.stats.norm.logpdf([0.5]))
    unknown = censored_normal_log_score(0.5, 0.0, 1.0, [NAN, 0.0], [1.0, NAN])
    assert np.isnan(unknown).all()


def test_censored_distributions_have_a_density_between_their_bounds():
    y = np.array([-1.0, 0.0, 0.5, 2.0, 3.0])
    found = censored_normal_log_score(y, 1.0, 2.0, 0.0, 2.0)
    inside = -scipy.stats.norm.logpdf(0.5, 1, 2)
    np.testing.assert_allclose(found, [INF, NAN, inside, NAN, INF])
    dry = censored_normal_log_score(y, -1.0, 0.0, 0.0, INF)
    np.testing.assert_array_equal(dry, [INF, NAN, INF, INF, INF])


# all ---------------------------------------------------------------------------------------------


def test_errors():
    y, members = np.zeros(3), np.zeros((3, 4))
    with pytest.raises(ValueError, match=r"weights of shape \(3, 5\) do not fit members"):
        log_score(y, members[0], np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"q must hold levels between 0 and 1, got \[1.5\]"):
        quantile_log_score(y, members[:, :1], [1.5])
    with pytest.raises(ValueError, match=r"quantiles have shape \(3, 4\).*need \(3, 2\); put the"):
        quantile_log_score(y, members, [0.1, 0.9])
    with pytest.raises(ValueError, match="scale must not be negative, found -1"):
        normal_log_score(y, members, -np.ones((3, 4)))
    with pytest.raises(ValueError, match="lower must not exceed upper"):
        censored_normal_log_score(y, 0.0, 1.0, 2.0, 1.0)


def test_quartiles_that_are_equal_leave_the_standard_deviation():
    members = np.array([280.1, 280.1, 280.1, 280.1, 280.1, 285.0])
    width = 1.06 * np.std(members, ddof=1) * 6**-0.2
    density = scipy.stats.norm.pdf(281.0, members, width).mean()
    assert log_score(np.array(281.0), members) == pytest.approx(-np.log(density))
