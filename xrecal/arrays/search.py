"""The search at one location: kernel, support and ridge with the smallest held-out loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .location import Location
from .solvers import Exact, LowRank, Solver
from .tuning import Folds, Targets, rank_errors, record_fold, thin_out

# Ridges tried, in powers of ten, and how finely the best one is then located.
GRID_STEP = 0.5
GRID = np.arange(-6.0, 0.1, GRID_STEP)
START = -2.0
SECTION = (3 - np.sqrt(5.0)) / 2  # golden section
REFINEMENTS = 7  # narrow the bracket from one power of ten to about 0.06

# Held-out cases at most to choose kernel and ridge by, and then the support, where a low-rank
# solver makes them the main cost.
TRIED, COMPARED = 500, 2000

NEAR = 0.01
"""Kernels whose loss is so much larger than the best may be better with other cases."""


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
    tried_loss: FloatArray
    """(G, S) smallest loss of each kernel"""
    tried_exponent: FloatArray
    """(G, S) where that is"""
    tried_down_to: FloatArray
    """(G,) smallest exponent that was tried"""
    landmarks: dict[int, Sequence[int]]
    """Of the solver of each kernel"""

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
        self.candidates = candidates
        # With many cases some of them, always the same, are enough to choose by.
        self.thinned = location.columns is not None and location.target.size > TRIED
        self.folds = thin_out(folds, TRIED) if self.thinned else folds
        self.compared = thin_out(folds, COMPARED) if self.thinned else folds

    def run(self, ridge: float | None) -> Best:
        """Best kernel and ridge of each support on the grid; a given ridge is not searched for."""
        best = self._nothing_yet()
        for g in range(len(self.candidates.kernels)):
            solver = self._solver(g)
            self._try_ridges(g, solver, ridge, best)
            best.landmarks[g] = solver.landmarks
        if self.location.columns is not None:
            self._compare(best)
        return best

    def _compare(self, best: Best) -> None:
        """Choose again by more cases among the kernels that are nearly best, in place."""
        near = best.tried_loss <= (1 + NEAR) * best.tried_loss.min(axis=0)
        best.loss[:] = np.inf
        recorded = np.full_like(best.recorded, np.nan)
        for g in np.flatnonzero(near.any(axis=1)):
            solver = self._solver(int(g), best)
            targets = self.targets(self.compared, self.candidates.kernels[g][1])
            for s in np.flatnonzero(near[g]):
                exponent = float(best.tried_exponent[g, s])
                self.record(solver, self.compared, targets, exponent, np.array([s]), recorded)
                loss = _mean(recorded[s, :, 0])
                if loss < best.loss[s]:
                    best.kernel[s], best.exponent[s], best.loss[s] = g, exponent, loss
                    best.recorded[s] = recorded[s]

    def take(self, ridge: float) -> Best:
        """The only support and kernel, with the ridge that is given."""
        best = self._nothing_yet()
        best.exponent[:], best.loss[:] = np.log10(ridge), np.nan
        return best

    def _nothing_yet(self) -> Best:
        n_supports, n = self.candidates.supports.size, self.location.target.size
        n_kernels = len(self.candidates.kernels)
        return Best(
            np.zeros(n_supports, np.int64),
            np.zeros(n_supports),
            np.full(n_supports, np.inf),
            np.full((n_supports, n, self.candidates.width), np.nan),
            np.full((n_kernels, n_supports), np.inf),
            np.zeros((n_kernels, n_supports)),
            np.full(n_kernels, np.inf),
            {},
        )

    def _try_ridges(self, g: int, solver: Solver, ridge: float | None, best: Best) -> None:
        """Try ridges with one kernel: from a likely one down, then up, while they may be better."""
        targets = self.targets(self.folds, self.candidates.kernels[g][1])
        at, attempt = best.tried_exponent[g], _Attempt(self, solver, targets, g, best)
        if ridge is not None:
            attempt(float(np.log10(ridge)))
            return
        at[:] = start = START if g == 0 else best.exponent[best.winner]
        enough = solver.patience + GRID_STEP / 2
        for exponent in GRID[start >= GRID][::-1]:
            if (at - exponent).min() > enough:
                break
            if not solver.reaches(10.0**exponent) and exponent < start:
                break
            attempt(exponent)
        for exponent in GRID[start < GRID]:
            if (exponent - at).min() > enough:
                break
            attempt(exponent)

    def on_edge(self, best: Best) -> bool:
        """Whether the winner's ridge is the smallest or largest that could be tried."""
        exponent = best.exponent[best.winner]
        smallest = best.tried_down_to[best.kernel[best.winner]]
        return bool(exponent < smallest + 0.1 or exponent > GRID[-1] - 0.1)

    def refine(self, best: Best) -> None:
        """Golden section between the neighbours of the winner's grid point, in place."""
        s, supports = best.winner, np.array([best.winner])
        g = int(best.kernel[s])
        solver, recorded = self._solver(g, best), np.full_like(best.recorded, np.nan)
        targets = self.targets(self.folds, self.candidates.kernels[g][1])
        middle, smallest = float(best.exponent[s]), float(best.loss[s])
        low, high = middle - GRID_STEP, middle + GRID_STEP
        for _ in range(REFINEMENTS):
            exponent = middle + SECTION * (
                high - middle if high - middle > middle - low else low - middle
            )
            solver.reaches(10.0**exponent)
            self.record(solver, self.folds, targets, exponent, supports, recorded)
            loss = _mean(recorded[s, :, 0])
            if loss < smallest:
                low, high = (middle, high) if exponent > middle else (low, middle)
                middle, smallest = exponent, loss
            elif exponent > middle:
                high = exponent
            else:
                low = exponent
        best.exponent[s] = middle
        best.landmarks[g] = solver.landmarks

    def settle(self, best: Best) -> None:
        """Add the landmarks that the best ridges need, in place."""
        if self.location.columns is None:
            return
        for g in np.unique(best.kernel):
            solver = self._solver(int(g), best)
            solver.refine(10.0 ** best.exponent[best.kernel == g].min())
            best.landmarks[int(g)] = solver.landmarks

    def _solver(self, g: int, best: Best | None = None) -> Solver:
        """Solver with one of the kernels, which has the landmarks found before."""
        if self.location.columns is None:
            return Exact(*self._kernel(g))
        return LowRank(*self._kernel(g), () if best is None else best.landmarks.get(g, ()))

    def _kernel(self, g: int) -> tuple[Location, float, float]:
        """Location, bandwidth and strength."""
        widening, strength = self.candidates.kernels[g]
        return self.location, self.bandwidth * widening, strength

    def record(
        self,
        solver: Solver,
        folds: Folds,
        targets: Targets,
        exponent: float,
        supports: IntArray,
        recorded: FloatArray,
    ) -> None:
        """Record what is forecast for the cases held out, into (S, n, width)."""
        for f in range(folds.n_out.size):
            record_fold(
                solver.signed(folds, f, 10.0**exponent), self.location.root, folds, f, targets,
                self.location.target, *self.bounds, self.location.theta, supports,
                self.candidates.project, self.candidates.on_support, self.candidates.record,
                recorded,
            )  # fmt: skip

    def targets(self, folds: Folds, strength: float) -> Targets:
        """Errors around centres; covariates that do not count do not enter these either."""
        found: Targets = rank_errors(
            folds.cases, folds.n_out, self.candidates.supports,
            self.location.mean, self.location.variance,
            np.ascontiguousarray(self.location.features[:, : None if strength > 0 else 0]),
            self.location.target, *self.bounds, self.candidates.fit,
        )  # fmt: skip
        return found

    def records(self, best: Best, others: list[Folds]) -> FloatArray:
        """What is best recorded in the folds searched over and in others, (P, S, n, width)."""
        others = [thin_out(folds, COMPARED) if self.thinned else folds for folds in others]
        return np.stack([best.recorded, *(self._look_back(folds, best) for folds in others)])

    def _look_back(self, folds: Folds, best: Best) -> FloatArray:
        """What is recorded (S, n, width) in folds not searched over, with what is best."""
        recorded = np.full_like(best.recorded, np.nan)
        for g in np.unique(best.kernel):
            solver = self._solver(int(g), best)
            targets = self.targets(folds, self.candidates.kernels[g][1])
            for s in np.flatnonzero(best.kernel == g):
                exponent = float(best.exponent[s])
                self.record(solver, folds, targets, exponent, np.array([s]), recorded)
        return recorded


class _Attempt:
    """One ridge with one kernel, for all supports; keeps what is best."""

    def __init__(
        self, search: Search, solver: Solver, targets: Targets, g: int, best: Best
    ) -> None:
        self.search, self.solver, self.targets, self.g, self.best = search, solver, targets, g, best
        self.supports = np.arange(search.candidates.supports.size)
        self.recorded = np.full_like(best.recorded, np.nan)

    def __call__(self, exponent: float) -> None:
        best, g = self.best, self.g
        self.search.record(
            self.solver, self.search.folds, self.targets, exponent, self.supports, self.recorded
        )
        best.tried_down_to[g] = min(best.tried_down_to[g], exponent)
        for s in self.supports:
            loss = _mean(self.recorded[s, :, 0])
            # Of equal losses the larger ridge, which is the smoother forecast.
            smaller = exponent < best.tried_exponent[g, s]
            if loss < best.tried_loss[g, s] or (loss == best.tried_loss[g, s] and not smaller):
                best.tried_loss[g, s], best.tried_exponent[g, s] = loss, exponent
                if loss < best.loss[s] or (loss == best.loss[s] and best.kernel[s] == g):
                    best.kernel[s], best.exponent[s], best.loss[s] = g, exponent, loss
                    best.recorded[s] = self.recorded[s]


def _mean(losses: FloatArray) -> float:
    """Mean over the cases that were held out; infinite without any."""
    known = losses[~np.isnan(losses)]
    return float(known.mean()) if known.size else np.inf
