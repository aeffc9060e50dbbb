"""Calibration cases as the solver takes them, and their folds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import (
    VALID,
    Forecasts,
    usable_observations,
    verdicts,
)
from xrecal.arrays.kernels.covariates import Features
from xrecal.typing import FloatArray, IntArray

# Where one group holds most of the cases, holding it out leaves too little to learn from; then
# this many contiguous blocks are made.
DEFAULT_BLOCKS = 5


class OrderedCases(NamedTuple):
    """Cases of L locations, float64: the ``n_used`` usable ones first, in the order of time."""

    loc: FloatArray
    """(L, n, m)"""
    scale: FloatArray | None
    """(L, n, m)"""
    weights: FloatArray
    """(L, n, m)"""
    mean: FloatArray
    """(L, n)"""
    variance: FloatArray
    """(L, n)"""
    features: FloatArray
    """(L, n, k) of the covariates"""
    circular: npt.NDArray[np.bool_]
    """(k,)"""
    target: FloatArray
    """(L, n) observations"""
    weight: FloatArray
    """(L, n) logarithm to base 2 of how much each case counts, up to a constant"""
    slot: IntArray
    """(L, n) place of each case among all"""
    step: IntArray
    """(L, n) step in time of each case"""
    n_used: IntArray
    """(L,)"""


class NewForecasts(NamedTuple):
    """Forecasts to recalibrate, contiguous float64, NaN where one is missing or invalid."""

    loc: FloatArray
    """(L, T, p)"""
    scale: FloatArray | None
    """(L, T, p)"""
    weights: FloatArray
    """(L, T, p)"""
    mean: FloatArray
    """(L, T)"""
    variance: FloatArray
    """(L, T)"""
    features: FloatArray
    """(L, T, k)"""


def order_cases(
    cases: Forecasts,
    observations: FloatArray,
    features: Features,
    weight: FloatArray,
    moments: tuple[FloatArray, FloatArray],
    step: IntArray | None = None,
) -> tuple[OrderedCases, npt.NDArray[np.bool_]]:
    """Put the cases (L, n, m) that can be learned from first, with all that is known of them.

    ``observations``, ``weight`` and the two ``moments`` of the forecasts have shape (L, n), the
    ``step`` in time (n,); each case is a step of its own without. Also returns whether each
    location holds an invalid value, (L,).
    """
    usable, invalid = usable_observations(cases, observations)
    usable[~np.isfinite(features.values).all(-1)] = np.nan
    slot = np.argsort(np.isnan(usable), axis=-1, kind="stable")

    def ordered(part: FloatArray) -> FloatArray:
        place = slot if part.ndim == 2 else slot[..., np.newaxis]
        return np.ascontiguousarray(np.take_along_axis(part, place, axis=1), dtype=np.float64)

    loc, scale, weights = cases
    found = OrderedCases(
        ordered(loc),
        None if scale is None else ordered(scale),
        np.ones(loc.shape) if weights is None else ordered(weights),
        ordered(moments[0]),
        ordered(moments[1]),
        ordered(features.values),
        features.circular,
        ordered(usable),
        ordered(weight),
        slot,
        slot if step is None else np.asarray(step, np.int64)[slot],
        np.isfinite(usable).sum(-1),
    )
    return found, invalid


def valid_parts(
    forecasts: Forecasts, features: Features, moments: tuple[FloatArray, FloatArray]
) -> NewForecasts:
    """Forecasts (L, T, p) as compiled code takes them."""
    loc, scale, weights = forecasts
    bad = (verdicts(forecasts) != VALID)[..., np.newaxis]
    return NewForecasts(
        np.where(bad, np.nan, loc.astype(np.float64)),
        None if scale is None else np.array(scale, dtype=np.float64, order="C"),
        np.ones(loc.shape) if weights is None else np.array(weights, np.float64, order="C"),
        np.array(moments[0], np.float64, order="C"),
        np.array(moments[1], np.float64, order="C"),
        np.array(features.values, np.float64, order="C"),
    )


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
