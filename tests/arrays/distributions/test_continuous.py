"""Distributions whose levels fall on no step: members with tails, and quantiles of equal mass."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from xrecal.arrays.distributions.continuous import Linear, Tailed, continuous
from xrecal.arrays.distributions.forms import Empirical
from xrecal.arrays.distributions.tails import POINTS, WIDTH, Tails, with_tails

SHAPES = (-0.2, 0.5), (0.0, 0.1), (0.3, np.nan), (np.nan, -0.1)
OPEN = np.array([[-np.inf, np.inf]])


def tailed(shape=(0.1, 0.2), n=40, seed=0, others=0):
    """A forecast with tails, and perhaps other members beside it, wherever they lie."""
    rng = np.random.default_rng(seed)
    members, weights = rng.normal(size=(1, 1, n)), rng.random((1, 1, n))
    weights /= weights.sum()
    sides = np.array([shape])
    excess = np.where(np.isnan(sides), np.nan, rng.uniform(0.3, 1.2, (1, 2)))
    found = with_tails(members, weights, Tails(np.array([0.1]), excess, sides), OPEN)
    more = 3 * rng.normal(size=(1, 1, others)), np.full((1, 1, others), 0.3 / max(others, 1))
    members = np.concatenate([more[0], found[0]], axis=-1)
    weights = np.concatenate([more[1], found[1] * (0.7 if others else 1.0)], axis=-1)
    return Tailed(members, weights, sides[:, np.newaxis])


def law(distribution):
    """Threshold and library law of the upper tail, from its points."""
    points, shape = distribution.members[0, 0, -POINTS:], distribution.shape[0, 0, 1]
    unit = stats.genpareto(shape, scale=1 - shape)
    ends = unit.ppf(np.linspace(0, 1, POINTS + 1))
    means = [
        POINTS * integrate.quad(lambda z: z * unit.pdf(z), *ends[k : k + 2])[0] for k in (0, 5)
    ]
    size = (points[5] - points[0]) / (means[1] - means[0])
    threshold = points[0] - size * means[0]
    return threshold, stats.genpareto(shape, loc=threshold, scale=size * (1 - shape))


def cdf(distribution, values):
    return 1 - distribution.exceedance(np.reshape(values, (1, 1, -1)))[0, 0]


@pytest.mark.parametrize("shape", [-0.2, 0.02, 0.1, 0.5])
def test_a_tail_answers_as_the_law_of_the_library(shape):
    forecast = tailed((np.nan, shape))
    mass = forecast.weights[0, 0, -POINTS:].sum()
    threshold, tail = law(forecast)
    shares = np.array([0.9, 0.5, 0.1, 0.01, 1e-4])
    values = tail.isf(shares)
    body = forecast.members[0, 0, :-POINTS] > values[:, np.newaxis]
    above = np.nansum(np.where(body, forecast.weights[0, 0, :-POINTS], 0.0), axis=-1)
    found = forecast.exceedance(values[np.newaxis, np.newaxis])[0, 0]
    np.testing.assert_allclose(found, mass * shares + above, rtol=1e-5)
    far = np.array([0.5, 0.1, 0.01, 1e-4])
    np.testing.assert_allclose(
        forecast.quantile(1 - mass * far)[0, 0] - threshold,
        tail.isf(far) - threshold,
        rtol=1e-5,
    )


@pytest.mark.parametrize("others", [0, 6])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_crps_is_the_integral(shape, others):
    forecast = tailed(shape, others=others)
    points = forecast.members[~np.isnan(forecast.members)]

    def integral(y, low=-5e3, high=5e3):
        ends = np.unique(np.clip([*points, y, -60, 60, -500, 500, low, high], low, high))
        return sum(
            integrate.quad(lambda z: (cdf(forecast, z)[0] - (z >= y)) ** 2, a, b, limit=200)[0]
            for a, b in pairwise(ends)
        )

    for y in (-4.0, -1.1, 0.1, 1.0, 6.0):
        at = np.full((1, 1), y)
        assert forecast.crps(at)[0, 0] == pytest.approx(integral(y), rel=2e-4)
        between = forecast.threshold_weighted_crps(at, -1.4, 2.0)[0, 0]
        assert between == pytest.approx(integral(y, -1.4, 2.0), rel=1e-6)


@given(
    shape=st.sampled_from(SHAPES),
    n=st.integers(1, 60),
    seed=st.integers(0, 99),
    others=st.sampled_from([0, 4]),
)
def test_laws_of_forecasts_with_tails(shape, n, seed, others):
    forecast = tailed(shape, n, seed, others)
    turned = Tailed(-forecast.members, forecast.weights, forecast.shape)
    levels = np.append(np.arange(1, 200) / 200, [0.001, 0.999, 0.0, 1.0])
    found = forecast.quantile(levels)[0, 0]
    assert (np.diff(found[np.argsort(levels)][1:-1]) >= 0).all()
    mirrored = -turned.quantile(1 - levels)[0, 0]
    np.testing.assert_allclose(found, mirrored, rtol=1e-9, atol=1e-9)
    values = np.linspace(-4, 4, 41)
    exceedance = forecast.exceedance(values[np.newaxis, np.newaxis])[0, 0]
    assert (np.diff(exceedance) <= 1e-15).all()
    y, u = np.array([[0.37]]), np.array([[0.2]])
    assert forecast.pit(y, u)[0, 0] == pytest.approx(cdf(forecast, 0.37)[0])
    assert forecast.crps(y)[0, 0] == pytest.approx(turned.crps(-y)[0, 0])
    assert forecast.crps(y)[0, 0] >= 0
    deep = np.array([0.002, 0.01, 0.05]) * (0.7 if others else 1.0)
    for side, tail_levels in enumerate((deep, 1 - deep)):
        if not np.isnan(shape[side]) and forecast.weights[0, 0, -POINTS * (2 - side)] > 0:
            here = forecast.quantile(tail_levels)[0, 0]
            free = ~np.isin(here, forecast.members)  # others than members that lie in the tail
            np.testing.assert_allclose(cdf(forecast, here)[free], tail_levels[free], atol=1e-12)


def test_a_draw_has_a_flat_pit(rng):
    forecast = tailed((0.2, 0.4), n=200)
    draws = forecast.quantile(rng.random(4000))[0, 0]
    shape = (4000, 1, 1)
    many = Tailed(*(np.broadcast_to(a, (4000, *a.shape[1:])) for a in (*forecast, forecast.shape)))
    pit = many.pit(draws.reshape(shape[:2]), rng.random(shape[:2]))
    assert stats.kstest(pit.ravel(), "uniform").pvalue > 0.01


def test_values_may_be_shifted_scaled_and_turned():
    forecast, levels = tailed((0.1, -0.2)), np.array([0.001, 0.02, 0.4, 0.999])
    moved = Tailed(1.8 * forecast.members + 32, forecast.weights, forecast.shape)
    expected = 1.8 * forecast.quantile(levels) + 32
    np.testing.assert_allclose(moved.quantile(levels), expected, rtol=1e-10)


def test_points_that_are_in_no_line_with_a_tail_count_as_members():
    forecast = tailed()
    bent = np.where(forecast.members > 0, forecast.members**3, forecast.members)
    other = Tailed(bent, forecast.weights, forecast.shape)
    wanted = np.array([[[4.0, 20.0]]])
    np.testing.assert_allclose(
        other.exceedance(wanted), Empirical(bent, forecast.weights).exceedance(wanted), atol=1e-15
    )


def test_missing_forecasts_and_observations_have_no_answer():
    forecast = tailed()
    y, nothing = np.zeros((1, 1)), np.full((1, 1), np.nan)
    gone = Tailed(forecast.members, np.full_like(forecast.weights, np.nan), forecast.shape)
    line = Linear(np.array([[[1.0, np.nan]]]), np.array([[[0.5, np.nan]]]))
    for one in (gone, line):
        assert np.isnan(one.crps(y)).all()
        assert np.isnan(one.pit(y, y)).all()
        assert np.isnan(one.quantile(np.array([0.5]))).all()
        assert np.isnan(one.exceedance(y[np.newaxis])).all()
    assert np.isnan(forecast.crps(nothing)).all()
    assert np.isnan(forecast.pit(nothing, y)).all()


@given(
    seed=st.integers(0, 99), n=st.sampled_from([1, 2, 30, 200]), low=st.sampled_from([-9.0, 0.0])
)
def test_laws_of_quantiles_of_equal_mass(seed, n, low):
    rng = np.random.default_rng(seed)
    members = np.maximum(rng.normal(size=(1, 1, n)), low)
    forecast = Linear(members, np.full((1, 1, n), 1 / n))
    middles = (np.arange(n) + 0.5) / n
    np.testing.assert_allclose(forecast.quantile(middles)[0, 0], np.sort(members[0, 0]), atol=1e-12)
    levels = np.linspace(0, 1, 33)
    found = forecast.quantile(levels)
    assert (np.diff(found) >= 0).all()
    inside = (found[0, 0] > members.min()) & (found[0, 0] < members.max())
    np.testing.assert_allclose(cdf(forecast, found)[inside], levels[inside])
    for y in (-1.3, 0.0, 0.4, 5.0):
        at = np.full((1, 1), y)
        ends = np.unique([*members.ravel(), y])
        exact = sum(
            integrate.quad(lambda z, y=y: (cdf(forecast, z)[0] - (z >= y)) ** 2, a, b)[0]
            for a, b in pairwise(ends[:: max(1, ends.size // 40)] if n < 40 else ())
        )
        if n < 40:
            assert forecast.crps(at)[0, 0] == pytest.approx(exact, abs=1e-8)
        halves = [forecast.threshold_weighted_crps(at, *e) for e in ((-np.inf, 0.1), (0.1, np.inf))]
        assert sum(halves)[0, 0] == pytest.approx(forecast.crps(at)[0, 0])
        assert forecast.pit(at, np.ones((1, 1)))[0, 0] == pytest.approx(cdf(forecast, y)[0])
    if n == 1 / WIDTH:
        np.testing.assert_allclose(Tailed(*forecast).quantile(levels), found, atol=1e-12)


def test_members_of_tails_are_found_wherever_they_are(rng):
    forecast = tailed()
    order = rng.permutation(forecast.members.shape[-1] - 2 * POINTS)
    slots = np.arange(2 * POINTS)
    moved = [np.concatenate([a[..., order.size :], a[..., order]], axis=-1) for a in forecast]
    found = continuous(Empirical(*moved), "mean", slots, forecast.shape)
    levels = np.array([0.01, 0.5, 0.99])
    np.testing.assert_allclose(found.quantile(levels), forecast.quantile(levels))
    assert isinstance(continuous(Empirical(*moved), "linear"), Linear)
