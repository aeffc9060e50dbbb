from typing import NamedTuple

import numpy as np
import pytest
import scipy.stats
import scoringrules

from xrecal import arrays
from xrecal.arrays.distributions.forms import Censored, Distribution, Empirical, Normal

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


def test_missing_forecasts_are_nan():
    for forecast in (
        Empirical(np.full((1, 3), np.nan)),
        Normal(np.full((1, 2), np.nan), np.ones((1, 2))),
    ):
        assert np.isnan(forecast.mean()).all()
        assert np.isnan(forecast.std()).all()
        assert np.isnan(forecast.quantile(LEVELS)).all()
        assert np.isnan(forecast.crps(np.zeros(1))).all()


def test_pit_of_ensembles_lies_between_the_two_values_of_their_cdf(rng):
    members, weights = rng.integers(0, 4, (3, 6)).astype(float), rng.random((3, 4, 6))
    y, u = rng.integers(-1, 5, (3, 4)).astype(float), rng.random((3, 4))
    mass = weights / weights.sum(-1, keepdims=True)
    below = (mass * (members[:, np.newaxis] < y[..., np.newaxis])).sum(-1)
    up_to = (mass * (members[:, np.newaxis] <= y[..., np.newaxis])).sum(-1)
    shared = Empirical(members, weights).pit(y, u)
    np.testing.assert_allclose(shared, below + u * (up_to - below), atol=1e-12)
    own = Empirical(np.repeat(members[:, np.newaxis], 4, axis=1), weights).pit(y, u)
    np.testing.assert_array_equal(own, shared)
    equal = Empirical(members).pit(y[:, 0], u[:, 0])
    np.testing.assert_allclose(equal, Empirical(members, np.ones((3, 6))).pit(y[:, 0], u[:, 0]))


def test_pit_of_censored_normals_jumps_at_the_bounds():
    """From 0 to the mass on the lower bound, and from there to 1 at the upper one."""
    y = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
    loc, scale = np.full((5, 1), 0.5), np.full((5, 1), 2.0)
    lower, upper, u = np.array(0.0), np.array(2.0), np.full(5, 0.25)
    dry, middle, full = scipy.stats.norm.cdf([0.0, 1.0, 2.0], 0.5, 2.0)
    expected = [0.0, 0.25 * dry, middle, full + 0.25 * (1 - full), 1.0]
    np.testing.assert_allclose(Censored(loc, scale, lower, upper).pit(y, u), expected, rtol=1e-12)
    free = Censored(loc, scale, np.array(-np.inf), np.array(np.inf)).pit(y, u)
    np.testing.assert_allclose(free, Normal(loc, scale).pit(y, u), rtol=1e-12)


@pytest.mark.parametrize("loc", [-1.0, 0.0, 1.0])
def test_pit_of_censored_points(loc):
    point = Censored(np.full((3, 1), loc), np.zeros((3, 1)), np.array(0.0), np.array(np.inf))
    at = max(loc, 0.0)
    found = point.pit(np.array([at - 0.5, at, at + 0.5]), np.full(3, 0.4))
    np.testing.assert_allclose(found, [0.0, 0.4, 1.0])


def test_pit_of_missing_values_is_nan():
    y, u, nan = np.array([0.0, np.nan, 0.0]), np.array([0.5, 0.5, np.nan]), np.full((3, 1), np.nan)
    ones = np.ones((3, 1))
    assert np.isnan(Empirical(nan, ones).pit(y, u)).all()
    assert np.isnan(Normal(nan, ones).pit(y, u)).all()
    assert np.isnan(Censored(ones, nan, np.array(0.0), np.array(1.0)).pit(y, u)).all()
    for known in (
        Empirical(ones - 1),
        Normal(ones, ones),
        Censored(ones, ones, np.array(0.0), np.array(np.inf)),
    ):
        np.testing.assert_array_equal(np.isnan(known.pit(y, u)), [False, True, True])
    bound = np.array([np.nan, 0.0, 0.0])[:, np.newaxis]
    assert np.isnan(Censored(ones, ones, bound, np.array(9.0)).pit(u * 0, u)[0])


def test_exceedance_of_each_form_is_what_its_quantiles_say(rng):
    """As large a share of many quantiles lies above, and the bounds of a censored one are kept."""
    loc, scale = rng.normal(size=(4, 2)), rng.random((4, 2)) + 0.5
    lower, upper = np.array(-0.5), np.array(1.0)
    for forecast in (
        Empirical(rng.normal(size=(4, 30)), rng.random((4, 30))),
        Normal(loc, scale, np.array([0.3, 0.7])),
        Censored(loc[:, :1], scale[:, :1], lower, upper),
    ):
        thresholds = rng.normal(size=(4, 5))
        many = forecast.quantile((np.arange(4000) + 0.5) / 4000)
        expected = (many[..., np.newaxis] > thresholds[:, np.newaxis]).mean(1)
        np.testing.assert_allclose(forecast.exceedance(thresholds), expected, atol=3e-4)
        assert (np.diff(forecast.exceedance(np.linspace(-2, 2, 30))) <= 0).all()
        assert np.isnan(forecast.exceedance(np.array([np.nan]))).all()
    points = Normal(loc, 0 * loc, np.array([0.3, 0.7])).exceedance(np.linspace(-2, 2, 30))
    mass = np.broadcast_to([0.3, 0.7], loc.shape)
    np.testing.assert_allclose(points, Empirical(loc, mass).exceedance(np.linspace(-2, 2, 30)))


def test_exceedance_of_censored_normals_at_their_bounds():
    """Rain: strictly above zero is less than at least zero."""
    t = np.array([-1e-9, 0.0, 1.0, 2.0, np.inf])
    bounded = Censored(np.zeros((1, 1)), np.ones((1, 1)), np.array(0.0), np.array(2.0))
    expected = [1, 0.5, scipy.stats.norm.sf(1.0), 0, 0]
    np.testing.assert_allclose(bounded.exceedance(t)[0], expected, rtol=1e-12)
    open_end = Censored(np.zeros((1, 1)), np.zeros((1, 1)), np.array(0.0), np.array(np.inf))
    np.testing.assert_array_equal(open_end.exceedance(t)[0], [1, 0, 0, 0, 0])
    unknown = Censored(np.zeros((1, 1)), np.ones((1, 1)), np.array(np.nan), np.array(2.0))
    assert np.isnan(unknown.exceedance(t)).all()


def test_scores_of_ensembles_are_the_functions(rng):
    members, y = rng.normal(size=(3, 6)), rng.normal(size=(3, 4))
    weights = rng.random((3, 4, 6))
    shared, plain = Empirical(members, weights), Empirical(members)
    np.testing.assert_array_equal(
        shared.threshold_weighted_crps(y, -0.5, np.inf),
        arrays.threshold_weighted_crps(y, members, weights, lower=-0.5),
    )
    np.testing.assert_array_equal(
        shared.quantile_weighted_crps(y, "upper"),
        arrays.quantile_weighted_crps(y, members, weights, weighting="upper"),
    )
    np.testing.assert_array_equal(shared.log_score(y), arrays.log_score(y, members, weights))
    np.testing.assert_array_equal(plain.log_score(y[:, 0]), arrays.log_score(y[:, 0], members))


def test_scores_of_normals_are_the_functions(rng):
    loc, scale, y = rng.normal(size=(3, 2)), rng.random((3, 2)) + 0.1, rng.normal(size=3)
    weights, one = np.array([0.3, 0.6]), slice(None, 1)
    np.testing.assert_array_equal(
        Normal(loc, scale, weights).threshold_weighted_crps(y, -0.5, 0.4),
        arrays.normal_threshold_crps(y, loc, scale, weights, lower=-0.5, upper=0.4),
    )
    np.testing.assert_array_equal(
        Normal(loc, scale, weights).log_score(y), arrays.normal_log_score(y, loc, scale, weights)
    )
    rain = Censored(loc[:, one], scale[:, one], np.array(0.0), np.array(np.inf))
    expected = arrays.threshold_weighted_crps(
        y, rain.quantile((np.arange(2000) + 0.5) / 2000), lower=-0.5, upper=0.4
    )
    found = rain.threshold_weighted_crps(y, -0.5, 0.4)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    np.testing.assert_array_equal(
        rain.log_score(y),
        arrays.censored_normal_log_score(y, loc[:, 0], scale[:, 0], 0.0, np.inf),
    )
    whole = rain.threshold_weighted_crps(y, -np.inf, np.inf)
    np.testing.assert_allclose(whole, rain.crps(y), rtol=1e-12)


class Lognormal(NamedTuple("Parts", [("loc", np.ndarray), ("scale", np.ndarray)]), Distribution):
    """A form that knows nothing but its quantiles."""

    def quantile(self, q):
        return np.exp(self.loc[:, np.newaxis] + self.scale[:, np.newaxis] * scipy.stats.norm.ppf(q))


def test_a_form_with_quantiles_alone_has_all_statistics_and_scores(rng):
    """Those of a lognormal distribution, to the accuracy of 200 quantiles."""
    loc, scale = np.array([0.0, 0.5]), np.array([0.5, 0.2])
    forecast, y = Lognormal(loc, scale), np.array([1.5, 1.6])
    law = scipy.stats.lognorm(scale, scale=np.exp(loc))
    np.testing.assert_allclose(forecast.mean(), law.mean(), rtol=5e-3)
    np.testing.assert_allclose(forecast.std(), law.std(), rtol=0.05)
    np.testing.assert_allclose(forecast.skewness(), law.stats("s"), rtol=0.3)
    np.testing.assert_allclose(forecast.exceedance(y[:, np.newaxis])[:, 0], law.sf(y), atol=5e-3)
    np.testing.assert_allclose(forecast.pit(y, np.full(2, 0.5)), law.cdf(y), atol=5e-3)
    expected = scoringrules.crps_lognormal(y, loc, scale)
    np.testing.assert_allclose(forecast.crps(y), expected, rtol=5e-3)
    parts = [forecast.threshold_weighted_crps(y, *ends) for ends in ((-1, 1.2), (1.2, 99))]
    np.testing.assert_allclose(sum(parts), forecast.crps(y), rtol=1e-12)
    np.testing.assert_allclose(forecast.log_score(y), -law.logpdf(y), atol=0.1)
    tails = [forecast.quantile_weighted_crps(y, part) for part in ("upper", "lower")]
    assert (np.array(tails) > 0).all()


def test_the_quantile_weighted_crps_of_normals_is_that_of_200_quantiles():
    loc, scale, y = np.array([[0.3]]), np.array([[1.2]]), np.array([0.9])
    for forecast in (Normal(loc, scale), Censored(loc, scale, np.zeros(1), np.full(1, np.inf))):
        quantiles = forecast.quantile(np.arange(0.0025, 1, 0.005))
        expected = Empirical(quantiles).quantile_weighted_crps(y, "center")
        found = forecast.quantile_weighted_crps(y, "center")
        np.testing.assert_allclose(found, expected, rtol=1e-12)
