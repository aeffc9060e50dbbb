"""New forecasts to weighted ensembles at many locations; see :mod:`xrecal.arrays.ckme.weights`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.ckme.embedding import (
    SMALL_RIDGE,
    FittedCKME,
    check_choice,
    check_forecasts,
    lives_of,
)
from xrecal.arrays.ckme.solvers import FINE, ROUGH
from xrecal.arrays.ckme.weights import Compared
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

__all__ = ["ckme_novelty", "ckme_weights", "ckme_weights_of_both"]

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
    return_novelty: bool = False,
) -> tuple[Any, ...]:
    """See :func:`xrecal.arrays.ckme_weights`."""
    check_choice("projection", projection, PROJECTIONS)
    xp, dtype = namespace(observations), forecasts.loc.dtype
    n_locations, n, n_new = check_forecasts(forecasts, cases, observations, fitted)
    weights = xp.full((n_locations, n_new, n), float("nan"), dtype=dtype)
    members = xp.full(weights.shape, float("nan"), dtype=dtype) if own_members else observations
    novelty = xp.full((n_locations, n_new), float("nan")) if return_novelty else None
    how = Compared(kernel, features, new_features, days, across, squared, shapes)
    given = _Given(forecasts, cases, observations, fitted, how)
    for one in _groups(given, centred=own_members):
        one.fill(members if own_members else None, weights, PROJECTIONS[projection])
        if novelty is not None:
            one.fill_novelty(novelty)
    return (members, weights) if novelty is None else (members, weights, novelty)


def ckme_weights_of_both(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: Any,
    fitted: FittedCKME,
    *,
    projection: str = "euclidean",
    **compared: Any,
) -> tuple[Any, Any, Any, Any]:
    """See :func:`xrecal.arrays.ckme_weights_of_both`."""
    check_choice("projection", projection, PROJECTIONS)
    xp, dtype = namespace(observations), forecasts.loc.dtype
    n_locations, n, n_new = check_forecasts(forecasts, cases, observations, fitted)
    members, weights, observed = (
        xp.full((n_locations, n_new, n), float("nan"), dtype=dtype) for _ in range(3)
    )
    novelty = xp.full((n_locations, n_new), float("nan"))
    given = _Given(forecasts, cases, observations, fitted, Compared(**compared))
    for one in _groups(given, centred=True):
        one.fill(members, weights, PROJECTIONS[projection], observed)
        one.fill_novelty(novelty)
    return members, weights, observed, novelty


def ckme_novelty(
    forecasts: Forecasts, cases: Forecasts, observations: Any, fitted: FittedCKME, **compared: Any
) -> Any:
    """See :func:`xrecal.arrays.ckme_novelty`."""
    n_locations, _, n_new = check_forecasts(forecasts, cases, observations, fitted)
    novelty = namespace(observations).full((n_locations, n_new), float("nan"))
    how = Compared(**compared)
    given = _Given(forecasts, cases, observations, fitted, how)
    for one in _groups(given, centred=how.shapes):
        one.fill_novelty(novelty)
    return novelty


class _Given(NamedTuple):
    """New forecasts, and what was learned from; see :func:`ckme_weights`."""

    forecasts: Forecasts
    cases: Forecasts
    observations: Any
    fitted: FittedCKME
    how: Compared


def _groups(given: _Given, *, centred: bool) -> Iterator[_Ensembles]:
    """What makes ensembles at locations with the same usable cases."""
    forecasts, cases, observations, fitted, how = given
    kernel, features, new_features, days, across, squared, shapes = how
    check_kernel(kernel)
    refuse_others(cases, forecasts.scale, across, squared)
    (n_locations, n), n_new = observations.shape, int(forecasts.loc.shape[1])
    if features is None:
        features = no_features(observations, n_locations, n)
    if new_features is None:
        new_features = no_features(observations, n_locations, n_new)
    used = to_host(usable(cases, observations, features)[0])
    used = used & ~np.isnan(to_host(fitted.ridge))[:, np.newaxis]
    lives = lives_of(to_host(fitted.half_life))
    known = (to_host(fitted.landmark) >= 0).any(-1)
    for group in groups_of(used, lives, days, 1):
        for low_rank in (False, True):
            alike = group._replace(places=group.places[known[group.places] == low_rank])
            n_used, width = group.slots.size, min(group.slots.size, 400)
            matrix = 3 * (width if low_rank else n_used)
            for part in alike.parts(8 * n_used * (matrix + 10 * min(n_new, ROWS))):
                chosen = select(cases, observations, features, part, centred=centred, shapes=shapes)
                where = locate(
                    chosen, features.circular, part.root,
                    laplace=kernel == "laplace", low_rank=low_rank,
                )  # fmt: skip
                new = forecasts, new_features
                yield _Ensembles(where, part, fitted, new, centred=centred, shapes=shapes)


class _Solution(NamedTuple):
    """From similarities to signed weights."""

    chosen: IntArray | None
    """(b, k) cases to compare with; None for all"""
    operators: Sequence[Any]
    """Matrices by which similarities are multiplied, one after another"""


class _Support(NamedTuple):
    """Cases of b locations as members of their forecasts."""

    codes: IntArray
    """(b,) kinds of support"""
    centre: Any
    """(b, 4 + 2 k) coefficients"""
    order: Any
    """(b, n) cases by ascending error"""
    ascending: Any
    """(b, n) the errors"""


class _Ensembles:
    """Weighted ensembles of all forecasts at locations with the same usable cases."""

    def __init__(
        self,
        where: Locations,
        group: Group,
        fitted: FittedCKME,
        new: tuple[Forecasts, Features],
        *,
        centred: bool,
        shapes: bool,
    ) -> None:
        xp = namespace(where.median)
        self.group, self.new, self.centred, self.shapes = group, new, centred, shapes
        self.fitted = FittedCKME(*(take(xp, part, group.places, 0) for part in fitted))
        self.where = replace(where, precision=of_type(xp, self.fitted.precision, xp.float64))

    def _solve(self, ridge: FloatArray, slack: float = FINE) -> _Solution:
        """With these ridges (b,), of which landmarks may leave as many as the slack says."""
        fitted, where = self.fitted, self.where
        xp = namespace(where.median)
        kernel = fitted.bandwidth, fitted.strength
        if where.squared is not None:
            gram = Exact(where, *kernel).gram
            gram = gram + identity(xp, where.n, ridge * where.n)
            return _Solution(None, (linear(xp, "inv", gram),))
        place = np.full(int(self.group.slots.max()) + 1, -1)
        place[self.group.slots] = np.arange(where.n)
        solver = LowRank(where, *kernel)
        landmarks = [row[(row >= 0) & (row < place.size)] for row in to_host(fitted.landmark)]
        solver.start_from([place[row][place[row] >= 0] for row in landmarks])
        # Cases that came by an update may need some of their own.
        chosen, *operators = solver.operators(ridge, slack)
        return _Solution(chosen, operators)

    def _signed(self, new: Ensembles, of: Any, solution: _Solution) -> Any:
        """Signed weights (b, q, n) of ensembles with covariates ``of``."""
        signed = self._similarities(new, of, solution.chosen)
        for operator in solution.operators:
            signed = namespace(of).matmul(signed, operator)
        return scaled(signed, self.where.root, -1)

    def fill(
        self,
        members: Any | None,
        weights: Any,
        project: Callable[..., Any],
        observed: Any | None = None,
    ) -> None:
        """Fill members and weights (L, T, n_slots), and those of observations beside errors."""
        where, fitted = self.where, self.fitted
        xp = namespace(where.median)
        solution = self._solve(to_host(fitted.ridge).astype(np.float64))
        share = where.root**2 / (where.root**2).sum()
        support = self._support(fitted if observed is None else fitted.of_errors())
        plain = None if observed is None else self._support(fitted)
        for first in range(0, int(weights.shape[1]), ROWS):
            new, of, moment = self._part(first)
            signed = self._signed(new, of, solution)
            missing = 1.0 - xp.sum(signed, axis=-1, keepdims=True)
            signed = signed + missing * xp.asarray(share)
            found, points = self._project(signed, support, (*moment, of), project)
            self._to_slots(weights, found, found, 0.0, first)
            if members is not None:
                self._to_slots(members, points, found, float("nan"), first)
            if plain is not None:
                found, _ = self._project(signed, plain, (*moment, of), project)
                found = xp.where((fitted.beside != 0)[:, None, None], found, 0.0 * found)
                self._to_slots(observed, found, found, 0.0, first)

    def _support(self, fitted: FittedCKME) -> _Support:
        """Cases ranked by their errors around a centre."""
        cases, bounds = self.where.cases, (fitted.lower, fitted.upper)
        xp = namespace(cases.target)
        codes = to_host(fitted.support).astype(np.int64)
        own = centres_of(codes, fitted.centre, cases.mean, cases.variance, cases.features)
        error = errors_of(cases.target, *own, *bounds)
        order = xp.argsort(error, axis=-1)
        return _Support(codes, fitted.centre, order, take_along(xp, error, order))

    def _project(
        self, signed: Any, support: _Support, of: tuple[Any, ...], project: Callable[..., Any]
    ) -> tuple[Any, Any]:
        """Probabilities and points (b, q, n) from signed weights, in the order of time."""
        xp, fitted = namespace(signed), self.fitted
        bounds = fitted.lower, fitted.upper
        centre, spread = centres_of(support.codes, support.centre, *of)
        limits = inside(self.where.cases.target, *bounds)
        points = members_of(centre, spread, support.ascending, bounds, limits)
        wide = xp.broadcast_to(support.order[:, None, :], signed.shape)
        back = xp.argsort(support.order, axis=-1)
        again = xp.broadcast_to(back[:, None, :], signed.shape)
        found = take_along(xp, project(take_along(xp, signed, wide), points), again)
        return found, take_along(xp, xp.broadcast_to(points, signed.shape), again)

    def fill_novelty(self, novelty: Any) -> None:
        """Fill the novelty (L, T) at the places of the group."""
        where = self.where
        xp = namespace(where.median)
        solution = self._solve(np.full(self.group.places.size, SMALL_RIDGE), ROUGH)
        cases = self._signed(where.ensembles, where.cases.features, solution)
        share = xp.sum(cases, axis=-1)
        leverage = xp.sum(cases * xp.asarray(np.eye(where.n)), axis=-1)
        alone = xp.sort(clipped(xp, 1.0 - (1.0 - share) / (1.0 - leverage)), axis=-1)
        usual = (alone[:, (where.n - 1) // 2] + alone[:, where.n // 2]) / 2
        usual = xp.where(usual > SMALL_RIDGE, usual, SMALL_RIDGE)[:, None]
        alike = xp.isinf(self.fitted.bandwidth)[:, None]
        any_case = indices(xp, np.zeros((self.group.places.size, 1), np.int64))
        for first in range(0, int(novelty.shape[1]), ROWS):
            new, of, _ = self._part(first)
            share = xp.sum(self._signed(new, of, solution), axis=-1)
            found = 1.0 - clipped(xp, share / usual)
            apart = across(new, take_rows(where.ensembles, any_case))[..., 0]
            self._put(novelty, xp.where(alike & (apart > 0), 1.0, found), first)

    def _part(self, first: int) -> tuple[Ensembles, Any, tuple[Any, Any]]:
        """Some of the new forecasts in order, their covariates and moments."""
        forecasts, features = self.new
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
        known = moments(part, centred=self.centred)
        new = arrange(part.loc - known[0][..., None] if self.shapes else part.loc, weights)
        return new, of_type(xp, of, xp.float64), known

    def _similarities(self, new: Ensembles, of: Any, chosen: IntArray | None) -> Any:
        """Kernel (b, q, k) between forecasts and cases, scaled by the roots of the case weights."""
        where, fitted = self.where, self.fitted
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
        self._put(out, of_type(xp, wide, out.dtype), first)

    def _put(self, out: Any, values: Any, first: int) -> None:
        """Values (b, q, ...) to the places of the group, for forecasts from the first on."""
        xp, rows = namespace(values), slice(first, first + values.shape[1])
        if self.group.places.size == out.shape[0]:
            out[:, rows, ...] = values
        else:
            n_rows = np.arange(first, first + values.shape[1])
            which = np.repeat(self.group.places, n_rows.size), np.tile(n_rows, values.shape[0])
            put(xp, out, which, xp.reshape(values, (-1, *values.shape[2:])))


def clipped(xp: Any, values: Any) -> Any:
    """Values between 0 and 1; NaN stays."""
    return xp.where(values < 0.0, 0.0, xp.where(values > 1.0, 1.0, values))
