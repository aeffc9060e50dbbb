import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from xrecal.plot.style import (
    PALETTE,
    dress,
    ink,
    is_first,
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
