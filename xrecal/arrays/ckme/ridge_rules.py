"""Ridges that a search tries: the grid, when to leave it, and where between its points to end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from xrecal.typing import FloatArray

GRID_STEP = 0.5
"""Between two ridges of the grid, in powers of ten."""

GRID = np.arange(-6.0, 0.1, GRID_STEP)
"""Powers of ten of the ridges tried, ascending."""

START = -2.0
"""Power of ten of the first ridge that is tried."""

PATIENCE = 0.5
"""Powers of ten beyond the best ridge that are searched with low rank.

Smaller ridges need most landmarks; an exact solver has the whole grid at little cost."""

NEAR, FAR = 0.01, 0.03
"""Kernels and supports whose loss is so much larger than the best may be better with other cases,
or with another ridge."""

APART = 0.1
"""Supports whose loss is so much larger than that of the best one count for next to nothing in a
mixture, however well they are chosen."""

HARDLY = 0.001
"""Share of the smallest loss that another ridge must promise to gain, or it is not tried."""

SECTION = (3 - math.sqrt(5.0)) / 2
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06


def reference_loss(losses: FloatArray) -> FloatArray:
    """Loss (S,) that each support must come below, where every support counts.

    It is the support's own, or the smallest one of all where that is far below: a support that is
    far from the best one need not be searched any closer.
    """
    smallest = losses.min()
    return np.where(losses <= smallest + APART * np.abs(smallest), losses, smallest)


def falls_fast(path: Sequence[FloatArray], exponent: float, smallest: FloatArray) -> bool:
    """True if a loss (S,) that still falls may come below ``smallest`` with a smaller ridge.

    The path ends with the losses of two ever smaller ridges, a grid step apart, the last of them at
    the power of ten ``exponent``. It is extrapolated to the smallest ridge by the share that it
    fell: a guess that is too low for most losses, which costs a try, and right for those of very
    precise forecasts, which fall for long.
    """
    losses, now = path[-2:]
    steps = (exponent - GRID[0]) / GRID_STEP
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ahead = now * (now / losses) ** steps
    return bool(((now < (1 - FAR) * losses) & (ahead < smallest)).any())


def settles(path: Sequence[FloatArray], smallest: FloatArray) -> bool:
    """True if no loss (S,) at the end of a path is likely to come below ``smallest``.

    The path is as for :func:`falls_fast`. A loss has settled if it falls ever less and another step
    as the last one would not do, or if it is not near and two such steps would not.
    """
    before, losses, now = path[-3:]
    with np.errstate(invalid="ignore"):
        bends = np.isfinite(before) & (losses - now < before - losses)
        done = bends & gains_hardly(losses, now, smallest)
        away = now > smallest + NEAR * np.abs(smallest)
        return bool((done | (away & (3 * now - 2 * losses > smallest))).all())


def gains_hardly(losses: FloatArray, now: FloatArray, smallest: FloatArray) -> NDArray[np.bool_]:
    """True if a loss, falling as in its last step, would gain hardly anything on ``smallest``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * now - losses > smallest - HARDLY * np.abs(smallest))


def golden_section(
    loss: Callable[[float], float], middle: float, smallest: float, step: float
) -> float:
    """Best point of seven more, given the loss in the middle of two steps."""
    low, high = middle - step, middle + step
    for _ in range(REFINEMENTS):
        point = middle + SECTION * (high - middle if high - middle > middle - low else low - middle)
        there = loss(point)
        if there < smallest:
            low, high = (middle, high) if point > middle else (low, middle)
            middle, smallest = point, there
        elif point > middle:
            high = point
        else:
            low = point
    return middle


def vertex(losses: Mapping[float, float], middle: float) -> float:
    """Vertex of the parabola through the smallest loss on the grid and its two neighbours.

    ``losses`` are those of the ridges that were tried, by their powers of ten. Where a neighbour
    was not, the loss hardly changes towards it, and the vertex is the middle; so it is without a
    bend.
    """
    below, at, above = (losses.get(middle + k * GRID_STEP, math.inf) for k in (-1, 0, 1))
    bend = below - 2 * at + above
    if math.isfinite(bend) and bend > 0:
        return middle + 0.5 * GRID_STEP * (below - above) / bend
    return middle
