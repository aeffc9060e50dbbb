"""The embedding fitted at many locations at once; see :mod:`xrecal.arrays.ckme.ckme`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.ckme.centre import SUPPORTS
from xrecal.arrays.ckme.ckme import DEFAULT, HALF_LIVES
from xrecal.arrays.ckme.ckme import _check as check_settings
from xrecal.arrays.ckme.embedding import FittedCKME, Settings, check_observations
from xrecal.arrays.ckme.ordered_cases import assign_folds
from xrecal.arrays.ckme.solvers import is_low_rank, landmark_slots
from xrecal.arrays.ckme.tuning import Folds, arrange_folds
from xrecal.arrays.dispatch import namespace, only_on_host, to_host
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.kernels.covariates import Features
from xrecal.arrays.status import BOUNDS, CONSTANT, IDENTICAL, INVALID, RIDGE_EDGE, TOO_FEW
from xrecal.typing import FloatArray, IntArray

from .best import Best
from .bounds import find_bounds
from .case_groups import Group, groups_of, select, usable
from .centre import fit_centres
from .covariates import no_features
from .held_out import Judge
from .location import Locations, locate
from .namespace import take
from .search import Search

__all__ = ["fit_ckme"]


class Known(NamedTuple):
    """All that is known of the calibration cases; see :class:`xrecal.arrays.ckme.embedding`."""

    cases: Forecasts
    observations: Any
    features: Features
    used: npt.NDArray[np.bool_]
    """(L, n) on the host"""
    age: FloatArray | None
    """(n,) days before the last case"""
    groups: IntArray
    blocks: int
    step: IntArray


class Found(NamedTuple):
    """What is found at L locations, on the host, with the names of the fit."""

    values: dict[str, Any]

    def put(self, name: str, places: IntArray, values: Any) -> None:
        """Write what was found at some locations."""
        self.values[name][places] = values


def fit_ckme(
    cases: Forecasts,
    observations: Any,
    settings: Settings = DEFAULT,
    *,
    features: Features | None = None,
    days: FloatArray | None = None,
    half_life: float | str = math.inf,
    groups: IntArray | None = None,
    blocks: int = 5,
    step: IntArray | None = None,
    squared: Sequence[Any] | None = None,
    vectors: Any | None = None,
) -> FittedCKME:
    """See :func:`xrecal.arrays.fit_ckme`.

    Ensembles alone, without distances that are known already. Locations with the same missing
    cases are worked on together, others one group after another.
    """
    check_settings(settings, blocks)
    refuse_others(cases, squared, vectors)
    n_locations, n = cases.check("cases", 3)[:2]
    check_observations(observations, (n_locations, n))
    if features is None:
        features = no_features(observations, n_locations, n)
    used, invalid = (to_host(part) for part in usable(cases, observations, features))
    at = np.arange(n) if step is None else np.asarray(step)
    by = at if groups is None else np.asarray(groups)
    age = None if days is None else np.max(days) - np.asarray(days, np.float64)
    known = Known(cases, observations, features, used, age, by, blocks, at)
    lives = _half_lives(known, settings, half_life)
    found = _search_locations(known, settings, lives, forward=False)
    values = found.values
    values["half_life"] = np.where(np.isnan(values["ridge"]), math.nan, lives)
    values["status"] = (values["status"] | INVALID * invalid).astype(np.int8)
    xp = namespace(observations)
    return FittedCKME(**{name: xp.asarray(values[name]) for name in FittedCKME._fields})


def refuse_others(cases: Forecasts, *known: Any) -> None:
    """Raise TypeError for what has no implementation on a device."""
    if cases.scale is not None:
        raise TypeError(only_on_host("the distance of normal distributions"))
    if any(part is not None for part in known):
        raise TypeError(only_on_host("a fit from distances that are known already, or of vectors"))


def _half_lives(known: Known, settings: Settings, half_life: float | str) -> FloatArray:
    """Half-life (L,) as given, or with which earlier cases forecast later ones best."""
    n_locations = known.used.shape[0]
    if half_life != "cv":
        lives = np.full(n_locations, float(half_life))
        if known.age is None and not np.isinf(lives).all():
            raise ValueError("a half-life needs days, the dates of the cases")
        return lives
    if known.age is None:
        raise ValueError("half_life='cv' needs days, the dates of the cases")
    youngest = np.where(known.used, known.age, math.inf).min(-1, initial=math.inf)
    oldest = np.where(known.used, known.age, -math.inf).max(-1, initial=-math.inf)
    span = np.where(oldest > youngest, oldest - youngest, 1.0)
    lives, smallest = np.full(n_locations, math.inf), np.full(n_locations, math.inf)
    ahead = known._replace(groups=known.step, blocks=5)
    for part in HALF_LIVES:
        trial = part * span
        loss = _search_locations(ahead, settings, trial, forward=True).values["smallest"]
        loss = np.where(np.isnan(loss), math.inf, loss)
        better = loss < smallest
        lives[better], smallest[better] = trial[better], loss[better]
    return lives


def _search_locations(
    known: Known, settings: Settings, lives: FloatArray, *, forward: bool
) -> Found:
    """What is found at each location; ``forward`` folds train on earlier cases alone."""
    centred = settings.supports != ("observations",)
    bounds = find_bounds(known.observations, settings.bounds if centred else None)
    found = _empty(known, settings, to_host(bounds[2]))
    groups, n_cases = groups_of(known.used, lives, known.age, max(settings.min_samples, 2))
    found.put("n_cases", np.arange(n_cases.size), n_cases)
    few = n_cases < max(settings.min_samples, 2)
    found.values["status"] |= TOO_FEW * few
    for group in groups:
        low_rank = is_low_rank(settings.solver, settings.kernel, group.slots.size)
        folds = _folds(known, group, settings.gap, forward)
        for part in group.parts(_bytes_each(known, settings, folds, group.slots.size)):
            cases = select(
                known.cases, known.observations, known.features, part,
                centred=centred, shapes=settings.shapes,
            )  # fmt: skip
            where = locate(
                cases, known.features.circular, part.root,
                laplace=settings.kernel == "laplace", low_rank=low_rank,
            )  # fmt: skip
            xp = namespace(cases.target)
            own = take(xp, bounds[0], part.places, 0), take(xp, bounds[1], part.places, 0)
            _fit_locations(where, own, folds, settings, forward, low_rank, part, found)
    return found


def _bytes_each(known: Known, settings: Settings, folds: Folds, n: int) -> int:
    """About what a location takes: kernels or factors, and a few arrays of the largest fold."""
    held = int(folds.n_held.max(initial=1))
    members = int(known.cases.loc.shape[-1])
    width = min(n, 400) if is_low_rank(settings.solver, settings.kernel, n) else n
    kernels = 2 * len(settings.kernels) + 4
    return 8 * n * (kernels * width + 12 * held + 8 * members)


def _folds(known: Known, group: Group, gap: int, forward: bool) -> Folds:
    """Folds of the cases of a group."""
    one = known.used[group.places[:1]]
    fold = assign_folds(known.groups, one, known.blocks, known.step)[0][group.slots]
    step = np.ascontiguousarray(known.step[group.slots], np.int64)
    found: Folds = arrange_folds(np.ascontiguousarray(fold), step, gap, forward)
    return found


def _fit_locations(
    where: Locations,
    bounds: tuple[Any, Any],
    folds: Folds,
    settings: Settings,
    forward: bool,
    low_rank: bool,
    group: Group,
    found: Found,
) -> None:
    """Fill what is found at the locations of a group."""
    xp, b = namespace(where.median), group.places.size
    median, precision = to_host(where.median), to_host(where.precision)
    identical = np.isinf(median)
    bandwidth = median
    if settings.bandwidth is not None:
        bandwidth = np.where(identical, median, settings.bandwidth)
    status = IDENTICAL * identical | CONSTANT * (precision == 0).any(-1)
    conditioned = precision.shape[1] > 0
    kernels = tuple(k for k in settings.kernels if k[1] == 0 or conditioned)
    codes = np.array([SUPPORTS.index(support) for support in settings.supports])
    judge = Judge(where, bounds, codes, settings.projection, settings.loss)
    search = Search(where, xp.asarray(bandwidth), folds, kernels, judge, low_rank=low_rank)
    best, chosen = _searched(search, settings, identical, forward)
    loss = best.loss.min(-1)
    status |= RIDGE_EDGE * (chosen & search.on_edge(best))
    if not forward:
        search.refine(best, np.flatnonzero(chosen & ~search.on_edge(best)))
    places, winner, kernel = group.places, best.winner, best.of_winner(best.kernel)
    widening, strength = np.array(kernels).T
    found.put("smallest", places, loss)
    found.values["status"][places] |= status
    found.put("bandwidth", places, bandwidth * widening[kernel])
    found.put("precision", places, precision)
    found.put("strength", places, strength[kernel])
    found.put("support", places, codes[winner])
    found.put("loss", places, loss)
    ridge = 10.0 ** best.of_winner(best.exponent)
    ridge = ridge if settings.ridge is None else np.full(b, settings.ridge)
    found.put("ridge", places, ridge)
    for name, bound in zip(("lower", "upper"), bounds, strict=True):
        found.put(name, places, to_host(bound))
    if low_rank and not forward:
        _put_landmarks(search, best, group, found)
    if not forward:
        _put_centres(where, bounds, codes[winner], strength[kernel] > 0, group, found)


def _searched(
    search: Search, settings: Settings, identical: Any, forward: bool
) -> tuple[Best, Any]:
    """What is best, and whether the ridge (b,) was searched for.

    Forecasts that are all the same say nothing whatever the ridge; covariates may.
    """
    strengths = [strength for _, strength in search.kernels]
    silent = identical & (not max(strengths) > 0)
    alone = search.judge.supports.size * len(search.kernels) == 1
    if settings.ridge is not None:
        takes = alone and not forward
        best = search.take(settings.ridge) if takes else search.run(settings.ridge)
        return best, np.zeros(search.b, np.bool_)
    best = search.run(None)
    if silent.any():
        given = search.take(1.0) if alone and not forward else search.run(1.0)
        for name, values in vars(best).items():
            values[silent] = getattr(given, name)[silent]
    return best, ~silent


def _put_landmarks(search: Search, best: Best, group: Group, found: Found) -> None:
    """Slots of the cases that represent all others at each location."""
    for g in np.unique(best.of_winner(best.kernel)):
        at = np.flatnonzero(best.of_winner(best.kernel) == g)
        ridge = 10.0 ** best.of_winner(best.exponent)[at]
        chosen = search.solver(int(g)).landmarks_for(at, ridge)
        slots = np.where(chosen >= 0, group.slots[np.maximum(chosen, 0)], -1)
        found.values["landmark"][group.places[at], : slots.shape[1]] = slots


def _put_centres(
    where: Locations,
    bounds: tuple[Any, Any],
    codes: IntArray,
    conditioned: Any,
    group: Group,
    found: Found,
) -> None:
    """Coefficients of the centre of the support of each location, from all of its cases."""
    room = found.values["centre"].shape[1]
    cases, k = where.cases, where.cases.features.shape[-1]
    xp = namespace(cases.target)
    for code in np.unique(codes):
        for n_features in {0, k}:
            at = np.flatnonzero((codes == code) & (conditioned == (n_features > 0)))
            if at.size == 0:
                continue
            of = cases.features[:, :, :n_features]
            known = (cases.mean, cases.variance, of, cases.target, *bounds)
            mean, variance, own, target, low, high = (take(xp, part, at, 0) for part in known)
            fitted = fit_centres(int(code), mean, variance, own, target, low, high, room)
            found.put("centre", group.places[at], to_host(fitted))


def _empty(known: Known, settings: Settings, violated: Any) -> Found:
    """Nothing found yet."""
    n_locations, n = known.used.shape
    k = known.features.values.shape[-1]
    names = ("bandwidth", "ridge", "strength", "lower", "upper", "loss", "smallest")
    values: dict[str, Any] = {name: np.full(n_locations, math.nan) for name in names}
    values["precision"] = np.full((n_locations, k), math.nan)
    values["centre"] = np.full((n_locations, 4 + 2 * k), math.nan)
    first = SUPPORTS.index(settings.supports[0])
    values["support"] = np.full(n_locations, first, np.int8)
    values["n_cases"] = np.zeros(n_locations, np.int32)
    values["status"] = np.where(violated, BOUNDS, 0)
    room = landmark_slots(settings.solver, settings.kernel, n)
    values["landmark"] = np.full((n_locations, room), -1, np.int32)
    return Found(values)
