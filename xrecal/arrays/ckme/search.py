"""Search at one location for the kernel, support and ridge with the smallest held-out loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xrecal.typing import FloatArray, IntArray

from .centre import OBSERVATIONS, SUPPORTS, usable_supports
from .embedding import Settings
from .folds import holds_out_several, merge, not_held_out, same_training_cases, thin_out
from .held_out_losses import LATER, TO_COMPARE, TO_TRY, Judge, mean_losses
from .lowrank import CLOSE, ROUGH, LowRank
from .problem import Problem
from .ridge_rules import (
    FAR,
    GRID,
    GRID_STEP,
    NEAR,
    PATIENCE,
    START,
    falls_fast,
    gains_hardly,
    golden_section,
    reference_loss,
    settles,
    vertex,
)
from .solvers import Solver

TRIED, COMPARED = 500, 2000
"""Largest numbers of held-out cases in a low-rank search: the first to choose among several
kernels, the second to choose ridge and support. Held-out cases are the main cost of the search. The
limits do not apply to training cases. The search also refines the ridge with the second number of
cases; with fewer cases the ridge would fit their noise."""

LATER_PARTS = 8
"""Number of parts into which the search cuts the period, for forecasts from earlier cases. Each
part except the first gets forecasts from a fit to all earlier parts."""

TRIED_FOLDS = 5
"""Largest number of folds in the choice among several kernels. Each fold needs matrix factors of
its own."""


class Candidates(NamedTuple):
    """Kernels and supports to choose from, which are the same at all locations."""

    kernels: tuple[tuple[float, float], ...]
    """(G,) for each kernel, factor of its bandwidth, and strength of the covariates; the strength
    is 0 if the kernel does not use covariates"""
    supports: IntArray
    """(S,) codes of :data:`xrecal.arrays.ckme.centre.SUPPORTS`"""


def candidates_of(settings: Settings, *, conditioned: bool) -> Candidates:
    """Return the candidates; leave out kernels that use covariates unless ``conditioned``."""
    return Candidates(
        tuple(k for k in settings.kernels if k[1] == 0 or conditioned),
        np.array([SUPPORTS.index(support) for support in settings.supports]),
    )


@dataclass
class Best:
    """Best settings of each of S supports at one location."""

    kernel: IntArray
    """(S,) position of the best kernel among the candidates"""
    exponent: FloatArray
    """(S,) power of ten of the best ridge"""
    loss: FloatArray
    """(S,) smallest loss of each support, with any kernel and ridge"""
    tried_loss: FloatArray
    """(G, S) smallest loss with each kernel, for each support"""
    tried_exponent: FloatArray
    """(G, S) power of ten of the ridge with the loss ``tried_loss``"""
    tried_down_to: FloatArray
    """(G,) power of ten of the smallest ridge that the search has tried or ruled out"""
    recorded: dict[int, FloatArray] = field(default_factory=dict)
    """For each support, losses and quantiles (n, width) of cases with the best settings so far"""

    @classmethod
    def nothing_yet(cls, candidates: Candidates) -> Best:
        """Return the state before the first try."""
        n_supports, n_kernels = candidates.supports.size, len(candidates.kernels)
        return cls(
            np.zeros(n_supports, np.int64),
            np.zeros(n_supports),
            np.full(n_supports, np.inf),
            np.full((n_kernels, n_supports), np.inf),
            np.zeros((n_kernels, n_supports)),
            np.full(n_kernels, np.inf),
        )

    @property
    def winner(self) -> int:
        """Return the position of the best support."""
        return int(np.argmin(self.loss))

    def note_try(
        self,
        g: int,
        exponent: float,
        losses: FloatArray,
        supports: IntArray,
        recorded: FloatArray | None,
    ) -> None:
        """Store the results of each support for which this kernel and ridge are the best so far.

        If losses are equal, the larger ridge is better, because its forecast is smoother.
        """
        self.tried_down_to[g] = min(self.tried_down_to[g], exponent)
        tried, at = self.tried_loss[g], self.tried_exponent[g]
        for s, loss in zip(supports.tolist(), losses[supports].tolist(), strict=True):
            if loss > tried[s]:
                continue
            if loss < tried[s] or exponent >= at[s]:
                tried[s], at[s] = loss, exponent
                if loss < self.loss[s] or (loss == self.loss[s] and self.kernel[s] == g):
                    self.kernel[s], self.exponent[s], self.loss[s] = g, exponent, loss
                    if recorded is not None:
                        self.recorded[s] = recorded[s]


class Search:
    """Cross-validation at one location.

    With ``forward``, folds train on earlier cases alone. With ``n_quantiles`` above 0, the search
    finds the best settings of every support, and quantiles of the forecasts of held-out cases.
    """

    def __init__(self, problem: Problem, *, forward: bool = False, n_quantiles: int = 0) -> None:
        calibration, self.each = problem.calibration, n_quantiles > 0
        self.candidates = candidates_of(
            problem.settings, conditioned=calibration.features.circular.size > 0
        )
        self.best, self.ridge = Best.nothing_yet(self.candidates), problem.settings.ridge
        if self.ridge is None and math.isinf(problem.location.median):
            # If all forecasts are equal, they cannot help with any ridge, but covariates can.
            conditioned = any(strength > 0 for _, strength in self.candidates.kernels)
            self.ridge = None if conditioned else 1.0
        self.low_rank, self._solvers = problem.location.low_rank, problem.solvers
        self.every = usable_supports(self.candidates.supports, problem.low)
        sets = [problem.folds(calibration.groups, calibration.blocks, forward=forward)]
        if self.each:
            sets.append(problem.folds(calibration.step, LATER_PARTS, forward=True))
        self._by_group = calibration.blocks == 0 and holds_out_several(sets[0])
        # With several kernels, a limited number of held-out cases is enough to choose a kernel and
        # to try ridges. With one kernel, most ridges tried are large and cheap, or close to the
        # best ridge. So a second search near the best ridge would take as long as a single search
        # with all cases.
        self._thinned = self.low_rank and problem.n > TRIED and len(self.candidates.kernels) > 1
        tried = thin_out(merge(sets[0], TRIED_FOLDS), TRIED) if self._thinned else None
        if self.low_rank:
            sets = [thin_out(folds, COMPARED) for folds in sets]
        compared, *later = sets
        tried = compared if tried is None else tried
        folds = tried, compared, not_held_out(compared, tried), *later
        self._judge = Judge(problem, folds, self.candidates.supports, n_quantiles)
        # For each kernel, recorded losses (S, n, 1) by ridge; a comparison need not repeat these.
        self._tried: list[dict[float, FloatArray]] = [{} for _ in self.candidates.kernels]
        self._reuses = self._thinned and same_training_cases(tried, compared)
        # For each kernel, losses (S,) of all compared cases with the ridges tried so far.
        self._of_all: list[dict[float, FloatArray]] = [{} for _ in self.candidates.kernels]
        self.curves = np.full((*self.best.tried_loss.shape, GRID.size), math.nan)
        """(G, S, R) losses with each tried ridge of the grid; if the settings have a ridge, all R
        entries are the loss with this ridge"""

    def run(self) -> None:
        """Find the best kernel and the best ridge of the grid for each support.

        If the settings have a ridge, the search tries only this ridge.
        """
        n_kernels = len(self.candidates.kernels)
        # With low rank each kernel costs much. So the search begins with a likely kernel, in the
        # middle of the list, and leaves unlikely kernels early.
        likely = n_kernels // 2 if self.low_rank else 0
        order = sorted(range(n_kernels), key=lambda g: abs(g - likely))
        for place, g in enumerate(order):
            self._try_kernel(g, place)
        if self._thinned:
            self._choose_again()
        if self.low_rank and self.each:
            self._judge_closely()

    def _try_kernel(self, g: int, place: int) -> None:
        """Try ridges with one kernel: first a likely ridge, then larger and smaller ridges.

        The search goes up and down the grid as long as losses may fall.
        """
        solver = self._solver(g)
        if self.ridge is not None:
            self._attempt(solver, g, float(np.log10(self.ridge)))
            return
        start, best = self._first_ridge(g), self.best
        best.tried_exponent[g] = start
        path = [self._attempt(solver, g, start)]  # losses with smaller and smaller ridges
        if self.low_rank and not self._promising(best.tried_loss, FAR)[g].any():
            return
        below = start - GRID_STEP
        # The ridge START is usually too large. So the first kernel next tries a smaller ridge, and
        # no larger ridge if the smaller one is better. With other kernels, smaller ridges come
        # last, because they need more landmarks.
        if self.low_rank and place == 0 and _reaches(solver, below):
            path.append(self._attempt(solver, g, below))
        for exponent in GRID[start < GRID].tolist():
            if self._is_far(g, exponent - best.tried_exponent[g]):
                break
            path.insert(0, self._attempt(solver, g, exponent))
        path = [np.full_like(path[0], np.inf), *path]
        for exponent in GRID[best.tried_down_to[g] > GRID][::-1].tolist():
            far = self._is_far(g, best.tried_exponent[g] - exponent)
            if (far or self._settles(path)) and not self._falls(path, exponent):
                best.tried_down_to[g] = min(best.tried_down_to[g], exponent)
                break
            if not _reaches(solver, exponent):
                break
            path.append(self._attempt(solver, g, exponent))

    def _solver(self, g: int) -> Solver:
        """Return the solver with this kernel; a new solver may replace solvers of other kernels."""
        return self._solvers[self.candidates.kernels[g]]

    def _attempt(self, solver: Solver, g: int, exponent: float) -> FloatArray:
        """Return losses of the usable supports with one kernel and ridge; store the best losses."""
        losses, recorded = self._judge.losses(solver, exponent, self.every, TO_TRY, ROUGH)
        kept = recorded if self.each else None
        self.best.note_try(g, exponent, losses, self.every, kept)
        at = slice(None) if self.ridge is not None else np.abs(GRID - exponent).argmin()
        self.curves[g, :, at] = losses if self.ridge is None else losses[:, np.newaxis]
        if not self._thinned:
            self._of_all[g][exponent] = losses
        if self._reuses:
            self._tried[g][exponent] = recorded
        return losses[self.every]

    def _first_ridge(self, g: int) -> float:
        """Return the power of ten of the first ridge to try with this kernel.

        This is the power of the best ridge so far. With low rank, the method returns a power one
        grid step larger if this kernel gives more strength to covariates than the best kernel so
        far.
        """
        best = self.best
        if np.isinf(best.loss).all():
            return START
        first, strength = float(best.exponent[best.winner]), self.candidates.kernels[g][1]
        stronger = strength > self.candidates.kernels[best.kernel[best.winner]][1]
        return min(first + GRID_STEP * (self.low_rank and stronger), float(GRID[-1]))

    def _is_far(self, g: int, apart: FloatArray) -> bool:
        """Return whether the search skips a ridge, because it is far from the best ridges.

        ``apart`` (S,) are the distances, in powers of ten, from the best ridge of each support with
        this kernel.
        """
        if not self.low_rank:
            return False
        near = self._promising(self.best.tried_loss[[g]], NEAR)[0]
        return bool(apart[near].min() > PATIENCE + GRID_STEP / 2)

    def _falls(self, path: list[FloatArray], exponent: float) -> bool:
        """Return whether losses fall so fast that a smaller ridge may be the best."""
        last = exponent + GRID_STEP
        return len(path) > 2 and falls_fast(path, last, self._smallest())

    def _settles(self, path: list[FloatArray]) -> bool:
        """Return whether it is unlikely that a smaller ridge is the best."""
        return self.low_rank and len(path) > 2 and settles(path, self._smallest())

    def _smallest(self) -> FloatArray:
        """Return the loss that each usable support must beat, or one loss (1,) for all supports."""
        loss = self.best.loss[self.every]
        return reference_loss(loss) if self.each else loss.min(keepdims=True)

    def _promising(self, loss: FloatArray, share: float) -> NDArray[np.bool_]:
        """Mark losses (G, S) that exceed the loss to beat by at most ``share`` times this loss."""
        smallest = reference_loss(loss.min(axis=0)) if self.each else loss.min()
        return np.asarray(loss <= smallest + share * np.abs(smallest))

    def _choose_again(self) -> None:
        """Try the nearly best settings again with more held-out cases.

        The method also tries the ridges one grid step away, because with few held-out cases the
        ridge of a kernel can be wrong by half a power of ten.
        """
        best, searches = self.best, self.ridge is None
        steps = (-GRID_STEP, 0.0, GRID_STEP) if searches else (0.0,)
        near = self._promising(best.tried_loss, NEAR)
        best.loss[:] = np.inf
        for g in map(int, np.flatnonzero(near.any(axis=1))):
            supports = np.flatnonzero(near[g])
            at = np.unique(np.add.outer(best.tried_exponent[g, supports], steps))
            down = at[at <= GRID[-1]][::-1].tolist()  # small ridges take the most time
            self._compare_down(g, down, supports)
            largest = down[0]
            while searches and self._is_best(g, largest) and largest < GRID[-1]:
                largest += GRID_STEP
                self._compare(g, largest, supports)

    def _compare_down(self, g: int, down: list[float], supports: IntArray) -> None:
        """Try smaller and smaller ridges, ``down``, with more held-out cases.

        Stop as soon as a ridge lowers the loss too little. If the last ridge of the list is the
        best, go on with smaller ridges.
        """
        best = self.best
        path: list[FloatArray] = []
        for exponent in down:
            if not _reaches(self._solver(g), exponent):
                break
            path.append(self._compare(g, exponent, supports))
            smallest = np.broadcast_to(self._smallest(), self.every.shape)
            smallest = smallest[np.isin(self.every, supports)]
            if len(path) > 1 and gains_hardly(path[-2], path[-1], smallest).all():
                best.tried_down_to[g] = min(best.tried_down_to[g], exponent - GRID_STEP)
                break
            goes_on = self.ridge is None and exponent == down[-1] > GRID[0]
            if goes_on and self._is_best(g, exponent):
                down.append(exponent - GRID_STEP)

    def _compare(self, g: int, exponent: float, supports: IntArray) -> FloatArray:
        """Return losses of some supports with more held-out cases; store the best losses."""
        best, tried = self.best, self._tried[g].get(exponent)
        losses, _ = self._judge.losses(
            self._solver(g), exponent, supports, TO_COMPARE, ROUGH, tried
        )
        best.tried_down_to[g] = min(best.tried_down_to[g], exponent)
        self._of_all[g][exponent] = losses
        for s in supports[losses[supports] < best.loss[supports]]:
            best.kernel[s], best.exponent[s], best.loss[s] = g, exponent, losses[s]
        return losses[supports]

    def _is_best(self, g: int, exponent: float) -> bool:
        """Return whether this kernel and ridge are the best settings of the best support.

        If the search is for every support, return whether they are the best settings of any
        support.
        """
        best = self.best
        here = (best.kernel == g) & (best.exponent == exponent) & np.isfinite(best.loss)
        return bool(here.any() if self.each else here[best.winner])

    def _judge_closely(self) -> None:
        """Judge each support again with its best settings and more landmarks; store its losses."""
        self.best.recorded |= self._with_best(TO_COMPARE)
        for s, recorded in self.best.recorded.items():
            self.best.loss[s] = mean_losses(recorded[np.newaxis], np.zeros(1, np.int64))[0]

    def _with_best(self, folds: int) -> dict[int, FloatArray]:
        """Return losses and quantiles (n, width) of each support with its best kernel and ridge."""
        best = self.best
        found: dict[int, FloatArray] = {}
        for g in np.unique(best.kernel[self.every]).tolist():
            with_kernel, solver = self.every[best.kernel[self.every] == g], self._solver(g)
            for exponent in np.unique(best.exponent[with_kernel])[::-1].tolist():
                at = with_kernel[best.exponent[with_kernel] == exponent]
                recorded = self._judge.record(solver, exponent, at, folds, CLOSE)
                found |= {s: recorded[s] for s in at.tolist()}
        return found

    def on_edge(self) -> bool:
        """Return whether the best ridge is at an end of the ridges that the search has covered.

        The ends are the largest ridge of the grid, and the smallest ridge tried or ruled out.
        """
        best, s = self.best, self.best.winner
        exponent, smallest = best.exponent[s], best.tried_down_to[best.kernel[s]]
        return bool(exponent < smallest + 0.1 or exponent > GRID[-1] - 0.1)

    def finds_errors_alike(self) -> bool:
        """Return whether a support of errors is best, with the largest ridge.

        All forecasts then get the same distribution of errors.
        """
        past = self.candidates.supports[self.best.winner] == OBSERVATIONS
        return not past and bool(self.best.exponent[self.best.winner] > GRID[-1] - 0.1)

    def doubt(self) -> float | None:
        """Take the largest ridge if the best ridge may be better by chance; return the new loss.

        Folds may be groups of cases, such as winters, whose cases have similar errors. With few
        groups, one of many ridges can seem better by chance. With the largest ridge all forecasts
        are nearly the same. The method compares the mean losses of groups with both ridges. If the
        loss with the best ridge is smaller by at least one standard error, the method keeps the
        best ridge and returns None. One standard error is the usual limit (Breiman et al. 1984,
        Classification and Regression Trees, 3.4.3).
        """
        best, s = self.best, self.best.winner
        g, most = int(best.kernel[s]), float(GRID[-1])
        if not self._by_group or best.exponent[s] == most:
            return None
        solver, at = self._solver(g), np.array([s])
        own, smooth = (
            self._judge.losses(solver, exponent, at, TO_COMPARE, CLOSE)
            for exponent in (float(best.exponent[s]), most)
        )
        by_fold = [self._judge.by_fold(one[1][s, :, 0], TO_COMPARE) for one in (smooth, own)]
        gain = by_fold[0] - by_fold[1]
        gain = gain[np.isfinite(gain)]  # groups that hold out a case
        error = np.std(gain, ddof=1) / math.sqrt(gain.size) if gain.size > 1 else math.inf
        if gain.size and gain.mean() >= error:
            return None
        best.exponent[s] = most
        return float(smooth[0][s])

    def refine(self) -> None:
        """Find the best ridge of the best support, between the neighbours of its grid point.

        Losses are means over all cases with which the search has compared supports. With fewer
        cases, the ridge would fit the noise of these cases. With low rank a try takes long, so a
        parabola through the grid points replaces further tries.
        """
        best, s = self.best, self.best.winner
        g, supports = int(best.kernel[s]), np.array([s])
        grid_point, smallest = float(best.exponent[s]), float(best.loss[s])
        if self.low_rank:
            known = {at: float(losses[s]) for at, losses in self._of_all[g].items()}
            best.exponent[s] = vertex(known, grid_point)
            return
        solver = self._solver(g)

        def loss(exponent: float) -> float:
            return float(self._judge.losses(solver, exponent, supports, TO_COMPARE, CLOSE)[0][s])

        best.exponent[s] = golden_section(loss, grid_point, smallest, GRID_STEP)

    def recorded_later(self) -> dict[int, FloatArray]:
        """Return losses and quantiles (n, width) of forecasts from earlier cases, by support."""
        return self._with_best(LATER)


def _reaches(solver: Solver, exponent: float) -> bool:
    """Return whether a solver can be accurate enough for a ridge; an exact solver always is."""
    return not isinstance(solver, LowRank) or solver.reaches(10.0**exponent, ROUGH)
