"""Legends that leave the Axes their size, and what is drawn uncovered."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from .style import SMALL, Style

LETTER, LINE = 0.6, 1.6
"""Mean width of a letter and height of a row, in sizes of the font."""

AROUND = 5
"""Letters as wide as the handle of an entry and the gaps around it."""

MOST = 0.5
"""Room above, at most, in parts of the height of the Axes."""


def legend(ax: Axes, *, loc: str = "best") -> None:
    """Legend of what has a label, without an edge, on a veil over what it covers."""
    _legend(ax, loc, 1)


def legend_above(ax: Axes) -> None:
    """Legend above all that is drawn, in as few rows as fit the width of the Axes."""
    labels = ax.get_legend_handles_labels()[1]
    size = FontProperties(size=SMALL).get_size_in_points() / 72
    inches = ax.bbox.transformed(ax.figure.dpi_scale_trans.inverted())
    most = max(1, len(labels))
    fits = (n for n in range(1, most) if _letters(labels, n) * LETTER * size <= inches.width)
    n_rows = next(fits, most)
    share = min(MOST, LINE * n_rows * size / inches.height)
    head_room(ax, share / (1 - share))
    _legend(ax, "upper left", -(-most // n_rows))


def head_room(ax: Axes, share: float) -> None:
    """Room above all that is drawn, in parts of its height."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + share * (high - low))


def _letters(labels: Sequence[str], n_rows: int) -> int:
    """Width of a legend, which is filled column by column, in letters."""
    columns = (labels[i : i + n_rows] for i in range(0, len(labels), n_rows))
    return sum(max(map(len, column)) + AROUND for column in columns)


def _legend(ax: Axes, loc: str, n_columns: int) -> None:
    if not ax.get_legend_handles_labels()[1]:
        return
    options: Style = {
        "loc": loc,
        "ncols": n_columns,
        "edgecolor": "none",
        "framealpha": 0.75,
        "fontsize": SMALL,
        "handlelength": 1.4,
        "handletextpad": 0.5,
        "columnspacing": 1.2,
        "labelspacing": 0.35,
        "borderaxespad": 0.3,
    }
    ax.legend(**options).set_in_layout(False)
