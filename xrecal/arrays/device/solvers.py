"""Kernel matrices and ridges to signed weights, exactly; see :mod:`xrecal.arrays.ckme.solvers`."""

from __future__ import annotations

from typing import Any, Protocol

from xrecal.arrays.ckme.folds import Folds
from xrecal.arrays.ckme.solvers import heaviest
from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray, IntArray

from .location import Locations
from .namespace import linear, take, transposed

__all__ = ["Exact", "Prepared", "identity", "split_of"]


class Prepared(Protocol):
    """A solver with a ridge at each of c locations."""

    def signed(self, folds: Folds, f: int) -> Any:
        """Weights (c, n_held, n_train) of the cases to train on, for those that a fold holds out.

        They belong to the problem scaled by the roots of the case weights.
        """


def split_of(folds: Folds, f: int) -> tuple[IntArray, IntArray, IntArray]:
    """Cases that a fold holds out, that it does not train on, and that it trains on."""
    n_held, n_out = int(folds.n_held[f]), int(folds.n_out[f])
    cases = folds.cases[f]
    return cases[:n_held], cases[:n_out], cases[n_out:]


def identity(xp: Any, n: int, shift: FloatArray) -> Any:
    """Diagonal matrices (c, n, n) with one number each."""
    return xp.asarray(shift)[:, None, None] * xp.eye(n, dtype=xp.float64)


class Exact:
    """One eigendecomposition a location for all ridges and folds, O(n³)."""

    def __init__(self, where: Locations, bandwidth: Any, strength: Any) -> None:
        self.root = where.root
        self.gram = where.gram(bandwidth, strength)
        self._eigen: tuple[Any, Any] | None = None

    def prepare(self, at: IntArray, ridge: FloatArray, slack: float) -> Prepared:
        """The solver with ridges (c,) at locations (c,)."""
        return _ExactAt(self, at, ridge)

    @property
    def eigen(self) -> tuple[Any, Any]:
        """Eigenvalues (b, n) and vectors (b, n, n), made when they are first asked for."""
        if self._eigen is None:
            values, vectors = linear(namespace(self.gram), "eigh", self.gram)
            self._eigen = values, vectors
        return self._eigen


class _ExactAt:
    """The exact solver with a ridge at each of some locations."""

    def __init__(self, solver: Exact, at: IntArray, ridge: FloatArray) -> None:
        self._solver, self._at, self._ridge = solver, at, ridge

    def signed(self, folds: Folds, f: int) -> Any:
        """See :meth:`Prepared.signed`."""
        held, out, train = split_of(folds, f)
        shift = self._ridge * train.size * heaviest(self._solver.root, train)
        if train.size < out.size:
            return self._solved(held, train, shift)
        return self._left_out(held, out, train, shift)

    def _solved(self, held: IntArray, train: IntArray, shift: FloatArray) -> Any:
        """Where few are trained on, solving for these is the least work."""
        xp = namespace(self._solver.gram)
        rows = take(xp, take(xp, self._solver.gram, self._at, 0), train, 1)
        block = take(xp, rows, train, 2) + identity(xp, train.size, shift)
        return transposed(xp, linear(xp, "solve", block, take(xp, rows, held, 2)))

    def _left_out(self, held: IntArray, out: IntArray, train: IntArray, shift: FloatArray) -> Any:
        """``-C_gg^-1 C_gt`` of the cases g left out, with ``C = (K + shift I)^-1``."""
        values, vectors = self._solver.eigen
        xp = namespace(values)
        values, vectors = take(xp, values, self._at, 0), take(xp, vectors, self._at, 0)
        inverse = 1.0 / (xp.clip(values, 0.0, None) + xp.asarray(shift)[:, None])
        shrunk = take(xp, vectors, out, 1) * inverse[:, None, :]
        rows = xp.matmul(shrunk, transposed(xp, vectors))
        among = linear(xp, "inv", -take(xp, rows, out, 2))
        return xp.matmul(among[:, : held.size, :], take(xp, rows, train, 2))
