"""Where a loss is smallest, between the neighbours of the best point of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable

SECTION = (3 - math.sqrt(5.0)) / 2
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06


def golden_section(
    loss: Callable[[float], float], middle: float, smallest: float, step: float
) -> float:
    """Best point that is tried, given the loss in the middle; seven more are."""
    low, high = middle - step, middle + step
    for _ in range(REFINEMENTS):
        point = middle + SECTION * (high - middle if high - middle > middle - low else low - middle)
        found = loss(point)
        if found < smallest:
            low, high = (middle, high) if point > middle else (low, middle)
            middle, smallest = point, found
        elif point > middle:
            high = point
        else:
            low = point
    return middle


def parabola(loss: Callable[[float], float], middle: float, at: float, step: float) -> float:
    """Vertex of the parabola through three points half a step apart, given one of them.

    Two more losses are enough where these are noisy. They are those above it if the first one is
    lower, as large ridges take less time, and its neighbours if not. Never farther away than the
    outer points.
    """
    half = step / 2
    above = loss(middle + half)
    if above < at:
        middle, below, at, above = middle + half, at, above, loss(middle + step)
    else:
        below = loss(middle - half)
    bend = below - 2 * at + above
    if not bend > 0 or math.isinf(bend):
        lowest = min(below, at, above)
        return middle + half * ((lowest == above) - (lowest == below))
    return middle + half * min(max(0.5 * (below - above) / bend, -1.0), 1.0)
