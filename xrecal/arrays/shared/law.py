"""Distributions of errors ("laws"), computed from sums over cases, and choice of their ridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xrecal.arrays.ckme.lapack import Positive, solve_any
from xrecal.arrays.ckme.simplex import push_level
from xrecal.arrays.compiled import Matrix, OutMatrix, Vector, kernel
from xrecal.typing import FloatArray

from .cells import NothingToLearnError
from .folds import Folds
from .landmarks import Landmarks
from .sums import BLOCK, Sums

RIDGES = np.logspace(-8, 0, 17)
"""Ridges to try: two per power of 10, because the loss hardly changes from one ridge to the next.
With far more cases than landmarks, the best ridge is below 1e-6."""


class SharedLaw(NamedTuple):
    """Map from the coordinates of a case to the distribution of its error.

    The map first gives a signed CDF, which may decrease or leave [0, 1]. A projection makes it the
    CDF of a distribution.
    """

    landmarks: Landmarks
    grid: FloatArray
    """(J + 1,) thresholds"""
    factors: FloatArray
    """(r, J) coefficients. To get the signed CDF of a case, multiply its similarities to the
    landmarks by these coefficients, and add ``average``"""
    share: FloatArray
    """(r,) coefficients. To get the sum s of the signed weights in :meth:`signed`, multiply the
    similarities of a case to the landmarks by these coefficients"""
    average: FloatArray
    """(J,) CDF of all cases"""
    ridge: float

    def signed(self, placed: FloatArray) -> FloatArray:
        r"""Return the signed CDF (n, J) of cases (n, d), as averages in each cell.

        :math:`F(x) = z^T (A + \lambda W)^{-1} C + (1 - s) b / W`,
        :math:`s = z^T (A + \lambda W)^{-1} c`, with the ridge :math:`\lambda`, the vector z of the
        case and the sums A, C, b, c and W of :class:`.sums.Sums`.
        """
        similar = self.landmarks.similarities(placed).T
        return np.asarray(similar @ self.factors + self.average)

    def weights(self, placed: FloatArray) -> FloatArray:
        """Return the probability of each value of the grid (n, J + 1), for cases (n, d).

        These values are the thresholds of errors. Of all distributions on the thresholds, the
        returned distribution has the CDF nearest to the signed CDF in L².
        If a coordinate of a case is NaN, the probabilities of the case are NaN.
        """
        out = np.empty((len(placed), self.grid.size))
        for first in range(0, len(placed), BLOCK):
            part = slice(first, first + BLOCK)
            nearest_law(self.signed(placed[part]), np.diff(self.grid), out[part])
        return out


def solve_sums(landmarks: Landmarks, grid: FloatArray, sums: Sums, ridge: float) -> SharedLaw:
    """Compute the law from sums over cases; the ridge (> 0) is in units of the sum of case weights.

    The time is O(r³ + r² J).
    """
    if not ridge > 0:
        raise ValueError(f"ridge must be positive, got {ridge}")
    if not sums.weight > 0:
        raise NothingToLearnError("there are no cases to learn from: the sums have no weight")
    matrix = np.array(sums.square, order="C")
    matrix[np.diag_indices_from(matrix)] += ridge * sums.weight
    right = np.column_stack([sums.cross, sums.total])
    solved = Positive(matrix).solve(np.ascontiguousarray(right.T)).T
    # Store factors of similarities, not of vectors, so that a forecast needs no triangular
    # solution.
    factors = solve_any(landmarks.root.T, solved)
    share, average = factors[:, -1], sums.below / sums.weight
    centred = factors[:, :-1] - share[:, np.newaxis] * average
    return SharedLaw(landmarks, grid, centred, share, average, float(ridge))


def ridge_losses(
    parts: Sequence[Sums], grid: FloatArray, folds: Folds, ridges: FloatArray = RIDGES
) -> FloatArray:
    r"""Compute the mean CRPS of held-out cases for each ridge, from sums over parts of the record.

    Parameters
    ----------
    parts : sequence of Sums
        Sums over the cases of each part of the folds.
    grid : array of float, shape (J + 1,)
        Thresholds of errors.
    folds : Folds
        Held-out and training parts of each fold.
    ridges : array of float, shape (K,)
        Ridges to try, above 0.

    Returns
    -------
    array of float64, shape (K,)
        The mean over all cases of :math:`\int (F - 1\{e \le t\})^2 dt` over the grid, in the unit
        of the errors e. F is the signed CDF. Forecasts project F to probabilities, which can only
        lower the loss.

    Raises
    ------
    ValueError
        If fewer than two folds have both held-out and training cases.

    Notes
    -----
    F is constant in a cell, so the integral over the cell is :math:`F^2 - 2 F a + a` times the
    width of the cell, where a is the average of :math:`1\{e \le t\}` in the cell. The sum of these
    integrals over cases follows from ``parts``. For each fold, the function needs one
    eigendecomposition and O(r² J) time, plus O(r²) time for each ridge.
    """
    losses, weights = fold_losses(folds.pairs(parts), grid, ridges)
    return np.asarray(weights @ losses / weights.sum())


def fold_losses(
    pairs: Sequence[tuple[Sums, Sums]], grid: FloatArray, ridges: FloatArray = RIDGES
) -> tuple[FloatArray, FloatArray]:
    """Return mean losses (F, K) of held-out cases with each ridge, and weights (F,) of the folds.

    The training cases of a fold give the law that predicts its held-out cases. ``pairs`` is the
    result of :meth:`.folds.Folds.pairs`, with at least two folds.
    """
    if len(pairs) < 2:
        raise NothingToLearnError(f"held-out losses need two folds with cases, found {len(pairs)}")
    gaps = np.diff(grid)
    losses = [_held_out(others, held, gaps, ridges) / held.weight for others, held in pairs]
    return np.stack(losses), np.array([float(held.weight) for _, held in pairs])


def _held_out(train: Sums, held: Sums, gaps: FloatArray, ridges: FloatArray) -> FloatArray:
    """Return the sum of the losses of held-out cases for each ridge (K,).

    The law of the training cases predicts the held-out cases.
    """
    values, vectors = np.linalg.eigh(train.square)
    values = np.maximum(values, 0.0)
    cross, total = vectors.T @ train.cross, vectors.T @ train.total
    average = train.below / train.weight
    square = vectors.T @ held.square @ vectors
    held_cross, held_total = vectors.T @ held.cross, vectors.T @ held.total
    constant = average**2 * held.weight - 2.0 * average * held.below + held.below
    linear = average * held_total[:, np.newaxis] - held_cross
    centred = cross - total[:, np.newaxis] * average
    # A ridge only scales the rows of the factors, so one sum over the cells serves all ridges.
    widened = centred * gaps
    quadratic = square * (centred @ widened.T)
    linear_of_rows, rest = 2.0 * (widened * linear).sum(1), float(gaps @ constant)
    losses = np.empty(len(ridges))
    for k, ridge in enumerate(ridges):
        inverse = 1.0 / (values + ridge * train.weight)
        losses[k] = inverse @ (quadratic @ inverse + linear_of_rows) + rest
    return losses


@kernel
def nearest_law(signed: Matrix, gaps: Vector, out: OutMatrix) -> None:
    """Write the probabilities (n, J + 1) whose CDF is nearest to a signed CDF (n, J) in L².

    This CDF is the isotonic regression of the signed CDF over the cells, weighted by the widths
    (J,) of the cells and clipped to [0, 1].
    """
    n_cells = gaps.size
    level, sums, width = np.empty(n_cells), np.empty(n_cells), np.empty(n_cells)
    length = np.empty(n_cells, np.int64)
    for i in range(signed.shape[0]):
        blocks = 0
        for j in range(n_cells):
            value = signed[i, j]
            blocks = push_level(value, value * gaps[j], gaps[j], level, sums, width, length, blocks)
        j, below = 0, 0.0
        for block in range(blocks):
            cdf = min(max(level[block], 0.0), 1.0)
            out[i, j] = cdf - below
            for later in range(j + 1, j + length[block]):
                out[i, later] = 0.0
            j, below = j + length[block], cdf
        out[i, n_cells] = 1.0 - below
        if np.isnan(signed[i, 0]):
            for j in range(n_cells + 1):
                out[i, j] = np.nan
