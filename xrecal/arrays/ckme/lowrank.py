"""Low-rank factor L of a kernel matrix K, computed from the columns of a few landmarks.

A residual of the diagonal is an entry of the diagonal of K - L Lᵀ. Each case has one residual. It
is large if the landmarks represent the case badly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import neg
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import Indices, Matrix, OutVector, Vector, copy, kernel
from xrecal.typing import FloatArray, IntArray

from .folds import Folds
from .lapack import Positive, solve_any, solve_lower
from .location import Location

SMALLEST = 1e-14
"""A residual of the diagonal below this value is only rounding error."""

UNTOUCHED = 32 * 2**20
"""An array of at least this size in bytes gets new memory from the operating system. Parts of the
array that are not filled yet then take no memory."""

TOGETHER, SHARE = 16, 0.5
"""A step adds at most ``TOGETHER`` landmarks at once. The residual of each new landmark is at least
``SHARE`` times the largest residual of all cases."""

ROUGH, CLOSE, FINE = 10.0, 5.0, 1.0
"""Tolerances for the mean residual of the diagonal of K, in units of the ridge. The first is for
trying ridges, the second for locating the best ridge, the third for forecasts."""

LOOSEST = 0.03
"""Largest tolerance for the mean residual; a large ridge alone would allow a larger tolerance."""


class LowRank:
    r"""Solver with a pivoted Cholesky factor L of a kernel matrix, :math:`K \approx L L^T`.

    Each step takes the case with the largest residual as a landmark and computes only its column of
    K. So r landmarks cost r n distances, O(n r²) time and O(n r) memory.

    References
    ----------
    .. [1] Harbrecht, Peters & Schneider (2012), On the low-rank approximation by the pivoted
       Cholesky decomposition. https://doi.org/10.1016/j.apnum.2011.10.001
    """

    def __init__(
        self,
        location: Location,
        bandwidth: float,
        strength: float,
        landmarks: Sequence[int] | IntArray = (),
    ) -> None:
        self._location, self._kernel = location, (bandwidth, strength)
        self.strength = strength
        self._most = min(location.most_landmarks, location.root.size)
        self._left = location.root**2  # diagonal of K - L Lᵀ; rounding may make it negative
        self._rows = np.empty((0, location.root.size))
        self._square: FloatArray | None = None
        self.landmarks: list[int] = []
        # Mean residual for each number of landmarks, from 0.
        self._residuals: list[float] = [residual_of(self._left)[0]]
        self._among: dict[int, tuple[IntArray, FloatArray]] = {}
        if len(landmarks) > 0:
            self._start_from(np.asarray(landmarks))

    @property
    def rows(self) -> FloatArray:
        """Return Lᵀ, (r, n)."""
        return self._rows[: len(self.landmarks)]

    @property
    def nbytes(self) -> int:
        """Return the size in bytes of the factor and of the stored products of its rows."""
        square = 0 if self._square is None else self._square.nbytes
        return self.rows.nbytes + square + sum(one.nbytes for _, one in self._among.values())

    @property
    def residual(self) -> float:
        """Return the mean of the diagonal of K - L Lᵀ; 0 if only rounding errors are left."""
        return self._residuals[-1]

    def _start_from(self, landmarks: IntArray) -> None:
        """Take these cases (r,) as the first landmarks, all at once.

        If rounding makes the columns of these cases linearly dependent, take none of the cases;
        :meth:`extend` then chooses landmarks.
        """
        columns = self._location.columns(landmarks, *self._kernel)
        try:
            # Rounding may make K_ij in the column of i differ from K_ji in the column of j. The
            # transpose takes the column of the earlier landmark, as take_pivots does.
            root = np.linalg.cholesky(columns[:, landmarks].T)
        except np.linalg.LinAlgError:
            return
        rows = solve_lower(root, columns)
        left = self._left - np.einsum("rn,rn->n", rows, rows)
        if left.min() < -(root.diagonal().min() ** 2):
            return
        self.landmarks, self._rows = landmarks.tolist(), np.ascontiguousarray(rows)
        self._left = left
        self._left[landmarks] = 0.0
        explained = np.cumsum(np.einsum("rn,rn->r", self.rows, self.rows)) / self._left.size
        self._residuals = [self._residuals[0], *(self._residuals[0] - explained)]
        self._residuals[-1] = residual_of(self._left)[0]

    def extend(self, tolerance: float) -> int:
        """Return the least number of landmarks that meets the tolerance; add landmarks if needed.

        If an earlier call had a smaller tolerance, a part of the known landmarks is enough. If the
        largest allowed number of landmarks does not meet the tolerance, return the number of all
        landmarks.
        """
        while self.residual > tolerance and len(self.landmarks) < self._most:
            self._add_some(tolerance)
        return bisect_left(self._residuals, -tolerance, hi=len(self.landmarks), key=neg)

    def _add_some(self, tolerance: float) -> None:
        """Turn a few cases into landmarks: the cases that the landmarks so far represent worst.

        The method looks at these cases one after the other. A case becomes a landmark if the
        landmarks just added leave its residual large (:data:`SHARE`). A step with several cases
        takes less time, because products of matrices replace products of vectors.
        """
        rank = len(self.landmarks)
        size = min(TOGETHER, self._most - rank)
        self._make_room(rank + size)
        cases = np.argpartition(self._left, -size)[-size:]
        columns = self._location.columns(cases, *self._kernel)
        columns -= self.rows[:, cases].T @ self.rows
        rows = self._rows[rank : rank + size]
        pivots = Pivots(rows, np.empty(size, np.int64), np.empty(size))
        added = take_pivots(columns, cases, self._left, tolerance, pivots)
        self.landmarks += pivots.taken[:added].tolist()
        self._residuals += pivots.residuals[:added].tolist()
        self._residuals[-1] = residual_of(self._left)[0]

    def _make_room(self, rank: int) -> None:
        """Reserve memory for ``rank`` rows or more.

        An array without room for more rows must be copied when rows are added. So a large array
        gets room for all possible rows, because its unused part takes no memory
        (:data:`UNTOUCHED`). The unused part of a small array does take memory, so its room at most
        doubles.
        """
        if rank > len(self._rows):
            n = self._left.size
            room = self._most if 8 * self._most * n > UNTOUCHED else min(self._most, 2 * rank)
            known, self._rows = self.rows, np.empty((room, n))
            self._rows[: len(known)] = known

    def tidy(self) -> None:
        """Delete the stored products of rows."""
        self._among = {}

    def reaches(self, ridge: float, slack: float) -> bool:
        """Return whether landmarks bring the mean residual down to ``slack`` times the ridge.

        Add landmarks if needed.
        """
        self._rank(ridge, slack)
        return self.residual <= slack * ridge

    def landmarks_for(self, ridge: float) -> Sequence[int]:
        """Return the landmarks for forecasts; they leave a mean residual of at most the ridge."""
        return self.landmarks[: self._rank(ridge, FINE)]

    def _rank(self, ridge: float, slack: float) -> int:
        """Return the number of landmarks that :meth:`reaches` needs for a ridge and ``slack``."""
        return self.extend(min(slack * ridge, LOOSEST))

    def signed(self, folds: Folds, f: int, ridge: float, slack: float) -> FloatArray:
        """Return signed weights of the k training cases for each held-out case, (n_held, k).

        The weights are ``l (LᵀL + λ n)⁻¹ Lᵀ``. Here L are the rows of the factor for the n training
        cases, l are its rows for the held-out cases, and λ is the ridge.
        """
        n_out, n_held = int(folds.n_out[f]), int(folds.n_held[f])
        out, train = folds.cases[f, :n_out], folds.cases[f, n_out:]
        rank = self._rank(ridge, slack)
        rows = self.rows[:rank]
        # Columns of the factor are sorted by the variance that they explain. A larger ridge needs
        # fewer landmarks, so it uses a corner of the stored product of a smaller ridge.
        among = self._kept_product(f, train, out, rank)[:rank, :rank].copy()
        among.ravel()[:: rank + 1] += ridge * train.size * heaviest(self._location.root, train)
        held = Positive(among).solve(rows.T[out[:n_held]])
        # Move the smaller of the two arrays into the order of the fold.
        if rank < n_held:
            return held @ rows.take(train, axis=1)
        return (held @ rows).take(train, axis=1)

    def _kept_product(self, f: int, train: IntArray, out: IntArray, rank: int) -> FloatArray:
        """Return LᵀL of the training cases, and store it for other ridges.

        The result is for ``rank`` landmarks, or more if a larger product is already known.
        """
        if f in self._among:
            known_for, product = self._among[f]
            if product.shape[0] >= rank and np.array_equal(train, known_for):
                return product
        self._among[f] = train, self._product(train, out, rank)
        return self._among[f][1]

    def _product(self, train: IntArray, out: IntArray, rank: int) -> FloatArray:
        """Return ``LᵀL`` (r, r) of the training cases, for the first r landmarks.

        If the fold trains on most cases, the method subtracts the product of the other cases from
        the product of all cases: ``LᵀL - L_fᵀL_f``, with the rows L_f of the other cases. This is
        less work.
        """
        rows = self.rows[:rank]
        if train.size < out.size:
            part = rows[:, train]
            return part @ part.T
        if self._square is None or self._square.shape[0] < rank:
            self._square = rows @ rows.T
        part = rows[:, out]
        product = part @ part.T
        return np.subtract(self._square[:rank, :rank], product, out=product)

    def solver(self, ridge: float, rank: int) -> Callable[[FloatArray], FloatArray]:
        """Return a function that turns similarities (q, r) into signed weights (q, n).

        The function takes the similarities k_p of a forecast to the first r landmarks, and computes
        ``β = L (LᵀL + λ n)⁻¹ z`` with ``z = C⁻¹ k_p``. Here C are the rows of L for the landmarks.
        """
        rows = self.rows[:rank]
        # The Woodbury identity reduces n × n to r × r: (L Lᵀ + λ n)⁻¹ L = L (Lᵀ L + λ n)⁻¹.
        among = rows @ rows.T
        among[np.diag_indices_from(among)] += ridge * rows.shape[1]
        root, positive = np.ascontiguousarray(rows[:, self.landmarks[:rank]].T), Positive(among)

        def solve(similarities: FloatArray) -> FloatArray:
            z = solve_lower(root, np.ascontiguousarray(similarities.T))
            return np.asarray(positive.solve(np.ascontiguousarray(z.T)) @ rows)

        return solve

    def sums(self, ridge: float, rank: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return factors (r,), ``M⁻¹ R`` (n,) and the diagonal (n,) of ``M⁻¹``.

        Here ``M = L Lᵀ + λ n``, and R are the roots of the case weights. To get the sum of the
        signed weights of a forecast, multiply its similarities to the first r landmarks by the
        factors, and add up the products. This is the sum ``Rᵀ M⁻¹ R k``, where k are the
        similarities to all cases. No step needs a matrix (n, n).
        """
        rows, roots = self.rows[:rank], self._location.root
        shift = ridge * roots.size
        among = rows @ rows.T
        among[np.diag_indices_from(among)] += shift
        positive = Positive(among)
        share = positive.solve((rows @ roots)[np.newaxis])[0]
        solved = positive.solve(np.ascontiguousarray(rows.T))
        root = np.ascontiguousarray(rows[:, self.landmarks[:rank]].T)
        factors = solve_any(root.T, share)
        diagonal = (1.0 - np.einsum("nr,rn->n", solved, rows)) / shift
        return factors, (roots - share @ rows) / shift, diagonal


class Pivots(NamedTuple):
    """Arrays with room for k new landmarks, which :func:`take_pivots` fills."""

    rows: Matrix
    """(k, n) rows of the factor"""
    taken: Indices
    """(k,) cases that became landmarks"""
    residuals: Vector
    """(k,) mean residual of the diagonal after each new landmark"""


@kernel
def heaviest(root: Vector, train: Indices) -> float:
    """Return the largest weight of the training cases, which sets the scale of the ridge."""
    largest = 0.0
    for i in train:
        largest = max(largest, root[i] * root[i])
    return largest


@kernel
def take_pivots(
    columns: Matrix, cases: Indices, left: OutVector, tolerance: float, pivots: Pivots
) -> int:
    """Turn some of the given cases into landmarks, and return the number of new landmarks.

    ``columns`` (k, n) are the columns of K for these cases, minus the part that earlier landmarks
    explain. The given case with the largest residual is the next landmark, if its residual is at
    least :data:`SHARE` times the largest residual of all cases of the location. The function writes
    to ``pivots`` and lowers ``left`` (n,), the residuals of the diagonal of K. These residuals are
    positive, except for rounding. If a landmark with the residual p makes any residual smaller than
    -p, only rounding errors of very similar forecasts are left. The function then sets all
    residuals to 0 and adds no further landmark.
    """
    rows = pivots.rows
    n, added = left.size, 0
    residual, largest, _ = residual_of(left)
    while added < cases.size and residual > tolerance:
        at = np.argmax(left[cases])
        case = cases[at]
        # Another case of the location has a far larger residual: compute that column first.
        if left[case] < SHARE * largest:
            break
        row = rows[added]
        copy(columns[at], row)
        for j in range(added):
            shared = rows[j, case]
            for i in range(n):
                row[i] -= shared * rows[j, i]
        pivot = left[case]
        root = np.sqrt(pivot)
        for i in range(n):
            row[i] /= root
            left[i] -= row[i] * row[i]
        left[case] = 0.0
        residual, largest, lowest = residual_of(left)
        if lowest < -pivot:
            copy(np.zeros(n), left)
            break
        pivots.taken[added], pivots.residuals[added] = case, residual
        added += 1
    return added


@kernel
def residual_of(left: Vector) -> Any:
    """Return the mean, largest and smallest residual; the mean is 0 if only rounding is left."""
    largest, lowest, total = 0.0, 0.0, 0.0
    for each in left:
        total += max(each, 0.0)
        largest = max(largest, each)
        lowest = min(lowest, each)
    return total / left.size if largest > SMALLEST else 0.0, largest, lowest
