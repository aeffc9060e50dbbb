"""Where losses are smallest, at many locations; see :mod:`xrecal.arrays.ckme.minimum`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from xrecal.arrays.ckme.minimum import REFINEMENTS, SECTION
from xrecal.typing import FloatArray, IntArray

__all__ = ["golden_sections", "parabolas"]

Losses: TypeAlias = Callable[[IntArray, FloatArray], FloatArray]
"""Losses (c,) of points (c,) at locations (c,)."""


def golden_sections(
    losses: Losses, middle: FloatArray, smallest: FloatArray, step: float
) -> FloatArray:
    """Best points (b,) that are tried, given the losses in the middle."""
    low, high, everywhere = middle - step, middle + step, np.arange(middle.size)
    for _ in range(REFINEMENTS):
        right = high - middle > middle - low
        point = middle + SECTION * (np.where(right, high, low) - middle)
        found = losses(everywhere, point)
        better, above = found < smallest, point > middle
        low, high = (
            np.where(better & above, middle, np.where(~better & ~above, point, low)),
            np.where(better & ~above, middle, np.where(~better & above, point, high)),
        )
        middle = np.where(better, point, middle)
        smallest = np.where(better, found, smallest)
    return middle


def parabolas(losses: Losses, middle: FloatArray, at: FloatArray, step: float) -> FloatArray:
    """Vertices (b,) of parabolas through three points half a step apart."""
    half, everywhere = step / 2, np.arange(middle.size)
    above = losses(everywhere, middle + half)
    up = above < at
    third = losses(everywhere, np.where(up, middle + step, middle - half))
    middle = np.where(up, middle + half, middle)
    below, at, above = np.where(up, at, third), np.where(up, above, at), np.where(up, third, above)
    bend = below - 2 * at + above
    lowest = np.minimum(np.minimum(below, at), above)
    end = 1.0 * (lowest == above) - 1.0 * (lowest == below)
    flat = ~(bend > 0) | np.isinf(bend)
    vertex = np.clip(0.5 * (below - above) / np.where(flat, 1.0, bend), -1.0, 1.0)
    return np.asarray(middle + half * np.where(flat, end, vertex))
