"""Climatology: forecasts from past observations, of all dates or of one season only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.weighted import weighted_quantile
from xrecal.arrays.kernels.kernel import Features, joint_weights
from xrecal.typing import FloatArray

DAYS_PER_YEAR = 365.0

ROUNDING = 1e-6
"""A date that lies outside a window by at most this number of days counts as inside, because
fractions of a year are rounded."""


def climatology_weights(
    observations: FloatArray,
    n_new: int,
    *,
    features: Features | None = None,
    new_features: Features | None = None,
) -> FloatArray:
    """Compute weights of past observations for climatology, which ignores the forecast ensemble.

    Parameters
    ----------
    observations : array of float, shape (L, n)
        Past observations of n cases at L locations, NaN where unknown.
    n_new : int
        Number T of forecasts.
    features, new_features : Features, optional
        K covariates: v of cases (L, n, K) and v' of forecasts (L, T, K). Weights are proportional
        to the kernel ``exp(-sum p_k (v_k - v'_k)²)``. The function ``joint_weights`` computes the
        factors p_k from the covariates of the past cases. Without covariates, all known
        observations have the same weight.

    Returns
    -------
    array of float64, shape (L, T, n)
        Weights that sum to one; NaN if no observation is known, or if a covariate of the forecast
        is missing.

    Examples
    --------
    >>> climatology_weights(np.array([[1.0, np.nan, 3.0]]), 2)
    array([[[0.5, 0. , 0.5],
            [0.5, 0. , 0.5]]])
    """
    known = np.isfinite(observations)
    weights = np.array(np.broadcast_to(known[:, np.newaxis], (len(known), n_new, known.shape[1])),
                       dtype=np.float64, order="C")  # fmt: skip
    if features is not None and new_features is not None:
        for cell in range(len(known)):
            used = known[cell]
            if not used.any():
                continue
            precision = joint_weights(features.values[cell, used], features.circular)
            apart = new_features.values[cell, :, np.newaxis] - features.values[cell, used]
            exponent = (precision * apart**2).sum(-1)
            nearest = exponent.min(-1, keepdims=True)  # not all weights may become zero
            weights[cell][:, used] = np.exp(nearest - exponent)
    return _normalised(weights)


def in_window(
    weights: FloatArray, season: FloatArray, new_season: FloatArray, window: float
) -> FloatArray:
    """Set weights to zero for cases outside a window of the year around the date of the forecast.

    Parameters
    ----------
    weights : array of float, shape (L, T, n)
        Weights of n cases for T forecasts, before cases outside the window get the weight 0.
    season, new_season : array of float, shapes (L, n) and (L, T)
        Dates of cases and forecasts as fractions of a year of 365 days, in [0, 1).
    window : float
        Width of the window in days.

    Returns
    -------
    array of float64, shape (L, T, n)
        Weights that sum to one; NaN if no case lies in the window.

    Examples
    --------
    >>> season, new_season = np.array([[0.0, 0.5, 0.99]]), np.array([[0.0]])
    >>> in_window(np.full((1, 1, 3), 1 / 3), season, new_season, 30.0)
    array([[[0.5, 0. , 0.5]]])
    """
    near = _within(season[:, np.newaxis, :], new_season[:, :, np.newaxis], window)
    return _normalised(np.where(near, weights, 0.0))


def climatology_quantiles(
    observations: FloatArray,
    q: FloatArray,
    *,
    season: FloatArray | None = None,
    new_season: FloatArray | None = None,
    window: float | None = None,
) -> FloatArray:
    """Compute quantiles of all past observations, or of the observations of the same season.

    All observations have the same weight.

    Parameters
    ----------
    observations : array of float, shape (..., n)
        Past observations, NaN where unknown.
    q : array of float, shape (k,)
        Levels of the quantiles, in [0, 1].
    season, new_season : array of float, shapes (n,) and (T,), optional
        Dates of observations and forecasts as fractions of a year of 365 days, in [0, 1).
    window : float, optional
        Width in days of a window of the year around the date of each forecast. With a window,
        the function uses only observations from this part of the year, in any year.

    Returns
    -------
    array of float64, shape (..., k), or (..., T, k) with a window
        The quantile at level q is the smallest observation z such that at least a share q of the
        observations are at or below z; see :func:`weighted_quantile`. Quantiles have the unit of
        the observations, and are NaN if no observation is known.

    Notes
    -----
    The cost is O(n log n). With a window, it is O(n log n) for each of T dates.

    Examples
    --------
    >>> climatology_quantiles(np.array([4.0, 1.0, 3.0, 2.0]), np.array([0.25, 0.5, 1.0]))
    array([1., 2., 4.])
    """
    if window is None or season is None or new_season is None:
        return weighted_quantile(observations, q)
    quantiles = np.full((*observations.shape[:-1], new_season.size, np.size(q)), np.nan)
    for t, date in enumerate(new_season):
        near = _within(season, date, window)
        if near.any():
            quantiles[..., t, :] = weighted_quantile(observations[..., near], q)
    return quantiles


def _within(
    season: FloatArray, new_season: FloatArray | np.floating[Any], window: float
) -> npt.NDArray[np.bool_]:
    """Mark pairs of dates that are at most half a window apart, on the circle of the year."""
    apart = np.abs(new_season - season)
    return np.asarray(DAYS_PER_YEAR * np.minimum(apart, 1.0 - apart) <= window / 2 + ROUNDING)


def _normalised(weights: FloatArray) -> FloatArray:
    total = weights.sum(-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), np.nan)
