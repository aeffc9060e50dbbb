"""Folds of cases: the cases that a fold holds out, the cases of its gap, and its training cases."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import IndexMatrix, Indices
from xrecal.arrays.kernels.kernel import subset
from xrecal.arrays.splitting import ROUNDING, Span, distance_to, measure
from xrecal.typing import FloatArray, IntArray

DEFAULT_BLOCKS = 5
"""Number of folds if one group has more than half of the cases. A fold that holds out such a group
would have too few training cases. So each fold is then a block of successive cases."""

TRAINED_ON = 0.75
"""Joined folds must have at least this share of the training cases of each of the single folds."""


class Folds(NamedTuple):
    """F folds of n cases.

    Each fold lists its held-out cases, then the other cases from which it does not learn, and then
    its training cases.
    """

    cases: IndexMatrix
    """(F, n) positions of all n cases: held-out cases, other cases from which the fold does not
    learn, training cases"""
    n_held: Indices
    """(F,) number of held-out cases"""
    n_out: Indices
    """(F,) number of cases that are not training cases"""


def gap_axis(gap: Span, step: IntArray, days: npt.NDArray[Any] | None) -> tuple[FloatArray, float]:
    """Return the ascending positions of the cases in time, (n,), and the gap in the same unit.

    The unit is a step in time if the gap is a number of steps. It is a day if the gap is a length
    of time.
    """
    if isinstance(gap, np.timedelta64 | datetime.timedelta):
        apart = measure("gap", gap, step.size, days, least=0)
        return apart.position, apart.length
    return step.astype(np.float64), float(gap)


def count_near(days: FloatArray, tested: IntArray, others: IntArray, within: float) -> int:
    """Count the cases ``tested`` that are at most ``within`` days from a case of ``others``."""
    if not others.size:
        return 0
    others_days, tested_days = np.sort(days[others]), days[tested]
    after = np.searchsorted(others_days, tested_days)
    before = others_days[np.maximum(after - 1, 0)]
    behind = others_days[np.minimum(after, others_days.size - 1)]
    nearest = np.minimum(np.abs(tested_days - before), np.abs(behind - tested_days))
    return int((nearest <= within + ROUNDING).sum())


def arrange_folds(fold: IntArray, position: FloatArray, gap: float, forward: bool) -> Folds:
    """Return the folds that have at least two training cases and one held-out case.

    ``position`` (n,) and ``gap`` are the results of :func:`gap_axis`. With ``forward``, a fold
    trains on earlier cases only, as the fit for an operational forecast does.
    """
    case, rows, sizes = np.arange(fold.size), [], []
    for f in range(fold.max(initial=-1) + 1):
        held = np.flatnonzero(fold == f)
        if held.size == 0:
            continue
        kept = distance_to(held, position) > gap + ROUNDING
        if forward:
            kept &= case < held[0]
        kept[held] = False
        train, left = np.flatnonzero(kept), np.flatnonzero(~kept & (fold != f))
        if train.size >= 2:
            rows.append(np.concatenate([held, left, train]))
            sizes.append((held.size, held.size + left.size))
    n_held, n_out = np.array(sizes, np.int64).reshape(-1, 2).T.copy()
    return Folds(np.array(rows, np.int64).reshape(-1, fold.size), n_held, n_out)


def trained_on_few(folds: Folds) -> list[int]:
    """Return the indices of the folds that have fewer training cases than other cases.

    For these folds, the equations for the training cases take less time to solve than the equations
    for all other cases.
    """
    n = folds.cases.shape[1]
    return [f for f, n_out in enumerate(folds.n_out.tolist()) if n - n_out < n_out]


def by_rank(folds: Folds, ranked: IntArray) -> Folds:
    """Return the folds, each with its training cases in the order ``ranked`` (F, n).

    The entries of ``ranked`` are positions in the list of training cases of the fold.
    """
    cases = folds.cases.copy()
    for row, n_out, order in zip(cases, folds.n_out.tolist(), ranked, strict=True):
        row[n_out:] = row[n_out:][order[: row.size - n_out]]
    return folds._replace(cases=cases)


def same_training_cases(folds: Folds, others: Folds) -> bool:
    """Return whether two sets of folds train on the same cases; held-out cases may differ."""
    if not np.array_equal(folds.n_out, others.n_out):
        return False
    trained = np.arange(folds.cases.shape[1]) >= folds.n_out[:, np.newaxis]
    return bool(np.array_equal(folds.cases[trained], others.cases[trained]))


def holds_out_several(folds: Folds) -> bool:
    """Return whether folds hold out two or more cases each, on average."""
    n_folds, n = folds.cases.shape
    return bool(0 < 2 * n_folds <= n)


def thin_out(folds: Folds, size: int) -> Folds:
    """Return folds that hold out at most ``size`` cases in all, with the same training cases.

    Every call with the same folds and size holds out the same cases.
    """
    n = folds.cases.shape[1]
    kept = np.zeros(n, np.bool_)
    kept[subset(n, size)] = True
    return hold_out(folds, kept)


def not_held_out(folds: Folds, others: Folds) -> Folds:
    """Return the folds, but hold out only the cases that ``others`` do not hold out.

    Both sets of folds must have the same training cases.
    """
    n = folds.cases.shape[1]
    held = np.arange(n) < others.n_held[:, np.newaxis]
    return hold_out(folds, np.isin(np.arange(n), others.cases[held], invert=True))


def hold_out(folds: Folds, kept: npt.NDArray[np.bool_]) -> Folds:
    """Return the folds, but hold out only the cases that ``kept`` (n,) marks.

    The cases that a fold no longer holds out do not become training cases.
    """
    cases, n_held = folds.cases.copy(), folds.n_held.copy()
    for f, n_before in enumerate(folds.n_held):
        held = folds.cases[f, :n_before]
        cases[f, :n_before] = np.concatenate([held[kept[held]], held[~kept[held]]])
        n_held[f] = kept[held].sum()
    return folds._replace(cases=cases, n_held=n_held)


def merge(folds: Folds, most: int) -> Folds:
    """Join neighbouring folds, so that at most ``most`` folds remain.

    If a joined fold would have far fewer training cases than one of its parts (:data:`TRAINED_ON`),
    the function returns all folds unchanged. For example, it does not join folds that train on
    earlier cases only.
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
    """Return the fold number of each case.

    Parameters
    ----------
    groups : array of int, shape (n,)
        Group of each case: its calendar year, its step in time, or a random number for each step.
        All cases of a group are in the same fold.
    usable : array of bool, shape (L, n)
        True for the usable cases of each location.
    blocks : int
        Number of folds. The function sorts the usable cases by group, and cuts them between groups
        into this number of parts. The parts are equal if each group is one case. 0 makes each group
        a fold instead. With 0, a location that has more than half of its cases in one group gets
        five blocks in time. Each block consists of successive cases.
    step : array of int, shape (n,), optional
        Step in time of each case; all cases of a step are in the same block in time. By default
        each case is a step.

    Returns
    -------
    array of int64, shape (L, n)
        Fold numbers, from 0; -1 for a case that is not usable.
    """
    if blocks > 0:
        return _blocks(groups, usable, blocks)
    label = np.unique(groups, return_inverse=True)[1]
    counts = np.stack([usable[:, label == g].sum(-1) for g in range(label.max(initial=-1) + 1)])
    too_large = 2 * counts.max(axis=0) > usable.sum(-1)
    in_time = _blocks(np.arange(groups.size) if step is None else step, usable, DEFAULT_BLOCKS)
    return np.where(too_large[:, np.newaxis], in_time, np.where(usable, label, -1))


def _blocks(groups: IntArray, usable: npt.NDArray[np.bool_], blocks: int) -> IntArray:
    """Return the fold number (L, n) of each case, -1 if it is unusable; no fold splits a group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][:1] - 1))
    of_case = np.repeat(np.arange(starts.size), np.diff(starts, append=groups.size))
    counted = usable[:, order]
    n_used = np.maximum(counted.sum(-1, keepdims=True), 1)
    before: IntArray = np.cumsum(counted, axis=-1) - counted
    fold = np.empty(usable.shape, dtype=np.int64)
    fold[:, order] = np.where(counted, before[:, starts][:, of_case] * blocks // n_used, -1)
    return fold


def folds_in_time(
    fold_by: tuple[IntArray, int],
    slots: IntArray,
    axis: tuple[FloatArray, float],
    step: IntArray,
    *,
    forward: bool,
) -> Folds:
    """Return folds of the usable cases, whose positions among all n cases are ``slots`` (k,).

    ``fold_by`` holds the arguments ``groups`` (n,) and ``blocks`` of :func:`assign_folds`; ``axis``
    is the result of :func:`gap_axis`.
    """
    used = np.zeros((1, step.size), np.bool_)
    used[0, slots] = True
    fold = assign_folds(fold_by[0], used, fold_by[1], step)[0, slots]
    return arrange_folds(fold, axis[0][slots], axis[1], forward)
