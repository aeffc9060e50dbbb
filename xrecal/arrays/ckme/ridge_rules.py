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
"""Ridges to try, as powers of ten, ascending: -2 means the ridge 0.01."""

START = -2.0
"""Power of ten of the first ridge to try."""

PATIENCE = 0.5
"""The low-rank search tries only ridges that are at most this many powers of ten above or below the
best ridge so far, because small ridges need many landmarks. The exact solver tries the whole grid
at little cost."""

NEAR, FAR = 0.01, 0.03
"""The search goes on with a kernel or support if its loss exceeds the smallest loss by at most this
share of the smallest loss. With other cases or another ridge, this kernel or support may be better.
``FAR`` applies after the first ridge of a kernel, ``NEAR`` after several ridges."""

APART = 0.1
"""If the search is for the best settings of every support, it goes on with a support whose loss
exceeds the smallest loss by at most this share of the smallest loss. A worse support has almost no
weight in a mixture of supports."""

HARDLY = 0.001
"""The search tries another ridge only if the new loss may be below the smallest loss by more than
this share of the smallest loss."""

SECTION = (3 - math.sqrt(5.0)) / 2
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06


def reference_loss(losses: FloatArray) -> FloatArray:
    """Return the loss (S,) that further tries with each support must beat.

    A search for the best settings of every support calls this function. For each support, the loss
    to beat is the smallest loss of this support so far. If the best support has a far smaller loss
    (:data:`APART`), the function returns the loss of the best support instead, because a support
    that is so much worse needs no closer search.
    """
    smallest = losses.min()
    return np.where(losses <= smallest + APART * np.abs(smallest), losses, smallest)


def falls_fast(path: Sequence[FloatArray], exponent: float, smallest: FloatArray) -> bool:
    """Return whether a smaller ridge may bring a falling loss (S,) below ``smallest``.

    ``path`` holds the losses with smaller and smaller ridges; the last ridge is ten to the power
    ``exponent``. The function assumes that each further step of the grid lowers the loss by the
    same share as the last step. For most forecasts this assumption predicts too low a loss, so the
    search tries one more ridge in vain. For very precise forecasts the assumption is right, because
    their losses fall over many steps.
    """
    losses, now = path[-2:]
    steps = (exponent - GRID[0]) / GRID_STEP
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ahead = now * (now / losses) ** steps
    return bool(((now < (1 - FAR) * losses) & (ahead < smallest)).any())


def settles(path: Sequence[FloatArray], smallest: FloatArray) -> bool:
    """Return whether all losses (S,) at the end of a path will probably stay above ``smallest``.

    ``path`` is as in :func:`falls_fast`. A loss has settled if its fall slows, and if one more fall
    of the same size would bring the loss at most slightly below ``smallest``. A loss far above
    ``smallest`` has also settled if two more falls of this size would leave the loss above
    ``smallest``.
    """
    before, losses, now = path[-3:]
    with np.errstate(invalid="ignore"):
        bends = np.isfinite(before) & (losses - now < before - losses)
        done = bends & gains_hardly(losses, now, smallest)
        away = now > smallest + NEAR * np.abs(smallest)
        return bool((done | (away & (3 * now - 2 * losses > smallest))).all())


def gains_hardly(losses: FloatArray, now: FloatArray, smallest: FloatArray) -> NDArray[np.bool_]:
    """Return whether one more fall would bring a loss at most slightly below ``smallest``.

    The last fall was from ``losses`` to ``now``. The function assumes one more fall of this size.
    """
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
    """Return the power of ten at the vertex of a parabola through three losses of the grid.

    The three losses are the smallest loss and its two neighbours. ``losses`` holds the loss of each
    ridge tried so far, by its power of ten; ``middle`` is the power of ten with the smallest loss.
    If the search has not tried a neighbour, or if the parabola does not bend upwards, the function
    returns ``middle``.
    """
    below, at, above = (losses.get(middle + k * GRID_STEP, math.inf) for k in (-1, 0, 1))
    bend = below - 2 * at + above
    if math.isfinite(bend) and bend > 0:
        return middle + 0.5 * GRID_STEP * (below - above) / bend
    return middle
