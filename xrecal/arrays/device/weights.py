"""New forecasts to weighted ensembles at many locations; see :mod:`xrecal.arrays.ckme.weights`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xrecal.arrays.ckme.embedding import FittedCKME, check_choice, lives_of
from xrecal.arrays.ckme.weights import check_forecasts
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.kernels.kernel import Features, check_kernel
from xrecal.typing import FloatArray, IntArray

from .case_groups import Group, groups_of, moments, select, usable, valid
from .centre import centres_of, errors_of, inside, members_of
from .ckme import refuse_others
from .covariates import feature_distances, no_features
from .ensembles import Ensembles, across, arrange, take_rows
from .location import Locations, locate, scaled
from .lowrank import LowRank
from .namespace import indices, linear, of_type, put, take, take_along
from .simplex import PROJECTIONS
from .solvers import Exact, identity

__all__ = ["ckme_weights"]

ROWS = 1024
"""New forecasts of a location weighed at once, so that their similarities to all stay small."""


def ckme_weights(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: Any,
    fitted: FittedCKME,
    *,
    kernel: str = "gaussian",
    projection: str = "euclidean",
    features: Features | None = None,
    new_features: Features | None = None,
    days: FloatArray | None = None,
    own_members: bool = False,
    across: Sequence[Any] | None = None,
    squared: Sequence[Any] | None = None,
    shapes: bool = False,
) -> tuple[Any, Any]:
    """See :func:`xrecal.arrays.ckme_weights`."""
    check_kernel(kernel)
    check_choice("projection", projection, PROJECTIONS)
    refuse_others(cases, forecasts.scale, across, squared)
    n_locations, n, n_new = check_forecasts(forecasts, cases, observations, fitted)
    if features is None:
        features = no_features(observations, n_locations, n)
    if new_features is None:
        new_features = no_features(observations, n_locations, n_new)
    xp, dtype = namespace(observations), forecasts.loc.dtype
    weights = xp.full((n_locations, n_new, n), float("nan"), dtype=dtype)
    members = xp.full(weights.shape, float("nan"), dtype=dtype) if own_members else observations
    ridge = to_host(fitted.ridge)
    used = to_host(usable(cases, observations, features)[0]) & ~np.isnan(ridge)[:, np.newaxis]
    lives = lives_of(to_host(fitted.half_life))
    known = (to_host(fitted.landmark) >= 0).any(-1)
    for group in groups_of(used, lives, days, 1):
        for low_rank in (False, True):
            alike = group._replace(places=group.places[known[group.places] == low_rank])
            n_used, width = group.slots.size, min(group.slots.size, 400)
            matrix = 3 * (width if low_rank else n_used)
            for part in alike.parts(8 * n_used * (matrix + 10 * min(n_new, ROWS))):
                chosen = select(
                    cases, observations, features, part, centred=own_members, shapes=shapes
                )
                where = locate(
                    chosen, features.circular, part.root,
                    laplace=kernel == "laplace", low_rank=low_rank,
                )  # fmt: skip
                one = _Ensembles(where, part, fitted, projection, shapes=shapes)
                one.fill(forecasts, new_features, members if own_members else None, weights)
    return members, weights


class _Ensembles:
    """Weighted ensembles of all forecasts at locations with the same usable cases."""

    def __init__(
        self,
        where: Locations,
        group: Group,
        fitted: FittedCKME,
        projection: str,
        *,
        shapes: bool,
    ) -> None:
        xp = namespace(where.median)
        self.group, self.project = group, PROJECTIONS[projection]
        self.fitted = FittedCKME(*(take(xp, part, group.places, 0) for part in fitted))
        self.where = replace(where, precision=of_type(xp, self.fitted.precision, xp.float64))
        self.operators: tuple[Any, ...] = ()
        self.chosen: IntArray | None = None
        self.shapes = shapes
        self._solve()

    def _solve(self) -> None:
        """Matrices from similarities to signed weights, and the cases to compare with."""
        fitted, where = self.fitted, self.where
        xp = namespace(where.median)
        kernel = fitted.bandwidth, fitted.strength
        ridge = to_host(fitted.ridge).astype(np.float64)
        if where.squared is not None:
            gram = Exact(where, *kernel).gram
            gram = gram + identity(xp, where.n, ridge * where.n)
            self.operators = (linear(xp, "inv", gram),)
            return
        place = np.full(int(self.group.slots.max()) + 1, -1)
        place[self.group.slots] = np.arange(where.n)
        solver = LowRank(where, *kernel)
        landmarks = [row[(row >= 0) & (row < place.size)] for row in to_host(fitted.landmark)]
        solver.start_from([place[row][place[row] >= 0] for row in landmarks])
        # Cases that came by an update may need some of their own.
        self.chosen, *operators = solver.operators(ridge)
        self.operators = tuple(operators)

    def fill(
        self, forecasts: Forecasts, features: Features, members: Any | None, weights: Any
    ) -> None:
        """Fill members and weights (L, T, n_slots) at the places of the group."""
        where, fitted = self.where, self.fitted
        xp = namespace(where.median)
        cases, bounds = where.cases, (fitted.lower, fitted.upper)
        codes = to_host(fitted.support).astype(np.int64)
        own = centres_of(codes, fitted.centre, cases.mean, cases.variance, cases.features)
        error = errors_of(cases.target, *own, *bounds)
        order = xp.argsort(error, axis=-1)
        back = xp.argsort(order, axis=-1)
        ascending, limits = take_along(xp, error, order), inside(cases.target, *bounds)
        share = where.root**2 / (where.root**2).sum()
        for first in range(0, int(forecasts.loc.shape[1]), ROWS):
            new, of, moment = self._part(forecasts, features, first, centred=members is not None)
            signed = self._similarities(new, of)
            for operator in self.operators:
                signed = xp.matmul(signed, operator)
            signed = scaled(signed, where.root, -1)
            missing = 1.0 - xp.sum(signed, axis=-1, keepdims=True)
            signed = signed + missing * xp.asarray(share)
            centre, spread = centres_of(codes, fitted.centre, *moment, of)
            points = members_of(centre, spread, ascending, bounds, limits)
            wide = xp.broadcast_to(order[:, None, :], signed.shape)
            found = self.project(take_along(xp, signed, wide), points)
            again = xp.broadcast_to(back[:, None, :], signed.shape)
            found = take_along(xp, found, again)
            self._to_slots(weights, found, found, 0.0, first)
            if members is not None:
                points = take_along(xp, xp.broadcast_to(points, signed.shape), again)
                self._to_slots(members, points, found, float("nan"), first)

    def _part(
        self, forecasts: Forecasts, features: Features, first: int, *, centred: bool
    ) -> tuple[Ensembles, Any, tuple[Any, Any]]:
        """Some of the new forecasts in order, their covariates and moments."""
        xp = namespace(forecasts.loc)
        some = slice(first, min(first + ROWS, forecasts.loc.shape[1]))
        loc, of = (
            take(xp, part[:, some, :], self.group.places, 0)
            for part in (forecasts.loc, features.values)
        )
        weights: Any = forecasts.weights
        if weights is not None:
            weights = take(xp, weights[:, some, :], self.group.places, 0)
        part = Forecasts(loc, None, weights)
        sound = valid(part)[0]
        part = part._replace(loc=xp.where(sound[..., None], loc, float("nan")))
        known = moments(part, centred=centred)
        new = arrange(part.loc - known[0][..., None] if self.shapes else part.loc, weights)
        return new, of_type(xp, of, xp.float64), known

    def _similarities(self, new: Ensembles, of: Any) -> Any:
        """Kernel (b, q, k) between forecasts and cases, scaled by the roots of the case weights."""
        where, fitted, chosen = self.where, self.fitted, self.chosen
        xp = namespace(of)
        if chosen is None:
            distance, others = across(new, where.ensembles), where.cases.features
        else:
            at = indices(xp, np.maximum(chosen, 0))
            distance = across(new, take_rows(where.ensembles, at))
            others = xp.take_along_axis(where.cases.features, at[:, :, None], axis=1)
        distance = xp.sqrt(distance) if where.laplace else distance
        exponent = distance / -fitted.bandwidth[:, None, None]
        if of.shape[-1]:
            apart = feature_distances(of, others, where.precision)
            exponent = exponent - fitted.strength[:, None, None] * apart
        found = xp.exp(exponent)
        if chosen is None:
            return scaled(found, where.root, -1)
        return found * xp.asarray(where.root[np.maximum(chosen, 0)])[:, None, :]

    def _to_slots(self, out: Any, values: Any, found: Any, unused: float, first: int) -> None:
        """Values (b, q, n) of the used cases to their slots; ``unused`` in others, NaN for NaN."""
        xp = namespace(values)
        there = np.full(out.shape[-1], -1)
        there[self.group.slots] = np.arange(self.where.n)
        wide = xp.take(values, indices(xp, np.maximum(there, 0)), axis=-1)
        wide = xp.where(xp.asarray(there >= 0), wide, unused)
        wide = xp.where(xp.isnan(found[..., :1]), float("nan"), wide)
        wide = of_type(xp, wide, out.dtype)
        if self.group.places.size == out.shape[0]:
            out[:, first : first + wide.shape[1], :] = wide
        else:
            rows = np.arange(first, first + wide.shape[1])
            which = np.repeat(self.group.places, rows.size), np.tile(rows, wide.shape[0])
            put(xp, out, which, xp.reshape(wide, (-1, wide.shape[-1])))
