"""Kernel matrix and ridge to signed weights: exactly, or by a factor of low rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .location import Location
from .lowrank import Factor
from .tuning import Folds, heaviest, left_out_weights

SOLVERS = ("auto", "exact", "lowrank")

EXACT_UP_TO = 2000
"""Cases of a location up to which ``"auto"`` solves exactly."""

MAX_RANK = 1000
"""Landmarks of a location at most."""

SEARCH = 3.0
"""What may be left of the mean of the diagonal of K while ridges are tried, in ridges. One ridge
at most is left where forecasts are made."""

LOOSEST = 0.03
"""And what may be left with the largest ridges."""


def is_low_rank(solver: str, kernel: str, n: int) -> bool:
    """Whether n cases are solved with low rank; the Laplace kernel is far from it."""
    if solver == "auto":
        return kernel == "gaussian" and n > EXACT_UP_TO
    return solver == "lowrank"


def landmark_slots(solver: str, kernel: str, n: int) -> int:
    """Room for the landmarks of a location with n slots, at least one."""
    return max(min(n, MAX_RANK), 1) if is_low_rank(solver, kernel, n) else 1


class Solver(Protocol):
    """Signed weights with one kernel at one location."""

    patience: float
    """Powers of ten of the ridge below the best one that are searched"""

    @property
    def landmarks(self) -> Sequence[int]:
        """Cases that represent all others, if some do."""

    def reaches(self, ridge: float) -> bool:
        """Whether weights are accurate with this ridge, after more work if need be."""

    def refine(self, ridge: float) -> None:
        """Make weights with this ridge as accurate as forecasts need."""

    def signed(self, folds: Folds, f: int, ridge: float) -> FloatArray:
        """Weights (n, n_held) of the cases to train on, for those that a fold holds out.

        They belong to the problem scaled by the roots of the case weights.
        """


class Exact:
    """One eigendecomposition for all ridges and folds, O(n³)."""

    patience = math.inf
    landmarks: Sequence[int] = ()

    def __init__(self, location: Location, bandwidth: float, strength: float) -> None:
        self._root = location.root
        self._gram = location.gram(bandwidth, strength)
        self._eigen: tuple[FloatArray, FloatArray] | None = None

    def reaches(self, ridge: float) -> bool:
        """Whatever the ridge."""
        return True

    def refine(self, ridge: float) -> None:
        """Nothing could be better."""

    def signed(self, folds: Folds, f: int, ridge: float) -> FloatArray:
        """See :meth:`Solver.signed`."""
        n_out, n_held = int(folds.n_out[f]), int(folds.n_held[f])
        out, train = folds.cases[f, :n_out], folds.cases[f, n_out:]
        shift = ridge * train.size * heaviest(self._root, train)
        if train.size < n_out:  # solving for few is less work than leaving many out
            found = np.zeros((self._root.size, n_held))
            block = self._gram[np.ix_(train, train)]
            block[np.diag_indices_from(block)] += shift
            found[train] = np.linalg.solve(block, self._gram[np.ix_(train, out[:n_held])])
            return found
        if self._eigen is None:
            values, vectors = np.linalg.eigh(self._gram)
            self._eigen = values, np.ascontiguousarray(vectors)
        return np.asarray(left_out_weights(*self._eigen, out, n_held, shift))


class LowRank:
    """K ≈ L Lᵀ as accurate as the ridge needs, O(n r²)."""

    patience = 0.5

    def __init__(
        self,
        location: Location,
        bandwidth: float,
        strength: float,
        landmarks: Sequence[int] | IntArray = (),
    ) -> None:
        self._root = location.root
        self.factor = Factor(location, bandwidth, strength, MAX_RANK)
        if len(landmarks) > 0:
            self.factor.start_from(np.asarray(landmarks))
        self._known_for: tuple[Folds, int] | None = None
        self._among: dict[int, FloatArray] = {}

    @property
    def landmarks(self) -> Sequence[int]:
        """Those of the factor."""
        return self.factor.landmarks

    def reaches(self, ridge: float) -> bool:
        """Whether what is left of K is no more than about the ridge."""
        self.factor.extend(min(SEARCH * ridge, LOOSEST))
        return self.factor.residual <= SEARCH * ridge

    def refine(self, ridge: float) -> None:
        """Add the landmarks that forecasts with this ridge need."""
        self.factor.extend(ridge)

    def signed(self, folds: Folds, f: int, ridge: float) -> FloatArray:
        """``L (LᵀL + λ n)⁻¹ l`` with the factor's rows l of the cases held out.

        Rows of the cases left out are filled too, and not to be used.
        """
        n_out, n_held = int(folds.n_out[f]), int(folds.n_held[f])
        out, train = folds.cases[f, :n_out], folds.cases[f, n_out:]
        rows = self.factor.rows
        among = self._product(folds, f, train, out).copy()
        among[np.diag_indices_from(among)] += ridge * train.size * heaviest(self._root, train)
        return np.asarray(rows.T @ np.linalg.solve(among, rows[:, out[:n_held]]))

    def _product(self, folds: Folds, f: int, train: IntArray, out: IntArray) -> FloatArray:
        """LᵀL (r, r) of the cases to train on, kept for the next ridge."""
        if (
            self._known_for is None
            or self._known_for[0] is not folds
            or self._known_for[1] != len(self.factor.landmarks)
        ):
            self._known_for, self._among = (folds, len(self.factor.landmarks)), {}
        if f not in self._among:
            self._among[f] = self.factor.product(train, out)
        return self._among[f]
