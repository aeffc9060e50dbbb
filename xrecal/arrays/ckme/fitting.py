"""The fit at each location and of all of them, shared by all code that computes losses."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays import SMALLEST_RIDGE
from xrecal.arrays.kernels.kernel import check_kernel
from xrecal.arrays.rows import is_whole
from xrecal.arrays.status import BOUNDS, CONSTANT, IDENTICAL, INVALID, RIDGE_EDGE, TOO_FEW
from xrecal.typing import FloatArray, IntArray

from .centre import OBSERVATIONS, SUPPORTS
from .embedding import Calibration, FittedCKME, Settings, check_choice
from .held_out_losses import LOSSES
from .requests import CENTRING, FIRST, REPRESENTING, Centre, Landmarks, Steps
from .search import Candidates, Search
from .simplex import PROJECTIONS
from .solvers import SOLVERS, landmark_slots

HALF_LIVES = (math.inf, 1.0, 0.5, 0.25, 0.125)
"""Half-lives tried, as parts of the calibration period."""

IDENTICAL_MEANS = 1e-12
"""Differences of means, in parts of the largest one, up to which they are the same."""

LATER_PARTS = 8
"""Parts of the period; all but the first are forecast from those before."""


class Task(NamedTuple):
    """Extent of a search."""

    forward: bool = False
    """True if folds train on earlier cases alone; then only losses are of interest"""
    grid_only: bool = False
    """True if ridges stay those of the grid"""
    n_quantiles: int = 0
    """Quantiles to record of each held-out forecast; with any every support is of interest"""


class Results(NamedTuple):
    """Results of a search at L locations, for each of S supports where shapes say so."""

    bandwidth: FloatArray
    """(L,)"""
    precision: FloatArray
    """(L, k)"""
    low: FloatArray
    """(L,)"""
    high: FloatArray
    """(L,)"""
    support: IntArray
    """(L,) code of the best one"""
    n_cases: IntArray
    """(L,)"""
    status: IntArray
    """(L,)"""
    ridge: FloatArray
    """(L, S)"""
    strength: FloatArray
    """(L, S)"""
    widening: FloatArray
    """(L, S)"""
    loss: FloatArray
    """(L, S)"""
    centre: FloatArray
    """(L, S, 4 + 2 k)"""
    landmark: IntArray
    """(L, S, r)"""
    beside: IntArray
    """(L,) code of the best support of errors, where past observations are better; else 0"""
    beside_centre: FloatArray
    """(L, 4 + 2 k)"""
    quantiles: FloatArray
    """(L, P, S, n, q) of held-out cases, in the folds searched over and from earlier cases"""


class Place(NamedTuple):
    """A location as its search begins."""

    number: int
    """Among all locations"""
    slots: IntArray
    """(n,) places of the usable cases among all"""
    median: float
    """Of the distances of forecasts that differ; infinite where none do"""
    precision: FloatArray
    """(k,) weight of each feature in the distance of covariates"""
    identical: bool
    """True if all forecasts are the same, in their mean too"""


def are_identical(median: float, mean: FloatArray) -> bool:
    """True if forecasts of a median distance, and of means (n,), are all the same.

    Shapes may be the same where means differ.
    """
    size = IDENTICAL_MEANS * np.abs(mean).max(initial=0.0)
    return math.isinf(median) and float(np.ptp(mean)) <= size


SearchLocations = Callable[[Calibration, Settings, FloatArray, Task], Results]
"""Searches all locations with their half-lives (L,): by compiled code, or by array expressions."""


def no_results(
    calibration: Calibration,
    settings: Settings,
    task: Task,
    bounds: tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]],
) -> Results:
    """Results before anything is searched for: bounds, and missing values.

    Bounds are the lower and upper ones (L,), and whether given ones are violated.
    """
    (n_locations, n), k = calibration.observations.shape, calibration.features.circular.size
    n_supports, low, high, violated = len(settings.supports), *bounds

    def missing(*shape: int) -> FloatArray:
        return np.full((n_locations, *shape), math.nan)

    room = landmark_slots(settings.solver, settings.kernel, n, shapes=settings.shapes)
    passes = 2 if task.n_quantiles else 1
    return Results(
        bandwidth=missing(),
        precision=missing(k),
        low=low,
        high=high,
        support=np.full(n_locations, SUPPORTS.index(settings.supports[0])),
        n_cases=np.zeros(n_locations, np.int32),
        status=np.where(violated, BOUNDS, 0),
        ridge=missing(n_supports),
        strength=missing(n_supports),
        widening=missing(n_supports),
        loss=missing(n_supports),
        centre=missing(n_supports, 4 + 2 * k),
        landmark=np.full((n_locations, n_supports, room), -1, np.int32),
        beside=np.zeros(n_locations, np.int64),
        beside_centre=missing(4 + 2 * k),
        quantiles=missing(passes, n_supports, n, task.n_quantiles),
    )


def note_cases(
    results: Results,
    at: slice,
    n_used: IntArray,
    invalid: npt.NDArray[np.bool_],
    settings: Settings,
) -> npt.NDArray[np.bool_]:
    """Note the number of cases of some locations; true where it is enough for a search."""
    enough = n_used >= max(settings.min_samples, 2)
    results.n_cases[at] = n_used
    results.status[at] |= np.where(invalid, INVALID, 0) | np.where(enough, 0, TOO_FEW)
    return np.asarray(enough)


def candidates_of(settings: Settings, *, conditioned: bool, each: bool) -> Candidates:
    """Kernels and supports that the settings leave to choose, with or without covariates."""
    return Candidates(
        tuple(k for k in settings.kernels if k[1] == 0 or conditioned),
        np.array([SUPPORTS.index(support) for support in settings.supports]),
        each,
    )


def bandwidth_of(settings: Settings, median: float) -> float:
    """Bandwidth at a location: the given one, or the median, which forecasts alike have to keep."""
    return median if settings.bandwidth is None or math.isinf(median) else settings.bandwidth


def fit_location(
    results: Results, place: Place, search: Search, settings: Settings, task: Task
) -> Steps[None]:
    """Search a location and fill in its results."""
    at, best = place.number, search.best
    kernels, supports, _ = search.candidates
    widening, strength = np.array(kernels).T
    results.bandwidth[at] = bandwidth_of(settings, place.median)
    results.precision[at] = place.precision
    results.status[at] |= IDENTICAL * place.identical | CONSTANT * (place.precision == 0).any()
    # Forecasts that are all the same say nothing, whichever ridge; covariates may.
    silent = math.isinf(place.median) and not (strength > 0).any()
    ridge = 1.0 if silent and settings.ridge is None else settings.ridge
    alone = supports.size * widening.size == 1
    if ridge is not None and alone and not (task.grid_only or task.forward):
        search.take(ridge)
    else:
        yield from search.run(ridge)
        results.loss[at] = np.where(np.isinf(best.loss), np.nan, best.loss)
    if task.forward:
        return
    if task.n_quantiles:
        yield from _record(results, place, search)
    results.support[at] = supports[best.winner]
    smooth: float | None = None
    if ridge is None and not task.grid_only:
        smooth = yield from search.doubt()
    if smooth is not None:
        results.loss[at, best.winner] = smooth
    elif ridge is None and search.on_edge():
        results.status[at] |= 0 if search.finds_errors_alike() else RIDGE_EDGE
    elif ridge is None and not task.grid_only:
        yield from search.refine()
    results.ridge[at] = 10.0**best.exponent if settings.ridge is None else settings.ridge
    results.strength[at], results.widening[at] = strength[best.kernel], widening[best.kernel]
    for s in search.wanted.tolist():
        yield from _represent(results, place, search, s)
    beside = _best_errors(search)
    if beside is not None:
        conditioned = bool(results.strength[at, best.winner] > 0)
        stage = CENTRING, supports.size + beside, int(conditioned)
        results.beside[at] = supports[beside]
        results.beside_centre[at] = yield Centre(stage, beside, conditioned)


def _best_errors(search: Search) -> int | None:
    """The best support of errors, where that of past observations is better."""
    past = search.candidates.supports == OBSERVATIONS
    errors = search.every[~past[search.every]]
    if search.candidates.each or not past[search.best.winner] or not errors.size:
        return None
    return int(errors[np.argmin(search.best.tried_loss[:, errors].min(axis=0))])


def _represent(results: Results, place: Place, search: Search, s: int) -> Steps[None]:
    """Fill landmarks and centre of a support, which follow from all cases."""
    at, best = place.number, search.best
    g, exponent = int(best.kernel[s]), float(best.exponent[s])
    if search.low_rank:
        landmarks: Sequence[int] = yield Landmarks((REPRESENTING, g, FIRST), g, exponent)
        results.landmark[at, s, : len(landmarks)] = place.slots[list(landmarks)]
    conditioned = bool(results.strength[at, s] > 0)
    centre: FloatArray = yield Centre((CENTRING, s, int(conditioned)), s, conditioned)
    results.centre[at, s] = centre


def _record(results: Results, place: Place, search: Search) -> Steps[None]:
    """Fill quantiles of forecasts of held-out cases, behind their losses in what is recorded."""
    later = yield from search.recorded_later()
    for number, recorded in enumerate((search.best.recorded, later)):
        for s, values in recorded.items():
            results.quantiles[place.number, number, s, place.slots] = values[:, 1:]


def fit_supports(
    calibration: Calibration, settings: Settings, half_life: float | str, search: SearchLocations
) -> FittedCKME:
    """Fit the best support of each location."""
    lives = half_lives(calibration, settings, half_life, search)
    results = search(calibration, settings, lives, Task())
    codes = [SUPPORTS.index(support) for support in settings.supports]
    best = np.array([codes.index(code) for code in results.support], dtype=np.int64)
    return of_support(results, best, settings, lives)


def half_lives(
    calibration: Calibration, settings: Settings, half_life: float | str, search: SearchLocations
) -> FloatArray:
    """Half-life (L,) as given, or with which earlier cases forecast later ones best."""
    n_locations = calibration.observations.shape[0]
    if half_life != "cv":
        lives = np.full(n_locations, float(half_life))
        if calibration.days is None and not np.isinf(lives).all():
            raise ValueError("a half-life needs days, the dates of the cases")
        return lives
    if calibration.days is None:
        raise ValueError("half_life='cv' needs days, the dates of the cases")
    first = np.where(calibration.used, calibration.days, math.inf).min(-1, initial=math.inf)
    last = np.where(calibration.used, calibration.days, -math.inf).max(-1, initial=-math.inf)
    span = np.where(last > first, last - first, 1.0)
    lives, smallest = np.full(n_locations, math.inf), np.full(n_locations, math.inf)
    forward = calibration._replace(groups=calibration.step, blocks=5)
    for part in HALF_LIVES:
        trial = part * span
        loss = search(forward, settings, trial, Task(forward=True)).loss
        loss = np.where(np.isnan(loss), math.inf, loss).min(-1)
        better = loss < smallest
        lives[better], smallest[better] = trial[better], loss[better]
    return lives


def of_support(
    results: Results, best: IntArray, settings: Settings, lives: FloatArray
) -> FittedCKME:
    """Fit of one support at each location, by its place (L,) in the settings.

    Where all forecasts are the same, a centre says nothing: there members are past observations.
    """
    at = np.arange(best.size), best
    codes = np.array([SUPPORTS.index(support) for support in settings.supports])
    ridge = results.ridge[at]
    missing = np.isnan(ridge)
    alike = (results.status & IDENTICAL) > 0
    plain = np.zeros(results.centre.shape[-1])
    plain[2] = 1.0
    return FittedCKME(
        results.bandwidth * results.widening[at],
        ridge,
        results.strength[at],
        results.precision,
        np.where(alike, OBSERVATIONS, codes[best]).astype(np.int8),
        np.where((alike & ~missing)[:, np.newaxis], plain, results.centre[at]),
        np.where(missing, math.nan, results.low),
        np.where(missing, math.nan, results.high),
        np.where(missing, math.nan, lives),
        results.loss[at],
        results.n_cases,
        results.status.astype(np.int8),
        results.landmark[at],
        np.where(alike, 0, results.beside).astype(np.int8),
        results.beside_centre,
    )


def check_settings(settings: Settings, blocks: int) -> None:
    """Raise ValueError for settings that are unknown or do not fit together."""
    check_kernel(settings.kernel)
    check_choice("loss", settings.loss, LOSSES)
    check_choice("projection", settings.projection, PROJECTIONS)
    check_choice("solver", settings.solver, SOLVERS)
    for support in settings.supports:
        check_choice("supports", support, SUPPORTS)
    if settings.shapes and "observations" in settings.supports:
        raise ValueError("shapes of forecasts say nothing of past observations; leave them out")
    in_time = isinstance(settings.gap, np.timedelta64 | datetime.timedelta)  # checked with days
    whole = is_whole(blocks) and (in_time or is_whole(settings.gap))
    if not whole or blocks < 0 or blocks == 1 or (not in_time and settings.gap < 0):  # type: ignore[operator]
        raise ValueError(
            "blocks must be 2 or more (0: each group is a fold) and gap 0 or more, whole numbers, "
            f"or a timedelta, got {blocks=}, gap={settings.gap}"
        )
    for name in ("bandwidth", "ridge"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive, or None to choose it, got {value}")
    if settings.ridge is not None and settings.ridge < SMALLEST_RIDGE:
        raise ValueError(f"ridge must be at least {SMALLEST_RIDGE:g}, got {settings.ridge}")
