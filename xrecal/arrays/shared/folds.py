"""Folds of dates, and the parts of the record whose sums add up to what each fold learns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xrecal.arrays.splitting import ROUNDING, distance_to
from xrecal.typing import FloatArray, IntArray

from .sums import Sums, some_of

FOLDS = 5
"""Of dates, and of places."""


class Folds(NamedTuple):
    """F folds that are held out, made of G parts of the record.

    With a gap the cases beside a fold are parts of their own: they belong to a neighbour, but what
    is learned without the fold does not know them either.
    """

    of_part: IntArray
    """(G,) fold of each part"""
    learned: FloatArray
    """(F, G) factor of each part in sums without a fold; 0 of its own parts and within the gap"""

    @property
    def earlier(self) -> FloatArray:
        """(F, G) the same for sums over earlier folds alone."""
        later = self.of_part >= np.arange(len(self.learned))[:, np.newaxis]
        return np.where(later, 0.0, self.learned)

    def held(self, parts: FloatArray) -> FloatArray:
        """Arrays (F, ...) of the folds, from those (G, ...) that are summed over each part."""
        own = self.of_part == np.arange(len(self.learned))[:, np.newaxis]
        return np.tensordot(own.astype(np.float64), parts, 1)

    def pairs(self, parts: Sequence[Sums]) -> list[tuple[Sums, Sums]]:
        """Sums without each fold and sums of it, from those of the parts; where both have cases."""
        both = (
            (some_of(parts, learned), some_of(parts, self.of_part == f))
            for f, learned in enumerate(self.learned)
        )
        return [(rest, held) for rest, held in both if rest.weight > 0 and held.weight > 0]


def whole_folds(count: int) -> Folds:
    """Folds without gaps, which are their only parts."""
    return Folds(np.arange(count), 1.0 - np.eye(count))


def folds_of(groups: IntArray) -> IntArray:
    """Fold of each date, from groups of dates (n,) that are never cut, in their order."""
    label = np.unique(groups, return_inverse=True)[1]
    count = int(label.max(initial=0)) + 1
    return np.asarray(label * min(FOLDS, count) // count, np.int64)


def parts_of(
    fold: IntArray, axis: tuple[FloatArray, float], weights: FloatArray
) -> tuple[IntArray, Folds]:
    """Part of each case, and folds that leave out a gap on either side.

    Parameters
    ----------
    fold : array of int, shape (n,)
        Fold of each case, from 0.
    axis : tuple
        Positions (n,) of the cases, which ascend, and the gap in their unit; see
        :func:`xrecal.arrays.ckme.folds.gap_axis`.
    weights : array of float, shape (n,)
        Of the cases. What is learned without a fold counts as if its newest case were the newest
        of all.

    Returns
    -------
    tuple of an array of int (n,) and Folds
    """
    (position, gap), numbers = axis, np.arange(fold.max(initial=0) + 1)
    own = fold == numbers[:, np.newaxis]
    left_out = own
    if gap > 0:
        near = [distance_to(np.flatnonzero(held), position) <= gap + ROUNDING for held in own]
        left_out = own | np.array(near)
    # Those of a fold follow each other, so that parts are the folds where there is no gap.
    keys, part = np.unique(np.vstack([fold, left_out]), axis=1, return_inverse=True)
    learned = np.where(keys[1:], 0.0, 1.0)
    newest = np.zeros(keys.shape[1])
    np.maximum.at(newest, part.ravel(), weights)
    known = (learned * newest).max(1, keepdims=True)
    return part.ravel(), Folds(keys[0], learned * (newest.max() / np.where(known > 0, known, 1.0)))
