"""Ridges that are tried, from large to small, and when smaller ones are not worth it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xrecal.typing import FloatArray

# Ridges tried, in powers of ten.
GRID_STEP = 0.5
GRID = np.arange(-6.0, 0.1, GRID_STEP)

NEAR, FAR = 0.01, 0.03
"""Kernels and supports whose loss is so much larger than the best may be better with other cases,
or with another ridge."""

APART = 0.1
"""Supports whose loss is so much larger than that of the best one count for next to nothing in a
mixture, however well they are chosen."""

HARDLY = 0.001
"""By how much a loss must promise to become the smallest, for another ridge to be tried."""


def to_beat(losses: FloatArray) -> FloatArray:
    """What each loss (S,) is up against where every support counts: itself, or the smallest one.

    The latter where it is far from that with the ridges tried so far: then nothing near it is worth
    a closer look.
    """
    smallest = losses.min()
    return np.where(losses <= smallest + APART * np.abs(smallest), losses, smallest)


def falls_fast(
    before: FloatArray,
    losses: FloatArray,
    now: FloatArray,
    exponent: FloatArray | float,
    smallest: FloatArray,
) -> NDArray[np.bool_]:
    """Whether a loss (..., S), with a grid step less of ridge now, may be the smallest in the end.

    If it goes on to fall by the same share with each step down to the smallest ridge, and without
    end to ever smaller steps where the last one was smaller than the one before. ``before`` is
    infinite where there was none.
    """
    steps = (np.asarray(exponent)[..., np.newaxis] - GRID[0]) / GRID_STEP
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        fell, falls = before - losses, losses - now
        ahead = now * (now / losses) ** steps
        limit = now - falls**2 / (fell - falls)  # of a geometric series
    ahead = np.where((fell > falls) & np.isfinite(fell), np.maximum(ahead, limit), ahead)
    return np.asarray(((now < (1 - FAR) * losses) & (ahead < smallest)).any(axis=-1))


def settles(
    before: FloatArray, losses: FloatArray, now: FloatArray, smallest: FloatArray
) -> NDArray[np.bool_]:
    """Whether losses (..., S) of three ridges, the smallest now, will hardly be the smallest ones.

    They fall ever less and another such step would not do, or they are not near and two would not.
    ``before`` is infinite where there are only two.
    """
    with np.errstate(invalid="ignore"):
        bends = np.isfinite(before) & (losses - now < before - losses)
        done = bends & gains_hardly(losses, now, smallest)
        away = now > smallest + NEAR * np.abs(smallest)
        return np.asarray((done | (away & (3 * now - 2 * losses > smallest))).all(axis=-1))


def gains_hardly(losses: FloatArray, now: FloatArray, smallest: FloatArray) -> NDArray[np.bool_]:
    """Whether a loss that goes on to fall as in the last step is no new smallest one."""
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * now - losses > smallest - HARDLY * np.abs(smallest))
