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
"""Powers of ten of the ridges to try, ascending."""

START = -2.0
"""Power of ten of the first ridge to try."""

PATIENCE = 0.5
"""Largest distance from the best ridge, in powers of ten, at which the low-rank search tries other
ridges. Small ridges need many landmarks. The exact solver tries the whole grid at little cost."""

NEAR, FAR = 0.01, 0.03
"""Largest excess over the smallest loss, as a share of it, at which the search goes on with this
kernel or support. With other cases or another ridge, this kernel or support may be better."""

APART = 0.1
"""Largest excess over the loss of the best support, as a share of it, at which the search goes on
with a support. With a larger excess, a support has almost no weight in a mixture."""

HARDLY = 0.001
"""Least gain, as a share of the smallest loss, for which the search tries another ridge."""

SECTION = (3 - math.sqrt(5.0)) / 2
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06


def reference_loss(losses: FloatArray) -> FloatArray:
    """Return the loss (S,) that each support must beat if the search is for every support.

    It is the smallest loss of the support itself so far. If the smallest loss of all supports is
    far lower, it is that loss instead, because such a support needs no closer search.
    """
    smallest = losses.min()
    return np.where(losses <= smallest + APART * np.abs(smallest), losses, smallest)


def falls_fast(path: Sequence[FloatArray], exponent: float, smallest: FloatArray) -> bool:
    """Return whether a smaller ridge may bring a falling loss (S,) below ``smallest``.

    ``path`` holds the losses with smaller and smaller ridges; the last ridge is ten to the power
    ``exponent``. The function assumes that each further step of the grid lowers the loss by the
    same share as the last step. For most forecasts the resulting loss is too low, which costs one
    more try. For very precise forecasts the assumption is right, because their losses fall over
    many steps.
    """
    losses, now = path[-2:]
    steps = (exponent - GRID[0]) / GRID_STEP
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ahead = now * (now / losses) ** steps
    return bool(((now < (1 - FAR) * losses) & (ahead < smallest)).any())


def settles(path: Sequence[FloatArray], smallest: FloatArray) -> bool:
    """Return whether no loss (S,) at the end of a path is likely to come below ``smallest``.

    ``path`` is as in :func:`falls_fast`. A loss has settled if its fall slows, and if one more fall
    of the last size would hardly go below ``smallest``. A loss far above ``smallest`` has also
    settled if two more falls of this size would not go below ``smallest``.
    """
    before, losses, now = path[-3:]
    with np.errstate(invalid="ignore"):
        bends = np.isfinite(before) & (losses - now < before - losses)
        done = bends & gains_hardly(losses, now, smallest)
        away = now > smallest + NEAR * np.abs(smallest)
        return bool((done | (away & (3 * now - 2 * losses > smallest))).all())


def gains_hardly(losses: FloatArray, now: FloatArray, smallest: FloatArray) -> NDArray[np.bool_]:
    """Return whether one more fall by ``losses - now`` would hardly go below ``smallest``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * now - losses > smallest - HARDLY * np.abs(smallest))


def golden_section(
    loss: Callable[[float], float], middle: float, smallest: float, step: float
) -> float:
    """Try seven points within ``step`` of ``middle``, and return the point of smallest loss.

    ``smallest`` is the loss at ``middle``.
    """
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
    """Return the vertex of the parabola through the smallest loss on the grid and its neighbours.

    ``losses`` are those of the ridges tried so far, by their powers of ten; ``middle`` is the power
    of ten with the smallest loss. If the search has not tried a neighbour, or if the parabola does
    not bend upwards, the function returns ``middle``.
    """
    below, at, above = (losses.get(middle + k * GRID_STEP, math.inf) for k in (-1, 0, 1))
    bend = below - 2 * at + above
    if math.isfinite(bend) and bend > 0:
        return middle + 0.5 * GRID_STEP * (below - above) / bend
    return middle
