"""Sums over cases, from which a shared fit learns its laws (distributions of errors)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

from .cells import cell_averages
from .landmarks import Landmarks

BLOCK = 4096
"""Number of cases whose vectors are in memory at once. These vectors take 32 MB with 1000
landmarks."""


class Sums(NamedTuple):
    r"""Sums over cases, each with a weight :math:`\omega`, a vector z and cell averages a.

    The error of a case defines a step from 0 to 1; a has the mean of this step in each of J cells.
    The sums over several sets of cases add up, in any order, to the sums over all cases. With r
    landmarks, the sums have about r² + r J numbers.
    """

    square: FloatArray
    r"""(r, r) :math:`A = \sum \omega z z^T`"""
    cross: FloatArray
    r"""(r, J) :math:`C = \sum \omega z a^T`"""
    total: FloatArray
    r"""(r,) :math:`c = \sum \omega z`"""
    below: FloatArray
    r"""(J,) :math:`b = \sum \omega a`"""
    weight: FloatArray
    r"""() :math:`W = \sum \omega`"""

    def plus(self, other: Sums) -> Sums:
        """Add the sums over other cases."""
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, factor: float) -> Sums:
        """Return the sums over the same cases, with all weights multiplied by a factor."""
        return Sums(*(a * factor for a in self))


def no_cases(rank: int, n_cells: int) -> Sums:
    """Return the sums over no case."""
    shapes = (rank, rank), (rank, n_cells), (rank,), (n_cells,), ()
    return Sums(*map(np.zeros, shapes))


def all_of(parts: Iterable[Sums]) -> Sums:
    """Return the sums over the cases of all parts; there must be at least one part."""
    first, *others = parts
    for part in others:
        first = first.plus(part)
    return first


def some_of(parts: Sequence[Sums], which: npt.ArrayLike) -> Sums:
    """Return the sums over the parts marked in ``which`` (G,); zeros if no part is marked."""
    kept = [part for part, counts in zip(parts, np.asarray(which).tolist(), strict=True) if counts]
    return all_of(kept) if kept else Sums(*map(np.zeros_like, parts[0]))


def sum_cases(
    landmarks: Landmarks,
    grid: FloatArray,
    placed: FloatArray,
    errors: FloatArray,
    weights: FloatArray | None = None,
) -> Sums:
    """Compute sums over some cases.

    Parameters
    ----------
    landmarks : Landmarks
        The r landmarks.
    grid : array of float, shape (J + 1,)
        Thresholds of errors; successive thresholds are the limits of J cells.
    placed : array of float, shape (n, d)
        Coordinates of the cases.
    errors : array of float, shape (n,)
        Errors in the unit of the grid.
    weights : array of float, shape (n,), optional
        Weights of the cases (>= 0); 1 by default.

    Returns
    -------
    Sums
        Sums over the cases with finite coordinates, finite errors and a weight above 0.

    Raises
    ------
    ValueError
        If shapes do not match or a weight is negative.

    Notes
    -----
    The time is O(r² + r (d + J)) per case, nearly all of it in BLAS. The vectors of 4096 cases are
    in memory at a time.
    """
    w = np.ones(len(errors)) if weights is None else np.asarray(weights, np.float64)
    if errors.ndim != 1 or placed.shape[:1] != errors.shape or w.shape != errors.shape:
        raise ValueError(
            f"coordinates {placed.shape}, errors {errors.shape} and weights {w.shape} must be of "
            "the same cases"
        )
    if (w < 0).any():
        raise ValueError(f"weights must not be negative, found {w.min():g}")
    sums = no_cases(landmarks.rank, grid.size - 1)
    for first in range(0, errors.size, BLOCK):
        part = slice(first, first + BLOCK)
        _add(sums, landmarks, grid, (placed[part], errors[part], w[part]))
    return sums


def _add(
    sums: Sums,
    landmarks: Landmarks,
    grid: FloatArray,
    cases: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    """Add some cases, with coordinates, errors and weights, to the arrays of the sums."""
    placed, errors, weights = cases
    used = np.isfinite(errors) & np.isfinite(placed).all(1) & (weights > 0)
    if not used.all():
        placed, errors, weights = (part[used] for part in cases)
    if not errors.size:
        return
    z = landmarks.embed(placed)
    averages = cell_averages(errors[:, np.newaxis], grid)
    if (weights != 1.0).any():
        root = np.sqrt(weights)
        z *= root
        averages *= root[:, np.newaxis]
    else:
        root = weights
    square, cross, total, below, weight = sums
    square += z @ z.T  # NumPy computes half of a product with its own transpose
    cross += z @ averages
    total += z @ root
    below += root @ averages
    weight += weights.sum()


def sum_parts(
    landmarks: Landmarks,
    grid: FloatArray,
    placed: FloatArray,
    errors: FloatArray,
    part: IntArray,
    n_parts: int,
) -> list[Sums]:
    """Compute sums over the cases of each part; a case with the part -1 belongs to no part."""
    return [
        sum_cases(landmarks, grid, placed[part == g], errors[part == g]) for g in range(n_parts)
    ]
