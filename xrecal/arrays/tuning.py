"""The ridge by blocked cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .simplex import energy_row, simplex_row

LOSSES = ("crps", "laplace")

# Ridges tried, in powers of ten, and how finely the best one is then located.
GRID_LOW, GRID_HIGH, GRID_STEP = -6.0, 0.0, 0.5
GOLDEN = (np.sqrt(5.0) - 1) / 2
REFINEMENTS = 5  # 2 * 0.5 * 0.618**5 = 0.09 powers of ten

# With fewer folds than two nothing is held out; then this many contiguous blocks are made.
DEFAULT_BLOCKS = 5


@njit(nogil=True)
def assign_folds(groups: Any, slot: Any, blocks: int) -> Any:
    """Fold number of each case, from 0.

    ``blocks == 0``: one fold for each value of ``groups`` (calendar years). Otherwise cases are
    ordered by ``groups`` (their position in time, or random numbers), equal ones by ``slot``,
    and cut into ``blocks`` parts of equal size. A single year is cut into blocks, too.
    """
    n = groups.size
    order = np.argsort(groups)
    for i in range(1, n):  # the sort is not stable: equal groups in order of time
        a, b = i - 1, i
        while a >= 0 and groups[order[a]] == groups[order[b]] and slot[order[a]] > slot[order[b]]:
            order[a], order[b] = order[b], order[a]
            a, b = a - 1, b - 1
    fold = np.empty(n, dtype=np.int64)
    if blocks == 0:
        current = 0
        for i in range(n):
            if i > 0 and groups[order[i]] != groups[order[i - 1]]:
                current += 1
            fold[order[i]] = current
        if current > 0:
            return fold
        blocks = DEFAULT_BLOCKS
    for i in range(n):
        fold[order[i]] = i * blocks // n
    return fold


@njit(nogil=True)
def choose_ridge(
    gram: Any, target: Any, fold: Any, slot: Any, gap: int, laplace: bool, energy: bool
) -> Any:
    """Ridge with the smallest held-out loss, and whether it lies on the edge of the grid.

    ``gram`` (n, n) and ``target`` (n,) are ordered by ascending target; ``slot`` is each case's
    position in time, which ``gap`` counts in. Logarithmic grid, then golden section.

    One eigendecomposition of the Gram matrix serves all ridges and all folds: with
    ``C = (K + mu I)^-1`` and held-out rows g, ``(K_tt + mu I)^-1 K_tg = -C_tg C_gg^-1``.
    """
    values, vectors = np.linalg.eigh(gram)
    decay = _decay(target)
    steps = int(round((GRID_HIGH - GRID_LOW) / GRID_STEP)) + 1
    best, best_loss = 0, np.inf
    for k in range(steps):
        ridge = 10.0 ** (GRID_LOW + k * GRID_STEP)
        loss = _held_out_loss(
            values, vectors, target, decay, fold, slot, gap, ridge, laplace, energy
        )
        if loss <= best_loss:  # of equal ones the larger ridge, which is the smoother forecast
            best, best_loss = k, loss
    if best == 0 or best == steps - 1:
        return 10.0 ** (GRID_LOW + best * GRID_STEP), True
    # Golden section between the neighbours of the best; each step evaluates one new point.
    middle = GRID_LOW + best * GRID_STEP
    low, high = middle - GRID_STEP, middle + GRID_STEP
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    losses = np.empty(2)
    for side in range(2):
        ridge = 10.0 ** (left if side == 0 else right)
        losses[side] = _held_out_loss(
            values, vectors, target, decay, fold, slot, gap, ridge, laplace, energy
        )
    for _ in range(REFINEMENTS):
        if losses[0] < best_loss:
            middle, best_loss = left, losses[0]
        if losses[1] < best_loss:
            middle, best_loss = right, losses[1]
        if losses[0] < losses[1]:
            high, right, losses[1] = right, left, losses[0]
            left = high - GOLDEN * (high - low)
            new, side = left, 0
        else:
            low, left, losses[0] = left, right, losses[1]
            right = low + GOLDEN * (high - low)
            new, side = right, 1
        losses[side] = _held_out_loss(
            values, vectors, target, decay, fold, slot, gap, 10.0**new, laplace, energy
        )
    return 10.0**middle, False


@njit(nogil=True)
def _decay(target: Any) -> Any:
    """``exp(-gap / theta)`` between neighbouring targets, theta the median positive distance."""
    n = target.size
    distances = np.empty(n * (n - 1) // 2)
    count = 0
    for i in range(n):
        for j in range(i):
            if target[i] > target[j]:
                distances[count] = target[i] - target[j]
                count += 1
    theta = np.median(distances[:count]) if count else 1.0
    decay = np.empty(n)
    for i in range(n - 1):
        decay[i] = np.exp((target[i] - target[i + 1]) / theta)
    return decay


@njit(nogil=True)
def _held_out_loss(
    values: Any,
    vectors: Any,
    target: Any,
    decay: Any,
    fold: Any,
    slot: Any,
    gap: int,
    ridge: float,
    laplace: bool,
    energy: bool,
) -> float:
    """Mean loss over all cases, each predicted without its fold and the gap around it."""
    n = target.size
    total, scored = 0.0, 0
    weights, beta = np.empty(n), np.empty(n)
    support, projected = np.empty(n), np.empty(n)
    for f in range(fold.max() + 1):
        out, n_held = _left_out(fold, f, slot, gap)
        n_train = n - out.size
        if n_train < 2 or n_held == 0:
            continue
        signed = _signed_weights(values, vectors, out, n_held, ridge * n_train)
        for c in range(n_held):
            position, k, mass = 0, 0, 0.0  # cases left out are met in ascending order below
            for i in range(n):
                weights[i] = 1.0
            for i in out:
                weights[i] = 0.0
            for i in range(n):
                if weights[i] > 0:
                    beta[k], support[k] = signed[i, c], target[i]
                    mass += beta[k]
                    k += 1
            for i in range(k):
                beta[i] += (1.0 - mass) / k
            if energy:
                energy_row(beta[:k], support[:k], projected[:k])
            else:
                simplex_row(beta[:k], projected[:k])
            for i in range(n):
                if weights[i] > 0:
                    weights[i] = projected[position]
                    position += 1
            if laplace:
                total += _laplace_loss(weights, decay, out[c])
            else:
                total += _crps_loss(weights, target, out[c])
            scored += 1
    return total / scored if scored else np.inf


@njit(nogil=True)
def _signed_weights(values: Any, vectors: Any, out: Any, n_held: int, shift: float) -> Any:
    """Weights (n, n_held) of all cases for the first ``n_held`` of those left out.

    Rows of cases left out hold no weights.
    """
    n, size = values.size, out.size
    shrunk, right = np.empty((n, n)), np.empty((n, size))
    for i in range(n):
        for j in range(n):
            shrunk[i, j] = vectors[i, j] / (max(values[j], 0.0) + shift)
    for j in range(size):
        for i in range(n):
            right[i, j] = vectors[out[j], i]
    columns = np.dot(shrunk, right)
    block = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            block[i, j] = -columns[out[i], j]
    # The inverse of this small block, as compiling a solver would take three seconds.
    inverse, held = np.linalg.inv(block), np.empty((size, n_held))
    for i in range(size):
        for c in range(n_held):
            held[i, c] = inverse[i, c]
    return np.dot(columns, held)


@njit(nogil=True)
def _left_out(fold: Any, f: int, slot: Any, gap: int) -> Any:
    """Cases of fold ``f``, then the others within ``gap`` slots of one of them; how many are held."""
    n = fold.size
    out = np.empty(n, dtype=np.int64)
    held = 0
    for c in range(n):
        if fold[c] == f:
            out[held] = c
            held += 1
    size = held
    if gap > 0:
        near = np.zeros(slot.max() + 1, dtype=np.int64)
        for c in out[:held]:
            for s in range(max(slot[c] - gap, 0), min(slot[c] + gap + 1, near.size)):
                near[s] = 1
        for c in range(n):
            if fold[c] != f and near[slot[c]] == 1:
                out[size] = c
                size += 1
    return out[:size], held


@njit(nogil=True)
def _laplace_loss(weights: Any, decay: Any, case: int) -> float:
    """``l(y, y) - 2 sum w_i l(y_i, y) + w'Lw`` at target ``case``, L never built.

    Targets ascend, so ``sum_{j<i} w_j l(y_j, y_i)`` is a recursion over neighbours.
    """
    quadratic, left, match = 0.0, 0.0, 0.0
    for i in range(weights.size):
        if i > 0:
            left = decay[i - 1] * (left + weights[i - 1])
        quadratic += weights[i] * (weights[i] + 2 * left)
        if i == case:
            match = left + weights[i]
    right = 0.0
    for i in range(weights.size - 1, case, -1):
        right = decay[i - 1] * (right + weights[i])
    return 1.0 - 2 * (match + right) + quadratic  # type: ignore[no-any-return]


@njit(nogil=True)
def _crps_loss(weights: Any, target: Any, case: int) -> float:
    """CRPS ``int (F - 1{z >= y})^2 dz`` at target ``case``; targets ascend and contain y."""
    total, below = 0.0, 0.0
    for i in range(weights.size - 1):
        below += weights[i]
        miss = below - 1.0 if i >= case else below
        total += (target[i + 1] - target[i]) * miss * miss
    return total
