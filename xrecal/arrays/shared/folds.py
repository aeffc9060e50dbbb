"""Folds of dates, and the parts that make up each fold.

The training sums of a fold are the sums over its training cases. A function that needs them adds up
the sums over some parts of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xrecal.arrays.splitting import ROUNDING, distance_to
from xrecal.typing import FloatArray, IntArray

from .sums import Sums, some_of

FOLDS = 5
"""Number of folds of dates, and number of folds of places."""


class Folds(NamedTuple):
    """F folds to hold out, which consist of G parts of the record.

    With a gap, the cases next to a fold A are parts of their own. These parts belong to the
    neighbouring fold B, but a fit that holds out A does not learn from these parts either.
    """

    of_part: IntArray
    """(G,) fold of each part"""
    learned: FloatArray
    """(F, G) factor of each part in the training sums of a fold; 0 for parts of the fold and of its
    gap"""

    @property
    def earlier(self) -> FloatArray:
        """Return the factor (F, G) of each part in the sum over all folds before a fold."""
        later = self.of_part >= np.arange(len(self.learned))[:, np.newaxis]
        return np.where(later, 0.0, self.learned)

    def held(self, parts: FloatArray) -> FloatArray:
        """Return the sums (F, ...) over each held-out fold, from sums (G, ...) over parts."""
        own = self.of_part == np.arange(len(self.learned))[:, np.newaxis]
        return np.tensordot(own.astype(np.float64), parts, 1)

    def pairs(self, parts: Sequence[Sums]) -> list[tuple[Sums, Sums]]:
        """Return training sums and held-out sums of each fold that has both kinds of cases."""
        both = (
            (some_of(parts, learned), some_of(parts, self.of_part == f))
            for f, learned in enumerate(self.learned)
        )
        return [(rest, held) for rest, held in both if rest.weight > 0 and held.weight > 0]


def whole_folds(count: int) -> Folds:
    """Return folds without gaps: each fold is one part."""
    return Folds(np.arange(count), 1.0 - np.eye(count))


def folds_of(groups: IntArray) -> IntArray:
    """Return the fold of each date, from the groups of dates (n,).

    All dates of a group are in one fold, and folds follow the order of the groups.
    """
    label = np.unique(groups, return_inverse=True)[1]
    count = int(label.max(initial=0)) + 1
    return np.asarray(label * min(FOLDS, count) // count, np.int64)


def parts_of(
    fold: IntArray, axis: tuple[FloatArray, float], weights: FloatArray
) -> tuple[IntArray, Folds]:
    """Return the part of each case, and folds with a gap on both sides.

    Parameters
    ----------
    fold : array of int, shape (n,)
        Fold of each case, from 0.
    axis : tuple
        Ascending positions (n,) of the cases, and the gap in the same unit; see
        :func:`xrecal.arrays.ckme.folds.gap_axis`.
    weights : array of float, shape (n,)
        Weights of the cases. The function scales the training sums of each fold, so that its newest
        training case has the same weight as the newest case of the record.

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
    # The parts of a fold follow each other, so without a gap parts and folds are the same.
    keys, part = np.unique(np.vstack([fold, left_out]), axis=1, return_inverse=True)
    learned = np.where(keys[1:], 0.0, 1.0)
    newest = np.zeros(keys.shape[1])
    np.maximum.at(newest, part.ravel(), weights)
    known = (learned * newest).max(1, keepdims=True)
    return part.ravel(), Folds(keys[0], learned * (newest.max() / np.where(known > 0, known, 1.0)))
