"""Tests of the squared kernel calibration error where successive cases depend on each other."""

from __future__ import annotations

import numpy as np

from xrecal.arrays.serial import (
    FEWEST_WAVES,
    block_lengths,
    is_dependent,
    neighbour_correlation,
    rotations,
    waves,
)
from xrecal.typing import FloatArray, IntArray

SHARE = 0.45
"""As in :mod:`xrecal.arrays.serial`: a sum of squares errs further than a mean does."""

COMPONENTS, ITERATIONS = 2, 12
"""Directions of error whose dependence counts, and steps of the search for them."""

RESAMPLED = 1_000_000
"""Random numbers that are held at a time."""


def sums_by_date(h: FloatArray, date: IntArray) -> FloatArray:
    """Matrix (d, d) of the sums over pairs of cases of two dates, 0, 1, ... of cases (n,)."""
    n = int(date[-1]) + 1 if date.size else 0
    if n == len(h):
        return h
    first = np.searchsorted(date, np.arange(n))
    return np.asarray(np.add.reduceat(np.add.reduceat(h, first, axis=0), first, axis=1))


def error_correlation(h: FloatArray) -> FloatArray:
    """Autocorrelation (2,) of neighbours in the leading principal components of errors.

    Errors of cases are vectors with products h (n, n), taken about their mean. By orthogonal
    iteration; the first components are known well where they are large, the others count less.
    """
    n = len(h)
    centred = h - h.mean(0)
    centred -= centred.mean(1, keepdims=True)
    k = min(2 * COMPONENTS, n)
    basis = np.random.default_rng(0).standard_normal((n, k))
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(centred @ basis)[0]
    turned = np.linalg.eigh(basis.T @ centred @ basis)[1][:, ::-1][:, :COMPONENTS]
    return neighbour_correlation((basis @ turned).T)


def chosen_length(h: FloatArray) -> int:
    """Successive cases that count as one; see :func:`xrecal.arrays.skce_block_length`."""
    return int(block_lengths(error_correlation(h), np.array(len(h)), SHARE).max())


def shows_dependence(h: FloatArray) -> bool:
    """Whether errors of successive cases are more alike than by chance."""
    return bool(is_dependent(error_correlation(h), np.array(len(h))).any())


def serial_p_value(
    h: FloatArray, n_resamples: int, rng: np.random.Generator, block_length: int, given: bool
) -> float:
    """p-value of rotations of the slow waves of a float64 matrix; see :func:`skce_test`.

    NaN with fewer waves than tell anything: 1 if the block length is given, else 3.
    """
    n_waves = len(h) // block_length - 1
    if n_waves < (1 if given else FEWEST_WAVES) or np.isnan(h).any():
        return np.nan
    slow = h if block_length == 1 else waves(waves(h, n_waves).T, n_waves)
    # Blocks of 1 keep all waves, of which a rotation is as good as one of the cases themselves.
    statistic = h.sum() / len(h)
    least, count = statistic - 1e-12 * len(h) * np.abs(h).max(), 0
    step = max(1, RESAMPLED // (n_waves + 1))
    for start in range(0, n_resamples, step):
        turned = rotations(rng, min(step, n_resamples - start), n_waves)
        count += int((np.einsum("bi,bi->b", turned @ slow, turned) >= least).sum())
    return (1 + count) / (n_resamples + 1)
