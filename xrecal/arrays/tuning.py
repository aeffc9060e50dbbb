"""The ridge by blocked cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compiled import inner, kernel
from .kernel import MEDIAN_CASES, median_in_place, subset

# Ridges tried, in powers of ten, and how finely the best one is then located.
GRID_LOW, GRID_STEP, GRID_SIZE = -6.0, 0.5, 13
SECTION = (3 - np.sqrt(5.0)) / 2  # golden section
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06


@kernel
def choose_ridge(
    gram: Any, target: Any, fold: Any, slot: Any, gap: int, project: Any, between: Any, loss: Any
) -> Any:
    """Ridge with the smallest held-out loss, and whether it lies on the edge of the grid.

    ``gram`` (n, n) and ``target`` (n,) are ordered by ascending target; ``slot`` is each case's
    position in time, which ``gap`` counts in. Logarithmic grid, then golden section. ``project``
    is one of ``PROJECTIONS``, ``between`` and ``loss`` are one of ``LOSSES``; only those passed are
    compiled.

    One eigendecomposition of the Gram matrix serves all ridges and all folds: with
    ``C = (K + mu I)^-1`` and held-out rows g, ``(K_tt + mu I)^-1 K_tg = -C_tg C_gg^-1``.
    """
    values, vectors = np.linalg.eigh(gram)
    steps = between(target)
    low = best = high = GRID_LOW
    best_loss = np.inf
    for trial in range(GRID_SIZE + REFINEMENTS):  # one loop, as the loss is slow to compile
        exponent = GRID_LOW + trial * GRID_STEP
        if trial == GRID_SIZE:
            low, high = best - GRID_STEP, best + GRID_STEP
            if low < GRID_LOW or high >= exponent:
                return 10.0**best, True
        if trial >= GRID_SIZE:
            wider_above = high - best > best - low
            exponent = best + SECTION * (high - best if wider_above else low - best)
        held_out = _held_out_loss(
            values, vectors, target, steps, fold, slot, gap, 10.0**exponent, project, loss
        )
        if held_out < best_loss or (held_out == best_loss and trial < GRID_SIZE):
            # Of equal losses on the grid the larger ridge, which is the smoother forecast.
            if exponent > best:
                low = best
            else:
                high = best
            best, best_loss = exponent, held_out
        elif exponent > best:
            high = exponent
        else:
            low = exponent
    return 10.0**best, False


@kernel
def gaps_between(target: Any) -> Any:
    """Differences of neighbouring targets."""
    gaps = np.empty(target.size)
    for i in range(target.size - 1):
        gaps[i] = target[i + 1] - target[i]
    return gaps


@kernel
def decay_between(target: Any) -> Any:
    """``exp(-gap / theta)`` between neighbouring targets, theta the median positive distance."""
    n = target.size
    chosen = subset(n, MEDIAN_CASES)
    distances = np.empty(chosen.size * (chosen.size - 1) // 2)
    count = 0
    for i in range(chosen.size):
        for j in range(i):
            apart = abs(target[chosen[i]] - target[chosen[j]])
            if apart > 0:
                distances[count] = apart
                count += 1
    theta = median_in_place(distances[:count]) if count else 1.0
    decay = np.empty(n)
    for i in range(n - 1):
        decay[i] = np.exp((target[i] - target[i + 1]) / theta)
    return decay


@kernel
def _held_out_loss(
    values: Any,
    vectors: Any,
    target: Any,
    steps: Any,
    fold: Any,
    slot: Any,
    gap: int,
    ridge: float,
    project: Any,
    loss: Any,
) -> float:
    """Mean loss over all cases, each predicted without its fold and the gap around it."""
    n = target.size
    total, scored = 0.0, 0
    weights, beta = np.empty(n), np.empty(n)
    support, projected = np.empty(n), np.empty(n)
    n_folds = 0
    for f in fold:
        n_folds = max(n_folds, f + 1)
    for f in range(n_folds):
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
            project(beta[:k], support[:k], projected[:k])
            for i in range(n):
                if weights[i] > 0:
                    weights[i] = projected[position]
                    position += 1
            total += loss(weights, steps, out[c])
            scored += 1
    return total / scored if scored else np.inf


@inner
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


@inner
def _left_out(fold: Any, f: int, slot: Any, gap: int) -> Any:
    """Cases of fold ``f``, then others within ``gap`` slots of one of them; how many are held."""
    n = fold.size
    out = np.empty(n, dtype=np.int64)
    held = 0
    for c in range(n):
        if fold[c] == f:
            out[held] = c
            held += 1
    size = held
    if gap > 0:
        n_slots = 0
        for s in slot:
            n_slots = max(n_slots, s + 1)
        near = np.empty(n_slots, dtype=np.int64)
        for s in range(n_slots):
            near[s] = 0
        for c in out[:held]:
            for s in range(max(slot[c] - gap, 0), min(slot[c] + gap + 1, near.size)):
                near[s] = 1
        for c in range(n):
            if fold[c] != f and near[slot[c]] == 1:
                out[size] = c
                size += 1
    return out[:size], held


@kernel
def laplace_loss(weights: Any, decay: Any, case: int) -> float:
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
    return 1.0 - 2 * (match + right) + quadratic


@kernel
def crps_loss(weights: Any, gaps: Any, case: int) -> float:
    """CRPS ``int (F - 1{z >= y})^2 dz`` at target ``case``; targets ascend and contain y."""
    total, below = 0.0, 0.0
    for i in range(weights.size - 1):
        below += weights[i]
        miss = below - 1.0 if i >= case else below
        total += gaps[i] * miss * miss
    return total


LOSSES = {"crps": (gaps_between, crps_loss), "laplace": (decay_between, laplace_loss)}
"""What a loss needs to know between neighbouring targets, and the loss at one of them."""
