"""Numbers at points cover nothing, as they are drawn."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from xrecal.plot.numbers import number_points
from xrecal.plot.style import curves_of, mark_curve

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
CURVES = {
    "apart": [LEVELS + 0.08, LEVELS - 0.08],
    "close": [LEVELS, LEVELS + 0.01],
    "equal": [LEVELS, LEVELS],
    "crossing": [LEVELS**2, 0.2 + 0.6 * LEVELS],
    "three": [LEVELS, LEVELS + 0.05, LEVELS - 0.05],
    "flat": [LEVELS * 0 + 0.3, LEVELS, LEVELS * 0 + 0.31],
    "gaps": [np.where(LEVELS == 0.5, np.nan, LEVELS), LEVELS - 0.02],
}


def draw(curves, levels=LEVELS, size=(4.2, 4.2)):
    _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for k, share in enumerate(curves):
        mark_curve(ax.plot(levels, share, "o-")[0])
        points = [(x, y, 12.34 + k) for x, y in zip(levels, share, strict=True) if np.isfinite(y)]
        number_points(ax, points, f"C{k}")
    return ax


def shown(ax):
    return [text for text in ax.texts if text.get_visible()]


def boxes(ax):
    """What is visible, in pixels, as the renderer draws it."""
    ax.figure.canvas.draw()
    return [text.get_window_extent() for text in shown(ax)]


@pytest.mark.each_value
@pytest.mark.parametrize("size", [(4.2, 4.2), (2.5, 2.5), (9, 5)])
@pytest.mark.parametrize("case", CURVES)
def test_nothing_is_covered(case, size):
    ax = draw(CURVES[case], size=size)
    found = boxes(ax)
    for a, b in itertools.combinations(found, 2):
        assert not a.overlaps(b)
    fine = np.linspace(0.1, 0.9, 2001)
    for curve in curves_of(ax):
        curve = curve[np.isfinite(curve).all(1)]
        drawn = ax.transData.transform(np.column_stack([fine, np.interp(fine, *curve.T)]))
        for box in found:
            inside = (drawn >= box.min) & (drawn <= box.max)
            assert not inside.all(1).any()


def test_all_are_there_where_there_is_room():
    ax = draw(CURVES["apart"])
    assert [t.get_text() for t in shown(ax)] == ["12.3"] * 5 + ["13.3"] * 5
    assert {t.get_color() for t in shown(ax)[5:]} == {"C1"}
    alone = shown(draw(CURVES["apart"][:1]))
    assert all(t.xyann[0] > 0 > t.xyann[1] for t in alone)  # below and to the right


def test_close_curves_have_theirs_on_both_sides():
    ax = draw(CURVES["close"])
    below, above = shown(ax)[:5], shown(ax)[5:]
    assert all(t.xyann[1] < 0 for t in below)
    assert all(t.xyann[1] > 0 for t in above)
    assert len(above) == 5


def test_numbers_without_room_are_left_out():
    ax = draw(CURVES["three"])
    assert 0 < len(shown(ax)) < 15
    assert len(ax.texts) == 15


def test_curves_that_come_later_move_numbers():
    ax = draw([LEVELS])
    before = [t.xyann for t in ax.texts]
    mark_curve(ax.plot(LEVELS, LEVELS - 0.04)[0])
    number_points(ax, [], "k")
    after = [t.xyann for t in shown(ax)]
    assert after[:4] == [(-x, -y) for x, y in before[:4]]
    assert after[4:] == before[4:]  # the curve ends before it


def test_numbers_are_not_on_the_labels_of_the_axis():
    ax = draw([LEVELS * 0 + 0.01])
    drawn = boxes(ax)
    assert len(drawn) == LEVELS.size
    assert all(box.y0 >= ax.get_window_extent().y0 for box in drawn)
