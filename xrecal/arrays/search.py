"""The search at one location: kernel, support and ridge with the smallest held-out loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .location import Location
from .tuning import Folds, Targets, heaviest, held_out, rank_errors, record_fold

# Ridges tried, in powers of ten, and how finely the best one is then located.
GRID_LOW, GRID_STEP, GRID_SIZE = -6.0, 0.5, 13
SECTION = (3 - np.sqrt(5.0)) / 2  # golden section
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06


@dataclass(frozen=True)
class Candidates:
    """What may be chosen, and how it is judged; the same at all locations."""

    kernels: tuple[tuple[float, float], ...]
    """Factor of the bandwidth, and exponent of the kernel on covariates (0: without), of each"""
    supports: IntArray
    """(S,) codes of :data:`xrecal.arrays.centre.SUPPORTS`"""
    fit: Any
    """``fit_centre``, or ``past_observations`` where no centre is wanted: what is not passed to
    compiled code need not be compiled"""
    project: Any
    """Signed weights to probabilities"""
    on_support: bool
    """Whether the projection depends on the support"""
    record: Any
    """What is kept of a held-out forecast: a loss, perhaps quantiles"""
    width: int
    """How many numbers that is"""


@dataclass
class Best:
    """Best setting of each of S supports at one location."""

    kernel: IntArray
    """(S,) position among the candidates"""
    exponent: FloatArray
    """(S,) power of ten of the ridge"""
    loss: FloatArray
    """(S,)"""
    recorded: FloatArray
    """(S, n, width) of the held-out cases at the best grid point"""

    @property
    def winner(self) -> int:
        """The best support."""
        return int(np.argmin(self.loss))


class Search:
    """Cross-validation at one location, within given folds and bounds of the variable."""

    def __init__(
        self,
        location: Location,
        bandwidth: float,
        bounds: tuple[float, float],
        folds: Folds,
        candidates: Candidates,
    ) -> None:
        self.location, self.bandwidth, self.bounds = location, bandwidth, bounds
        self.folds, self.candidates = folds, candidates

    def run(self, ridge: float | None) -> Best:
        """Best kernel and ridge of each support on the grid; a given ridge is not searched for."""
        n_supports, n = self.candidates.supports.size, self.location.target.size
        best = Best(
            np.zeros(n_supports, np.int64),
            np.zeros(n_supports),
            np.full(n_supports, np.inf),
            np.full((n_supports, n, self.candidates.width), np.nan),
        )
        supports = np.arange(n_supports)
        for g in range(len(self.candidates.kernels)):
            record = self._recorder(g)
            for exponent in _grid(ridge):
                recorded = record(exponent, supports)
                for s in supports:
                    loss = _mean(recorded[s, :, 0])
                    # Of equal losses the larger ridge, which is the smoother forecast.
                    if loss < best.loss[s] or (loss == best.loss[s] and best.kernel[s] == g):
                        best.kernel[s], best.exponent[s], best.loss[s] = g, exponent, loss
                        best.recorded[s] = recorded[s]
        return best

    def on_edge(self, best: Best) -> bool:
        """Whether the winner's ridge is the smallest or largest of the grid."""
        exponent = best.exponent[best.winner]
        return bool(abs(exponent - GRID_LOW - (GRID_SIZE - 1) * GRID_STEP / 2) > 2.9)

    def refine(self, best: Best) -> None:
        """Golden section between the neighbours of the winner's grid point, in place."""
        s = best.winner
        record, only = self._recorder(int(best.kernel[s])), np.array([s])
        middle, smallest = float(best.exponent[s]), float(best.loss[s])
        low, high = middle - GRID_STEP, middle + GRID_STEP
        for _ in range(REFINEMENTS):
            exponent = middle + SECTION * (
                high - middle if high - middle > middle - low else low - middle
            )
            loss = _mean(record(exponent, only)[s, :, 0])
            if loss < smallest:
                low, high = (middle, high) if exponent > middle else (low, middle)
                middle, smallest = exponent, loss
            elif exponent > middle:
                high = exponent
            else:
                low = exponent
        best.exponent[s] = middle

    def _recorder(self, g: int) -> Callable[[float, IntArray], FloatArray]:
        """Function from ridge (power of ten) and supports to what is recorded, (S, n, width)."""
        widening, strength = self.candidates.kernels[g]
        gram = self.location.gram(self.bandwidth * widening, strength)
        values, vectors = np.linalg.eigh(gram)
        vectors = np.ascontiguousarray(vectors)
        targets = self.targets(self.folds, strength)
        recorded = np.full(
            (self.candidates.supports.size, values.size, self.candidates.width), np.nan
        )

        def record(exponent: float, supports: IntArray) -> FloatArray:
            held_out(
                values, vectors, self.location.root, self.folds, targets, self.location.target,
                *self.bounds, self.location.theta, 10.0**exponent, supports,
                self.candidates.project, self.candidates.on_support, self.candidates.record,
                recorded,
            )  # fmt: skip
            return recorded

        return record

    def targets(self, folds: Folds, strength: float) -> Targets:
        """Errors around centres; covariates that do not count do not enter these either."""
        found: Targets = rank_errors(
            folds.cases, folds.n_out, self.candidates.supports,
            self.location.mean, self.location.variance,
            np.ascontiguousarray(self.location.features[:, : None if strength > 0 else 0]),
            self.location.target, *self.bounds, self.candidates.fit,
        )  # fmt: skip
        return found

    def look_back(self, folds: Folds, best: Best) -> FloatArray:
        """What is recorded (S, n, width) in folds not searched over, with what is best."""
        recorded = np.full_like(best.recorded, np.nan)
        root = self.location.root
        for s, (g, exponent) in enumerate(zip(best.kernel, best.exponent, strict=True)):
            widening, strength = self.candidates.kernels[g]
            gram = self.location.gram(self.bandwidth * widening, strength)
            targets = self.targets(folds, strength)
            for f in range(folds.n_out.size):
                train = folds.cases[f, folds.n_out[f] :]
                held = folds.cases[f, : folds.n_held[f]]
                block = gram[np.ix_(train, train)]
                block[np.diag_indices_from(block)] += (
                    10.0**exponent * train.size * heaviest(root, train)
                )
                signed = np.zeros((root.size, held.size))
                signed[train] = np.linalg.solve(block, gram[np.ix_(train, held)])
                record_fold(
                    signed, root, folds, f, targets, self.location.target, *self.bounds,
                    self.location.theta, np.array([s]), self.candidates.project,
                    self.candidates.on_support, self.candidates.record, recorded,
                )  # fmt: skip
        return recorded


def _grid(ridge: float | None) -> Iterator[float]:
    """Powers of ten to try."""
    if ridge is not None:
        yield float(np.log10(ridge))
        return
    for step in range(GRID_SIZE):
        yield GRID_LOW + step * GRID_STEP


def _mean(losses: FloatArray) -> float:
    """Mean over the cases that were held out; infinite without any."""
    known = losses[~np.isnan(losses)]
    return float(known.mean()) if known.size else np.inf
