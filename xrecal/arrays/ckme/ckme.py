"""The conditional kernel mean embedding (CKME): choice of its settings, and its fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.kernel import Features
from xrecal.arrays.status import RIDGE_EDGE
from xrecal.typing import FloatArray, IntArray

from .centre import OBSERVATIONS, SUPPORTS
from .embedding import (
    Calibration,
    Choices,
    FittedCKME,
    Settings,
    calibration_of,
    check_settings,
    lives_of,
)
from .problem import Problem, problems, without_fit
from .ridge_rules import GRID
from .search import Search, candidates_of

HALF_LIVES = (math.inf, 1.0, 0.5, 0.25, 0.125)
"""Half-lives to try, as fractions of the calibration period."""


def choose(problem: Problem, half_life: float) -> Choices:
    """Choose the settings at one location; skip the search if only one choice is possible."""
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
    """Return the choices for the support at position ``s`` of the candidates."""
    best, candidates, given = search.best, search.candidates, problem.settings.ridge
    widening, strength = candidates.kernels[best.kernel[s]]
    columns = [s] if search.each else slice(None)
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
        cases=float(problem.n) if given is None else math.nan,
        losses=search.curves[:, columns].ravel(),
    )


def _best_errors(search: Search) -> int | None:
    """Return the position of the best support of errors, if past observations are better still.

    Return None if past observations are not the best support, or if the search is for every
    support.
    """
    past = search.candidates.supports == OBSERVATIONS
    errors = search.every[~past[search.every]]
    if search.each or not past[search.best.winner] or not errors.size:
        return None
    return int(errors[np.argmin(search.best.tried_loss[:, errors].min(axis=0))])


def choose_each(
    problem: Problem, half_life: float, n_quantiles: int
) -> tuple[list[Choices], IntArray, FloatArray]:
    """Choose the settings for each support, with ridges of the grid (see :mod:`.ridge_rules`).

    Return three results: the choices, the indices of the supports that are usable at the location,
    and quantiles (2, S, n, q). These are q quantiles of the forecast of each of n held-out cases,
    with each of S supports. On the first axis, entry 0 comes from fits without the fold of the
    case, and entry 1 comes from fits to earlier cases alone.
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
    """Return the smallest held-out loss of any kernel, support and ridge at each location, (L,).

    The loss is infinite at a location with too few cases. With ``forward``, fits learn from earlier
    cases alone.
    """
    losses = np.full(half_life.size, math.inf)
    for problem in problems(calibration, settings, half_life):
        if problem.is_enough:
            search = Search(problem, forward=forward)
            search.run()
            losses[problem.number] = search.best.loss.min()
    return losses


later_losses = partial(smallest_losses, forward=True)
"""Function :func:`smallest_losses` with fits that learn from earlier cases alone."""


def half_lives(
    calibration: Calibration, settings: Settings, half_life: float | str, losses: Any
) -> FloatArray:
    """Return the half-life (L,) of each location: the given half-life, or the best one for "cv".

    The best half-life gives the best forecasts from fits to earlier cases alone. ``losses`` is
    ``later_losses``, or the same function for another array library.
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


DEFAULT = Settings()


def fit_ckme(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings = DEFAULT,
    *,
    features: Features | None = None,
    days: FloatArray | None = None,
    half_life: float | str = math.inf,
    groups: IntArray | None = None,
    blocks: int = 5,
    step: IntArray | None = None,
    squared: Sequence[Squared] | None = None,
    vectors: Sequence[FloatArray] | None = None,
    choices: Choices | None = None,
    medians: dict[bytes, float] | None = None,
) -> FittedCKME:
    r"""Fit a CKME at every location; choose its settings if ``choices`` is None.

    Parameters
    ----------
    cases : Forecasts
        Calibration forecasts at L locations: arrays (L, n, m).
    observations : array of float, shape (L, n)
        Observations of the cases, in the unit of the forecasts; NaN where unknown.
    settings : Settings
        Type of kernel, candidates for its bandwidth and for the strength of covariates, ridge,
        supports, bounds, loss, projection, gap and least number of cases. The gap is a number of
        steps in time or a length of time. A fit that holds out a fold also leaves out the cases
        within the gap before and after this fold.
    features : Features, optional
        Covariates of the cases, (L, n, k).
    days : array of float, shape (n,), optional
        Dates of the cases in days; needed with a half-life, and with a gap that is a length of
        time.
    half_life : float or "cv"
        Half-life in days: a case that is older by one half-life has half the weight. "cv" tries
        fractions of the period of the cases, and takes the half-life that gives the best forecasts
        from earlier cases alone. Fits that also learn from later cases would hide a drift.
    groups : array of int, shape (n,), optional
        Group of each case, such as its calendar year. All cases of a group are in the same fold.
        The default is ``step``.
    blocks : int
        Number of folds. The fit sorts the cases by ``groups`` and cuts them into this number of
        folds. 0 makes each group a fold. If ``blocks`` is 0 and groups have two or more cases on
        average, the fit compares the best ridge with the largest ridge. It takes the best ridge
        only if this ridge lowers the mean loss of the groups by at least one standard error of the
        difference; otherwise it takes the largest ridge.
    step : array of int, shape (n,), optional
        Step in time of each case, in ascending order; by default each case is one step. A fold
        holds out the cases of one step together.
    squared : array of float64, shape (L, n, n), optional
        Squared energy distances between the cases, if already computed. In place of its matrix
        (n, n), a location may have an object that computes the entries at an index from
        :func:`numpy.ix_`.
    vectors : array of float64, shape (L, n, d), optional
        Observed vectors, for the loss "energy"; ``observations`` then holds their row numbers.
    choices : Choices, optional
        Result of :func:`choose_ckme` for these or other cases, or the joint choice of several
        locations. A fit with ``choices`` skips the search, and also takes the half-life from
        ``choices``.
    medians : dict, optional
        Cache of median distances. The call adds its own medians, so that another fit to the same
        forecasts need not compute them again.

    Returns
    -------
    FittedCKME

    Raises
    ------
    ValueError
        If a setting is unknown or shapes differ.

    Notes
    -----
    For each location and candidate kernel, the exact solver computes one eigendecomposition, O(n³),
    and matrix products of O(n³) for each of 13 ridges (20 for the best kernel). It needs five n × n
    matrices of float64 at a time, and keeps up to 64 MiB of decompositions. The low-rank solver
    with r landmarks tries a few ridges for each candidate kernel, in O(n r²) time each, and needs
    (3 n + 5 r) r numbers in memory. The fit leaves out cases with an infinite or otherwise invalid
    value, and notes this in the status. For each fold of the cross-validation, the fit learns the
    centres of errors from the training cases of this fold. Compiled code fits one location after
    another, without the GIL.

    References
    ----------
    .. [1] Park & Muandet (2020), A measure-theoretic approach to kernel conditional mean
       embeddings. https://arxiv.org/abs/2002.03689

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> fitted = fit_ckme(cases, truth)
    >>> fitted.n_cases, fitted.status
    (array([40], dtype=int32), array([0], dtype=int8))
    """
    calibration = given_calibration(
        cases,
        observations,
        settings,
        features=features,
        days=days,
        groups=groups,
        blocks=blocks,
        step=step,
        squared=squared,
        vectors=vectors,
        medians=medians,
    )
    if choices is not None:
        lives = lives_of(np.asarray(choices.half_life, np.float64))
    else:
        lives = half_lives(calibration, settings, half_life, later_losses)
    fits = []
    for problem, life in zip(problems(calibration, settings, lives), lives, strict=True):
        chosen = choose(problem, life) if choices is None else choices.at(problem.number)
        fits.append(problem.fit(chosen))
    return FittedCKME.joined(fits, without_fit(calibration, settings))


def choose_ckme(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings = DEFAULT,
    *,
    half_life: float | str = math.inf,
    **known: Any,
) -> Choices:
    """Choose kernel, support, ridge and half-life at every location.

    Parameters
    ----------
    cases, observations, settings, half_life
        As for :func:`fit_ckme`.
    **known
        ``features``, ``days``, ``groups``, ``blocks``, ``step``, ``squared`` and ``vectors`` as
        for :func:`fit_ckme`.

    Returns
    -------
    Choices
        Choices to pass to :func:`fit_ckme`, with these cases or others. With these cases, the fit
        equals a fit without ``choices``, except for the landmarks of a low-rank solver. A fit with
        ``choices`` chooses landmarks for the chosen ridge alone. A fit without ``choices`` chooses
        landmarks for all ridges of its search.

    Raises
    ------
    ValueError
        As for :func:`fit_ckme`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> choices = choose_ckme(cases, truth)
    >>> bool(fit_ckme(cases, truth, choices=choices).ridge == choices.ridge)
    True
    """
    calibration = given_calibration(cases, observations, settings, **known)
    lives = half_lives(calibration, settings, half_life, later_losses)
    each = zip(problems(calibration, settings, lives), lives, strict=True)
    return Choices.joined(
        (choose(problem, life) for problem, life in each), n_candidates(settings, calibration)
    )


def fit_ckme_family(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings,
    *,
    n_quantiles: int,
    half_life: float | str = math.inf,
    **known: Any,
) -> tuple[list[FittedCKME], FloatArray]:
    """Fit a CKME with each support, and record quantiles of held-out forecasts.

    All supports share the kernel matrices and the factors of these matrices, which take most of the
    time to compute. The chosen ridges are points of the grid, without refinement between these
    points.

    Parameters
    ----------
    cases, observations, settings, half_life
        As for :func:`fit_ckme`.
    n_quantiles : int
        Number of quantiles of each held-out forecast.
    **known
        ``features``, ``days``, ``groups``, ``blocks``, ``step`` and ``squared`` as for
        :func:`fit_ckme`.

    Returns
    -------
    fitted : list of FittedCKME
        One fit for each support, in the order of ``settings.supports``; each is like a result of
        :func:`fit_ckme`.
    quantiles : array of float64, shape (L, 2, S, n, n_quantiles)
        Quantiles of the forecast of each held-out case, at the levels (i - ½) / n_quantiles. On the
        second axis, entry 0 comes from fits without the fold of the case, and entry 1 comes from
        fits to earlier cases alone. Both entries use the kernel and ridge that are best over the
        folds. Quantiles are NaN for a case that no fold holds out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> fitted, quantiles = fit_ckme_family(cases, truth, Settings(), n_quantiles=20)
    >>> len(fitted), quantiles.shape
    (1, (1, 2, 1, 40, 20))
    """
    _, fits, quantiles = choose_and_fit_each(
        cases, observations, settings, n_quantiles, half_life, **known
    )
    return fits, quantiles


def choose_and_fit_each(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings,
    n_quantiles: int,
    half_life: float | str = math.inf,
    **known: Any,
) -> tuple[list[Choices], list[FittedCKME], FloatArray]:
    """Return the choices for each support, and the results of :func:`fit_ckme_family`."""
    calibration = given_calibration(cases, observations, settings, **known)
    lives = half_lives(calibration, settings, half_life, later_losses)
    n_supports, (n_locations, n) = len(settings.supports), observations.shape
    quantiles = np.empty((n_locations, 2, n_supports, n, n_quantiles))
    chosen, fits = [], []
    for problem, life in zip(problems(calibration, settings, lives), lives, strict=True):
        choices, usable, quantiles[problem.number] = choose_each(problem, life, n_quantiles)
        chosen.append(choices)
        fits.append([problem.fit(one, usable=s in usable) for s, one in enumerate(choices)])
    like, each = without_fit(calibration, settings), range(n_supports)
    width = n_candidates(settings, calibration)
    return (
        [Choices.joined((one[s] for one in chosen), width // n_supports) for s in each],
        [FittedCKME.joined((one[s] for one in fits), like) for s in each],
        quantiles,
    )


def n_candidates(settings: Settings, calibration: Calibration) -> int:
    """Return the number of combinations of a kernel, a support and a ridge of the grid."""
    some = candidates_of(settings, conditioned=calibration.features.circular.size > 0)
    return len(some.kernels) * some.supports.size * GRID.size


def given_calibration(
    cases: Forecasts, observations: FloatArray, settings: Settings, **known: Any
) -> Calibration:
    """Return the cases with their dates, folds and further inputs.

    Raises ValueError for settings that contradict each other or the observations.
    """
    check_settings(settings, known.get("blocks", 5))
    if (settings.loss == "energy") != (known.get("vectors") is not None):
        raise ValueError(
            "the loss 'energy' is for vectors, and vectors have no other loss; use fit_vector_ckme"
        )
    return calibration_of(cases, observations, **known)
