"""The search at many locations at once; see :mod:`xrecal.arrays.ckme.search`.

It takes the same decisions in the same order. Where a location is done, those that go on are
looked at without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.ckme.ridge_stopping import (
    FAR,
    GRID,
    GRID_STEP,
    NEAR,
    falls_fast,
    gains_hardly,
    settles,
)
from xrecal.arrays.ckme.search import COMPARED, START, TRIED, TRIED_FOLDS
from xrecal.arrays.ckme.solvers import CLOSE, ROUGH
from xrecal.arrays.ckme.tuning import Folds, merge, thin_out
from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray, IntArray

from .best import Best
from .held_out import Judge, Targets
from .location import Locations
from .lowrank import LowRank
from .minimum import golden_sections, parabolas
from .solvers import Exact, Solver

__all__ = ["Search"]


class Search:
    """Cross-validation at b locations within the same folds."""

    def __init__(
        self,
        where: Locations,
        bandwidth: Any,
        folds: Folds,
        kernels: Sequence[tuple[float, float]],
        judge: Judge,
        *,
        low_rank: bool,
    ) -> None:
        self.where, self.judge, self.kernels, self.low_rank = where, judge, kernels, low_rank
        self._bandwidth = bandwidth
        self.b = int(bandwidth.shape[0])
        self.thinned = low_rank and where.n > TRIED
        self.folds = thin_out(merge(folds, TRIED_FOLDS), TRIED) if self.thinned else folds
        self.compared = thin_out(folds, COMPARED) if self.thinned else folds
        self._solvers: dict[int, Solver] = {}
        self._targets: dict[tuple[bool, bool], list[list[Targets]]] = {}

    def solver(self, g: int) -> Solver:
        """Solver with one of the kernels."""
        if g not in self._solvers:
            widening, strength = self.kernels[g]
            xp = namespace(self._bandwidth)
            kind = LowRank if self.low_rank else Exact
            strengths = xp.full((self.b,), strength, dtype=xp.float64)
            self._solvers[g] = kind(self.where, self._bandwidth * widening, strengths)
        return self._solvers[g]

    def run(self, ridge: float | None) -> Best:
        """Best kernel and ridge of each support on the grid; a given ridge is not searched for."""
        n_kernels, supports = len(self.kernels), self.judge.supports
        best = Best.nothing_yet(self.b, n_kernels, supports.size)
        middle = n_kernels // 2 if self.low_rank else 0
        for g in sorted(range(n_kernels), key=lambda g: abs(g - middle)):
            self._try_ridges(g, ridge, best)
        if self.thinned:
            self._choose_again(best, (0.0,) if ridge is not None else (-GRID_STEP, 0.0, GRID_STEP))
        if self.low_rank:
            for g, at in self._by_kernel(best, np.arange(self.b)):
                losses = self._losses_of_winner(g, at, best.of_winner(best.exponent)[at], best)
                best.loss[at, best.winner[at]] = losses
        return best

    def take(self, ridge: float) -> Best:
        """The only support and kernel, with the ridge that is given."""
        best = Best.nothing_yet(self.b, len(self.kernels), self.judge.supports.size)
        best.exponent[:], best.loss[:] = np.log10(ridge), np.nan
        return best

    def _try_ridges(self, g: int, ridge: float | None, best: Best) -> None:
        """Try ridges with one kernel: from a likely one up, then down, while they may be better."""
        everywhere = np.arange(self.b)
        if ridge is not None:
            self._attempt(g, everywhere, np.full(self.b, np.log10(ridge)), best)
            return
        start = self._first_ridges(g, best)
        best.tried_exponent[:, g] = start[:, np.newaxis]
        # Losses of three ridges, ever smaller, infinite where there were fewer.
        now = self._attempt(g, everywhere, start, best)
        before, losses = np.full_like(now, np.inf), np.full_like(now, np.inf)
        goes_on = np.ones(self.b, np.bool_)
        if self.low_rank:
            goes_on = np.asarray(self._promising(best.tried_loss, FAR)[:, g].any(axis=1))
        for sign in (1, -1):  # first up, as small ridges need many landmarks
            going = goes_on.copy()
            for step in range(1, GRID.size):
                exponent = start + sign * step * GRID_STEP
                going &= (GRID[0] - 0.1 < exponent) & (exponent < GRID[-1] + 0.1)
                on = self._close(g, sign * exponent, sign, best)
                if sign < 0:
                    on = self._goes_down(on, before, losses, now, exponent, best)
                    done = np.flatnonzero(going & ~on)
                    down_to = np.minimum(best.tried_down_to[done, g], exponent[done])
                    best.tried_down_to[done, g] = down_to
                going &= on
                if sign < 0:
                    at = np.flatnonzero(going)
                    going[at] = self.solver(g).reaches(at, 10.0 ** exponent[at], ROUGH)
                if not going.any():
                    break
                at = np.flatnonzero(going)
                found = self._attempt(g, at, exponent[at], best)
                if sign < 0:
                    before[at], losses[at], now[at] = losses[at], now[at], found
                elif step == 1:
                    losses[at] = found
                elif step == 2:
                    before[at] = found

    def _first_ridges(self, g: int, best: Best) -> FloatArray:
        """Those (b,) of the best kernels so far; one step larger if similarities count by more."""
        strengths = np.array([strength for _, strength in self.kernels])
        stronger = self.low_rank & (strengths[g] > strengths[best.of_winner(best.kernel)])
        first = best.of_winner(best.exponent) + GRID_STEP * stronger
        nothing = np.isinf(best.loss).all(axis=1)
        return np.asarray(np.where(nothing, START, np.minimum(first, GRID[-1])))

    def _goes_down(
        self,
        close: npt.NDArray[np.bool_],
        before: FloatArray,
        losses: FloatArray,
        now: FloatArray,
        exponent: FloatArray,
        best: Best,
    ) -> npt.NDArray[np.bool_]:
        """Whether smaller ridges (b,) are worth trying after three others."""
        smallest = best.loss.min(axis=1, keepdims=True)
        known = np.isfinite(losses).all(axis=1)
        falls = known & falls_fast(before, losses, now, exponent + GRID_STEP, smallest)
        settled = self.low_rank & known & settles(before, losses, now, smallest)
        return np.asarray((close & ~settled) | falls)

    def _close(self, g: int, beyond: FloatArray, sign: int, best: Best) -> npt.NDArray[np.bool_]:
        """Whether ridges (b,) are close enough to the best one of a support that may be best."""
        enough = self.solver(g).patience + GRID_STEP / 2
        near = self._promising(best.tried_loss[:, [g]], NEAR)[:, 0]
        away = beyond[:, np.newaxis] - sign * best.tried_exponent[:, g]
        return np.asarray(np.where(near, away, np.inf).min(axis=1) <= enough)

    def _promising(self, loss: FloatArray, share: float) -> npt.NDArray[np.bool_]:
        """Which losses (b, G, S) are at most so much larger than the smallest of a location."""
        smallest = loss.min(axis=(1, 2), keepdims=True)
        return np.asarray(loss <= smallest + share * np.abs(smallest))

    def _attempt(self, g: int, at: IntArray, exponent: FloatArray, best: Best) -> FloatArray:
        """Losses (c, S) of one ridge at each of some locations with one kernel; keeps the best."""
        supports = np.arange(self.judge.supports.size)
        losses = self._losses(g, at, exponent, ROUGH, self.folds, supports)
        best.note_try(at, g, exponent, losses)
        return losses

    def _choose_again(self, best: Best, steps: tuple[float, ...]) -> None:
        """Try with more cases what is nearly best, and ridges so many steps away, in place."""
        near = self._promising(best.tried_loss, NEAR)
        best.loss[:] = np.inf
        for g in map(int, np.flatnonzero(near.any(axis=(0, 2)))):
            wanted = [
                np.unique(np.add.outer(best.tried_exponent[i, g, near[i, g]], steps))
                for i in range(self.b)
            ]
            # Small ridges take most time.
            down = [at[at <= GRID[-1]][::-1].tolist() for at in wanted]
            before, step = np.full_like(best.loss, np.inf), 0
            going = near[:, g].any(axis=1)
            while True:
                going &= np.array([step < len(at) for at in down])
                at = np.flatnonzero(going)
                exponent = np.array([down[i][step] for i in at])
                going[at] = self.solver(g).reaches(at, 10.0**exponent, ROUGH)
                exponent, at = exponent[going[at]], at[going[at]]
                if at.size == 0:
                    break
                losses = self._compare(g, at, exponent, near[at, g], best)
                hardly = gains_hardly(before[at], losses, best.loss[at].min(1, keepdims=True))
                done = (hardly | ~near[at, g]).all(axis=1) & (step > 0)
                down_to = np.minimum(best.tried_down_to[at, g], exponent - GRID_STEP)
                best.tried_down_to[at[done], g] = down_to[done]
                before[at], going[at] = losses, ~done
                for i in at[~done & self._is_best(best, g, at, exponent)].tolist():
                    last = down[i][-1]
                    if len(steps) > 1 and step == len(down[i]) - 1 and last > GRID[0]:
                        down[i].append(last - GRID_STEP)
                step += 1
            if len(steps) > 1:
                largest = np.array([at[0] if at else np.nan for at in down])
                self._compare_larger(g, largest, near[:, g], best)

    def _is_best(
        self, best: Best, g: int, at: IntArray, exponent: FloatArray
    ) -> npt.NDArray[np.bool_]:
        """Whether this kernel and these ridges (c,) are the best ones at some locations."""
        kernel, ridge, loss = (
            best.of_winner(part)[at] for part in (best.kernel, best.exponent, best.loss)
        )
        return np.asarray((kernel == g) & (ridge == exponent) & np.isfinite(loss))

    def _compare_larger(
        self, g: int, largest: FloatArray, near: npt.NDArray[np.bool_], best: Best
    ) -> None:
        """Go on with larger ridges where the largest one (b,) is the best."""
        while True:
            at = np.flatnonzero(near.any(axis=1) & (largest < GRID[-1]))
            at = at[self._is_best(best, g, at, largest[at])]
            if at.size == 0:
                return
            largest[at] += GRID_STEP
            self._compare(g, at, largest[at], near[at], best)

    def _compare(
        self, g: int, at: IntArray, exponent: FloatArray, near: npt.NDArray[np.bool_], best: Best
    ) -> FloatArray:
        """Losses (c, S) of one ridge at some locations with more cases; what is best is kept."""
        supports = np.flatnonzero(near.any(axis=0))
        losses = self._losses(g, at, exponent, ROUGH, self.compared, supports)
        losses = np.where(near, losses, np.inf)
        best.tried_down_to[at, g] = np.minimum(best.tried_down_to[at, g], exponent)
        better = losses < best.loss[at]
        best.kernel[at] = np.where(better, g, best.kernel[at])
        best.exponent[at] = np.where(better, exponent[:, np.newaxis], best.exponent[at])
        best.loss[at] = np.where(better, losses, best.loss[at])
        return losses

    def on_edge(self, best: Best) -> npt.NDArray[np.bool_]:
        """Whether the winners' ridges (b,) are the smallest or largest that could be tried."""
        exponent, kernel = best.of_winner(best.exponent), best.of_winner(best.kernel)
        smallest = best.tried_down_to[np.arange(self.b), kernel]
        return np.asarray((exponent < smallest + 0.1) | (exponent > GRID[-1] - 0.1))

    def refine(self, best: Best, at: IntArray) -> None:
        """Locate the winners' ridges between the neighbours of their grid points, in place."""
        minimum = parabolas if self.low_rank else golden_sections
        for g, here in self._by_kernel(best, at):

            def loss(
                which: IntArray, exponent: FloatArray, g: int = g, here: IntArray = here
            ) -> FloatArray:
                return self._losses_of_winner(g, here[which], exponent, best)

            middle, smallest = (best.of_winner(part)[here] for part in (best.exponent, best.loss))
            best.exponent[here, best.winner[here]] = minimum(loss, middle, smallest, GRID_STEP)

    def _by_kernel(self, best: Best, at: IntArray) -> list[tuple[int, IntArray]]:
        """Locations by the kernel of their winner."""
        kernel = best.of_winner(best.kernel)[at]
        return [(int(g), at[kernel == g]) for g in np.unique(kernel)]

    def _losses_of_winner(
        self, g: int, at: IntArray, exponent: FloatArray, best: Best
    ) -> FloatArray:
        """Losses (c,) of the best supports, more closely."""
        winner = best.winner[at]
        losses = self._losses(g, at, exponent, CLOSE, self.compared, np.unique(winner))
        return np.asarray(losses[np.arange(at.size), winner])

    def _losses(
        self,
        g: int,
        at: IntArray,
        exponent: FloatArray,
        slack: float,
        folds: Folds,
        supports: IntArray,
    ) -> FloatArray:
        """Mean losses (c, S) with one kernel and ridges (c,)."""
        solved = self.solver(g).prepare(at, 10.0**exponent, slack)
        conditioned = self.kernels[g][1] > 0
        known = folds is self.folds, conditioned
        if known not in self._targets:
            k = self.where.cases.features.shape[-1] if conditioned else 0
            self._targets[known] = self.judge.targets(folds, k)
        return self.judge.losses(solved, folds, self._targets[known], at, supports)
