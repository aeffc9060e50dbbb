"""Quantiles of weighted ensembles with generalised Pareto tails, without jumps between levels.

In a tail, quantiles follow from the formula of the tail. Between the tails, the CDF has a step at
each member. If each quantile were a single member, a rounding error in a level could change it by
the gap between two members. So a quantile between the tails is a mean: the functions average the
members at all levels in a range around its level. This range is at most 0.5 % wide. If the members
are 200 quantiles that each represent the same probability, this mean is the value on the straight
line between two members.
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
"""A range of levels counts as a single level if half of its width is at most this number."""

ROUNDING = 1e-12
"""A share of a tail below this number counts as 0: the quantile is then the end of the tail."""

START, VALUE, KIND = range(3)
"""Columns of an array that describes the pieces (members and tails) of a quantile function; see
:func:`_cut`."""

MEMBER = 2
"""Value of ``KIND`` for a piece that is a member; 0 and 1 mean the lower and the upper tail."""


def tailed_quantile(
    q: FloatArray, members: FloatArray, weights: FloatArray | None, shape: FloatArray | None
) -> FloatArray:
    """Compute quantiles (..., k) at levels (k,) of weighted members with tails of given shapes."""
    levels = check_levels(q)
    ascending = np.argsort(levels)
    found = answers(_fill_quantiles, (members, weights, shape), levels[ascending], new=levels.shape)
    return np.maximum.accumulate(found, axis=-1)[..., np.argsort(ascending)]


@inner
def _reach(share: float, tail: Any) -> float:
    """Return the distance from the threshold beyond which a ``share`` of the tail lies."""
    return tail[SCALE] * math.expm1(-tail[SHAPE] * math.log(share)) / tail[SHAPE]  # type: ignore[no-any-return]


@kernel
def _fill_quantiles(support: Matrix, mass: Cube, shape: Cube, levels: Cube, out: OutCube) -> None:
    """Write quantiles (L, T, k) at ascending levels into ``out``.

    Each quantile is a mean over a range of levels around its level.
    """
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
    """Return True if row t equals the row before it."""
    i = 0
    while i < rows.shape[1] and rows[t, i] == rows[t - 1, i]:
        i += 1
    return bool(i == rows.shape[1])


@inner
def _width(level: float, tail: Any) -> float:
    """Return the width of the range of levels over which a quantile is a mean.

    ``level`` counts from the outer end of ``tail``. The width is zero in the tail, and 0.5 % far
    from the tail. In between, the width is as large as possible, but quantiles must not decrease
    with the level.
    """
    end = max(tail[MASS] - WIDTH / 2, tail[MASS] / 2)
    return min(WIDTH, 2 * max(level - end, 0.0))  # type: ignore[no-any-return]


@inner
def _cut(z: Any, w: Any, tails: Any, pieces: Any) -> int:
    """Cut the quantile function into ascending ``pieces`` (k, 3); return the number of pieces.

    The first column is the level at which a piece starts. The second is the member, or the share of
    the tail that lies beyond the start of the piece. The third is 0 for a part of the lower tail, 1
    for a part of the upper tail, and 2 for a member.
    """
    k, level, shares = 0, 0.0, np.array([0.0, 1.0])
    for i in range(z.size + 1):
        x = z[i] if i < z.size else np.inf
        for side in range(2):
            if not tails[side, MASS] > 0:  # a view of the row would take as long as all the rest
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
    """Return the mean of the quantiles at levels from ``level - half`` to ``level + half``.

    The range of levels starts in piece number ``first``. ``origin`` is a value near the mean, which
    the function subtracts to reduce rounding errors.
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
    """Integrate the tail quantile minus ``origin`` over levels from ``start`` to ``end``."""
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
    """Return the quantile at a level that lies in piece number ``at``."""
    if pieces[at, KIND] == MEMBER:
        return pieces[at, VALUE]  # type: ignore[no-any-return]
    piece = pieces[at]
    side = int(piece[KIND])
    tail = tails[side]
    return tail[THRESHOLD] + (2 * side - 1) * _reach(_share(level, piece, tail), tail)  # type: ignore[no-any-return]


@inner
def _piece(level: float, pieces: Any, near: int) -> int:
    """Return the number of the piece in which a level lies; begin at piece ``near``."""
    while near > 0 and pieces[near, START] > level:
        near -= 1
    while near + 1 < pieces.shape[0] and pieces[near + 1, START] <= level:
        near += 1
    return near


@inner
def _share(level: float, piece: Any, tail: Any) -> float:
    """Return the share of a tail that lies beyond the quantile at a level."""
    moved = (level - piece[START]) / tail[MASS]
    share = min(piece[VALUE] + (moved if piece[KIND] == 0 else -moved), 1.0)
    return share if share > ROUNDING else 0.0
