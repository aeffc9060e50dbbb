import math

import numpy as np
import properscoring
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import (
    circular_crps,
    circular_mean,
    circular_members,
    circular_std,
    equal_members,
    on_circle,
)


def angular(a, b, period=360.0):
    """The shorter way around from every a to every b."""
    apart = np.mod(np.subtract.outer(a, b), period)
    return np.minimum(apart, period - apart)


def slow_crps(y, x, w=None, period=360.0):
    """E d(X, y) - E d(X, X') / 2 as double sums; members without value left out."""
    w = np.ones(x.size) if w is None else w
    known = ~np.isnan(x)
    x, w = x[known], w[known] / w[known].sum()
    return w @ angular(x, y, period) - w @ angular(x, x, period) @ w / 2


def slow_mean_std(x, w, period=360.0):
    """Mean direction and Mardia's standard deviation from complex unit vectors."""
    mean = (w * np.exp(2j * np.pi * x / period)).sum() / w.sum()
    spread = math.sqrt(-2 * math.log(min(abs(mean), 1.0)))
    turn = period / (2 * np.pi)
    return np.angle(mean) * turn % period, spread * turn


def slow_members(x, w, n, period=360.0):
    """Smallest member, in order from opposite the mean, with a share of at least each level."""
    known = ~np.isnan(x) & (w > 0)
    x, w = x[known], w[known] / w[known].sum()
    cut = slow_mean_std(x, w, period)[0] + period / 2
    order = np.argsort((x - cut) % period)
    reached = np.cumsum(w[order])
    return [x[order][np.argmax(reached >= (i + 0.5) / n - 1e-12)] for i in range(n)]


def shortest_way(found, expected, period=360.0):
    return angular(np.asarray(found) - expected, 0.0, period)


@pytest.fixture
def cases(rng):
    x = rng.uniform(-400, 800, (30, 9)).round(1)
    return rng.uniform(-400, 800, 30).round(1), x, rng.gamma(1, size=x.shape)


angle = st.floats(0, 360).map(lambda v: round(v, 2))
directions = arrays(np.float64, st.integers(1, 12), elements=angle)
weight = st.floats(0.01, 1).map(lambda v: round(v, 2))


# points ------------------------------------------------------------------------------------------


def test_points_are_on_a_circle_as_long_as_the_period(rng):
    values = rng.uniform(-1000, 1000, (4, 5))
    x, y = on_circle(values, 360)
    np.testing.assert_allclose(np.hypot(x, y), 180 / np.pi, rtol=1e-14)
    np.testing.assert_allclose(shortest_way(np.degrees(np.arctan2(y, x)), values), 0, atol=1e-11)
    np.testing.assert_allclose(
        on_circle(np.array([0.0, 90.0]), 360), [[180 / np.pi, 0], [0, 180 / np.pi]], atol=1e-13
    )


def test_turns_are_one_direction_and_what_is_not_finite_has_none():
    turns = on_circle(np.array([350.0, -10.0, 710.0]), 360)
    np.testing.assert_array_equal(turns, turns[:, :1] * np.ones(3))
    assert np.isnan(on_circle(np.array([np.nan, np.inf, -np.inf]), 360)).all()
    assert on_circle(np.float32(3.0), 360).dtype == np.float64
    assert on_circle(np.float32(3.0), 360).shape == (2,)


# CRPS --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [360.0, 2 * np.pi, 24.0])
def test_crps_equals_double_sums(cases, period):
    y, x, w = cases
    expected = [slow_crps(*case, period=period) for case in zip(y, x, strict=True)]
    found = circular_crps(y, x, period=period)
    np.testing.assert_allclose(found, expected, atol=1e-13 * period)
    expected = [slow_crps(*case, period=period) for case in zip(y, x, w, strict=True)]
    found = circular_crps(y, x, w, period=period)
    np.testing.assert_allclose(found, expected, atol=1e-13 * period)
    many = circular_crps(y[:5], x[:, np.newaxis], period=period)
    assert many.shape == (30, 5)
    assert many[7, 3] == pytest.approx(slow_crps(y[3], x[7], period=period))


@given(arrays(np.float64, (6, 7), elements=st.floats(-89, 89)), st.floats(-720, 720))
def test_crps_is_the_linear_one_within_half_a_turn(values, shift):
    y, x = values[:, 0], values[:, 1:]
    found = circular_crps((y + shift) % 360, (x + shift) % 360, period=360)
    np.testing.assert_allclose(found, properscoring.crps_ensemble(y, x), atol=1e-11)


@given(directions, angle, st.floats(-360, 360))
def test_crps_does_not_change_with_rotation_reflection_or_unit(x, y, shift):
    expected = circular_crps(y, x, period=360)
    assert 0 <= expected <= 180
    assert circular_crps(y + shift, x + shift, period=360) == pytest.approx(expected, abs=1e-10)
    assert circular_crps(-y, -x, period=360) == pytest.approx(expected, abs=1e-11)
    radians = circular_crps(np.radians(y), np.radians(x), period=2 * np.pi)
    assert math.degrees(radians) == pytest.approx(expected, abs=1e-11)


# mean and standard deviation ---------------------------------------------------------------------


def test_mean_and_std_equal_scipy(rng):
    x = rng.vonmises(1.0, 1.5, (40, 12)) * 180 / np.pi + 360 * rng.integers(-2, 3, (40, 12))
    expected = scipy.stats.circmean(x, high=360, axis=-1)
    np.testing.assert_allclose(circular_mean(x, period=360), expected, atol=1e-10)
    expected = scipy.stats.circstd(x, high=360, axis=-1)
    np.testing.assert_allclose(circular_std(x, period=360), expected, rtol=1e-9)
    counts = rng.integers(1, 4, 12)
    repeated = np.repeat(x, counts, axis=-1)
    found = circular_mean(x, np.broadcast_to(0.7 * counts, x.shape), period=360)
    np.testing.assert_allclose(found, scipy.stats.circmean(repeated, high=360, axis=-1), atol=1e-10)
    found = circular_std(x, 0.7 * counts, period=360)
    np.testing.assert_allclose(found, scipy.stats.circstd(repeated, high=360, axis=-1), rtol=1e-9)


@pytest.mark.parametrize("period", [360.0, 2 * np.pi, 24.0])
def test_weighted_mean_and_std_as_complex_numbers(cases, period):
    _, x, w = cases
    expected = np.array([slow_mean_std(*case, period) for case in zip(x, w, strict=True)])
    found = circular_mean(x, w, period=period)
    np.testing.assert_allclose(shortest_way(found, expected[:, 0], period), 0, atol=1e-11)
    np.testing.assert_allclose(circular_std(x, w, period=period), expected[:, 1], rtol=1e-10)


@given(directions, st.floats(-1000, 1000))
def test_mean_turns_with_the_members_and_stays_in_one_turn(x, shift):
    mean, std = circular_mean(x, period=360), circular_std(x, period=360)
    assume(std < 150)  # a mean vector that is not much shorter than rounding
    found = circular_mean(x + shift, period=360)
    assert 0 <= found < 360
    assert shortest_way(found, mean + shift) == pytest.approx(0, abs=1e-8)
    assert circular_std(x + shift, period=360) == pytest.approx(std, abs=1e-8)
    assert shortest_way(circular_mean(-x, period=360), -mean) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("half", [1e-9, 1e-3, 20.0, 89.0])
def test_std_of_two_members_has_all_digits(half):
    x = 170 + np.array([-half, half])
    spread = math.degrees(math.sqrt(-math.log1p(-(math.sin(math.radians(half)) ** 2))))
    rounding = 1e-13 / half  # of the members themselves
    assert circular_std(x, period=360) == pytest.approx(spread, rel=1e-11 + rounding)
    assert circular_mean(x, period=360) == pytest.approx(170, rel=1e-14)
    assert circular_std(np.full(3, 137.2), period=360) < 1e-13


def test_opposite_members_have_no_mean():
    x = np.array([[10.0, 190.0, 37.0], [0.0, 120.0, 240.0], [10.1, 190.1, 10.1]])
    w = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.5, 1.0, 0.5]])
    assert np.isnan(circular_mean(x, w, period=360)).all()
    assert np.isnan(circular_std(x, w, period=360)).all()
    assert np.isnan(circular_mean(x.astype("f4"), w, period=360)).all()
    w[:, 0] += 1e-6
    np.testing.assert_allclose(circular_mean(x, w, period=360), [10, 0, 10.1], atol=1e-6)
    w[0] = [1.0, 1.0, 1e-6]
    assert circular_mean(x[0], w[0], period=360) == pytest.approx(37, abs=1e-6)


def test_mean_is_below_the_period():
    x = np.array([[-1e-20, -1e-20], [359.9, 0.1], [360.0, 720.0], [0.0, 0.0]])
    found = circular_mean(x, period=360)
    assert ((found >= 0) & (found < 360)).all()
    np.testing.assert_allclose(shortest_way(found, 0.0), 0, atol=1e-12)


# members -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 9, 30])
def test_members_are_quantiles_from_opposite_the_mean(cases, n):
    _, x, w = cases
    x[5, 2], w[6, 3], x[7, 4], w[7, 4] = np.nan, 0.0, np.nan, np.nan
    expected = [slow_members(a, np.nan_to_num(b), n) for a, b in zip(x, w, strict=True)]
    np.testing.assert_array_equal(circular_members(x, w, n, period=360), expected)
    shared = circular_members(x[:3], np.abs(w.reshape(3, 10, 9)), n, period=360)
    assert shared.shape == (3, 10, n)
    assert shared[1, 4].tolist() == slow_members(x[1], w[14], n)


@given(
    arrays(np.float64, 8, elements=st.floats(-89, 89).map(lambda v: round(v, 2))),
    arrays(np.float64, 8, elements=weight),
    st.integers(1, 20),
    st.integers(-3, 3),
)
def test_members_within_half_a_turn_are_those_of_a_line(x, weights, n, turns):
    expected = equal_members(x, n, weights)
    found = circular_members(x + 360 * turns, weights, n, period=360)
    np.testing.assert_allclose(found - 360 * turns, expected, atol=1e-11)
    found = circular_members((x + 180) % 360, weights, n, period=360)
    np.testing.assert_allclose(found - 180, expected, atol=1e-11)


def test_a_member_opposite_the_mean_comes_first_whatever_the_rounding(rng):
    x = np.array([0.0, 90, 180, 270])
    w = np.array([0.7, 0.1, 0.1, 0.1])
    for shift in rng.uniform(0, 360, 50):
        found = circular_members(x + shift, w, 10, period=360) - shift
        np.testing.assert_allclose(found, [180, 270, *[0] * 7, 90], atol=1e-12)


def test_rounding_of_weights_moves_no_member(rng):
    x, counts = rng.uniform(0, 360, (500, 10)), rng.integers(1, 4, (500, 10))
    for n in (5, 10):
        expected = circular_members(x, counts, n, period=360)
        np.testing.assert_array_equal(circular_members(x, counts * 0.1, n, period=360), expected)


def test_members_begin_at_zero_without_a_mean():
    x = np.array([190.0, -80.0, 10.0, 100.0])
    found = circular_members(x, None, 4, period=360)
    np.testing.assert_array_equal(found, [10, 100, 190, -80])


# inputs and errors -------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [0, -360.0, np.nan, np.inf, np.array([360.0])])
def test_periods_that_are_none(cases, period):
    y, x, w = cases
    for call in (
        lambda: on_circle(x, period),
        lambda: circular_crps(y, x, period=period),
        lambda: circular_mean(x, w, period=period),
        lambda: circular_std(x, w, period=period),
        lambda: circular_members(x, w, 3, period=period),
    ):
        with pytest.raises(
            ValueError, match=r"period must be a positive number, got .* in degrees"
        ):
            call()


def test_errors(cases):
    y, x, w = cases
    with pytest.raises(ValueError, match="weights must not be negative"):
        circular_crps(y, x, -w, period=360)
    with pytest.raises(ValueError, match=r"shape \(30,\), but the forecasts need \(3, 10\)"):
        circular_crps(y, x[:3], w.reshape(3, 10, 9), period=360)
    with pytest.raises(ValueError, match=r"weights of shape \(3, 10, 9\) do not fit members of"):
        circular_crps(y, x, w.reshape(3, 10, 9), period=360)
    with pytest.raises(ValueError, match=r"weights of shape \(3, 10, 9\) do not fit members of"):
        circular_mean(x, w.reshape(3, 10, 9), period=360)
    for wrong in (0, 2.5, "3"):
        with pytest.raises(ValueError, match=r"n_members is .*; give a whole number from 1"):
            circular_members(x, w, wrong, period=360)
