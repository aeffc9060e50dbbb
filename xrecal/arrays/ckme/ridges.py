"""Held-out loss of a CKME as a function of its ridge."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts
from xrecal.typing import FloatArray, IntArray

from .ckme import DEFAULT, fit_ckme, given_calibration, smallest_losses
from .embedding import Settings, lives_of
from .ridge_rules import GRID

RIDGES = 10.0**GRID
"""Ridges of the search, ascending."""


class RidgeLosses(NamedTuple):
    """Loss of each ridge that was tried at L locations, and the ridge that the fit chose."""

    loss: FloatArray
    """(L, R) mean held-out loss with each ridge, for the best kernel and support; NaN if there are
    too few cases"""
    ridge: FloatArray
    """(L,) ridge of the fit, refined between grid points"""
    n_cases: IntArray
    """(L,) number of cases used"""
    status: IntArray
    """(L,) status of the fit"""


def ridge_losses(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings = DEFAULT,
    *,
    half_life: float | str = math.inf,
    **known: Any,
) -> RidgeLosses:
    """Compute the mean held-out loss of a CKME with each ridge of the search.

    Parameters
    ----------
    cases, observations, settings, half_life
        As for :func:`fit_ckme`. The call tries all ridges even if the settings name one.
    **known
        ``features``, ``days``, ``groups``, ``blocks``, ``step`` and ``squared`` as for
        :func:`fit_ckme`.

    Returns
    -------
    RidgeLosses
        Losses with all ridges of the search, 10⁻⁶ to 1. A fit skips some of these ridges.

    Raises
    ------
    ValueError
        As for :func:`fit_ckme`.

    Notes
    -----
    The function runs one fit, and one search for each ridge. It takes several times as long as a
    fit, because a low-rank solver needs many landmarks for small ridges.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> found = ridge_losses(cases, truth)
    >>> found.ridge.shape, found.loss.shape
    ((1,), (1, 13))
    """
    fitted = fit_ckme(cases, observations, settings, half_life=half_life, **known)
    calibration = given_calibration(cases, observations, settings, **known)
    lives = lives_of(fitted.half_life)
    losses = [
        smallest_losses(calibration, settings._replace(ridge=ridge), lives)
        for ridge in RIDGES.tolist()
    ]
    best = np.array(losses).T
    best[~np.isfinite(best)] = math.nan
    return RidgeLosses(best, fitted.ridge, fitted.n_cases, fitted.status)
