"""Quantiles of weighted ensembles with generalised Pareto tails, continuous in the level.

In a tail, quantiles follow from the formula of the tail. Members are steps of the distribution
function, and rounding could put a level on either side of a step. So between the tails, a quantile
is the mean of member quantiles over half a percent of levels. For 200 quantiles of equal mass, this
mean follows the line between the middles of their masses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Matrix, OutCube, copy, inner, kernel
from xrecal.typing import FloatArray

from .tailed import MASS, SCALE, SHAPE, THRESHOLD, answers, beyond, read
from .tails import WIDTH
from .weighted import check_levels

FEWEST = 1e-9
"""Intervals of levels narrower than this count as a single level."""

ROUNDING = 1e-12
"""A share of a tail below this counts as zero: its quantile is the end of the tail."""

START, VALUE, KIND = range(3)
"""Columns of a piece of a quantile function."""

MEMBER = 2
"""Kind of a piece that is a member, not part of a tail."""


def tailed_quantile(
    q: FloatArray, members: FloatArray, weights: FloatArray | None, shape: FloatArray | None
) -> FloatArray:
    """Compute quantiles (..., k) at levels (k,) of members, weights and shapes of tails."""
    levels = check_levels(q)
    ascending = np.argsort(levels)
    found = answers(_fill_quantiles, (members, weights, shape), levels[ascending], new=levels.shape)
    return np.maximum.accumulate(found, axis=-1)[..., np.argsort(ascending)]


@inner
def _reach(share: float, tail: Any) -> float:
    """Return the distance from the threshold of a tail beyond which a share of it lies."""
    return tail[SCALE] * math.expm1(-tail[SHAPE] * math.log(share)) / tail[SHAPE]  # type: ignore[no-any-return]


@kernel
def _fill_quantiles(support: Matrix, mass: Cube, shape: Cube, levels: Cube, out: OutCube) -> None:
    """Fill quantiles (L, T, k) at ascending levels, each a mean over levels around it."""
    size = mass.shape[2]
    z, w, tails = np.empty(size), np.empty(size), np.empty((2, 5))
    room = np.empty((2 * size + 3, 3))
    for cell in range(mass.shape[0]):
        order = np.argsort(support[cell])
        for t in range(mass.shape[1]):
            # For example, past observations with the same weights for all forecasts.
            if t > 0 and _same(mass[cell], t) and _same(shape[cell], t) and _same(levels[cell], t):
                copy(out[cell, t - 1], out[cell, t])
                continue
            n = read(support[cell], mass[cell, t], order, shape[cell, t], z, w, tails)
            if n < 0:
                out[cell, t] = np.nan
                continue
            pieces, at, first = room[: _cut(z[:n], w, tails, room)], 0, 0
            lower, upper = tails
            for k in range(levels.shape[2]):
                p = levels[cell, t, k]
                half = min(_width(p, lower), _width(1 - p, upper)) / 2
                at, first = _piece(p, pieces, at), _piece(p - half, pieces, first)
                out[cell, t, k] = _value(p, pieces, at, tails)
                if half > FEWEST:
                    out[cell, t, k] = _mean(p, half, out[cell, t, k], pieces, first, tails)


@inner
def _same(rows: Any, t: int) -> bool:
    """Return whether a row equals the row before it."""
    i = 0
    while i < rows.shape[1] and rows[t, i] == rows[t - 1, i]:
        i += 1
    return bool(i == rows.shape[1])


@inner
def _width(level: float, tail: Any) -> float:
    """Return the range of levels for the mean of a quantile, at a level counted from a tail's side.

    The range is zero in the tail, and has its full width far from it. Between them it is as wide as
    possible with quantiles in order.
    """
    end = max(tail[MASS] - WIDTH / 2, tail[MASS] / 2)
    return min(WIDTH, 2 * max(level - end, 0.0))  # type: ignore[no-any-return]


@inner
def _cut(z: Any, w: Any, tails: Any, pieces: Any) -> int:
    """Cut the quantile function into ascending pieces (k, 3); return their number.

    The columns are: the level at which the piece starts; the share of its tail beyond its start, or
    the member; and 0, 1 or 2, for the lower tail, the upper tail, or a member.
    """
    k, level, shares = 0, 0.0, np.array([0.0, 1.0])
    for i in range(z.size + 1):
        x = z[i] if i < z.size else np.inf
        for side in range(2):
            if not tails[side, MASS] > 0:  # making a view would take as long as all the rest
                continue
            tail = tails[side]
            share = beyond((x - tail[THRESHOLD]) * (2 * side - 1), tail)
            if share != shares[side]:
                pieces[k, START], pieces[k, VALUE], pieces[k, KIND] = level, shares[side], side
                level += tail[MASS] * abs(share - shares[side])
                shares[side], k = share, k + 1
        if i < z.size:
            pieces[k, START], pieces[k, VALUE], pieces[k, KIND] = level, x, MEMBER
            level, k = level + w[i], k + 1
    return k


@inner
def _mean(level: float, half: float, origin: float, pieces: Any, first: int, tails: Any) -> float:
    """Return the mean quantile over levels around one level, minus ``origin``, a value near it.

    The levels start in piece number ``first``.
    """
    area, total = 0.0, 0.0
    for i in range(first, pieces.shape[0]):
        start = max(pieces[i, START], level - half)
        if start >= level + half:
            break
        end = level + half if i + 1 == pieces.shape[0] else min(pieces[i + 1, START], level + half)
        total += end - start
        if pieces[i, KIND] == MEMBER:
            area += (end - start) * (pieces[i, VALUE] - origin)
        else:
            area += _part(start, end, origin, pieces[i], tails)
    return origin + area / total


@inner
def _part(start: float, end: float, origin: float, piece: Any, tails: Any) -> float:
    """Integrate the distance of tail quantiles from ``origin`` over levels."""
    side = int(piece[KIND])
    tail, area = tails[side], 0.0
    for level in (start, end):
        share = _share(level, piece, tail)
        area = share ** (1 - tail[SHAPE]) / (1 - tail[SHAPE]) - share - area
    sign = 2 * side - 1
    beyond_threshold = sign * abs(area / tail[SHAPE]) * tail[MASS] * tail[SCALE]
    return (end - start) * (tail[THRESHOLD] - origin) + beyond_threshold  # type: ignore[no-any-return]


@inner
def _value(level: float, pieces: Any, at: int, tails: Any) -> float:
    """Return the quantile at a level, in piece number ``at``."""
    if pieces[at, KIND] == MEMBER:
        return pieces[at, VALUE]  # type: ignore[no-any-return]
    piece = pieces[at]
    side = int(piece[KIND])
    tail = tails[side]
    return tail[THRESHOLD] + (2 * side - 1) * _reach(_share(level, piece, tail), tail)  # type: ignore[no-any-return]


@inner
def _piece(level: float, pieces: Any, near: int) -> int:
    """Return the number of the piece of a level; the search starts at a piece near it."""
    while near > 0 and pieces[near, START] > level:
        near -= 1
    while near + 1 < pieces.shape[0] and pieces[near + 1, START] <= level:
        near += 1
    return near


@inner
def _share(level: float, piece: Any, tail: Any) -> float:
    """Return the share of a tail beyond the quantile at a level."""
    moved = (level - piece[START]) / tail[MASS]
    share = min(piece[VALUE] + (moved if piece[KIND] == 0 else -moved), 1.0)
    return share if share > ROUNDING else 0.0
