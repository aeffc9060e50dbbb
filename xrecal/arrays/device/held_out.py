"""Forecasts of held-out cases at many locations, and their mean loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.ckme.centre import OBSERVATIONS, Sample
from xrecal.arrays.ckme.folds import Folds
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.typing import FloatArray, IntArray

from .centre import centres_of, errors_of, fit_centres, inside, members_of
from .location import Locations
from .namespace import doubled, take, take_along
from .scores import LOSSES
from .simplex import PROJECTIONS
from .solvers import Prepared, split_of

__all__ = ["Judge", "Targets"]


class Targets(NamedTuple):
    """Errors of the training cases of a fold around one support, at b locations."""

    order: Any
    """(b, k) places of the cases among those trained on, by ascending error"""
    error: Any
    """(b, k) their errors"""
    centre: Any
    """(b, n) centre of each case"""
    spread: Any
    """(b, n) spread of each case"""
    first: Any
    """(b,) smallest target between the bounds"""
    last: Any
    """(b,) largest"""


class Judge:
    """Judges signed weights by what they forecast for the cases that folds hold out."""

    def __init__(
        self,
        where: Locations,
        bounds: tuple[Any, Any],
        supports: IntArray,
        projection: str,
        loss: str,
    ) -> None:
        self.where, self.bounds, self.supports = where, bounds, supports
        self._on_support = projection == "energy"
        self._project: Any = PROJECTIONS[projection]
        self._loss: Any = LOSSES[loss]

    def targets(self, folds: Folds, n_features: int) -> list[list[Targets]]:
        """Of each fold and support, with centres fitted to its training cases alone."""
        return [
            [self._target(train, int(code), n_features) for code in self.supports]
            for train in (split_of(folds, f)[2] for f in range(folds.n_out.size))
        ]

    def _target(self, train: IntArray, code: int, n_features: int) -> Targets:
        cases, (low, high) = self.where.cases, self.bounds
        xp = namespace(cases.target)
        of = cases.features[:, :, :n_features]
        known = (cases.mean, cases.variance, of, cases.target)
        sample = Sample._make([*(take(xp, part, train, 1) for part in known), low, high])
        coefficients = fit_centres(code, sample, 4 + 2 * n_features)
        codes = np.full(cases.target.shape[0], code)
        centre, spread = centres_of(codes, coefficients, cases.mean, cases.variance, of)
        centred = take(xp, centre, train, 1), take(xp, spread, train, 1)
        error = errors_of(sample.target, *centred, low, high)
        order = xp.argsort(error, axis=-1)
        first, last = inside(sample.target, low, high)
        return Targets(order, take_along(xp, error, order), centre, spread, first, last)

    def losses(
        self,
        solved: Prepared,
        folds: Folds,
        targets: list[list[Targets]],
        at: IntArray,
        supports: IntArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean loss (c, S) at c locations; infinite for other supports, and without cases.

        Also returns those of each fold, (F, c, S).
        """
        losses = np.full((at.size, self.supports.size), np.inf)
        of_folds = np.full((folds.n_out.size, *losses.shape), np.nan)
        if not folds.n_out.size:
            return losses, of_folds
        sums = []
        for f in range(folds.n_out.size):
            each = self._of_fold(solved.signed(folds, f), folds, f, targets[f], at, supports)
            for loss in each:
                xp = namespace(loss)
                known = ~xp.isnan(loss)
                sums.append(xp.sum(xp.where(known, loss, 0.0), axis=-1))
                sums.append(xp.sum(doubled(xp, known), axis=-1))
        shape = folds.n_out.size, supports.size, 2, at.size
        by_support = to_host(xp.stack(sums)).reshape(shape)
        total, count = by_support.transpose(2, 0, 3, 1)  # (F, c, S) each
        with np.errstate(invalid="ignore"):
            of_folds[..., supports] = total / count
            mean = total.sum(0) / count.sum(0)
        losses[:, supports] = np.where(count.sum(0) > 0, mean, np.inf)
        return losses, of_folds

    def _of_fold(
        self,
        signed: Any,
        folds: Folds,
        f: int,
        targets: list[Targets],
        at: IntArray,
        supports: IntArray,
    ) -> list[Any]:
        """Losses (c, n_held) of each of some supports."""
        xp = namespace(signed)
        held, _, train = split_of(folds, f)
        weights = self._recentred(signed, held, train)
        if not self._on_support:
            weights = self._project(weights)
        verified = take(xp, take(xp, self.where.cases.target, at, 0), held, 1)
        theta = take(xp, self.where.theta, at, 0)[:, None]
        low, high = (take(xp, bound, at, 0) for bound in self.bounds)
        losses = []
        for s in supports.tolist():
            target = Targets._make(take(xp, part, at, 0) for part in targets[s])
            order = xp.broadcast_to(target.order[:, None, :], weights.shape)
            row = take_along(xp, weights, order)
            cases = held[:1] if self.supports[s] == OBSERVATIONS else held  # all have the same
            own = take(xp, target.centre, cases, 1), take(xp, target.spread, cases, 1)
            limits = target.first, target.last
            points = members_of(*own, target.error, (low, high), limits)
            if self._on_support:
                row = self._project(row, points)
            losses.append(self._loss(row, points, verified, theta))
        return losses

    def _recentred(self, signed: Any, held: IntArray, train: IntArray) -> Any:
        """Weights of the cases, which sum to one, from those of the scaled problem."""
        xp, root = namespace(signed), self.where.root
        weight = root[train] ** 2
        if not (root == 1).all():
            signed = signed * xp.asarray(root[train]) / xp.asarray(root[held])[:, None]
        missing = 1.0 - xp.sum(signed, axis=-1, keepdims=True)
        return signed + missing * xp.asarray(weight / weight.sum())
