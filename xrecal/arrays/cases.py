"""Calibration cases in the order that the solver works in, and their folds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

from .forms import VALID, Forecasts, usable_observations, verdicts

# Where one group holds most of the cases, holding it out leaves too little to learn from; then
# this many contiguous blocks are made.
DEFAULT_BLOCKS = 5

# Copies of cases exist for a block of locations at a time, of about this size in bytes.
WORKSPACE = 64_000_000


class OrderedCases(NamedTuple):
    """Cases of L locations, float64: the ``n_used`` usable ones first, by ascending target."""

    loc: FloatArray
    """(L, n, m)"""
    scale: FloatArray | None
    """(L, n, m)"""
    weights: FloatArray
    """(L, n, m)"""
    target: FloatArray
    """(L, n) observations"""
    slot: IntArray
    """(L, n) position of each case in time"""
    n_used: IntArray
    """(L,)"""


def order_cases(
    cases: Forecasts, observations: FloatArray
) -> tuple[OrderedCases, npt.NDArray[np.bool_]]:
    """Order cases (L, n, m) by observation (L, n), those that cannot be learned from last.

    Also whether each location holds an invalid value, (L,).
    """
    usable, invalid = usable_observations(cases, observations)
    slot = np.argsort(usable, axis=-1, kind="stable")  # NaN last

    def ordered(part: FloatArray) -> FloatArray:
        taken = np.take_along_axis(part, slot[..., np.newaxis], axis=1)
        return np.ascontiguousarray(taken, dtype=np.float64)

    loc, scale, weights = cases
    found = OrderedCases(
        ordered(loc),
        None if scale is None else ordered(scale),
        np.ones(loc.shape) if weights is None else ordered(weights),
        np.take_along_axis(usable, slot, axis=1).astype(np.float64),
        slot,
        np.isfinite(usable).sum(-1),
    )
    return found, invalid


def valid_parts(forecasts: Forecasts) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    """Parts of forecasts (L, T, p) as contiguous float64, NaN where one is missing or invalid."""
    loc, scale, weights = forecasts
    bad = (verdicts(forecasts) != VALID)[..., np.newaxis]
    return (
        np.where(bad, np.nan, loc.astype(np.float64)),
        None if scale is None else np.array(scale, dtype=np.float64, order="C"),
        np.ones(loc.shape) if weights is None else np.array(weights, np.float64, order="C"),
    )


def assign_folds(groups: IntArray, usable: npt.NDArray[np.bool_], blocks: int) -> IntArray:
    """Fold number of each case.

    Parameters
    ----------
    groups : array of int, shape (n,)
        What folds are made of: calendar years, or an order of the cases (their position in time,
        or random numbers).
    usable : array of bool, shape (L, n)
        Cases that count at each location.
    blocks : int
        0: one fold for each group; a location with more than half of its cases in one group gets
        five blocks. Otherwise usable cases, ordered by group and then by time, are cut into
        ``blocks`` equal parts.

    Returns
    -------
    array of int64, shape (L, n)
        From 0; -1 where a case is not usable.
    """
    order = np.argsort(groups, kind="stable")
    counted = usable[:, order]
    n_used = np.maximum(counted.sum(-1, keepdims=True), 1)
    rank = np.cumsum(counted, axis=-1) - 1
    ordered = rank * (blocks or DEFAULT_BLOCKS) // n_used
    if blocks == 0:
        label = np.unique(groups, return_inverse=True)[1][order]
        starts = np.flatnonzero(np.diff(label, prepend=-1))
        largest = np.add.reduceat(counted, starts, axis=-1, dtype=np.int64).max(-1, keepdims=True)
        ordered = np.where(2 * largest <= n_used, label, ordered)
    fold = np.empty(usable.shape, dtype=np.int64)
    fold[:, order] = np.where(counted, ordered, -1)
    return fold


def location_blocks(n_locations: int, bytes_each: int) -> Iterator[slice]:
    """Slices of locations whose arrays fit the workspace, at least one location each."""
    step = max(1, WORKSPACE // max(bytes_each, 1))
    for start in range(0, n_locations, step):
        yield slice(start, start + step)
