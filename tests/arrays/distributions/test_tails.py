"""Generalised Pareto tails in place of the outer members."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from xrecal.arrays.distributions.tails import (
    HEAVIEST,
    MOST,
    POINTS,
    PSEUDO,
    SHAPE,
    THINNEST,
    Tails,
    _put_back,
    fit_tails,
    mass_of,
    with_exceedances,
    with_tails,
)

OPEN = np.array([[-np.inf, np.inf]])


def tails(mass, excess, shape=(0.1, 0.1)):
    """Tails of one location."""
    return Tails(np.array([mass]), np.array([excess], float), np.array([shape], float))


def slow(members, weights, mass, excess, shape, low, high):
    """Members and weights of one forecast with its upper tail, from the definition."""
    members, weights = members.copy(), weights.copy()
    inside = (members > low) & (members < high) & (weights > 0)
    total = weights[inside].sum()
    mean = (weights * members)[inside].sum() / total
    spread = np.sqrt((weights * (members - mean) ** 2)[inside].sum() / total)
    left, threshold = mass * total, np.nan
    for i in sorted(np.flatnonzero(inside), key=lambda i: -members[i]):
        part = min(left, weights[i])
        if part > 0:
            threshold = members[i]
        weights[i] -= part
        left -= part
    tail = stats.genpareto(shape, scale=spread * excess * (1 - shape))
    edges = tail.ppf(np.linspace(0, 1, POINTS + 1))
    points = [
        POINTS * integrate.quad(lambda z: z * tail.pdf(z), a, b)[0] for a, b in pairwise(edges)
    ]
    return weights, threshold + np.array(points), np.full(POINTS, mass * total / POINTS)


@pytest.mark.parametrize("low", [-np.inf, 0.0])
@pytest.mark.parametrize("shape", [-0.15, 0.0, 0.3])
def test_an_upper_tail_is_that_of_the_definition(rng, low, shape):
    members = np.maximum(rng.normal(size=30), low)
    weights = rng.random(30) * (rng.random(30) > 0.3)
    weights /= weights.sum()
    expected, points, mass = slow(members, weights, 0.08, 1.3, shape, low, np.inf)
    found = with_tails(
        members[np.newaxis, np.newaxis],
        weights[np.newaxis, np.newaxis],
        tails(0.08, (np.nan, 1.3), (np.nan, shape)),
        np.array([[low, np.inf]]),
    )
    np.testing.assert_array_equal(found[0][0, 0, :30], members)
    np.testing.assert_allclose(found[1][0, 0, :30], expected, atol=1e-15)
    assert np.isnan(found[0][0, 0, 30 : 30 + POINTS]).all()
    assert (found[1][0, 0, 30 : 30 + POINTS] == 0).all()
    np.testing.assert_allclose(found[0][0, 0, -POINTS:], points, rtol=2e-4)
    np.testing.assert_allclose(found[1][0, 0, -POINTS:], mass)


def test_a_lower_tail_is_the_upper_one_mirrored(rng):
    members, weights = rng.normal(size=(2, 3, 20)), np.full((2, 3, 20), 0.05)
    some = Tails(np.full(2, 0.1), np.tile([0.7, 1.2], (2, 1)), np.tile([0.2, -0.1], (2, 1)))
    turned = some._replace(excess=some.excess[:, ::-1], shape=some.shape[:, ::-1])
    bounds = np.tile(OPEN, (2, 1))
    there, mass = with_tails(members, weights, some, bounds)
    back, same = with_tails(-members, weights, turned, bounds)
    order = [*range(20), *range(20 + POINTS, 20 + 2 * POINTS), *range(20, 20 + POINTS)]
    np.testing.assert_allclose(back, -there[..., order], rtol=1e-12)
    np.testing.assert_allclose(same, mass[..., order], atol=1e-15)


@given(
    members=st.lists(st.floats(-50, 50), min_size=1, max_size=25),
    seed=st.integers(0, 99),
    low=st.sampled_from([-np.inf, 0.0]),
    missing=st.booleans(),
)
def test_mass_stays_and_bounds_hold(members, seed, low, missing):
    rng = np.random.default_rng(seed)
    x = np.maximum(np.array(members), low)[np.newaxis, np.newaxis]
    w = rng.random(x.shape) + 0.01
    w /= w.sum()
    if missing:
        w[:] = np.nan
    bounds = np.array([[low, np.inf]])
    excess = (np.nan if low == 0 else 0.8, 0.9)
    found, mass = with_tails(x, w, tails(0.1, excess), bounds)
    assert found.shape == mass.shape == (1, 1, x.shape[-1] + 2 * POINTS)
    if missing:
        assert np.isnan(mass).all()
        return
    assert mass.sum() == pytest.approx(1)
    assert (mass >= 0).all()
    assert (found[mass > 0] >= low).all()
    tail = mass[..., -2 * POINTS :].sum()
    assert tail == pytest.approx(0.1 * w[(x > low)].sum() * (1 if low == 0 else 2))


def test_probability_weighted_moments_are_those_of_the_formula(rng):
    x = np.sort(rng.exponential(size=25))
    above = 1 - (np.arange(1, 26) - 0.35) / 25
    a0, a1 = x.mean(), (above * x).mean()
    expected = 2 - a0 / (a0 - 2 * a1)
    gaps = np.append(x, [np.nan] * 4)[rng.permutation(29)]
    found = with_exceedances(
        np.array([0.1]), np.stack([gaps, gaps])[np.newaxis], np.array([[True, False]])
    )
    expected = np.clip((25 * expected + PSEUDO * SHAPE) / (25 + PSEUDO), THINNEST, HEAVIEST)
    np.testing.assert_allclose(found.shape[0, 0], expected)
    np.testing.assert_allclose(found.excess[0, 0], a0)


def test_errors_on_a_bound_and_missing_ones_do_not_count(rng):
    errors = rng.normal(size=200)
    gaps = np.concatenate([errors, [-np.inf] * 50, [np.nan] * 30])[rng.permutation(280)]
    sides = np.array([[False, True]])
    one, other = fit_tails(errors[np.newaxis], sides), fit_tails(gaps[np.newaxis], sides)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b)
    number = int(np.ceil(MOST * 200))
    descending = np.sort(errors)[::-1]
    expected = (descending[:number] - descending[number]).mean() / errors.std()
    assert other.excess[0, 1] == pytest.approx(expected)


@pytest.mark.parametrize("errors", [np.zeros(30), np.full(30, np.nan), np.zeros(1)])
def test_without_errors_that_differ_there_is_no_tail(errors):
    found = fit_tails(errors[np.newaxis], np.array([[True, True]]))
    assert np.isnan(found.excess).all()
    _, weights = with_tails(np.ones((1, 1, 4)), np.full((1, 1, 4), 0.25), found, OPEN)
    assert (weights[..., -2 * POINTS :] == 0).all()
    assert weights.sum() == 1


def test_a_tail_is_a_tenth_of_few_cases_and_a_twentieth_of_many():
    assert mass_of(np.array([0, 20, 500, 700, 1000, 9000])).round(4).tolist() == [
        0.1, 0.1, 0.1, 0.0714, 0.05, 0.05,
    ]  # fmt: skip


def test_libraries_without_a_way_to_put_back_sort_again(rng):
    values = rng.normal(size=(3, 7))
    order = np.argsort(rng.normal(size=(3, 7)), -1)

    class Bare:
        take_along_axis, argsort = staticmethod(np.take_along_axis), staticmethod(np.argsort)

    np.testing.assert_array_equal(_put_back(np, values, order), _put_back(Bare, values, order))
    np.testing.assert_array_equal(
        np.take_along_axis(_put_back(np, values, order), order, -1), values
    )


def test_forecasts_count_by_their_spreads(rng):
    spread = rng.uniform(0.1, 3.0, size=(1, 1, 4000))
    far = spread[0, 0] * rng.exponential(0.7, size=4000)
    beyond = np.stack([np.full(4000, np.nan), far / spread[0, 0]])[np.newaxis]
    sides = np.array([[False, True]])
    found = with_exceedances(np.array([0.05]), beyond, sides, spread)
    assert found.excess[0, 1] == pytest.approx(far.sum() / spread.sum())
    assert found.shape[0, 1] == pytest.approx(0.0, abs=0.1)
    alike = with_exceedances(np.array([0.05]), beyond, sides, np.full_like(spread, 2.0))
    for a, b in zip(alike, with_exceedances(np.array([0.05]), beyond, sides), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_forecasts_without_a_spread_but_for_rounding_tell_little(rng):
    beyond = np.full((1, 2, 100), np.nan)
    beyond[0, 1, :50] = rng.exponential(size=50)
    beyond[0, 1, 50:] = 0.3 / 1e-14
    spread = np.where(np.arange(100) < 50, 1.0, 1e-14)[np.newaxis, np.newaxis]
    found = with_exceedances(np.array([0.1]), beyond, np.array([[False, True]]), spread)
    assert found.excess[0, 1] == pytest.approx((beyond[0, 1, :50].sum() + 50 * 0.3) / 50)
