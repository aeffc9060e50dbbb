"""When smaller ridges are not worth trying: losses whose course is known."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from xrecal.arrays.ckme.ridge_stopping import (
    APART,
    FAR,
    GRID,
    HARDLY,
    NEAR,
    falls_fast,
    gains_hardly,
    settles,
    to_beat,
)

NONE = np.array([np.inf])


def one(*values):
    """Losses of one support."""
    return [np.array([value]) for value in values]


@given(
    st.floats(0.5, 1.5),
    st.floats(0.001, 0.2),
    st.floats(-6, 2),
    st.integers(2, 12),
)
def test_what_settles_on_a_convex_curve_gains_hardly_anything(base, bend, vertex, at):
    curve = base * (1 + bend * (GRID[::-1] - vertex) ** 2)  # from large to small ridges
    before, losses, now = (curve[at - 2 + i : at - 1 + i] for i in range(3))
    smallest = curve[: at + 1].min(keepdims=True)
    if settles(before, losses, now, smallest):
        assert curve[at + 1 : at + 2].min(initial=np.inf) > smallest * (1 - HARDLY) - 1e-12
    elif now < losses:  # still falling by what matters
        assert 2 * now - losses <= smallest * (1 - HARDLY)
    else:
        assert now <= smallest * (1 + NEAR) or 3 * now - 2 * losses <= smallest


def test_a_plateau_before_a_fall_does_not_settle():
    assert not settles(*one(1.0, 1.0, 1.0), np.array([1.0]))
    assert not settles(*one(1.0, 0.9999, 0.9997), np.array([0.9997]))
    assert settles(*one(1.0, 0.9997, 0.9996), np.array([0.9996]))


def test_of_two_losses_only_what_is_not_near_settles():
    assert not settles(NONE, *one(1.0, 1.0), np.array([1.0]))
    assert settles(NONE, *one(1.021, 1.02), np.array([1.0]))
    assert not settles(NONE, *one(1.04, 1.02), np.array([1.0]))


def test_all_supports_must_settle():
    before, losses, now = np.array([2.0, 1.0]), np.array([1.5, 1.0]), np.array([1.4, 1.0])
    assert settles(before[:1], losses[:1], now[:1], np.array([1.0]))
    assert not settles(before, losses, now, np.array([1.0]))


@given(st.floats(0.2, 0.999), st.floats(0.01, 1.0), st.integers(1, 8))
def test_a_geometric_series_is_followed_if_its_limit_is_smaller(ratio, limit, at):
    path = limit + (1 - limit) * ratio ** np.arange(at, at + 3)
    smallest = np.array([0.7])
    assume(abs(limit - 0.7) > 1e-3)
    before, losses, now = path[:1], path[1:2], path[2:]
    followed = falls_fast(before, losses, now, -3.0, smallest)
    ahead = now * (now / losses) ** 6  # six steps to the smallest ridge
    expected = now < (1 - FAR) * losses and limit < 0.7 and ahead < 0.7
    assert followed == expected


def test_two_losses_are_followed_if_the_smallest_ridge_would_do():
    assert falls_fast(NONE, *one(1.5, 1.4), -3.0, np.array([1.0]))  # 1.4 * (1.4 / 1.5)^6 = 0.93
    assert not falls_fast(NONE, *one(1.5, 1.4), -3.0, np.array([0.9]))
    assert not falls_fast(NONE, *one(1.5, 1.47), -3.0, np.array([1.46]))


def test_losses_of_many_locations():
    rng = np.random.default_rng(0)
    before, losses, now = 1 + rng.uniform(size=(3, 50, 4))
    smallest = np.minimum(np.minimum(before, losses), now).min(1, keepdims=True)
    for rule in (lambda *known: falls_fast(*known[:3], -3.0, known[3]), settles):
        found = rule(before, losses, now, smallest)
        each = [rule(*parts) for parts in zip(before, losses, now, smallest, strict=True)]
        np.testing.assert_array_equal(found, each)
        assert 0 < found.sum() < 50 or rule is settles
    assert gains_hardly(losses, now, smallest).shape == (50, 4)


def test_a_support_far_from_the_best_must_beat_that_one():
    losses = np.array([2.0, 2 * (1 + APART) - 1e-9, 2 * (1 + APART) + 1e-9, 50.0, np.inf])
    np.testing.assert_array_equal(to_beat(losses), [*losses[:2], 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(to_beat(np.full(3, np.inf)), np.inf)
