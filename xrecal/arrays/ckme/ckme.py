"""The conditional kernel mean embedding: choose its settings by the calibration cases, and fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.kernel import Features
from xrecal.typing import FloatArray, IntArray

from .choosing import choose, choose_each, half_lives, later_losses
from .embedding import (
    Calibration,
    Choices,
    FittedCKME,
    Settings,
    calibration_of,
    check_settings,
    lives_of,
)
from .problem import problems, without_fit

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
) -> FittedCKME:
    r"""Fit the embedding at every location, with given choices or the best ones.

    Parameters
    ----------
    cases : Forecasts
        Calibration forecasts at L locations: arrays (L, n, m).
    observations : array of float, shape (L, n)
        What verified, in the unit of the forecasts; NaN where unknown.
    settings : Settings
        Kernel and its candidates, ridge, supports, bounds, loss, projection, gap (steps in time,
        or length of time, left out of training on both sides of those held out), least number of
        cases.
    features : Features, optional
        Covariates of the cases, (L, n, k).
    days : array of float, shape (n,), optional
        Dates of the cases in days; needed with a half-life, and with a gap that is a length of
        time.
    half_life : float or "cv"
        In days: a case so much older counts half. "cv" chooses among parts of the period of the
        cases by how well the past forecasts what follows; blocks with cases from both sides
        would hide a drift.
    groups : array of int, shape (n,), optional
        What folds are made of: calendar years, or an order of the cases. Step by default.
    blocks : int
        Number of folds, cut from the cases ordered by ``groups``; 0 makes each value of
        ``groups`` a fold. Groups of two cases and more in the mean must then agree: the largest
        ridge is taken where the gain on it is less than one standard error over the groups.
    step : array of int, shape (n,), optional
        Step in time of each case, never descending; each is one by default. Cases of one step
        are held out together.
    squared : array of float64, shape (L, n, n), optional
        Squared energy distances of the cases, where they are known already; or for each location
        what computes those that :func:`numpy.ix_` asks for.
    vectors : array of float64, shape (L, n, d), optional
        Observed vectors, for the loss "energy": ``observations`` are then their numbers.
    choices : Choices, optional
        What :func:`choose_ckme` returned, of these cases or of others, or joined from several
        places. The fit then searches nothing, and ``half_life`` is that of the choices.

    Returns
    -------
    FittedCKME

    Raises
    ------
    ValueError
        If a setting is unknown or shapes differ.

    Notes
    -----
    Exactly: per location and candidate of the kernel one eigendecomposition, O(n³), and 13 ridges
    of O(n³) matrix products (20 for the winner); five n × n matrices of float64 at a time, and up
    to 64 MiB of decompositions that are kept. With low rank: a few ridges of O(n r²) for each
    candidate, (3 n + 5 r) r numbers. Cases with an infinite or otherwise invalid value are left
    out, with a status. Centres of errors are fitted inside the folds. Locations run one after
    another in compiled code without the GIL.

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
        there.

    Returns
    -------
    Choices
        Names and numbers alone, for :func:`fit_ckme` with these cases or others. Both calls
        together do what :func:`fit_ckme` does alone, but for landmarks of a low-rank solver: these
        then come in the order that the ridge needs, and not in that of the search.

    Raises
    ------
    ValueError
        As :func:`fit_ckme`.

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
    return Choices.joined(choose(problem, life) for problem, life in each)


def fit_ckme_family(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings,
    *,
    n_quantiles: int,
    half_life: float | str = math.inf,
    **known: Any,
) -> tuple[list[FittedCKME], FloatArray]:
    """Fit each support as :func:`fit_ckme` would, and record quantiles of held-out forecasts.

    The kernel matrices and their factors, which take most of the time, serve all supports. Ridges
    are those of the grid.

    Parameters
    ----------
    cases, observations, settings, half_life
        As for :func:`fit_ckme`.
    n_quantiles : int
        Number of quantiles of each held-out forecast.
    **known
        ``features``, ``days``, ``groups``, ``blocks``, ``step`` and ``squared`` as there.

    Returns
    -------
    fitted : list of FittedCKME
        In the order of ``settings.supports``.
    quantiles : array of float64, shape (L, 2, S, n, n_quantiles)
        At the levels (i - ½) / n_quantiles, of each case forecast without its fold, and of each
        forecast from earlier cases alone; with the ridge and kernel that are best over the folds.
        NaN for cases that were not held out.

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
    """Choices of each support, and what :func:`fit_ckme_family` returns."""
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
    return (
        [Choices.joined(one[s] for one in chosen) for s in each],
        [FittedCKME.joined((one[s] for one in fits), like) for s in each],
        quantiles,
    )


def given_calibration(
    cases: Forecasts, observations: FloatArray, settings: Settings, **known: Any
) -> Calibration:
    """Cases with all that is given of them.

    Raises ValueError for settings that do not fit together, or not to the observations.
    """
    check_settings(settings, known.get("blocks", 5))
    if (settings.loss == "energy") != (known.get("vectors") is not None):
        raise ValueError(
            "the loss 'energy' is that of vectors, which have no other; use fit_vector_ckme"
        )
    return calibration_of(cases, observations, **known)
