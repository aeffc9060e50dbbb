"""Ridge, strength of the covariates and support by blocked cross-validation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import copy, kernel
from xrecal.arrays.kernels.kernel import subset
from xrecal.typing import FloatArray, IntArray

from .centre import centre_of, error_of, inside

TRAINED_ON = 0.75
"""Share of the training cases that folds must keep to be held out together."""


class Folds(NamedTuple):
    """Folds of n cases: each row holds those held out, others left out, then those to train on."""

    cases: IntArray
    """(F, n)"""
    n_held: IntArray
    """(F,)"""
    n_out: IntArray
    """(F,) cases held or left out"""


class Targets(NamedTuple):
    """What the training cases of each of F folds teach about each of S supports."""

    ranked: IntArray
    """(F, S, n) training cases by ascending error, then the others"""
    error: FloatArray
    """(F, S, n) their errors; NaN of the others"""
    centre: FloatArray
    """(F, S, n) centre of each case"""
    spread: FloatArray
    """(F, S, n) spread of each case"""
    inner: FloatArray
    """(F, 2) smallest and largest target between the bounds"""


@kernel
def arrange_folds(fold: Any, step: Any, gap: int, forward: bool) -> Any:
    """Folds that can be used: with two cases to train on, and one held out.

    ``step`` (n,), the step in time of each case, never descends and is what ``gap`` counts in.
    Cases of one step are in the same fold. ``forward`` trains on earlier cases only, as an
    operational forecast does.
    """
    n, n_folds = fold.size, 0
    for f in fold:
        n_folds = max(n_folds, f + 1)
    cases = np.empty((n_folds, n), dtype=np.int64)
    n_held, n_out = np.zeros(n_folds, dtype=np.int64), np.zeros(n_folds, dtype=np.int64)
    used = 0
    for f in range(n_folds):
        held, last = 0, -gap - 1
        first = -1
        for i in range(n):
            if fold[i] == f:
                cases[used, held] = i
                held += 1
                first = i if first < 0 else first
        size, train = held, n
        next_held = 0
        for i in range(n):  # the nearest held-out case before or behind decides
            while next_held < held and cases[used, next_held] < i:
                last = step[cases[used, next_held]]
                next_held += 1
            if fold[i] == f:
                continue
            behind = step[cases[used, next_held]] - step[i] if next_held < held else gap + 1
            late = forward and i > first
            if (next_held > 0 and step[i] - last <= gap) or behind <= gap or late:
                cases[used, size] = i
                size += 1
        is_out = np.zeros(n, dtype=np.bool_)
        for i in range(size):
            is_out[cases[used, i]] = True
        for i in range(n - 1, -1, -1):
            if not is_out[i]:
                train -= 1
                cases[used, train] = i
        if held > 0 and n - size >= 2:
            n_held[used], n_out[used] = held, size
            used += 1
    return Folds(cases[:used], n_held[:used], n_out[:used])


def thin_out(folds: Folds, size: int) -> Folds:
    """Folds that hold out some of the cases, always the same, and train on as many as before."""
    n = folds.cases.shape[1]
    kept = np.zeros(n, np.bool_)
    kept[subset(n, size)] = True
    cases, n_held = folds.cases.copy(), folds.n_held.copy()
    for f, n_before in enumerate(folds.n_held):
        held = folds.cases[f, :n_before]
        cases[f, :n_before] = np.concatenate([held[kept[held]], held[~kept[held]]])
        n_held[f] = kept[held].sum()
    return folds._replace(cases=cases, n_held=n_held)


def merge(folds: Folds, most: int) -> Folds:
    """At most so many folds, of neighbours that are held out together.

    Folds that would train on much less, as those that learn from the past alone, are left as they
    are.
    """
    n_folds, n = folds.cases.shape
    if n_folds <= most:
        return folds
    role = np.zeros((most, n), np.int64)
    for g, some in enumerate(np.array_split(np.arange(n_folds), most)):
        for f in some:
            role[g, folds.cases[f, : folds.n_out[f]]] = 1
        for f in some:
            role[g, folds.cases[f, : folds.n_held[f]]] = 2
        n_train = n - np.count_nonzero(role[g])
        if n_train < max(TRAINED_ON * (n - folds.n_out[some]).max(), 2):
            return folds
    cases = np.argsort(-role, axis=1, kind="stable")
    return Folds(cases, (role == 2).sum(1), (role > 0).sum(1))


def rank_errors(
    cases: IntArray,
    n_out: IntArray,
    supports: IntArray,
    mean: FloatArray,
    variance: FloatArray,
    of: FloatArray,
    target: FloatArray,
    low: float,
    high: float,
    fit: Any,
) -> Targets:
    """Targets of folds, with centres of each support fitted to the training cases alone.

    ``fit`` is ``fit_centre``, or ``past_observations`` where no centre is wanted.
    """
    shape = (cases.shape[0], supports.size, cases.shape[1])
    error, centre, spread = np.full(shape, np.nan), np.empty(shape), np.empty(shape)
    inner = np.empty((shape[0], 2))
    fill_errors(
        cases, n_out, supports, mean, variance, of, target, low, high, fit,
        error, centre, spread, inner,
    )  # fmt: skip
    order = np.argsort(error, axis=-1, kind="stable")  # NaN, such as of the others, last
    first = n_out[:, np.newaxis] + np.arange(shape[2])  # those to train on before the others
    cases = np.take_along_axis(cases, first % max(shape[2], 1), axis=-1)
    ranked = np.take_along_axis(cases[:, np.newaxis], order, axis=-1)
    return Targets(ranked, np.take_along_axis(error, order, axis=-1), centre, spread, inner)


@kernel
def fill_errors(
    cases: Any,
    n_out: Any,
    supports: Any,
    mean: Any,
    variance: Any,
    of: Any,
    target: Any,
    low: float,
    high: float,
    fit: Any,
    error: Any,
    centre: Any,
    spread: Any,
    inner: Any,
) -> None:
    """Errors of the training cases, in their order, and the rest of the targets."""
    n_folds, n = cases.shape
    found = np.empty(4 + 2 * of.shape[1])
    for f in range(n_folds):
        train = cases[f, n_out[f] :]
        x, v, y = np.empty(train.size), np.empty(train.size), np.empty(train.size)
        r = np.empty((train.size, of.shape[1]))
        for i in range(train.size):
            x[i], v[i], y[i] = mean[train[i]], variance[train[i]], target[train[i]]
            for k in range(of.shape[1]):
                r[i, k] = of[train[i], k]
        for s in range(supports.size):
            fit(supports[s], x, v, r, y, low, high, found)
            for i in range(n):
                c, d = centre_of(supports[s], found, mean[i], variance[i], of[i])
                centre[f, s, i], spread[f, s, i] = c, d
            for i in range(train.size):
                c, d = centre[f, s, train[i]], spread[f, s, train[i]]
                error[f, s, i] = error_of(y[i], c, d, low, high)
        inner[f, 0], inner[f, 1] = inside(y, low, high)


@kernel
def heaviest(root: Any, train: Any) -> float:
    """Largest weight of the cases to train on, which sets the scale of the ridge."""
    largest = 0.0
    for i in train:
        largest = max(largest, root[i] * root[i])
    return largest


@kernel
def left_out_weights(values: Any, vectors: Any, out: Any, n_held: int, shift: float) -> Any:
    """Weights (n_held, n) of all cases for the first of those left out.

    ``values`` and ``vectors`` are those of the kernel matrix K.

    One eigendecomposition serves all ridges and folds: with ``C = (K + shift I)^-1`` and
    left-out rows g, ``(K_tt + shift I)^-1 K_tg = -C_tg C_gg^-1``. Columns of cases left out hold no
    weights.
    """
    n, size = values.size, out.size
    shrunk = np.empty((size, n))
    for i in range(size):
        for j in range(n):
            shrunk[i, j] = vectors[out[i], j] / (max(values[j], 0.0) + shift)
    rows = np.dot(shrunk, vectors.T)
    block = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            block[i, j] = -rows[i, out[j]]
    # The inverse of this small block, as compiling a solver would take three seconds.
    inverse, held = np.linalg.inv(block), np.empty((n_held, size))
    for i in range(n_held):
        copy(inverse[i], held[i])
    return np.dot(held, rows)
