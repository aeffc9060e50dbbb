"""Numbers at the points of curves, placed without covering curves or other numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from .reading import Floats
from .style import Style, curves_of

SIZE = "x-small"

_NUMBER = "xrecal-number"

AWAY = 5
"""Distance between a number and its point on the curve, along both axes, in typographic points."""

LETTER = 0.65
"""Width of a digit, as a multiple of the font size."""

MARGIN = 1
"""Margin around a number, in typographic points."""


def number_points(ax: Axes, points: Iterable[tuple[float, float, float]], colour: object) -> None:
    """Write the third number of each triple at the point (first, second), on Axes from 0 to 1.

    A number is below and to the right of its point, or above and to the left if the first position
    is not free. The function hides a number if a curve, another number or the end of the Axes is in
    the way at both positions. It moves or hides numbers of earlier calls, too.
    """
    for x, y, value in points:
        style: Style = {"textcoords": "offset points", "fontsize": SIZE, "color": colour}
        text = ax.annotate(f"{value:.3g}", (x, y), (AWAY, -AWAY), **style)
        text.set_gid(_NUMBER)
    _arrange(ax)


def _arrange(ax: Axes) -> None:
    """Move each number of the Axes to a free position, or hide it."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    unit = 72 / figure.dpi * min(ax.bbox.width, ax.bbox.height)
    curves = [unit * points[np.isfinite(points).all(1)] for points in curves_of(ax)]
    curves = [points for points in curves if len(points)]
    taken: list[Bbox] = []
    numbers = [t for t in ax.texts if isinstance(t, Annotation) and t.get_gid() == _NUMBER]
    for number in numbers:
        number.set_visible(False)
        for side in (1, -1):
            box = _box(number, unit, side)
            on_labels = box.y0 < 0  # those of the axis
            if on_labels or box.count_overlaps(taken) or any(_crosses(c, box) for c in curves):
                continue
            taken.append(box)
            number.set(ha="left" if side > 0 else "right", va="top" if side > 0 else "bottom")
            number.xyann = (side * AWAY, -side * AWAY)
            number.set_visible(True)
            break


def _box(number: Annotation, unit: float, side: int) -> Bbox:
    """Box of a number, below and right of its point for ``side`` 1, above and left for -1."""
    size = FontProperties(size=SIZE).get_size_in_points()
    far = AWAY + LETTER * size * len(number.get_text()), AWAY + size
    corners = unit * np.array(number.xy) + np.array([side, -side]) * [(AWAY, AWAY), far]
    return Bbox(np.sort(corners, axis=0)).padded(MARGIN)


def _crosses(curve: Floats, box: Bbox) -> bool:
    """Return whether a curve (n, 2), drawn from left to right, crosses a box."""
    x = np.linspace(box.x0, box.x1, 20)
    y = np.interp(x, curve[:, 0], curve[:, 1], left=np.nan, right=np.nan)
    return bool(((y >= box.y0) & (y <= box.y1)).any())
