"""When smaller ridges are not worth trying, and minima: losses whose course is known."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from xrecal.arrays.ckme.ridge_rules import (
    APART,
    FAR,
    GRID,
    GRID_STEP,
    HARDLY,
    NEAR,
    REFINEMENTS,
    falls_fast,
    golden_section,
    reference_loss,
    settles,
    vertex,
)


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
    if settles([before, losses, now], smallest):
        assert curve[at + 1 : at + 2].min(initial=np.inf) > smallest * (1 - HARDLY) - 1e-12
    elif now < losses:  # still falling by what matters
        assert 2 * now - losses <= smallest * (1 - HARDLY)
    else:
        assert now <= smallest * (1 + NEAR) or 3 * now - 2 * losses <= smallest


@given(st.floats(0.2, 1.0), st.floats(0.05, 2.0), st.sampled_from(GRID.tolist()))
def test_a_loss_is_followed_if_what_it_fell_goes_on(ratio, now, exponent):
    ahead = now * ratio ** round((exponent - GRID[0]) / GRID_STEP)  # at the smallest ridge
    assume(abs(ahead - 0.5) > 1e-6 and abs(ratio - (1 - FAR)) > 1e-6)
    followed = falls_fast(one(now / ratio, now), exponent, np.array([0.5]))
    assert followed == (ratio < 1 - FAR and ahead < 0.5)


@pytest.mark.parametrize("best", [2.3083, 1.6515])
def test_very_precise_forecasts_are_followed_to_small_ridges(best):
    """Losses of past observations on naval, which end far below those of past errors."""
    assert falls_fast(one(10.63, 6.04, 4.26), -2.5, np.array([best]))


def test_a_support_far_from_the_best_must_beat_that_one():
    losses = np.array([2.0, 2 * (1 + APART) - 1e-9, 2 * (1 + APART) + 1e-9, 50.0, np.inf])
    np.testing.assert_array_equal(reference_loss(losses), [*losses[:2], 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(reference_loss(np.full(3, np.inf)), np.inf)


class Counted:
    """A loss that counts how often it was asked."""

    def __init__(self, loss):
        self.loss, self.count = loss, 0

    def __call__(self, point):
        self.count += 1
        return self.loss(point)


@given(st.floats(-0.5, 0.5), st.floats(0.1, 10), st.integers(1, GRID.size - 2))
def test_the_vertex_of_a_parabola(away, bend, at):
    middle = GRID[at]
    losses = {x: 1 + bend * (x - middle - away * GRID_STEP) ** 2 for x in GRID.tolist()}
    assert vertex(losses, middle) == pytest.approx(middle + away * GRID_STEP)


@given(st.floats(-0.3, 0.3), st.floats(1, 4))
def test_golden_section_comes_as_close_as_it_says(vertex, power):
    def plain(point):
        return abs(point - vertex) ** power + 0.1 * (point - vertex)

    loss = Counted(plain)
    found = golden_section(loss, 0.0, loss.loss(0.0), 0.5)
    assert loss.count == REFINEMENTS
    known = minimize_scalar(plain, bounds=(-0.5, 0.5), method="bounded", options={"xatol": 1e-6})
    assert plain(found) <= plain(0.0)
    if plain(known.x) < min(plain(0.0), plain(0.5), plain(-0.5)):
        assert abs(found - known.x) < 0.06
