"""The search at one location: kernel, support and ridge with the smallest held-out loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xrecal.typing import FloatArray, IntArray

from .candidates import Best, Candidates
from .held_out_losses import mean_losses, recorder
from .location import Location
from .minimum import golden_section, parabola
from .ridge_stopping import FAR, GRID, GRID_STEP, NEAR, falls_fast, gains_hardly, settles, to_beat
from .solvers import CLOSE, ROUGH, Exact, Solver, Solvers
from .tuning import Folds, Targets, merge, rank_errors, thin_out

START = -2.0

# Held-out cases at most to choose kernel and ridge by, and then the support, where a low-rank
# solver makes them the main cost.
TRIED, COMPARED = 500, 2000

# Folds at most to choose by; each of them takes factorisations of its own.
TRIED_FOLDS = 5


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
        self.location, self.bounds, self.candidates = location, bounds, candidates
        self.solvers = Solvers(location, bandwidth, candidates.kernels)
        self.low_rank = location.columns is not None
        # With many cases some of them, always the same, are enough to choose by.
        self.thinned = self.low_rank and location.target.size > TRIED
        self.folds = thin_out(merge(folds, TRIED_FOLDS), TRIED) if self.thinned else folds
        self.compared = thin_out(folds, COMPARED) if self.thinned else folds
        projection = candidates.project, candidates.on_support
        self.recorder = recorder(*projection, candidates.record)
        # Of low rank what is best is recorded again, more closely.
        self.rough = recorder(*projection, candidates.loss) if self.low_rank else self.recorder
        self._targets: dict[tuple[bool, bool], Targets] = {}

    def run(self, ridge: float | None) -> Best:
        """Best kernel and ridge of each support on the grid; a given ridge is not searched for."""
        best = Best.nothing_yet(self.candidates, self.location.target.size)
        n_kernels = len(self.candidates.kernels)
        middle = n_kernels // 2 if self.low_rank else 0  # others than a likely one may be far off
        for g in sorted(range(n_kernels), key=lambda g: abs(g - middle)):
            self._try_ridges(g, ridge, best)
        if self.thinned:
            self._choose_again(best, (0.0,) if ridge is not None else (-GRID_STEP, 0.0, GRID_STEP))
        if self.low_rank:
            self._record_best(best)
        return best

    def take(self, ridge: float) -> Best:
        """The only support and kernel, with the ridge that is given."""
        best = Best.nothing_yet(self.candidates, self.location.target.size)
        best.exponent[:], best.loss[:] = np.log10(ridge), np.nan
        return best

    def _try_ridges(self, g: int, ridge: float | None, best: Best) -> None:
        """Try ridges with one kernel: from a likely one up, then down, while they may be better."""
        solver, at = self.solvers[g], best.tried_exponent[g]
        supports = np.arange(self.candidates.supports.size)
        recorded = np.full_like(best.recorded, np.nan)

        def attempt(exponent: float) -> FloatArray:
            targets = self._targets_of(g, self.folds)
            self.record(solver, self.folds, targets, exponent, ROUGH, supports, recorded)
            losses: FloatArray = mean_losses(recorded, supports)
            best.note_try(g, exponent, losses, recorded)
            return losses

        if ridge is not None:
            attempt(float(np.log10(ridge)))
            return
        at[:] = start = self._first_ridge(g, best)
        path = [attempt(start)]  # losses with ever smaller ridges
        if self.low_rank and not self._promising(best.tried_loss, FAR)[g].any():
            return
        for exponent in GRID[start < GRID]:  # first up, as small ridges need many landmarks
            if self._is_far(solver, exponent - at, best.tried_loss[[g]]):
                break
            path.insert(0, attempt(exponent))
        path = [np.full_like(path[0], np.inf), *path]
        for exponent in GRID[start > GRID][::-1]:
            far = self._is_far(solver, at - exponent, best.tried_loss[[g]])
            if (far or self._settles(path, best)) and not self._falls(path, exponent, best):
                best.tried_down_to[g] = min(best.tried_down_to[g], exponent)
                break
            if not solver.reaches(10.0**exponent, ROUGH):
                break
            path.append(attempt(exponent))

    def _first_ridge(self, g: int, best: Best) -> float:
        """That of the best kernel so far; one step larger if similarities count by more."""
        if np.isinf(best.loss).all():
            return START
        first, strength = float(best.exponent[best.winner]), self.candidates.kernels[g][1]
        stronger = strength > self.candidates.kernels[best.kernel[best.winner]][1]
        return min(first + GRID_STEP * (self.low_rank and stronger), float(GRID[-1]))

    def _is_far(self, solver: Solver, apart: FloatArray, losses: FloatArray) -> bool:
        """Whether a ridge so far (S,) from those with the losses (1, S) is not worth trying."""
        if solver.patience == np.inf:
            return False
        near = self._promising(losses, NEAR)[0]
        return bool(apart[near].min() > solver.patience + GRID_STEP / 2)

    def _falls(self, path: list[FloatArray], exponent: float, best: Best) -> bool:
        """Whether a support may yet become the best one, or the best of its own."""
        last = exponent + GRID_STEP
        return len(path) > 2 and bool(
            falls_fast(path[-3], path[-2], path[-1], last, self._smallest(best))
        )

    def _settles(self, path: list[FloatArray], best: Best) -> bool:
        """Whether no support will."""
        return (
            self.low_rank
            and len(path) > 2
            and bool(settles(path[-3], path[-2], path[-1], self._smallest(best)))
        )

    def _smallest(self, best: Best) -> FloatArray:
        """The loss that each support is up against."""
        return to_beat(best.loss) if self.candidates.each else best.loss.min(keepdims=True)

    def _promising(self, loss: FloatArray, share: float) -> NDArray[np.bool_]:
        """Which losses (G, S) are at most so much larger than the smallest one that counts."""
        smallest = to_beat(loss.min(axis=0)) if self.candidates.each else loss.min()
        return np.asarray(loss <= smallest + share * np.abs(smallest))

    def _choose_again(self, best: Best, steps: tuple[float, ...]) -> None:
        """Try with more cases what is nearly best, and ridges so many steps away, in place."""
        near = self._promising(best.tried_loss, NEAR)
        best.loss[:] = np.inf
        for g in map(int, np.flatnonzero(near.any(axis=1))):
            supports = np.flatnonzero(near[g])
            at = np.unique(np.add.outer(best.tried_exponent[g, supports], steps))
            down = at[at <= GRID[-1]][::-1].tolist()  # small ridges take most time
            path: list[FloatArray] = []
            for exponent in down:
                if not self.solvers[g].reaches(10.0**exponent, ROUGH):
                    break
                path.append(self._compare(g, exponent, supports, best))
                smallest = np.broadcast_to(self._smallest(best), best.loss.shape)[supports]
                if len(path) > 1 and gains_hardly(path[-2], path[-1], smallest).all():
                    best.tried_down_to[g] = min(best.tried_down_to[g], exponent - GRID_STEP)
                    break
                further = exponent == down[-1] > GRID[0] and len(steps) > 1
                if further and self._is_best(best, g, exponent):
                    down.append(exponent - GRID_STEP)
            largest = down[0]
            while len(steps) > 1 and self._is_best(best, g, largest) and largest < GRID[-1]:
                largest += GRID_STEP
                self._compare(g, largest, supports, best)

    def _compare(self, g: int, exponent: float, supports: IntArray, best: Best) -> FloatArray:
        """Losses of some supports with more cases; what is best is kept."""
        recorded = np.full_like(best.recorded, np.nan)
        targets = self._targets_of(g, self.compared)
        self.record(self.solvers[g], self.compared, targets, exponent, ROUGH, supports, recorded)
        best.tried_down_to[g] = min(best.tried_down_to[g], exponent)
        losses: FloatArray = mean_losses(recorded, supports)
        for s in supports[losses[supports] < best.loss[supports]]:
            best.kernel[s], best.exponent[s], best.loss[s] = g, exponent, losses[s]
        return losses[supports]

    def _is_best(self, best: Best, g: int, exponent: float) -> bool:
        """Whether this kernel and ridge are the best of a support that counts."""
        here = (best.kernel == g) & (best.exponent == exponent) & np.isfinite(best.loss)
        return bool(here.any() if self.candidates.each else here[best.winner])

    def _record_best(self, best: Best) -> None:
        """Record more closely what is best, in place: for each support, or for the best one."""
        wanted = np.arange(best.loss.size) if self.candidates.each else np.array([best.winner])
        for g in map(int, np.unique(best.kernel[wanted])):
            supports = wanted[best.kernel[wanted] == g]
            targets = self._targets_of(g, self.compared)
            self._record_all(self.compared, targets, g, best.exponent, supports, best.recorded)
            best.loss[supports] = mean_losses(best.recorded, supports)[supports]

    def on_edge(self, best: Best) -> bool:
        """Whether the winner's ridge is the smallest or largest that could be tried."""
        exponent = best.exponent[best.winner]
        smallest = best.tried_down_to[best.kernel[best.winner]]
        return bool(exponent < smallest + 0.1 or exponent > GRID[-1] - 0.1)

    def refine(self, best: Best) -> None:
        """Locate the winner's ridge between the neighbours of its grid point, in place."""
        s, supports = best.winner, np.array([best.winner])
        g, recorded = int(best.kernel[s]), np.full_like(best.recorded, np.nan)
        solver, targets = self.solvers[g], self._targets_of(g, self.compared)

        def loss(exponent: float) -> float:
            self.record(solver, self.compared, targets, exponent, CLOSE, supports, recorded)
            return float(mean_losses(recorded, supports)[s])

        minimum = parabola if self.low_rank else golden_section
        best.exponent[s] = minimum(loss, float(best.exponent[s]), float(best.loss[s]), GRID_STEP)

    def landmarks(self, best: Best, s: int) -> Sequence[int]:
        """Cases that represent all others in forecasts with what is best for a support."""
        return self.solvers[int(best.kernel[s])].landmarks_for(10.0 ** float(best.exponent[s]))

    def records(self, best: Best, others: list[Folds]) -> FloatArray:
        """What is best recorded in the folds searched over and in others, (P, S, n, width)."""
        others = [thin_out(folds, COMPARED) if self.thinned else folds for folds in others]
        return np.stack([best.recorded, *(self._look_back(folds, best) for folds in others)])

    def _look_back(self, folds: Folds, best: Best) -> FloatArray:
        """What is recorded (S, n, width) in folds not searched over, with what is best."""
        recorded = np.full_like(best.recorded, np.nan)
        for g in map(int, np.unique(best.kernel)):
            supports, targets = np.flatnonzero(best.kernel == g), self._rank_errors(folds, g)
            self._record_all(folds, targets, g, best.exponent, supports, recorded)
        return recorded

    def _record_all(
        self,
        folds: Folds,
        targets: Targets,
        g: int,
        exponents: FloatArray,
        supports: IntArray,
        recorded: FloatArray,
    ) -> None:
        """Record some supports with one kernel, each with its own ridge."""
        solver = self.solvers[g]
        for exponent in np.unique(exponents[supports])[::-1]:
            at = supports[exponents[supports] == exponent]
            self.record(solver, folds, targets, float(exponent), CLOSE, at, recorded)

    def record(
        self,
        solver: Solver,
        folds: Folds,
        targets: Targets,
        exponent: float,
        slack: float,
        supports: IntArray,
        recorded: FloatArray,
    ) -> None:
        """Record what is forecast for the cases held out, into (S, n, width)."""
        ridge, where = 10.0**exponent, self.location
        known = targets, where.target, *self.bounds, where.theta, supports, recorded
        code = self.rough if slack == ROUGH else self.recorder
        left: Sequence[int] = range(folds.n_out.size)
        if isinstance(solver, Exact):
            left = solver.solved_directly(folds)
            if len(left) < folds.n_out.size:
                code.folds(*solver.eigen, ridge, where.root, folds, *known)
        for f in left:
            signed = solver.signed(folds, f, ridge, slack)
            code.fold(signed, where.root, folds, f, *known)

    def _targets_of(self, g: int, folds: Folds) -> Targets:
        """Errors in folds that are searched over."""
        known = folds is self.folds, self.candidates.kernels[g][1] > 0
        if known not in self._targets:
            self._targets[known] = self._rank_errors(folds, g)
        return self._targets[known]

    def _rank_errors(self, folds: Folds, g: int) -> Targets:
        """Errors around centres; covariates that do not count do not enter these either."""
        counted = None if self.candidates.kernels[g][1] > 0 else 0
        return rank_errors(
            folds.cases, folds.n_out, self.candidates.supports,
            self.location.mean, self.location.variance,
            np.ascontiguousarray(self.location.features[:, :counted]),
            self.location.target, *self.bounds, self.candidates.fit,
        )  # fmt: skip
