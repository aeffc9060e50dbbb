"""The worst represented cases of many locations, taken as landmarks one after another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.ckme.lowrank import SHARE, SMALLEST
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.typing import FloatArray, IntArray

from .namespace import concat

__all__ = ["Pivots", "take_pivots"]


class Pivots(NamedTuple):
    """Landmarks that were added at c locations."""

    rows: Any
    """(c, k, n) of the factor, zero behind those added"""
    left: Any
    """(c, n) what is left of the diagonal"""
    taken: IntArray
    """(c, k) cases, of which those added count"""
    residuals: FloatArray
    """(c, k) mean of what is left after each"""
    added: IntArray
    """(c,)"""


def take_pivots(
    columns: Any, cases: Any, left: Any, tolerance: FloatArray, room: IntArray
) -> Pivots:
    """Add cases, given what was left of their columns (c, k, n) of K, and of the diagonal (c, n).

    At each location the worst of its cases (c, k) is next, while it has a share of the largest
    residual of all, more than the tolerance (c,) is left and there is room (c,). All of it stays
    on the device until the last case was tried.
    """
    xp = namespace(columns)
    size = cases.shape[1]
    most, allowed = xp.asarray(tolerance), xp.asarray(room)
    rows = columns[:, :0, :]
    going = most >= 0.0
    residual, largest = _what_is_left(xp, left)
    taken, residuals, went = [], [], []
    for step in range(size):
        among = xp.take_along_axis(left, cases, axis=-1)
        at = xp.argmax(among, axis=-1)[:, None]
        case = xp.take_along_axis(cases, at, axis=-1)
        worst = xp.take_along_axis(left, case, axis=-1)[:, 0]
        going = going & (residual > most) & (worst >= SHARE * largest) & (allowed > step)
        row = xp.take_along_axis(columns, at[:, :, None], axis=1)[:, 0, :]
        if step:
            shared = xp.take_along_axis(
                rows, xp.broadcast_to(case[:, :, None], (*rows.shape[:2], 1)), axis=-1
            )
            row = row - xp.sum(shared * rows, axis=1)
        row = row / xp.sqrt(xp.where(going, worst, 1.0))[:, None]
        row = xp.where(going[:, None], row, 0.0)
        rows = concat(xp, [rows, row[:, None, :]], axis=1)
        lower = left - row * row
        own = xp.arange(left.shape[-1], dtype=xp.int64)[None, :] == case
        lower = xp.where((lower < 0.0) | own, 0.0, lower)
        left = xp.where(going[:, None], lower, left)
        residual, largest = _what_is_left(xp, left)
        taken.append(case[:, 0])
        residuals.append(residual)
        went.append(going)
    told = [to_host(xp.stack(part, axis=-1)) for part in (taken, residuals, went)]
    return Pivots(rows, left, told[0], told[1], np.asarray(told[2].sum(-1)))


def _what_is_left(xp: Any, left: Any) -> tuple[Any, Any]:
    """Mean (c,) of the diagonal that is left, 0 where that is only rounding; its largest entry."""
    largest = xp.max(left, axis=-1)
    return xp.where(largest > SMALLEST, xp.mean(left, axis=-1), 0.0), largest
