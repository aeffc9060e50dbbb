"""Kernel matrix to a factor of low rank, from the columns of a few landmarks."""

from __future__ import annotations

from bisect import bisect_left
from operator import neg

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .location import Location

SMALLEST = 1e-14
"""What is left of the diagonal below this is rounding."""

TOGETHER, SHARE = 16, 0.5
"""Cases that may be added at once, and how much of the largest residual each of them must have."""


class Factor:
    r"""Pivoted Cholesky factor of the kernel matrix of a location, :math:`K \approx L L^T`.

    Each step takes the case that is represented worst as a landmark and computes its column of K
    alone, so r landmarks cost r n distances, O(n r²) time and O(n r) memory.

    References
    ----------
    .. [1] Harbrecht, Peters & Schneider (2012), On the low-rank approximation by the pivoted
       Cholesky decomposition. https://doi.org/10.1016/j.apnum.2011.10.001
    """

    def __init__(
        self, location: Location, bandwidth: float, strength: float, max_rank: int
    ) -> None:
        self._location, self._kernel = location, (bandwidth, strength)
        self._most = min(max_rank, location.root.size)
        self._left = location.root**2  # diagonal of K - L Lᵀ
        self._rows = np.empty((min(64, self._most), location.root.size))
        self._square: FloatArray | None = None
        self.landmarks: list[int] = []
        self._residuals = [self.residual]  # with the first landmarks, however many

    @property
    def rows(self) -> FloatArray:
        """Lᵀ, (r, n)."""
        return self._rows[: len(self.landmarks)]

    @property
    def nbytes(self) -> int:
        """Memory of the factor."""
        return self._rows.nbytes + (0 if self._square is None else self._square.nbytes)

    @property
    def residual(self) -> float:
        """Mean of the diagonal of K - L Lᵀ; 0 where only rounding is left."""
        return float(self._left.mean()) if self._left.max() > SMALLEST else 0.0

    def start_from(self, landmarks: IntArray) -> None:
        """Take these cases (r,) as the first landmarks, all at once."""
        columns = np.stack([self._location.column(case, *self._kernel) for case in landmarks])
        root = np.linalg.cholesky(columns[:, landmarks])
        self._rows = np.linalg.solve(root, columns)
        self._left = np.maximum(self._left - np.einsum("rn,rn->n", self._rows, self._rows), 0.0)
        self._left[landmarks] = 0.0
        self.landmarks = landmarks.tolist()
        explained = np.cumsum(np.einsum("rn,rn->r", self._rows, self._rows)) / self._left.size
        self._residuals = [self._residuals[0], *(self._residuals[0] - explained)]
        self._residuals[-1] = self.residual
        self._square = None

    def extend(self, tolerance: float) -> int:
        """How many of the landmarks leave no more than the tolerance; more are added if need be.

        Landmarks come in the order of what they explain, so the first ones serve a tolerance that
        is larger, and all there may be one that cannot be met.
        """
        while self.residual > tolerance and len(self.landmarks) < self._most:
            self._add_some(tolerance)
        return bisect_left(self._residuals, -tolerance, hi=len(self.landmarks), key=neg)

    def _add_some(self, tolerance: float) -> None:
        """Add the cases represented worst, while they are among the worst as others are added.

        Taking a few at once replaces products with vectors by products with matrices.
        """
        rank = len(self.landmarks)
        size = min(TOGETHER, self._most - rank)
        cases = np.argpartition(self._left, -size)[-size:]
        columns = np.stack([self._location.column(int(case), *self._kernel) for case in cases])
        columns -= self.rows[:, cases].T @ self.rows
        self._make_room(rank + size)
        for _ in range(size):
            at = int(np.argmax(self._left[cases]))
            case = int(cases[at])
            if self._left[case] < SHARE * self._left.max() or self.residual <= tolerance:
                break
            added = self._rows[rank : len(self.landmarks)]
            self._add(case, columns[at] - added[:, case] @ added)

    def _make_room(self, rank: int) -> None:
        """Room for rows of so many landmarks."""
        if rank > self._rows.shape[0]:
            room = min(max(rank, 2 * self._rows.shape[0]), self._most) - self._rows.shape[0]
            self._rows = np.concatenate([self._rows, np.empty((room, self._left.size))])

    def _add(self, case: int, left: FloatArray) -> None:
        """Add a case, given what is left of its column of K."""
        row = left / np.sqrt(self._left[case])
        self._rows[len(self.landmarks)] = row
        self._left = np.maximum(self._left - row * row, 0.0)
        self._left[case] = 0.0
        self.landmarks.append(case)
        self._residuals.append(self.residual)
        self._square = None

    def product(self, train: IntArray, out: IntArray) -> FloatArray:
        """``LᵀL`` (r, r) of the rows of the cases to train on, given all others."""
        if train.size < out.size:
            part = self.rows[:, train]
            return part @ part.T
        if self._square is None:
            self._square = self.rows @ self.rows.T
        part = self.rows[:, out]
        return self._square - part @ part.T

    def operator(self, ridge: float, rank: int) -> FloatArray:
        """Matrix (r, n) from similarities to the first landmarks to signed weights of the cases.

        With ``z = C⁻¹ k_p`` and ``C`` the rows of L at the landmarks, ``β = L (LᵀL + λ n)⁻¹ z``.
        """
        rows = self.rows[:rank]
        among = rows @ rows.T
        among[np.diag_indices_from(among)] += ridge * rows.shape[1]
        inner = np.linalg.solve(among, rows)
        return np.linalg.solve(rows[:, self.landmarks[:rank]], inner)
