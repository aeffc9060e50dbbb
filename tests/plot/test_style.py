import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from xrecal.plot.style import (
    PALETTE,
    ink,
    legend,
    legend_above,
    mark_curve,
    next_colour,
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


def test_curves_on_the_same_axes_have_different_colours():
    ax = plt.subplots()[1]
    found = []
    for _ in range(len(PALETTE) + 1):
        found.append(next_colour(ax))
        mark_curve(ax.plot([0, 1])[0])
    assert found == [*PALETTE, PALETTE[0]]
    ax.clear()
    assert next_colour(ax) == PALETTE[0]


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
