"""Probabilities and scores of weighted ensembles with generalised Pareto tails.

The CDF is the sum of two parts. The ordinary members x_i with weights w_i give the first part, the
sum of w_i over all x_i <= z. The tails give the second part, ``m_lower L(z) + m_upper U(z)``. Here
L and U are the CDFs of the lower and the upper tail, and m_lower and m_upper are the masses of the
tails. The lower tail lies below its threshold, and the upper tail above its threshold. The last 20
members represent the tails, ten on each side. Each of the ten members is the mean of one tenth of
its tail. The threshold and the scale of a tail follow from its ten members and its shape. So if a
user shifts or scales all members, the tails change in the same way. The ten members of a side count
as ordinary members if they do not fit a tail, if they have no weight, or if the shape of the tail
is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Matrix, OutCube, OutMatrix, inner, kernel
from xrecal.arrays.rows import double_blocks
from xrecal.typing import FloatArray

from .tails import POINTS, SMALLEST_SHAPE
from .weighted import by_support

IN_LINE = 1e-3
"""Ten members count as a tail only if they differ from the formula of a tail by at most this share
of their range, plus rounding errors."""

SINGLE = 4 * 1.2e-7
"""Rounding to float32 may change the ten members of a tail by this share of the threshold."""

MASS, THRESHOLD, SCALE, SHAPE, GROUP = range(5)
"""Columns of an array that describes a tail. ``GROUP`` is 0 if the first ten of the last 20 members
represent the tail, 1 if the second ten do, and -1 without a tail."""


def answers(
    fill: Callable[..., None],
    forecast: tuple[FloatArray, FloatArray | None, FloatArray | None],
    *cases: FloatArray,
    new: tuple[int, ...] = (),
) -> FloatArray:
    """Call the compiled function ``fill`` with members, weights and shape parameters of both tails.

    ``cases`` are further arguments of the function. They have the shape of the result: the shape of
    the forecasts, followed by the axes ``new``. If many forecasts share their members, the members
    have one axis less than the weights, as in :func:`.weighted.weighted_quantile`.
    """
    parts, lead = parts_of(*forecast)
    shape = (*parts[1].shape[:2], *new)
    given = (np.broadcast_to(case, (*lead, *new)).reshape(shape) for case in cases)
    out = np.empty(shape)
    for block, some in double_blocks(*parts, *given):
        fill(*some, out[block])
    return out.reshape(*lead, *new)


def parts_of(
    members: FloatArray, weights: FloatArray | None, shape: FloatArray | None
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], tuple[int, ...]]:
    """Return members (L, n), weights (L, T, n) and shapes of tails (L, T, 2) as one tuple.

    The array of shapes is (L, T, 0) if there are no tails. The second result is the shape of the
    forecasts.
    """
    support, mass, lead = by_support(members, weights)
    sides = np.empty((*lead, 0)) if shape is None else np.broadcast_to(shape, (*lead, 2))
    return (support, mass, np.reshape(sides, (*mass.shape[:2], sides.shape[-1]))), lead


@inner
def beyond(distance: float, tail: Any) -> float:
    """Return the share of a tail that is farther from its threshold than ``distance``."""
    x = tail[SHAPE] * distance / tail[SCALE]
    if distance <= 0:
        return 1.0
    return math.exp(-math.log1p(x) / tail[SHAPE]) if x > -1 else 0.0


@inner
def _read_tail(points: Any, weights: Any, shape: float, group: int, tails: Any) -> None:
    """Write the tail that ten members represent into the lower or upper row of ``tails`` (2, 5)."""
    mass = weights.sum()
    if abs(shape) < SMALLEST_SHAPE:
        shape = SMALLEST_SHAPE
    unit = np.empty(POINTS)  # the same points as in tails.py
    for k in range(POINTS):
        one, other = 1 - k / POINTS, 1 - (k + 1) / POINTS
        part = POINTS * (one ** (1 - shape) - other ** (1 - shape))
        unit[k] = (part - (1 - shape)) / shape
    last = POINTS - 1
    size = (points[last] - points[0]) / (unit[last] - unit[0])
    threshold = points[0] - size * unit[0]
    room = IN_LINE * abs(points[last] - points[0]) + SINGLE * abs(threshold)
    row = 1 if size > 0 else 0
    sound = mass > 0 and abs(size) > 0 and tails[row, MASS] == 0
    for k in range(POINTS):
        sound = sound and abs(threshold + size * unit[k] - points[k]) <= room
    if sound:
        tails[row, MASS], tails[row, THRESHOLD] = mass, threshold
        tails[row, SCALE], tails[row, SHAPE] = abs(size) * (1 - shape), shape
        tails[row, GROUP] = group


@inner
def read(values: Any, weights: Any, order: Any, shape: Any, z: Any, w: Any, tails: Any) -> int:
    """Write ordinary members into ``z``, their weights into ``w``, and the tails into ``tails``.

    ``z`` gets the sorted members with positive weight, and ``w`` their shares of the total weight.
    The function returns the number of these members, or -1 if the total weight is 0 or a weight is
    missing.
    """
    first = values.size - shape.size * POINTS
    for side in range(2):
        for column in range(tails.shape[1]):
            tails[side, column] = -1.0 if column == GROUP else 0.0
    for group in range(shape.size):
        own = slice(first + group * POINTS, first + (group + 1) * POINTS)
        _read_tail(values[own], weights[own], shape[group], group, tails)
    total, k = 0.0, 0
    for i in order:
        if np.isnan(values[i]):
            continue
        total += weights[i]
        in_tail = False
        if i >= first:
            group = (i - first) // POINTS
            in_tail = tails[0, GROUP] == group or tails[1, GROUP] == group
        if weights[i] > 0 and not in_tail:
            z[k], w[k] = values[i], weights[i]
            k += 1
    if not total > 0:
        return -1
    for i in range(k):
        w[i] /= total
    for side in range(2):
        tails[side, MASS] /= total
    return k


@inner
def _mass(x: float, tails: Any, above: bool) -> float:
    """Return the mass of both tails above x if ``above`` is True, and up to x otherwise."""
    mass = 0.0
    for side in range(2):
        tail = tails[side]
        if tail[MASS] > 0:
            share = beyond((x - tail[THRESHOLD]) * (2 * side - 1), tail)
            mass += tail[MASS] * (share if above == (side == 1) else 1.0 - share)
    return mass


@kernel
def fill_exceedance(
    support: Matrix, mass: Cube, shape: Cube, thresholds: Cube, out: OutCube
) -> None:
    """Write the probabilities (L, T, k) of values above ``thresholds`` (L, T, k) into ``out``."""
    z, w, tails = np.empty(mass.shape[2]), np.empty(mass.shape[2]), np.empty((2, 5))
    for cell in range(mass.shape[0]):
        order = np.argsort(support[cell])
        for t in range(mass.shape[1]):
            n = read(support[cell], mass[cell, t], order, shape[cell, t], z, w, tails)
            for k in range(thresholds.shape[2]):
                threshold, above, i = thresholds[cell, t, k], 0.0, n - 1
                while i >= 0 and z[i] > threshold:
                    above += w[i]
                    i -= 1
                above = min(above + _mass(threshold, tails, True), 1.0)
                out[cell, t, k] = np.nan if n < 0 or np.isnan(threshold) else above


@kernel
def fill_pit(
    support: Matrix, mass: Cube, shape: Cube, observations: Matrix, uniform: Matrix, out: OutMatrix
) -> None:
    """Write PIT values of observations (L, T) into ``out``.

    If the CDF jumps at an observation, ``uniform`` (L, T) sets the position within the jump.
    """
    z, w, tails = np.empty(mass.shape[2]), np.empty(mass.shape[2]), np.empty((2, 5))
    for cell in range(mass.shape[0]):
        order = np.argsort(support[cell])
        for t in range(mass.shape[1]):
            n = read(support[cell], mass[cell, t], order, shape[cell, t], z, w, tails)
            y, below, at = observations[cell, t], 0.0, 0.0
            for i in range(n):
                below += w[i] if z[i] < y else 0.0
                at += w[i] if z[i] == y else 0.0
            level = min(below + _mass(y, tails, False) + uniform[cell, t] * at, 1.0)
            out[cell, t] = np.nan if n < 0 or np.isnan(y) else level


@kernel
def fill_crps(
    support: Matrix,
    mass: Cube,
    shape: Cube,
    observations: Matrix,
    lower: Matrix,
    upper: Matrix,
    out: OutMatrix,
) -> None:
    """Write the CRPS (L, T) into ``out``: the sum of integrals below and above the observation."""
    z, w, tails = np.empty(mass.shape[2]), np.empty(mass.shape[2]), np.empty((2, 5))
    for cell in range(mass.shape[0]):
        order = np.argsort(support[cell])
        for t in range(mass.shape[1]):
            n = read(support[cell], mass[cell, t], order, shape[cell, t], z, w, tails)
            low, high = lower[cell, t], upper[cell, t]
            y = min(max(observations[cell, t], low), high)
            score, i, body, reached = 0.0, 0, 0.0, low
            while i < n and z[i] < y:
                score += _square(reached, z[i], body, tails, False)
                body, reached, i = body + w[i], max(reached, z[i]), i + 1
            score += _square(reached, y, body, tails, False)
            body, reached = 0.0, high
            for j in range(n - 1, i - 1, -1):
                score += _square(z[j], reached, body, tails, True)
                body, reached = body + w[j], min(reached, z[j])
            score += _square(y, reached, body, tails, True)
            unknown = n < 0 or np.isnan(low) or np.isnan(high) or np.isnan(observations[cell, t])
            out[cell, t] = np.nan if unknown else score


@inner
def _square(start: float, end: float, body: float, tails: Any, above: bool) -> float:
    """Integrate the squared mass on one side of z, for z from ``start`` to ``end``.

    If ``above`` is True, the function integrates the squared mass above z, otherwise below z.
    ``start`` and ``end`` are neighbouring members, and ``body`` is the mass of the ordinary members
    on this side of z.
    """
    lower, upper = tails[0], tails[1]
    total = 0.0
    if lower[MASS] > 0 and start < min(end, lower[THRESHOLD]):
        near = min(end, lower[THRESHOLD])
        a, b = (body + upper[MASS] + lower[MASS], -lower[MASS]) if above else (body, lower[MASS])
        total += _arc(a, b, lower[THRESHOLD] - near, lower[THRESHOLD] - start, lower)
        start = near
    if upper[MASS] > 0 and end > max(start, upper[THRESHOLD]):
        near = max(start, upper[THRESHOLD])
        a, b = (body, upper[MASS]) if above else (body + lower[MASS] + upper[MASS], -upper[MASS])
        total += _arc(a, b, near - upper[THRESHOLD], end - upper[THRESHOLD], upper)
        end = near
    mass = body + (upper[MASS] if above else lower[MASS])
    return total + mass * mass * (end - start) if end > start and mass > 0 else total


@inner
def _arc(a: float, b: float, near: float, far: float, tail: Any) -> float:
    """Integrate ``(a + b S)^2`` over distances from ``near`` to ``far`` from a threshold.

    S is the share of the tail that is farther from the threshold than the distance.
    """
    one, other, shape = beyond(near, tail), beyond(far, tail), tail[SHAPE]
    first = (one ** (1 - shape) - other ** (1 - shape)) * tail[SCALE] / (1 - shape)
    second = (one ** (2 - shape) - other ** (2 - shape)) * tail[SCALE] / (2 - shape)
    flat = a * a * (far - near) if a != 0 else 0.0
    return flat + 2 * a * b * first + b * b * second  # type: ignore[no-any-return]
