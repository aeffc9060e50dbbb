"""Answers to the searches of many locations, for as many of them at once as can be.

The decisions are those of :mod:`xrecal.arrays.ckme.search`, one search a location. Searches go on
together, kernel by kernel and ridge by ridge: those that are ahead wait for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xrecal.arrays.ckme.centre import Sample
from xrecal.arrays.ckme.folds import Folds
from xrecal.arrays.ckme.requests import (
    TO_TRY,
    Centre,
    HeldOut,
    Losses,
    Reaches,
    Request,
    Steps,
)
from xrecal.arrays.ckme.search import Candidates
from xrecal.arrays.ckme.solvers import ROUGH
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.typing import FloatArray, IntArray

from .centre import fit_centres
from .held_out import Judge, Targets
from .location import Locations
from .lowrank import LowRank
from .namespace import take
from .solvers import Exact

__all__ = ["Answers", "answer_together"]


class Answers:
    """Answers requests of one kind and stage at some of b locations with the same folds."""

    def __init__(
        self,
        where: Locations,
        bandwidth: FloatArray,
        folds: tuple[Folds, ...],
        candidates: Candidates,
        judge: Judge,
    ) -> None:
        self._where, self._folds, self._judge = where, folds, judge
        self._bandwidth = namespace(where.median).asarray(bandwidth)
        self._candidates = candidates
        self._solvers: dict[int, Exact | LowRank] = {}
        self._targets: dict[tuple[int, bool], list[list[Targets]]] = {}

    def __call__(self, at: IntArray, requests: Sequence[Any]) -> Sequence[Any]:
        """Answers of locations (c,), which ask for the same with ridges of their own."""
        if isinstance(requests[0], Centre):
            return list(self._centres(at, requests[0]))
        solver = self._solver(requests[0].kernel)
        ridge = 10.0 ** np.array([request.exponent for request in requests])
        if isinstance(requests[0], Losses):
            return self._losses(solver, at, ridge, requests)
        assert isinstance(solver, LowRank)
        if isinstance(requests[0], Reaches):
            return list(solver.reaches(at, ridge, ROUGH))
        return [row[row >= 0] for row in solver.landmarks_for(at, ridge)]

    def _solver(self, g: int) -> Exact | LowRank:
        """Solver with one of the kernels."""
        if g not in self._solvers:
            widening, strength = self._candidates.kernels[g]
            xp = namespace(self._bandwidth)
            kind = Exact if self._where.squared is not None else LowRank
            strengths = xp.full(self._bandwidth.shape, strength, dtype=xp.float64)
            self._solvers[g] = kind(self._where, self._bandwidth * widening, strengths)
        return self._solvers[g]

    def _losses(
        self, solver: Exact | LowRank, at: IntArray, ridge: FloatArray, requests: Sequence[Losses]
    ) -> list[HeldOut]:
        """Mean losses of all supports that any of the locations asks for."""
        request = requests[0]
        supports = np.unique(np.concatenate([each.supports for each in requests]))
        conditioned, folds = (
            self._candidates.kernels[request.kernel][1] > 0,
            self._folds[request.folds],
        )
        known = TO_TRY if folds is self._folds[TO_TRY] else request.folds, conditioned
        if known not in self._targets:
            k = self._where.cases.features.shape[-1] if conditioned else 0
            self._targets[known] = self._judge.targets(folds, k)
        solved = solver.prepare(at, ridge, request.slack)
        losses, of_folds = self._judge.losses(solved, folds, self._targets[known], at, supports)
        return [HeldOut(row, None, of_folds[:, i]) for i, row in enumerate(losses)]

    def _centres(self, at: IntArray, request: Centre) -> Any:
        """Coefficients (c, 4 + 2 k) of the centres of a support, from all cases."""
        cases, (low, high) = self._where.cases, self._judge.bounds
        k = cases.features.shape[-1]
        of = cases.features[:, :, : k if request.conditioned else 0]
        known = (cases.mean, cases.variance, of, cases.target, low, high)
        sample = Sample._make(take(namespace(of), part, at, 0) for part in known)
        code = int(self._candidates.supports[request.support])
        return to_host(fit_centres(code, sample, 4 + 2 * k))


def answer_together(searches: Sequence[Steps[None]], answers: Answers) -> None:
    """Run all searches to their end, those at the smallest stage first."""
    pending = {number: next(search) for number, search in enumerate(searches)}
    while pending:
        stage = min(request.stage for request in pending.values())
        at_stage = {i: request for i, request in pending.items() if request.stage == stage}
        kind = type(next(iter(at_stage.values())))
        alike = {i: request for i, request in at_stage.items() if type(request) is kind}
        found = answers(np.array(list(alike)), list(alike.values()))
        for number, answer in zip(alike, found, strict=True):
            _go_on(pending, number, searches[number], answer)


def _go_on(pending: dict[int, Request], number: int, search: Steps[None], answer: Any) -> None:
    """Hand a search its answer and note what it asks next."""
    try:
        pending[number] = search.send(answer)
    except StopIteration:
        del pending[number]
