"""Losses of forecasts of held-out cases at one location."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .centre import Targets, rank_errors
from .folds import Folds
from .held_out_losses import LOSSES, RECORDERS, Verified, crps_and_quantiles, mean_losses
from .lowrank import ROUGH
from .problem import Problem
from .solvers import Exact, Solver

TO_TRY, TO_COMPARE, LATER = range(3)
"""Sets of folds: to try ridges by, to compare the nearly best settings by, and of later cases
forecast from earlier ones."""


class Judge:
    """Judges kernels, supports and ridges by the held-out cases of one location."""

    def __init__(
        self, problem: Problem, folds: Sequence[Folds], supports: IntArray, n_quantiles: int
    ) -> None:
        self._problem, self._folds, self._supports = problem, folds, supports
        # Compiled code for what the settings need; nothing else is compiled.
        projection, loss = problem.settings.projection, problem.settings.loss
        loss = "crps" if n_quantiles else loss
        self._rough = self._recorder = RECORDERS[projection, LOSSES[loss]]
        if n_quantiles:
            self._recorder = RECORDERS[projection, crps_and_quantiles]
        self._theta = np.zeros((1, 1)) if loss == "crps" else problem.location.theta
        self._width = 1 + n_quantiles
        self._targets: dict[tuple[int, bool], Targets] = {}

    def record(
        self,
        solver: Solver,
        exponent: float,
        supports: IntArray,
        folds: int,
        slack: float,
    ) -> FloatArray:
        """Record forecasts (S, n, width) of held-out cases with a ridge: the loss comes first.

        ``supports`` are the places of those to judge; entries of others are NaN.
        """
        where, ridge = self._problem.location, 10.0**exponent
        of_folds = self._folds[folds]
        targets = self._targets_of(solver.strength, folds)
        bounds = self._problem.low, self._problem.high
        verified = Verified(where.target, where.root, *bounds, self._theta, supports)
        recorded = np.full((self._supports.size, where.target.size, self._width), np.nan)
        # With low rank the best settings are recorded again, more closely.
        rough = slack == ROUGH and where.low_rank
        record = self._rough if rough else self._recorder
        left: Sequence[int] = range(of_folds.n_out.size)
        if isinstance(solver, Exact):
            left = solver.solved_directly(of_folds)
            if len(left) < of_folds.n_out.size:
                record.folds(solver.eigen, ridge, of_folds, targets, verified, recorded)
        for f in left:
            signed = solver.signed(of_folds, f, ridge, slack)
            record.fold(signed, of_folds, f, targets, verified, recorded)
        return recorded

    def losses(
        self, solver: Solver, exponent: float, supports: IntArray, folds: int, slack: float
    ) -> tuple[FloatArray, FloatArray]:
        """Mean losses (S,) with a ridge, infinite for other supports, and all that is recorded."""
        recorded = self.record(solver, exponent, supports, folds, slack)
        return mean_losses(recorded, supports), recorded

    def by_fold(self, loss: FloatArray, folds: int) -> FloatArray:
        """Mean losses (F,) of the cases (n,) that each fold holds out."""
        cases, n_held, _ = self._folds[folds]
        held = [one[:n] for one, n in zip(cases, n_held, strict=True) if n > 0]
        return np.array([loss[one].mean() for one in held])

    def _targets_of(self, strength: float, folds: int) -> Targets:
        """Errors around centres in a set of folds."""
        first = TO_TRY if self._folds[folds] is self._folds[TO_TRY] else folds
        of = first, strength > 0
        if of not in self._targets:
            sample = self._problem.sample.conditioned(strength)
            self._targets[of] = rank_errors(self._folds[folds], self._supports, sample)
        return self._targets[of]
