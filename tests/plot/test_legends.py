import matplotlib.pyplot as plt
import pytest

from xrecal.plot.legends import head_room, legend, legend_above


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
