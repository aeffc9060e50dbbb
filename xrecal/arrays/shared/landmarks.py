"""Landmarks: cases that represent all others, and vectors that compare cases with the landmarks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.ckme.lapack import solve_lower
from xrecal.arrays.ckme.lowrank import TOGETHER, Pivots, take_pivots
from xrecal.typing import FloatArray

MAX_RANK = 1000
TOLERANCE = 1e-6
"""Landmarks suffice if no residual exceeds this number. A case has the similarity 1 to itself; its
residual is the part of this 1 that the landmarks do not explain."""


class Landmarks(NamedTuple):
    """Landmarks in the order of their choice; the first k can serve as a smaller set."""

    points: FloatArray
    """(r, d) coordinates"""
    root: FloatArray
    """(r, r) lower Cholesky factor of the similarities between landmarks"""

    @property
    def rank(self) -> int:
        """Return the number of landmarks."""
        return len(self.points)

    def similarities(self, placed: FloatArray) -> FloatArray:
        """Return similarities (r, n) of cases (n, d) to the landmarks, in [0, 1]."""
        similar = self.points @ placed.T
        similar *= 2.0
        similar -= (self.points**2).sum(1)[:, np.newaxis]
        similar -= (placed**2).sum(1)
        np.minimum(similar, 0.0, out=similar)  # rounding may make it positive at a landmark
        return np.asarray(np.exp(similar, out=similar))

    def embed(self, placed: FloatArray) -> FloatArray:
        r"""Return vectors z (r, n) of cases (n, d); their products approximate similarities.

        :math:`z(x) = L^{-1} k_p(x)`, with the similarities :math:`k_p` to the landmarks and their
        Cholesky factor L. The cost is O(r d + r²) per case.
        """
        return solve_lower(self.root, self.similarities(placed))


def choose_landmarks(
    placed: FloatArray, max_rank: int = MAX_RANK, tolerance: float = TOLERANCE
) -> Landmarks:
    """Choose landmarks in a sample, by pivoted Cholesky decomposition of its kernel matrix.

    Parameters
    ----------
    placed : array of float, shape (n, d)
        Coordinates of the cases, finite.
    max_rank : int
        Largest number of landmarks.
    tolerance : float
        The function adds landmarks until the largest residual is at most this number; see
        :data:`TOLERANCE`.

    Returns
    -------
    Landmarks
        At least one landmark.

    Raises
    ------
    ValueError
        If there are no cases, or coordinates are not finite.

    Notes
    -----
    The time is O(n r² + n r d), the memory O(n r). Each new landmark is a case whose residual is at
    or near the largest residual.

    References
    ----------
    .. [1] Harbrecht, Peters & Schneider (2012), On the low-rank approximation by the pivoted
       Cholesky decomposition. https://doi.org/10.1016/j.apnum.2011.10.001
    """
    points = np.ascontiguousarray(placed, np.float64)
    n = len(points)
    if n == 0 or not np.isfinite(points).all():
        raise ValueError(f"landmarks need cases with finite coordinates, got {n} cases")
    most = min(max_rank, n)
    rows, left, taken = np.empty((most, n)), np.ones(n), np.empty(0, np.int64)
    while taken.size < most and left.max() > tolerance:
        size = min(TOGETHER, most - taken.size)
        cases = np.argpartition(left, -size)[-size:]
        columns = Landmarks(points[cases], np.eye(size)).similarities(points)
        columns -= rows[: taken.size, cases].T @ rows[: taken.size]
        pivots = Pivots(
            rows[taken.size : taken.size + size], np.empty(size, np.int64), np.empty(size)
        )
        # The function compares the mean residual. It is at most this value if no residual exceeds
        # the tolerance.
        added = take_pivots(columns, cases, left, tolerance / n, pivots)
        if added == 0:  # only rounding is left
            break
        taken = np.concatenate([taken, pivots.taken[:added]])
    root = np.ascontiguousarray(np.tril(rows[: taken.size, taken].T))
    return Landmarks(points[taken], root)
