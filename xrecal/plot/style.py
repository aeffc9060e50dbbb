"""Style of figures: colours, frames, notes and legends, set on each Axes and never globally."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#B8639A", "#8C7A00", "#3A9BD0")
"""Colours for colour-blind readers, legible on white and on black (after Okabe & Ito)."""

GREY = "#808080"

BAND = 0.9
"""Share of calibrated forecasts, or of locations, within a band."""

SMALL = "small"
"""Size of the text in Axes, relative to the user's setting."""

SIZE = (5.0, 3.6)
SQUARE = (4.2, 4.2)

Style: TypeAlias = dict[str, Any]
"""Keyword arguments of matplotlib."""

LETTER, LINE = 0.6, 1.6
"""Mean width of a letter, and height of a row of a legend, as multiples of the font size."""

AROUND = 5
"""Width of the handle and the gaps of a legend entry, in letters."""

MOST = 0.5
"""Largest height of a legend above the drawing, as a share of the height of the Axes."""

_CURVE, _REFERENCE = "xrecal-curve-", "xrecal-reference"


def open_axes(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """The given Axes, or those of a new figure.

    Raises
    ------
    TypeError
        If ``ax`` is not an Axes, but for example the array of Axes that ``plt.subplots`` returns.
    """
    if ax is None:
        return plt.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be one matplotlib Axes, got {type(ax).__name__}; figure, axes = "
            "plt.subplots(1, 2) gives an array of Axes: ax=axes[0]"
        )
    return ax


def ink(ax: Axes) -> Any:
    """Colour of text and observations: dark on light backgrounds, light on dark ones."""
    return ax.xaxis.label.get_color()


def veil(ax: Axes, alpha: float) -> float:
    """Opacity of a filled area: higher on dark backgrounds, which weaken colours."""
    red, green, blue = to_rgb(ink(ax))
    light_ink = 0.3 * red + 0.6 * green + 0.1 * blue > 0.5
    return min(0.6, 1.7 * alpha) if light_ink else alpha


def dress(ax: Axes, *, grid: Literal["y", "both"] | None = "y") -> None:
    """Draw a light frame, small text and a faint grid."""
    colour = ink(ax)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=colour, alpha=0.6, linewidth=0.8)
    ax.tick_params(labelsize=SMALL, length=3, width=0.8, color=colour)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(SMALL)
        axis.offsetText.set(fontsize=SMALL, color=colour)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(axis=grid, color=colour, alpha=0.12, linewidth=0.6)


def note(ax: Axes, text: str, x: float = 0.03, y: float = 0.97) -> None:
    """Write small text on a translucent background, at a position in fractions of the Axes."""
    style: Style = {"ha": "left" if x < 0.5 else "right", "va": "top" if y > 0.5 else "bottom"}
    style |= {"fontsize": "x-small", "color": ink(ax)}
    style["bbox"] = {"facecolor": ax.get_facecolor(), "alpha": 0.75, "lw": 0, "pad": 1.5}
    ax.text(x, y, text, transform=ax.transAxes, **style)


def aside(ax: Axes, text: str) -> None:
    """Write small text above the right end of the Axes."""
    ax.set_title(text, loc="right", fontsize="x-small", color=ink(ax))


def next_colour(ax: Axes) -> str:
    """Colour of the next curve; earlier curves on the same Axes have other colours."""
    return PALETTE[_n_curves(ax) % len(PALETTE)]


def mark_curve(artist: Artist) -> None:
    """Count an artist as a curve of its Axes."""
    axes = artist.axes
    assert isinstance(axes, Axes)
    artist.set_gid(f"{_CURVE}{_n_curves(axes)}")


def is_first(ax: Axes) -> bool:
    """True if the Axes have no reference line yet, such as the diagonal."""
    return not any(artist.get_gid() == _REFERENCE for artist in ax.get_children())


def reference(ax: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """Draw the line of calibrated forecasts, in front of bands and behind curves."""
    (line,) = ax.plot(x, y, color=ink(ax), alpha=0.55, lw=0.9, ls=(0, (4, 3)), zorder=1.9)
    line.set_gid(_REFERENCE)


def reference_height(ax: Axes, y: float) -> None:
    """Draw a horizontal reference line, such as no gain, or the height of a flat histogram."""
    line = ax.axhline(y, color=ink(ax), alpha=0.55, lw=0.9, ls=(0, (4, 3)), zorder=1.9)
    line.set_gid(_REFERENCE)


def curves_of(ax: Axes) -> list[npt.NDArray[np.float64]]:
    """Points (n, 2) of each curve drawn as a line."""
    lines = [line for line in ax.lines if str(line.get_gid()).startswith(_CURVE)]
    return [np.asarray(line.get_xydata(), dtype=np.float64) for line in lines]


def _n_curves(ax: Axes) -> int:
    return sum(str(artist.get_gid()).startswith(_CURVE) for artist in ax.get_children())


def legend(ax: Axes, *, loc: str = "best") -> None:
    """Draw a legend of labelled artists, without an edge, on a translucent background."""
    _legend(ax, loc, 1)


def legend_above(ax: Axes) -> None:
    """Draw a legend above the figure, in as few rows as fit the width of the Axes."""
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
    """Add a margin above the drawing, as a share of the height of the drawing."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + share * (high - low))


def _letters(labels: Sequence[str], n_rows: int) -> int:
    """Width in letters of a legend, which is filled column by column."""
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
