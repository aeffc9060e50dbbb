"""How figures look: colours, and what is set on each Axes, never globally."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#B8639A", "#8C7A00", "#3A9BD0")
"""Apart for colour-blind readers too, and legible on white and on black (after Okabe & Ito)."""

GREY = "#808080"

BAND = 0.9
"""Share of calibrated forecasts, or of locations, within a band."""

SMALL = "small"
"""Size of the text in an Axes, relative to that of the user."""

SIZE = (5.0, 3.6)
SQUARE = (4.2, 4.2)

Style: TypeAlias = dict[str, Any]
"""Keyword arguments of matplotlib."""

_CURVE, _REFERENCE = "xrecal-curve-", "xrecal-reference"


def open_axes(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """The Axes that were given, or those of a new figure.

    Raises
    ------
    TypeError
        If it is no Axes, such as the array of all that ``plt.subplots`` returns.
    """
    if ax is None:
        return plt.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be one matplotlib Axes, got {type(ax).__name__}; figure, axes = "
            "plt.subplots(1, 2) gives an array of them: ax=axes[0]"
        )
    return ax


def ink(ax: Axes) -> Any:
    """Colour of text and observations: dark on light backgrounds, light on dark ones."""
    return ax.xaxis.label.get_color()


def veil(ax: Axes, alpha: float) -> float:
    """Opacity of a filled area: more on dark backgrounds, where colours lose more."""
    red, green, blue = to_rgb(ink(ax))
    light_ink = 0.3 * red + 0.6 * green + 0.1 * blue > 0.5
    return min(0.6, 1.7 * alpha) if light_ink else alpha


def dress(ax: Axes, *, grid: Literal["y", "both"] | None = "y") -> None:
    """Light frame, small text and a faint grid."""
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
    """Small text in a corner, in parts of the Axes."""
    place: Style = {"ha": "left" if x < 0.5 else "right", "va": "top" if y > 0.5 else "bottom"}
    ax.text(x, y, text, transform=ax.transAxes, fontsize="x-small", color=ink(ax), **place)


def aside(ax: Axes, text: str) -> None:
    """Small text above the right end of the Axes."""
    ax.set_title(text, loc="right", fontsize="x-small", color=ink(ax))


def next_colour(ax: Axes) -> str:
    """Colour of the next curve, so that a second call on the same Axes can be told apart."""
    return PALETTE[_n_curves(ax) % len(PALETTE)]


def mark_curve(artist: Artist) -> None:
    """Count an artist as a curve of its Axes."""
    axes = artist.axes
    assert isinstance(axes, Axes)
    artist.set_gid(f"{_CURVE}{_n_curves(axes)}")


def is_first(ax: Axes) -> bool:
    """Whether references, such as the diagonal, still have to be drawn."""
    return not any(artist.get_gid() == _REFERENCE for artist in ax.get_children())


def reference(ax: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """The line of calibrated forecasts, in front of bands and behind curves."""
    (line,) = ax.plot(x, y, color=ink(ax), alpha=0.55, lw=0.9, ls=(0, (4, 3)), zorder=1.9)
    line.set_gid(_REFERENCE)


def reference_height(ax: Axes, y: float) -> None:
    """A level line of no gain, or of a flat histogram."""
    line = ax.axhline(y, color=ink(ax), alpha=0.55, lw=0.9, ls=(0, (4, 3)), zorder=1.9)
    line.set_gid(_REFERENCE)


def curves_of(ax: Axes) -> list[npt.NDArray[np.float64]]:
    """Points (n, 2) of each curve that is a line."""
    lines = [line for line in ax.lines if str(line.get_gid()).startswith(_CURVE)]
    return [np.asarray(line.get_xydata(), dtype=np.float64) for line in lines]


def _n_curves(ax: Axes) -> int:
    return sum(str(artist.get_gid()).startswith(_CURVE) for artist in ax.get_children())
