"""Choices at each location by the cases that are held out there."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from xrecal.arrays.status import RIDGE_EDGE
from xrecal.typing import FloatArray, IntArray

from .centre import OBSERVATIONS, SUPPORTS
from .embedding import Calibration, Choices, Settings
from .folds import holds_several
from .judge import Judge, compiled_code
from .problem import Problem, problems
from .search import Candidates, Search, sets_of_folds

HALF_LIVES = (math.inf, 1.0, 0.5, 0.25, 0.125)
"""Half-lives tried, as parts of the calibration period."""

LATER_PARTS = 8
"""Parts of the period; all but the first are forecast from those before."""


def candidates_of(settings: Settings, *, conditioned: bool, each: bool = False) -> Candidates:
    """Kernels and supports that the settings leave to choose, with or without covariates."""
    return Candidates(
        tuple(k for k in settings.kernels if k[1] == 0 or conditioned),
        np.array([SUPPORTS.index(support) for support in settings.supports]),
        each,
    )


def given_ridge(problem: Problem, candidates: Candidates) -> float | None:
    """Ridge that is given, or without effect; None if there is one to choose.

    Forecasts that are all the same say nothing, whichever ridge; covariates may.
    """
    no_covariates = all(strength == 0 for _, strength in candidates.kernels)
    if problem.settings.ridge is None and math.isinf(problem.location.median) and no_covariates:
        return 1.0
    return problem.settings.ridge


def search_of(problem: Problem, *, forward: bool = False, n_quantiles: int = 0) -> Search:
    """A search that has not begun.

    With ``forward``, folds train on earlier cases alone. With quantiles, which are then recorded,
    every support is of interest.
    """
    calibration, settings = problem.calibration, problem.settings
    candidates = candidates_of(
        settings, conditioned=calibration.features.circular.size > 0, each=n_quantiles > 0
    )
    folds = problem.folds(calibration.groups, calibration.blocks, forward=forward)
    later = []
    if n_quantiles:
        later.append(problem.folds(calibration.step, LATER_PARTS, forward=True))
    sets = sets_of_folds(folds, later, candidates, low_rank=problem.location.low_rank)
    code = compiled_code(settings.projection, settings.loss, n_quantiles)
    judge = Judge(problem, sets, candidates.supports, code)
    by_group = calibration.blocks == 0 and holds_several(folds)
    return Search(candidates, problem, judge, by_group=by_group)


def choose(problem: Problem, half_life: float) -> Choices:
    """Choose at one location; nothing is tried where the settings leave one choice alone."""
    search = search_of(problem)
    candidates, best = search.candidates, search.best
    ridge, status = given_ridge(problem, candidates), 0
    if ridge is not None and candidates.supports.size * len(candidates.kernels) == 1:
        search.take(ridge)
        return chosen_by(search, problem, search.best.winner, half_life, status)
    search.run(ridge)
    winner = best.winner
    smooth = search.doubt() if ridge is None else None
    if smooth is None and ridge is None:
        if not search.on_edge():
            search.refine()
        elif not search.finds_errors_alike():
            status = RIDGE_EDGE
    chosen = chosen_by(search, problem, winner, half_life, status)
    return chosen if smooth is None else chosen._replace(loss=smooth)


def chosen_by(search: Search, problem: Problem, s: int, half_life: float, status: int) -> Choices:
    """Choices of one of the supports."""
    best, candidates, given = search.best, search.candidates, problem.settings.ridge
    widening, strength = candidates.kernels[best.kernel[s]]
    beside = _best_errors(search)
    return Choices(
        support=int(candidates.supports[s]),
        widening=widening,
        strength=strength,
        ridge=float((10.0**best.exponent)[s]) if given is None else given,
        half_life=half_life,
        loss=math.nan if math.isinf(best.loss[s]) else float(best.loss[s]),
        beside=0 if beside is None else int(candidates.supports[beside]),
        status=status,
    )


def _best_errors(search: Search) -> int | None:
    """The best support of errors, where that of past observations is better."""
    past = search.candidates.supports == OBSERVATIONS
    errors = search.every[~past[search.every]]
    if search.candidates.each or not past[search.best.winner] or not errors.size:
        return None
    return int(errors[np.argmin(search.best.tried_loss[:, errors].min(axis=0))])


def choose_each(
    problem: Problem, half_life: float, n_quantiles: int
) -> tuple[list[Choices], IntArray, FloatArray]:
    """Choose for each support alone, with ridges of the grid.

    Also returns the places of the supports that are usable there, and quantiles (2, S, n, q) of
    held-out cases, in the folds searched over and from earlier cases.
    """
    search = search_of(problem, n_quantiles=n_quantiles)
    ridge = given_ridge(problem, search.candidates)
    search.run(ridge)
    n_supports, n = search.candidates.supports.size, problem.calibration.observations.shape[1]
    quantiles = np.full((2, n_supports, n, n_quantiles), math.nan)
    for pass_, recorded in enumerate((search.best.recorded, search.recorded_later())):
        for s, values in recorded.items():
            quantiles[pass_, s, problem.location.slot] = values[:, 1:]
    on_edge = ridge is None and search.on_edge() and not search.finds_errors_alike()
    choices = [
        chosen_by(search, problem, s, half_life, RIDGE_EDGE * on_edge) for s in range(n_supports)
    ]
    return choices, search.every, quantiles


def smallest_losses(
    calibration: Calibration, settings: Settings, half_life: FloatArray, *, forward: bool = False
) -> FloatArray:
    """Smallest held-out loss (L,) of all kernels, supports and ridges; infinite without cases."""
    losses = np.full(half_life.size, math.inf)
    for problem in problems(calibration, settings, half_life):
        if problem.is_enough:
            search = search_of(problem, forward=forward)
            search.run(given_ridge(problem, search.candidates))
            losses[problem.number] = search.best.loss.min()
    return losses


later_losses = partial(smallest_losses, forward=True)
"""Smallest losses of later cases forecast from earlier ones."""


def half_lives(
    calibration: Calibration, settings: Settings, half_life: float | str, losses: Any
) -> FloatArray:
    """Half-life (L,) as given, or with which earlier cases forecast later ones best.

    ``losses`` is ``later_losses``, or does the same for another array library.
    """
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
        loss = losses(forward, settings, trial)
        better = loss < smallest
        lives[better], smallest[better] = trial[better], loss[better]
    return lives
