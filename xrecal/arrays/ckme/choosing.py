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
from .problem import Problem, problems
from .search import Search

HALF_LIVES = (math.inf, 1.0, 0.5, 0.25, 0.125)
"""Half-lives tried, as parts of the calibration period."""


def choose(problem: Problem, half_life: float) -> Choices:
    """Choose at one location; nothing is tried where the settings leave one choice alone."""
    if not problem.is_enough:
        return Choices(SUPPORTS.index(problem.settings.supports[0]))
    search = Search(problem)
    candidates, status, smooth = search.candidates, 0, None
    if search.ridge is not None and candidates.supports.size * len(candidates.kernels) == 1:
        search.best.exponent[:], search.best.loss[:] = np.log10(search.ridge), math.nan
        return chosen_by(search, problem, search.best.winner, half_life, status)
    search.run()
    winner = search.best.winner
    if search.ridge is None:
        smooth = search.doubt()
        if smooth is None and not search.on_edge():
            search.refine()
        elif smooth is None and not search.finds_errors_alike():
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
    if search.each or not past[search.best.winner] or not errors.size:
        return None
    return int(errors[np.argmin(search.best.tried_loss[:, errors].min(axis=0))])


def choose_each(
    problem: Problem, half_life: float, n_quantiles: int
) -> tuple[list[Choices], IntArray, FloatArray]:
    """Choose for each support alone, with ridges of the grid.

    Also returns the places of the supports that are usable there, and quantiles (2, S, n, q) of
    held-out cases, in the folds searched over and from earlier cases.
    """
    n_supports, n = len(problem.settings.supports), problem.calibration.observations.shape[1]
    quantiles = np.full((2, n_supports, n, n_quantiles), math.nan)
    if not problem.is_enough:
        nothing = [Choices(SUPPORTS.index(support)) for support in problem.settings.supports]
        return nothing, np.arange(0), quantiles
    search = Search(problem, n_quantiles=n_quantiles)
    search.run()
    for pass_, recorded in enumerate((search.best.recorded, search.recorded_later())):
        for s, values in recorded.items():
            quantiles[pass_, s, problem.location.slot] = values[:, 1:]
    on_edge = search.ridge is None and search.on_edge() and not search.finds_errors_alike()
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
            search = Search(problem, forward=forward)
            search.run()
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
