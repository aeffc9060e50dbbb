"""Experts of the last verified cases: what a centre fits anew every day.

Each looks back from every case at the cases that had verified when it was issued, and no further
than a window of them. Cases are in order of time, and ``known`` tells how many of them, from the
first on, had verified.
"""

from __future__ import annotations

import numpy as np

from xrecal.arrays.baselines.emos import fit_emos, predict_emos
from xrecal.arrays.distributions.forms import Censored
from xrecal.typing import FloatArray, IntArray

FEWEST = 20
"""Verified cases with which an expert begins."""


def rolling_emos(
    moments: tuple[FloatArray, FloatArray],
    observations: FloatArray,
    known: IntArray,
    window: int,
    levels: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Quantiles of EMOS that is fitted to the last verified cases before each case.

    Parameters
    ----------
    moments : two arrays of float, shape (L, n)
        Means and variances of n forecasts at L locations, in the unit of the variable and its
        square; NaN where there is none.
    observations : array of float, shape (L, n)
        What verified; NaN where nothing did, which is then no case.
    known : array of int, shape (n,)
        How many cases, from the first on, had verified when each was issued.
    window : int
        Verified cases to learn from; all that there are from 20 on.
    levels : array of float, shape (J,)
        Of the quantiles, in (0, 1).
    bounds : two arrays of float, shape (L,)
        Lower and upper bound of the variable, infinite without.

    Returns
    -------
    array of float64, shape (L, n, J)
        NaN where a forecast is missing or fewer than 20 cases had verified.

    Notes
    -----
    A fit, O(window) a step, for each case and location: see :func:`xrecal.arrays.fit_emos`.
    """
    (means, variances), (lower, upper) = moments, bounds
    n_locations, n = means.shape
    verified = np.isfinite(observations) & np.isfinite(means) & np.isfinite(variances)
    loc, scale = np.full((2, n_locations, n, 1), np.nan)
    for i in range(n_locations):
        places = np.flatnonzero(verified[i])
        end = np.searchsorted(places, known)
        for t in range(n):
            used = places[max(end[t] - window, 0) : end[t]]
            if used.size < FEWEST or not np.isfinite(means[i, t] + variances[i, t]):
                continue
            coefficients, _, _ = fit_emos(
                means[i : i + 1, used],
                variances[i : i + 1, used],
                observations[i : i + 1, used],
                lower=lower[i],
                upper=upper[i],
                min_samples=FEWEST,
            )
            normal = predict_emos(coefficients, means[i : i + 1, [t]], variances[i : i + 1, [t]])
            loc[i, t], scale[i, t] = normal[0][0], normal[1][0]
    edges = (bound[:, np.newaxis, np.newaxis] for bound in bounds)
    return Censored(loc, scale, *edges).quantile(levels)


def rolling_errors(
    means: FloatArray,
    observations: FloatArray,
    known: IntArray,
    window: int,
    levels: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Quantiles of the last verified errors of the ensemble mean, around that of each case.

    Parameters
    ----------
    means : array of float, shape (L, n)
        Of the forecasts, in the unit of the variable; NaN where there is none.
    observations, known, window, levels, bounds
        As in :func:`rolling_emos`.

    Returns
    -------
    array of float64, shape (L, n, J)
        The error of rank i of m lies at level (i - ½) / m, straight lines between; beyond a bound
        is at the bound. NaN where a forecast is missing or fewer than 20 cases had verified.
    """
    n_locations, n = means.shape
    errors = observations - means
    out = np.full((n_locations, n, levels.size), np.nan)
    for i in range(n_locations):
        places = np.flatnonzero(np.isfinite(errors[i]))
        end = np.searchsorted(places, known)
        for t in range(n):
            used = places[max(end[t] - window, 0) : end[t]]
            if used.size >= FEWEST:
                out[i, t] = means[i, t] + np.quantile(errors[i, used], levels, method="hazen")
    lower, upper = (bound[:, np.newaxis, np.newaxis] for bound in bounds)
    clipped: FloatArray = np.clip(out, lower, upper)
    return clipped
