"""Experts that learn every day from the last verified cases of one location."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from xrecal.arrays.baselines.emos import fit_emos, predict_emos
from xrecal.arrays.distributions.forms import Censored
from xrecal.typing import FloatArray

FEWEST = 20
"""Least number of verified cases for which an expert issues forecasts."""

Moments: TypeAlias = tuple[FloatArray, FloatArray]
"""Means of forecasts, in the unit of the variable, and their variances, in the square of this
unit."""


def rolling_emos(
    past: Moments,
    observations: FloatArray,
    new: Moments,
    window: int,
    levels: FloatArray,
    bounds: tuple[float, float],
) -> FloatArray:
    """Fit EMOS to the last verified cases, and compute quantiles of new forecasts.

    Parameters
    ----------
    past : two arrays of float, shape (n,)
        Ensemble means and variances of past cases, in order of time; NaN without a forecast.
    observations : array of float, shape (n,)
        Observations of the past cases; NaN if missing.
    new : two arrays of float, shape (T,)
        Ensemble means and variances of the forecasts to issue.
    window : int
        Number of the last verified cases from which the fit learns. If fewer cases are verified,
        the fit uses all of them, but it needs at least 20.
    levels : array of float, shape (J,)
        Levels of the quantiles, in (0, 1).
    bounds : (float, float)
        Lower and upper bound of the variable, infinite without a bound.

    Returns
    -------
    array of float64, shape (T, J)
        Quantiles; NaN if a forecast is missing, or with fewer than 20 verified cases.
    """
    used = np.flatnonzero(np.isfinite(observations) & np.isfinite(past[0]) & np.isfinite(past[1]))
    used = used[-window:]
    if used.size < FEWEST:
        return np.full((new[0].size, levels.size), np.nan)
    learned = (part[np.newaxis, used] for part in (*past, observations))
    lower, upper = bounds
    coefficients, _, _ = fit_emos(*learned, lower=lower, upper=upper, min_samples=FEWEST)
    there = np.isfinite(new[0] + new[1])
    normal = predict_emos(
        coefficients, *(np.where(there, part, np.nan)[np.newaxis] for part in new)
    )
    loc, scale = (part[..., np.newaxis] for part in normal)
    edges = np.reshape(bounds, (2, 1, 1, 1))
    return np.asarray(Censored(loc, scale, *edges).quantile(levels)[0])


def rolling_errors(
    past: FloatArray,
    observations: FloatArray,
    new: FloatArray,
    window: int,
    levels: FloatArray,
    bounds: tuple[float, float],
) -> FloatArray:
    """Add the last verified errors of the ensemble mean to the mean of each new forecast.

    Parameters
    ----------
    past, new : array of float, shape (n,) and (T,)
        Ensemble means of past cases, in order of time, and of the forecasts to issue.
    observations, window, levels, bounds
        As in :func:`rolling_emos`.

    Returns
    -------
    array of float64, shape (T, J)
        Quantiles of the mean plus the last m errors. The error with rank i has the level
        (i - ½) / m; the function interpolates linearly between levels. Values beyond a bound move
        to the bound. Quantiles are NaN if a forecast is missing, or with fewer than 20 verified
        cases.
    """
    errors = observations - past
    used = np.flatnonzero(np.isfinite(errors))[-window:]
    if used.size < FEWEST:
        return np.full((new.size, levels.size), np.nan)
    around = np.quantile(errors[used], levels, method="hazen")
    clipped: FloatArray = np.clip(new[:, np.newaxis] + around, *bounds)
    return clipped
