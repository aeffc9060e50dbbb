"""Kernel matrices to factors of low rank; see :mod:`xrecal.arrays.ckme.lowrank`."""

from __future__ import annotations

from bisect import bisect_left
from operator import neg
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.ckme.folds import Folds
from xrecal.arrays.ckme.lowrank import SHARE, SMALLEST, TOGETHER
from xrecal.arrays.ckme.solvers import FINE, LOOSEST, heaviest
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.typing import FloatArray, IntArray

from .location import Locations
from .namespace import concat, cumsum, indices, linear, put, take, transposed
from .solvers import Prepared, identity, split_of

__all__ = ["LowRank", "Pivots", "take_pivots"]


class LowRank:
    r"""Pivoted Cholesky factors :math:`K \approx L L^T`, as accurate as each ridge needs.

    Landmarks differ from location to location, and so does their number: rows of the factors
    behind the last landmark of a location are zero, which changes none of the products.
    """

    def __init__(self, where: Locations, bandwidth: Any, strength: Any) -> None:
        xp = namespace(bandwidth)
        self.where, self._kernel = where, (bandwidth, strength)
        b = bandwidth.shape[0]
        self._most = min(where.cases.most_landmarks, where.n)
        self._left = xp.asarray(np.tile(where.root**2, (b, 1)))
        self._rows = xp.zeros((b, min(64, self._most), where.n), dtype=xp.float64)
        self.landmarks: list[list[int]] = [[] for _ in range(b)]
        largest = float((where.root**2).max())
        start = float((where.root**2).mean()) if largest > SMALLEST else 0.0
        self._residuals: list[list[float]] = [[start] for _ in range(b)]

    @property
    def rank(self) -> IntArray:
        """Number of landmarks of each location (b,)."""
        return np.array([len(found) for found in self.landmarks])

    @property
    def residual(self) -> FloatArray:
        """Mean (b,) of the diagonals of K - L Lᵀ; 0 where only rounding is left."""
        return np.array([found[-1] for found in self._residuals])

    def start_from(self, landmarks: list[IntArray]) -> None:
        """Take these cases as the first landmarks of each location, all at once.

        None are taken where rounding makes them dependent: they are then chosen anew.
        """
        xp = namespace(self._left)
        rank, everywhere = np.array([f.size for f in landmarks]), np.arange(len(landmarks))
        room = int(rank.max(initial=0))
        if room == 0:
            return
        padded = np.stack([np.pad(found, (0, room - found.size)) for found in landmarks])
        there = xp.asarray((np.arange(room) < rank[:, np.newaxis]).astype(np.float64))
        chosen = indices(xp, padded)
        columns = self._columns(everywhere, chosen) * there[:, :, None]
        at = xp.broadcast_to(chosen[:, None, :], (len(landmarks), room, room))
        among = xp.take_along_axis(columns, at, axis=-1) * there[:, None, :]
        among = among + (1.0 - there)[:, :, None] * xp.eye(room, dtype=xp.float64)
        # Columns may differ by rounding; as a pivot, a landmark met those of earlier ones.
        root = linear(xp, "cholesky", transposed(xp, among))
        rows = linear(xp, "solve", root, columns)
        left = self._left - xp.sum(rows * rows, axis=1)
        # Not all libraries tell of a root that is none: landmarks are then not what they stand for.
        own = xp.abs(xp.take_along_axis(left, chosen, axis=-1)) * there
        pivot = xp.min(xp.sum(root * xp.eye(room, dtype=xp.float64), axis=-1), axis=-1) ** 2
        sound = (xp.min(left, axis=-1) >= -pivot) & (xp.max(own, axis=-1) <= pivot)
        self._rows = xp.where(sound[:, None, None], rows, 0.0)
        self._left = xp.where(sound[:, None], left, self._left)
        explained = to_host(cumsum(xp, xp.sum(self._rows**2, axis=-1))) / self.where.n
        for place in np.flatnonzero(to_host(sound) & (rank > 0)).tolist():
            found = landmarks[place]
            put(xp, self._left, (np.full(found.size, place), found), xp.zeros(found.size))
            self.landmarks[place] = found.tolist()
            self._residuals[place] += (
                self.residual[place] - explained[place, : rank[place]]
            ).tolist()
            self._residuals[place][-1] = float(to_host(_residual_of(self._left[place, :])[0]))

    def ranks_for(self, at: IntArray, tolerance: FloatArray) -> IntArray:
        """Number of landmarks (c,) that leave at most the tolerance; more are added if need be."""
        while True:
            short = (self.residual[at] > tolerance) & (self.rank[at] < self._most)
            if not short.any():
                break
            self._add_some(at[short], tolerance[short])
        wanted = zip(at.tolist(), tolerance.tolist(), strict=True)
        return np.array(
            [
                bisect_left(self._residuals[i], -most, hi=len(self.landmarks[i]), key=neg)
                for i, most in wanted
            ],
            dtype=np.int64,
        )

    def _columns(self, at: IntArray, chosen: Any) -> Any:
        xp = namespace(chosen)
        return self.where.columns(at, chosen, *(take(xp, part, at, 0) for part in self._kernel))

    def _add_some(self, at: IntArray, tolerance: FloatArray) -> None:
        """Add the cases represented worst, up to sixteen at each of these locations."""
        xp = namespace(self._left)
        rank, size = self.rank[at], min(TOGETHER, self._most)
        left = take(xp, self._left, at, 0)
        cases = xp.argsort(left, axis=-1)[:, -size:]
        if not rank.all():  # at first all cases are alike, so ties are broken as on the host
            worst = np.argpartition(self.where.root**2, -size)[-size:]
            cases = xp.where(xp.asarray(rank == 0)[:, None], indices(xp, worst)[None, :], cases)
        columns = self._columns(at, cases)
        if rank.any():
            rows = take(xp, self._rows, at, 0)[:, : int(rank.max()), :]
            along = xp.broadcast_to(cases[:, None, :], (at.size, rows.shape[1], size))
            known = xp.take_along_axis(rows, along, axis=-1)
            columns = columns - xp.matmul(transposed(xp, known), rows)
        found = take_pivots(columns, cases, left, tolerance, self._most - rank)
        self._keep(at, rank, found)

    def _keep(self, at: IntArray, rank: IntArray, found: Pivots) -> None:
        """Write rows behind those that there are, and note the landmarks."""
        xp = namespace(self._left)
        needed = int((rank + found.added).max())
        if needed > self._rows.shape[1]:
            room = min(max(needed, 2 * self._rows.shape[1]), self._most) - self._rows.shape[1]
            empty = xp.zeros((self._rows.shape[0], room, self.where.n), dtype=xp.float64)
            self._rows = concat(xp, [self._rows, empty], axis=1)
        which, step = np.nonzero(np.arange(found.taken.shape[1]) < found.added[:, np.newaxis])
        flat = xp.reshape(found.rows, (-1, self.where.n))
        values = xp.take(flat, indices(xp, which * found.taken.shape[1] + step), axis=0)
        put(xp, self._rows, (at[which], rank[which] + step), values)
        put(xp, self._left, (at,), found.left)
        for k, place in enumerate(at.tolist()):
            added = int(found.added[k])
            self.landmarks[place] += found.taken[k, :added].tolist()
            self._residuals[place] += found.residuals[k, :added].tolist()
            self._residuals[place][-1] = float(found.residuals[k, -1])

    def reaches(self, at: IntArray, ridge: FloatArray, slack: float) -> npt.NDArray[np.bool_]:
        """True (c,) if landmarks leave at most so many ridges; more are added if need be."""
        self.ranks_for(at, np.minimum(slack * ridge, LOOSEST))
        return np.asarray(self.residual[at] <= slack * ridge)

    def landmarks_for(self, at: IntArray, ridge: FloatArray, slack: float = FINE) -> IntArray:
        """Cases (c, r) that represent all others in forecasts, -1 behind the last one."""
        rank = self.ranks_for(at, np.minimum(slack * ridge, LOOSEST))
        found = np.full((at.size, int(rank.max(initial=0))), -1)
        for k, place in enumerate(at.tolist()):
            found[k, : rank[k]] = self.landmarks[place][: rank[k]]
        return found

    def rows_for(self, at: IntArray, rank: IntArray) -> Any:
        """First rows (c, r, n) of the factors Lᵀ, zero behind each rank (c,)."""
        xp = namespace(self._left)
        room = int(rank.max(initial=0))
        rows = take(xp, self._rows, at, 0)[:, :room, :]
        there = (np.arange(room) < rank[:, np.newaxis]).astype(np.float64)
        return rows if there.all() else rows * xp.asarray(there)[:, :, None]

    def prepare(self, at: IntArray, ridge: FloatArray, slack: float) -> Prepared:
        """The solver with ridges (c,) at locations (c,)."""
        rank = self.ranks_for(at, np.minimum(slack * ridge, LOOSEST))
        return _LowRankAt(self.rows_for(at, rank), self.where.root, ridge)

    def operators(self, ridge: FloatArray, slack: float = FINE) -> tuple[IntArray, Any, Any]:
        """Landmarks (b, r), and matrices (b, r, r) and (b, r, n) from similarities to weights.

        With ``C`` the rows of L at the landmarks, ``β = L (LᵀL + λ n)⁻¹ C⁻¹ k_p``. Rows and
        columns behind the landmarks of a location are zero.
        """
        everywhere = np.arange(ridge.size)
        chosen = self.landmarks_for(everywhere, ridge, slack)
        xp = namespace(self._left)
        rows = self.rows_for(everywhere, (chosen >= 0).sum(-1))
        room = chosen.shape[1]
        among = xp.matmul(rows, transposed(xp, rows)) + identity(xp, room, ridge * self.where.n)
        there = xp.asarray((chosen >= 0).astype(np.float64))
        at = indices(xp, np.maximum(chosen, 0))
        at = xp.broadcast_to(at[:, None, :], (ridge.size, room, room))
        root = xp.take_along_axis(rows, at, axis=-1) * there[:, None, :]
        root = root + (1.0 - there)[:, :, None] * xp.eye(room, dtype=xp.float64)
        first = linear(xp, "solve", root, linear(xp, "inv", among))
        return chosen, first * there[:, :, None], rows


class _LowRankAt:
    """Factors (c, r, n) with a ridge at each location."""

    def __init__(self, rows: Any, root: FloatArray, ridge: FloatArray) -> None:
        self._rows, self._root, self._ridge = rows, root, ridge
        self._square: Any = None

    def signed(self, folds: Folds, f: int) -> Any:
        """``lᵀ (LᵀL + λ n)⁻¹ Lᵀ`` with the rows l of the cases held out."""
        xp, rows = namespace(self._rows), self._rows
        held, out, train = split_of(folds, f)
        shift = self._ridge * train.size * heaviest(self._root, train)
        known = take(xp, rows, train, 2)
        if train.size < out.size:
            among = xp.matmul(known, transposed(xp, known))
        else:
            if self._square is None:
                self._square = xp.matmul(rows, transposed(xp, rows))
            part = take(xp, rows, out, 2)
            among = self._square - xp.matmul(part, transposed(xp, part))
        among = among + identity(xp, rows.shape[1], shift)
        solved = linear(xp, "solve", among, take(xp, rows, held, 2))
        return xp.matmul(transposed(xp, solved), known)


class Pivots(NamedTuple):
    """Landmarks that were added at c locations."""

    rows: Any
    """(c, k, n) of the factor, zero behind those added"""
    left: Any
    """(c, n) what is left of the diagonal"""
    taken: IntArray
    """(c, k) cases, of which those added count"""
    residuals: FloatArray
    """(c, k) mean of what is left after each"""
    added: IntArray
    """(c,)"""


def take_pivots(
    columns: Any, cases: Any, left: Any, tolerance: FloatArray, room: IntArray
) -> Pivots:
    """Add cases, given what was left of their columns (c, k, n) of K, and of the diagonal (c, n).

    At each location the worst of its cases (c, k) is next, while it has a share of the largest
    residual of all, more than the tolerance (c,) is left and there is room (c,). Where it would
    bring the diagonal further below zero than it is large, what is left is rounding and set to
    zero. All of it stays on the device until the last case was tried.
    """
    xp = namespace(columns)
    size = cases.shape[1]
    most, allowed = xp.asarray(tolerance), xp.asarray(room)
    rows = columns[:, :0, :]
    going = most >= 0.0
    residual, largest = _residual_of(left)
    taken, residuals, went = [], [], []
    for step in range(size):
        among = xp.take_along_axis(left, cases, axis=-1)
        at = xp.argmax(among, axis=-1)[:, None]
        case = xp.take_along_axis(cases, at, axis=-1)
        worst = xp.take_along_axis(left, case, axis=-1)[:, 0]
        going = going & (residual > most) & (worst >= SHARE * largest) & (allowed > step)
        row = xp.take_along_axis(columns, at[:, :, None], axis=1)[:, 0, :]
        if step:
            shared = xp.take_along_axis(
                rows, xp.broadcast_to(case[:, :, None], (*rows.shape[:2], 1)), axis=-1
            )
            row = row - xp.sum(shared * rows, axis=1)
        row = row / xp.sqrt(xp.where(going, worst, 1.0))[:, None]
        lower = left - xp.where(going[:, None], row * row, 0.0)
        own = xp.arange(left.shape[-1], dtype=xp.int64)[None, :] == case
        lower = xp.where(own, 0.0, lower)
        sound = xp.min(lower, axis=-1) >= -worst
        left = xp.where(going[:, None], xp.where(sound[:, None], lower, 0.0), left)
        going = going & sound
        row = xp.where(going[:, None], row, 0.0)
        rows = concat(xp, [rows, row[:, None, :]], axis=1)
        residual, largest = _residual_of(left)
        taken.append(case[:, 0])
        residuals.append(residual)
        went.append(going)
    cases_taken, means, added = (
        to_host(xp.stack(part, axis=-1)) for part in (taken, residuals, went)
    )
    return Pivots(rows, left, cases_taken, means, np.asarray(added.sum(-1)))


def _residual_of(left: Any) -> tuple[Any, Any]:
    """Mean (c,) of the diagonal that is left, 0 where that is only rounding; its largest entry."""
    xp = namespace(left)
    largest = xp.max(left, axis=-1)
    mean = xp.mean(xp.clip(left, 0.0, None), axis=-1)
    return xp.where(largest > SMALLEST, mean, 0.0), largest
