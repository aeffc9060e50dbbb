"""The conditional kernel mean embedding: calibration cases to what their weights depend on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xrecal.arrays import SMALLEST_RIDGE
from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.covariates import Features
from xrecal.arrays.kernels.kernel import check_kernel
from xrecal.typing import FloatArray, IntArray

from .centre import SUPPORTS
from .embedding import Calibration, FittedCKME, Settings, calibration, check_choice
from .fitting import Found, search_locations
from .held_out_losses import LOSSES
from .simplex import PROJECTIONS
from .solvers import SOLVERS

HALF_LIVES = (math.inf, 1.0, 0.5, 0.25, 0.125)
"""Half-lives tried, as parts of the calibration period."""


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
    vectors: FloatArray | None = None,
) -> FittedCKME:
    r"""Choose all that the embedding needs at every location.

    Parameters
    ----------
    cases : Forecasts
        Calibration forecasts at L locations: arrays (L, n, m).
    observations : array of float, shape (L, n)
        What verified, in the unit of the forecasts; NaN where unknown.
    settings : Settings
        Kernel and its candidates, ridge, supports, bounds, loss, projection, gap (steps in time
        left out of training on both sides of those held out), least number of cases.
    features : Features, optional
        Covariates of the cases, (L, n, k).
    days : array of float, shape (n,), optional
        Dates of the cases in days; needed with a half-life.
    half_life : float or "cv"
        In days: a case so much older counts half. "cv" chooses among parts of the period of the
        cases by how well the past forecasts what follows; blocks with cases from both sides
        would hide a drift.
    groups : array of int, shape (n,), optional
        What folds are made of: calendar years, or an order of the cases. Step by default.
    blocks : int
        Number of folds, cut from the cases ordered by ``groups``; 0 makes each value of
        ``groups`` a fold.
    step : array of int, shape (n,), optional
        Step in time of each case, never descending; each is one by default. Cases of one step
        are held out together.
    squared : array of float64, shape (L, n, n), optional
        Squared energy distances of the cases, where they are known already; or for each location
        what computes those that :func:`numpy.ix_` asks for.
    vectors : array of float64, shape (L, n, d), optional
        Observed vectors, for the loss "energy": ``observations`` are then their numbers.

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
    _check(settings, blocks)
    if (settings.loss == "energy") != (vectors is not None):
        raise ValueError(
            "the loss 'energy' is that of vectors, which have no other; use fit_vector_ckme"
        )
    known = calibration(cases, observations, features, days, groups, blocks, step, squared, vectors)
    lives = _half_lives(known, settings, half_life)
    found, n_cases, _ = search_locations(known, settings, lives)
    places = [SUPPORTS.index(support) for support in settings.supports]
    best = np.array([places.index(code) for code in found.support], dtype=np.int64)
    return _of_support(found, best, settings, lives, n_cases)


def fit_ckme_family(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings,
    *,
    n_quantiles: int,
    features: Features | None = None,
    days: FloatArray | None = None,
    half_life: float | str = math.inf,
    groups: IntArray | None = None,
    blocks: int = 5,
    step: IntArray | None = None,
    squared: Sequence[Squared] | None = None,
) -> tuple[list[FittedCKME], FloatArray]:
    """As :func:`fit_ckme`, once for each support, and quantiles of their held-out forecasts.

    The kernel matrices and their factors, which take most of the time, serve all supports. Ridges
    are those of the grid.

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
    _check(settings, blocks)
    known = calibration(cases, observations, features, days, groups, blocks, step, squared)
    lives = _half_lives(known, settings, half_life)
    found, n_cases, recorded = search_locations(
        known, settings, lives, grid_only=True, n_quantiles=n_quantiles
    )
    fitted = [
        _of_support(found, np.full(n_cases.size, s), settings, lives, n_cases)
        for s in range(len(settings.supports))
    ]
    return fitted, recorded


def _half_lives(known: Calibration, settings: Settings, half_life: float | str) -> FloatArray:
    """Half-life (L,) as given, or with which earlier cases forecast later ones best."""
    n_locations = known.observations.shape[0]
    if half_life != "cv":
        return np.full(n_locations, float(half_life))
    if known.days is None:
        raise ValueError("half_life='cv' needs days, the dates of the cases")
    used = np.isfinite(known.observations)
    first = np.where(used, known.days, math.inf).min(-1, initial=math.inf)
    last = np.where(used, known.days, -math.inf).max(-1, initial=-math.inf)
    span = np.where(last > first, last - first, 1.0)
    lives, smallest = np.full(n_locations, math.inf), np.full(n_locations, math.inf)
    forward = known._replace(groups=known.step, blocks=5)
    for part in HALF_LIVES:
        trial = part * span
        found, _, _ = search_locations(forward, settings, trial, forward=True)
        loss = np.where(np.isnan(found.loss), math.inf, found.loss).min(-1)
        better = loss < smallest
        lives[better], smallest[better] = trial[better], loss[better]
    return lives


def _of_support(
    found: Found, best: IntArray, settings: Settings, lives: FloatArray, n_cases: IntArray
) -> FittedCKME:
    """Fit of one support at each location, by its place in the settings."""
    at = np.arange(best.size), best
    codes = np.array([SUPPORTS.index(support) for support in settings.supports])
    ridge = found.ridge[at]
    missing = np.isnan(ridge)
    return FittedCKME(
        found.bandwidth * found.widening[at],
        ridge,
        found.strength[at],
        found.precision,
        codes[best].astype(np.int8),
        found.centre[at],
        np.where(missing, math.nan, found.low),
        np.where(missing, math.nan, found.high),
        np.where(missing, math.nan, lives),
        found.loss[at],
        n_cases,
        found.status.astype(np.int8),
        found.landmark[at],
    )


def _check(settings: Settings, blocks: int) -> None:
    check_kernel(settings.kernel)
    check_choice("loss", settings.loss, LOSSES)
    check_choice("projection", settings.projection, PROJECTIONS)
    check_choice("solver", settings.solver, SOLVERS)
    for support in settings.supports:
        check_choice("supports", support, SUPPORTS)
    if settings.shapes and "observations" in settings.supports:
        raise ValueError("shapes of forecasts say nothing of past observations; leave them out")
    if blocks < 0 or blocks == 1 or settings.gap < 0:
        raise ValueError(
            "blocks must be 2 or more (0: each group is a fold) and gap 0 or more, "
            f"got {blocks=}, gap={settings.gap}"
        )
    for name in ("bandwidth", "ridge"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive, or None to choose it, got {value}")
    if settings.ridge is not None and settings.ridge < SMALLEST_RIDGE:
        raise ValueError(f"ridge must be at least {SMALLEST_RIDGE:g}, got {settings.ridge}")
