"""Rules of the search for the ridge: its grid, when to stop, and refinement between grid points."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from xrecal.typing import FloatArray

GRID_STEP = 0.5
"""Step between two ridges of the grid, in powers of ten."""

GRID = np.arange(-6.0, 0.1, GRID_STEP)
"""Powers of ten of the ridges tried, ascending."""

START = -2.0
"""Power of ten of the first ridge that is tried."""

PATIENCE = 0.5
"""Range of the low-rank search beyond the best ridge, in powers of ten. Smaller ridges need most
landmarks. The exact solver tries the whole grid at little cost."""

NEAR, FAR = 0.01, 0.03
"""Largest excess of the loss over the best with which a kernel or support is tried further: with
other cases or another ridge it may be better."""

APART = 0.1
"""Largest excess of the loss over the best support with which a support is searched further: beyond
it, a support has almost no weight in a mixture."""

HARDLY = 0.001
"""Least gain, as a share of the smallest loss, for which another ridge is tried."""

SECTION = (3 - math.sqrt(5.0)) / 2
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06


def reference_loss(losses: FloatArray) -> FloatArray:
    """Loss (S,) that each support must beat when every support counts.

    It is the loss of the support itself. If the smallest loss of all is far lower, it is this one:
    a support far from the best one needs no closer search.
    """
    smallest = losses.min()
    return np.where(losses <= smallest + APART * np.abs(smallest), losses, smallest)


def falls_fast(path: Sequence[FloatArray], exponent: float, smallest: FloatArray) -> bool:
    """True if a loss (S,) that still falls may come below ``smallest`` with a smaller ridge.

    The path ends with the losses of two ridges, a grid step apart; the last and smaller one is ten
    to the power ``exponent``. The path is extrapolated to the smallest ridge by its last relative
    fall. This guess is too low for most losses, which costs one more try. It is right for very
    precise forecasts, as their losses fall over many steps.
    """
    losses, now = path[-2:]
    steps = (exponent - GRID[0]) / GRID_STEP
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ahead = now * (now / losses) ** steps
    return bool(((now < (1 - FAR) * losses) & (ahead < smallest)).any())


def settles(path: Sequence[FloatArray], smallest: FloatArray) -> bool:
    """True if no loss (S,) at the end of a path is likely to come below ``smallest``.

    The path is as for :func:`falls_fast`. A loss has settled if its fall slows, and one more fall
    of the last size would not reach ``smallest``. A loss far from it has settled if two such falls
    would not reach it.
    """
    before, losses, now = path[-3:]
    with np.errstate(invalid="ignore"):
        bends = np.isfinite(before) & (losses - now < before - losses)
        done = bends & gains_hardly(losses, now, smallest)
        away = now > smallest + NEAR * np.abs(smallest)
        return bool((done | (away & (3 * now - 2 * losses > smallest))).all())


def gains_hardly(losses: FloatArray, now: FloatArray, smallest: FloatArray) -> NDArray[np.bool_]:
    """Return whether another fall of that size would gain almost nothing on ``smallest``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * now - losses > smallest - HARDLY * np.abs(smallest))


def golden_section(
    loss: Callable[[float], float], middle: float, smallest: float, step: float
) -> float:
    """Best of seven more points, given the loss in the middle of two steps."""
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

    ``losses`` are those of the ridges tried so far, by their powers of ten. If a neighbour was not
    tried, or the parabola does not bend upwards, the vertex is the middle.
    """
    below, at, above = (losses.get(middle + k * GRID_STEP, math.inf) for k in (-1, 0, 1))
    bend = below - 2 * at + above
    if math.isfinite(bend) and bend > 0:
        return middle + 0.5 * GRID_STEP * (below - above) / bend
    return middle
