"""Solvers that compute signed weights from kernel matrix and ridge, exactly or with low rank.

Let K be the kernel matrix, and W the diagonal matrix of case weights. For similarities k of a
forecast to the n cases, the signed weights β solve ``(K + λ n W⁻¹) β = k``, with the ridge λ. With
the roots R of W, the same equations are ``(R K R + λ n) α = R k`` and ``β = R α``. The last
equations have the same ridge for all cases, so one eigendecomposition or factor of R K R serves all
ridges. In the code of this module, K is R K R, and signed weights are α. The largest case weight is
1. Among the training cases of a fold, the largest weight may be smaller, so the solvers multiply
the ridge by this weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from xrecal.arrays.compiled import Indices, Matrix, Vector, inner, kernel
from xrecal.typing import FloatArray

from .folds import Folds
from .lapack import solve_any
from .location import Location, most_landmarks
from .lowrank import LowRank, heaviest

SOLVERS = ("auto", "exact", "lowrank")

EXACT_UP_TO = 250
"""Largest number of cases that ``"auto"`` solves exactly. From this number to 500 cases, low rank
takes a third to a fifth of the time of the exact solver, with the same CRPS."""

KEPT = 2**26
"""Largest size in bytes of the solvers that a location stores for further use."""


def is_low_rank(solver: str, kernel: str, n: int) -> bool:
    """Return whether to use low rank; ``"auto"`` uses it for many cases and a Gaussian kernel."""
    if solver == "auto":
        return kernel == "gaussian" and n > EXACT_UP_TO
    return solver == "lowrank"


def landmark_slots(solver: str, kernel: str, n: int, *, shapes: bool = False) -> int:
    """Return the number of entries for landmarks of a location with n cases, at least one."""
    return max(min(n, most_landmarks(shapes)), 1) if is_low_rank(solver, kernel, n) else 1


class Exact:
    """Exact solver; one eigendecomposition, O(n³), serves all ridges and folds."""

    def __init__(self, location: Location, bandwidth: float, strength: float) -> None:
        self._root, self.strength = location.root, strength
        self._gram = location.gram(bandwidth, strength)
        self._eigen: tuple[FloatArray, FloatArray] | None = None

    @property
    def nbytes(self) -> int:
        """Return the size in bytes of the stored matrices."""
        return self._gram.nbytes * (1 if self._eigen is None else 2)

    def tidy(self) -> None:
        """Keep all matrices, because it would take long to compute the eigenvectors again."""

    def signed(self, folds: Folds, f: int, ridge: float, slack: float) -> FloatArray:
        """Return weights (n_held, k) of the training cases of a fold, for its held-out cases.

        These weights are the α of the module, for the matrix R K R.
        """
        n_out, n_held = int(folds.n_out[f]), int(folds.n_held[f])
        out, train = folds.cases[f, :n_out], folds.cases[f, n_out:]
        shift = ridge * train.size * heaviest(self._root, train)
        if train.size < n_out:  # solving the smaller system takes less work
            rows = self._gram[train]  # plain indexing: other ways take as long as the solution
            block = rows[:, train]
            block.flat[:: train.size + 1] += shift
            return np.ascontiguousarray(solve_any(block, rows[:, out[:n_held]]).T)
        return np.asarray(left_out_weights(*self.eigen, folds.cases[f], n_out, n_held, shift))

    @property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Return eigenvalues and eigenvectors of K; folds that leave out few cases use them."""
        if self._eigen is None:
            values, vectors = np.linalg.eigh(self._gram)
            self._eigen = values, np.ascontiguousarray(vectors)
        return self._eigen


Solver: TypeAlias = Exact | LowRank
"""Solver for signed weights with one kernel at one location."""


class Solvers:
    """Solvers of one location, by kernel; the class builds a solver on first use.

    Two numbers identify a kernel: the factor of its bandwidth, and the strength of the covariates.
    The object stores the solvers that were used last. Of older solvers it stores only the
    landmarks.
    """

    def __init__(self, location: Location, bandwidth: float) -> None:
        self._location, self._bandwidth = location, bandwidth
        self._kept: dict[tuple[float, float], Solver] = {}
        self._landmarks: dict[tuple[float, float], Sequence[int]] = {}

    def __getitem__(self, kernel: tuple[float, float]) -> Solver:
        solver = self._kept.pop(kernel, None)
        for other in self._kept.values():
            other.tidy()
        while self._kept and sum(s.nbytes for s in (solver, *self._kept.values()) if s) > KEPT:
            oldest = next(iter(self._kept))
            dropped = self._kept.pop(oldest)
            if isinstance(dropped, LowRank):
                self._landmarks[oldest] = dropped.landmarks
        if solver is None:
            widening, strength = kernel
            of = self._location, self._bandwidth * widening, strength
            solver = (
                Exact(*of)
                if not self._location.low_rank
                else LowRank(*of, self._landmarks.get(kernel, ()))
            )
        self._kept[kernel] = solver
        return solver


@kernel
def left_out_weights(
    values: Vector, vectors: Matrix, cases: Indices, n_out: int, n_held: int, shift: float
) -> Any:
    """Return weights (n_held, k) of the training cases of a fold, for its held-out cases.

    ``values`` and ``vectors`` are the eigenvalues and eigenvectors of the kernel matrix K;
    ``cases`` (n,) are the cases in the order of the fold; the fold leaves out the first ``n_out``
    of these cases.

    ``shift`` is the ridge, times the number of training cases, times their largest weight. Let
    ``C = (K + shift I)^-1``, with training cases t and left-out cases g. One eigendecomposition
    serves all ridges and folds, because ``(K_tt + shift I)^-1 K_tg = -C_tg C_gg^-1``.
    """
    n = values.size
    shrunk, inverse = np.empty((n_out, n)), np.empty(n)
    for j in range(n):
        inverse[j] = 1.0 / (max(values[j], 0.0) + shift)
    for i in range(n_out):
        for j in range(n):
            shrunk[i, j] = vectors[cases[i], j] * inverse[j]
    rows = np.dot(shrunk, vectors.T)
    block, trained = np.empty((n_out, n_out)), np.empty((n_out, n - n_out))
    for i in range(n_out):
        for j in range(n_out):
            block[i, j] = -rows[i, cases[j]]
        for j in range(n_out, n):
            trained[i, j - n_out] = rows[i, cases[j]]
    _invert(block)
    return np.dot(block[:n_held], trained)


@inner
def _invert(block: Any) -> None:
    """Invert a small positive definite matrix in place, by Gauss-Jordan elimination."""
    for pivot in range(block.shape[0]):
        scale = 1.0 / block[pivot, pivot]
        block[pivot, pivot] = 1.0
        for j in range(block.shape[1]):
            block[pivot, j] *= scale
        for i in range(block.shape[0]):
            if i == pivot:
                continue
            share = block[i, pivot]
            block[i, pivot] = 0.0
            for j in range(block.shape[1]):
                block[i, j] -= share * block[pivot, j]
