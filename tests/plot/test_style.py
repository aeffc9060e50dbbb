import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from xrecal.plot.style import (
    PALETTE,
    dress,
    head_room,
    ink,
    is_first,
    legend,
    legend_above,
    mark_curve,
    next_colour,
    reference,
    veil,
)


def luminance(colour):
    """Relative luminance of the Web Content Accessibility Guidelines."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


# Red-green blindness: Viénot, Brettel & Mollon (1999), in linear RGB.
PROTANOPE = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
DEUTERANOPE = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])


@pytest.mark.parametrize("colour", PALETTE)
@pytest.mark.parametrize("background", ["white", "black"])
def test_colours_are_legible(colour, background):
    assert contrast(colour, background) >= 3


@pytest.mark.parametrize("eye", [np.eye(3), PROTANOPE, DEUTERANOPE], ids=["all", "red", "green"])
def test_the_first_colours_differ_for_every_eye(eye):
    seen = [(eye @ np.array(mpl.colors.to_rgb(c)) ** 2.2).clip(0) ** (1 / 2.2) for c in PALETTE[:3]]
    for i in range(3):
        for j in range(i):
            assert np.abs(seen[i] - seen[j]).max() > 0.15


def test_ink_follows_the_background():
    ax = plt.subplots()[1]
    assert mpl.colors.to_rgb(ink(ax)) == (0, 0, 0)
    faint = veil(ax, 0.2)
    with plt.style.context("dark_background"):
        ax = plt.subplots()[1]
        assert mpl.colors.to_rgb(ink(ax)) == (1, 1, 1)
        assert veil(ax, 0.2) > faint
        assert veil(ax, 0.9) <= 1


def test_only_these_axes_are_dressed():
    _, (left, right) = plt.subplots(1, 2)
    dress(left)
    assert not left.spines["top"].get_visible()
    assert right.spines["top"].get_visible()


def test_curves_on_the_same_axes_have_different_colours():
    ax = plt.subplots()[1]
    found = []
    for _ in range(len(PALETTE) + 1):
        found.append(next_colour(ax))
        mark_curve(ax.plot([0, 1])[0])
    assert found == [*PALETTE, PALETTE[0]]
    ax.clear()
    assert next_colour(ax) == PALETTE[0]


def test_references_are_drawn_once():
    ax = plt.subplots()[1]
    assert is_first(ax)
    reference(ax, (0, 1), (0, 1))
    assert not is_first(ax)


# legends ------------------------------------------------------------------------------------------


def drawn(width, labels):
    """Axes with a curve for each label, and a legend above them, as they are laid out."""
    figure, ax = plt.subplots(figsize=(width, 3), layout="constrained")
    for label in labels:
        ax.plot([0, 1], [0, 1], label=label)
    legend_above(ax)
    figure.draw_without_rendering()
    return ax, ax.get_legend().get_window_extent()


LABELS = ["90%", "50%", "median", "raw ensemble", "observed"]


@pytest.mark.parametrize("width", [2.5, 4, 5, 7])
def test_legends_fit_above_what_is_drawn(width):
    ax, box = drawn(width, LABELS)
    assert box.width <= ax.bbox.width
    top = ax.transData.transform((0, 1))[1]
    assert box.y0 > top - 1


def test_wide_axes_have_one_row():
    assert drawn(7, LABELS)[1].height < drawn(4, LABELS)[1].height


@pytest.mark.parametrize("draw", [legend, legend_above])
def test_nothing_without_labels(draw):
    ax = plt.subplots()[1]
    ax.plot([0, 1])
    draw(ax)
    assert ax.get_legend() is None


def test_legends_leave_axes_their_size():
    figure, ax = plt.subplots(figsize=(3, 2), layout="constrained")
    ax.plot([0, 1], label="a label that is much wider than the figure it should be written on")
    for _ in range(2):  # until the layout has settled
        figure.draw_without_rendering()
    before = ax.bbox.width
    legend(ax)
    figure.draw_without_rendering()
    assert ax.bbox.width == before


def test_room_is_a_share_of_the_height():
    ax = plt.subplots()[1]
    ax.set_ylim(2, 4)
    head_room(ax, 0.25)
    assert ax.get_ylim() == (2, 4.5)
