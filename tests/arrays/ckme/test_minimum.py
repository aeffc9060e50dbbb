"""Minima of losses whose minimum is known."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from xrecal.arrays.ckme.minimum import REFINEMENTS, golden_section, parabola


class Counted:
    """A loss that counts how often it was asked."""

    def __init__(self, loss):
        self.loss, self.count = loss, 0

    def __call__(self, point):
        self.count += 1
        return self.loss(point)


@given(st.floats(-0.25, 0.5), st.floats(0.1, 10), st.floats(-3, 3))
def test_the_vertex_of_a_parabola(vertex, bend, middle):
    loss = Counted(lambda point: bend * (point - middle - vertex) ** 2)
    assert parabola(loss, middle, loss.loss(middle), 0.5) == pytest.approx(middle + vertex)
    assert loss.count == 2


@pytest.mark.parametrize(("slope", "expected"), [(1.0, -0.25), (-1.0, 0.5), (0.0, 0.0)])
@pytest.mark.parametrize("bend", [0.0, 0.5, -0.1])
def test_never_beyond_the_outer_points(slope, expected, bend):
    def loss(point):
        return slope * point + bend * point**2

    if slope or bend >= 0:
        assert parabola(loss, 0.0, loss(0.0), 0.5) == pytest.approx(expected)
    assert -0.25 <= parabola(loss, 0.0, loss(0.0), 0.5) <= 0.5


def test_losses_that_are_infinite_keep_the_middle():
    assert parabola(lambda _: math.inf, 1.0, math.inf, 0.5) == 1.0
    assert parabola(lambda _: math.inf, 1.0, 2.0, 0.5) == 1.0


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


def test_golden_section_stays_where_nothing_is_better():
    assert golden_section(abs, 0.0, 0.0, 0.5) == 0.0
