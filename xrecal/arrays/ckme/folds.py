"""Cases to folds: which are held out, which are left out with them, and which are trained on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import IndexMatrix, Indices, kernel
from xrecal.arrays.kernels.kernel import subset
from xrecal.typing import IntArray

DEFAULT_BLOCKS = 5
"""Contiguous blocks that are made where one group holds most of the cases: holding it out would
leave too little to learn from."""

TRAINED_ON = 0.75
"""Share of the training cases that folds must keep to be held out together."""


class Folds(NamedTuple):
    """Folds of n cases: each row holds those held out, others left out, then those to train on."""

    cases: IndexMatrix
    """(F, n)"""
    n_held: Indices
    """(F,)"""
    n_out: Indices
    """(F,) cases held or left out"""


@kernel
def arrange_folds(fold: Indices, step: Indices, gap: int, forward: bool) -> Any:
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


def assign_folds(
    groups: IntArray,
    usable: npt.NDArray[np.bool_],
    blocks: int,
    step: IntArray | None = None,
) -> IntArray:
    """Fold number of each case.

    Parameters
    ----------
    groups : array of int, shape (n,)
        What folds are made of and never cut through: calendar years, or an order of the cases
        (their step in time, or random numbers for the steps).
    usable : array of bool, shape (L, n)
        Cases that count at each location.
    blocks : int
        0: one fold for each group; a location with more than half of its cases in one group gets
        five blocks in time. Otherwise usable cases, ordered by group, are cut between groups into
        ``blocks`` parts, equal if each group is one case.
    step : array of int, shape (n,), optional
        Step in time of each case, which blocks in time are not cut through; each case is one
        without.

    Returns
    -------
    array of int64, shape (L, n)
        From 0; -1 where a case is not usable.
    """
    if blocks > 0:
        return _blocks(groups, usable, blocks)
    label = np.unique(groups, return_inverse=True)[1]
    counts = np.stack([usable[:, label == g].sum(-1) for g in range(label.max(initial=-1) + 1)])
    too_large = 2 * counts.max(axis=0) > usable.sum(-1)
    in_time = _blocks(np.arange(groups.size) if step is None else step, usable, DEFAULT_BLOCKS)
    return np.where(too_large[:, np.newaxis], in_time, np.where(usable, label, -1))


def _blocks(groups: IntArray, usable: npt.NDArray[np.bool_], blocks: int) -> IntArray:
    """Usable cases (L, n), ordered by group, in parts that contain whole groups."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][:1] - 1))
    of_case = np.repeat(np.arange(starts.size), np.diff(starts, append=groups.size))
    counted = usable[:, order]
    n_used = np.maximum(counted.sum(-1, keepdims=True), 1)
    before: IntArray = np.cumsum(counted, axis=-1) - counted
    fold = np.empty(usable.shape, dtype=np.int64)
    fold[:, order] = np.where(counted, before[:, starts][:, of_case] * blocks // n_used, -1)
    return fold
