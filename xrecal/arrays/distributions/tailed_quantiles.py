"""Quantiles of weighted ensembles with generalised Pareto tails, so that no level falls on a step.

In a tail they follow from its formula. Members are steps of the distribution function, and rounding
would decide on which side of a step a level falls: between the tails a quantile is the mean of
those of the members over half a percent of levels. Of 200 quantiles of equal mass that is the line
between the middles of their masses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Matrix, OutCube, Vector, inner, kernel
from xrecal.arrays.rows import double_blocks
from xrecal.typing import FloatArray

from .tailed import MASS, SCALE, SHAPE, THRESHOLD, beyond, parts_of, read
from .tails import WIDTH
from .weighted import check_levels

FEWEST = 1e-6
"""Over fewer levels the difference of two integrals has no digits: they are one."""

ROUNDING = 1e-12
"""A smaller share of a tail is none: its quantile is the end of the tail."""

MEMBER = 2.0
"""A piece of a quantile function that is a member, not part of a tail."""


def tailed_quantile(
    members: FloatArray, q: FloatArray, weights: FloatArray | None, shape: FloatArray | None
) -> FloatArray:
    """Quantiles (..., k) at levels (k,) of weighted ensembles (..., n).

    Their tails have shapes (..., 2); without a shape there are none. Members that many forecasts
    share have an axis less than the weights, as in :func:`.weighted.weighted_quantile`.
    """
    levels = check_levels(q)
    ascending = np.argsort(levels)
    parts, lead = parts_of(members, weights, shape)
    out = np.empty((*parts[1].shape[:2], levels.size))
    for block, given in double_blocks(*parts):
        _fill_quantiles(*given, levels[ascending], out[block])
    out = np.maximum.accumulate(out, axis=-1)[..., np.argsort(ascending)]  # but for rounding
    return out.reshape(*lead, levels.size)


@inner
def _reach(share: float, tail: Any) -> float:
    """Distance from its threshold that a share of a tail is beyond."""
    return tail[SCALE] * math.expm1(-tail[SHAPE] * math.log(share)) / tail[SHAPE]  # type: ignore[no-any-return]


@kernel
def _fill_quantiles(support: Matrix, mass: Cube, shape: Cube, levels: Vector, out: OutCube) -> None:
    """Quantiles (L, T, k) at levels, each the mean of those around it."""
    size = mass.shape[2]
    z, w, tails = np.empty(size), np.empty(size), np.empty((2, 5))
    room = np.empty((2 * size + 3, 4))
    for cell in range(mass.shape[0]):
        order = np.argsort(support[cell])
        for t in range(mass.shape[1]):
            n = read(support[cell], mass[cell, t], order, shape[cell, t], z, w, tails)
            if n < 0:
                out[cell, t] = np.nan
                continue
            origin = z[0] if n > 0 else tails[:, THRESHOLD].max()
            pieces = room[: _cut(z[:n], w, tails, origin, room)]
            for k in range(levels.size):
                p = levels[k]
                half = min(_width(p, tails[0]), _width(1 - p, tails[1])) / 2
                if half < FEWEST:
                    out[cell, t, k] = _value(p, pieces, tails)
                else:
                    ends = [_area(end, pieces, tails, origin) for end in (p - half, p + half)]
                    out[cell, t, k] = origin + (ends[1] - ends[0]) / (2 * half)


@inner
def _width(level: float, tail: Any) -> float:
    """Levels over which quantiles are averaged at one, from the side of a tail.

    None in the tail, all from its threshold on, and in between as many as keep quantiles in order.
    """
    end = max(tail[MASS] - WIDTH / 2, tail[MASS] / 2)
    return min(WIDTH, 2 * max(level - end, 0.0))  # type: ignore[no-any-return]


@inner
def _cut(z: Any, w: Any, tails: Any, origin: float, pieces: Any) -> int:
    """Cut the quantile function into pieces (k, 4), ascending; how many these are.

    The level at which each starts; the integral up to there of what is more than ``origin``; the
    share of its tail that is beyond its start, or the member; and 0, 1 or 2, for the lower tail,
    the upper one, or a member.
    """
    k, level, area, shares = 0, 0.0, 0.0, np.array([0.0, 1.0])
    for i in range(z.size + 1):
        x = z[i] if i < z.size else np.inf
        for side in range(2):
            tail = tails[side]
            if not tail[MASS] > 0:
                continue
            share = beyond((x - tail[THRESHOLD]) * (2 * side - 1), tail)
            if share != shares[side]:
                _set(pieces[k], level, area, shares[side], float(side))
                area += _part(shares[side], share, side, tail, origin)
                level += tail[MASS] * abs(share - shares[side])
                shares[side], k = share, k + 1
        if i < z.size:
            _set(pieces[k], level, area, x, MEMBER)
            area, level, k = area + w[i] * (x - origin), level + w[i], k + 1
    return k


@inner
def _set(piece: Any, level: float, area: float, value: float, kind: float) -> None:
    """Fill a row of pieces."""
    piece[0], piece[1], piece[2], piece[3] = level, area, value, kind


@inner
def _part(one: float, other: float, side: int, tail: Any, origin: float) -> float:
    """Integral of the quantiles over ``origin`` from one share of a tail to another."""
    shape, total = tail[SHAPE], 0.0
    for share, sign in ((max(one, other), 1.0), (min(one, other), -1.0)):
        total += sign * (share ** (1 - shape) / (1 - shape) - share) * tail[SCALE] / shape
    flat = (tail[THRESHOLD] - origin) * abs(other - one)
    return tail[MASS] * (flat + (2 * side - 1) * total)  # type: ignore[no-any-return]


@inner
def _area(level: float, pieces: Any, tails: Any, origin: float) -> float:
    """Integral of the quantiles over ``origin`` up to a level."""
    piece = pieces[_piece(level, pieces)]
    start, area, value, kind = piece[0], piece[1], piece[2], piece[3]
    if kind == MEMBER:
        return area + (level - start) * (value - origin)  # type: ignore[no-any-return]
    side = int(kind)
    share = _share(level, start, value, side, tails[side])
    return area + _part(value, share, side, tails[side], origin)  # type: ignore[no-any-return]


@inner
def _value(level: float, pieces: Any, tails: Any) -> float:
    """Quantile at a level."""
    piece = pieces[_piece(level, pieces)]
    start, value, kind = piece[0], piece[2], piece[3]
    if kind == MEMBER:
        return value  # type: ignore[no-any-return]
    side = int(kind)
    tail = tails[side]
    reach = _reach(_share(level, start, value, side, tail), tail)
    return tail[THRESHOLD] + (2 * side - 1) * reach  # type: ignore[no-any-return]


@inner
def _piece(level: float, pieces: Any) -> int:
    """Number of the piece in which a level lies."""
    return max(int(np.searchsorted(pieces[:, 0], level, side="right")) - 1, 0)


@inner
def _share(level: float, start: float, share: float, side: int, tail: Any) -> float:
    """Share of a tail beyond the quantile at a level of a piece that starts with another share."""
    moved = (level - start) / tail[MASS]
    share = min(share + (moved if side == 0 else -moved), 1.0)
    return share if share > ROUNDING else 0.0
