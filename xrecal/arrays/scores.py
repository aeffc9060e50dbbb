"""Forecasts and observations to scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from xrecal.typing import FloatArray

from .weighted import by_support


def crps(
    observations: FloatArray, members: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    r"""Continuous ranked probability score of the empirical distribution.

    Parameters
    ----------
    observations : array of float, shape (...) or (..., T)
        What verified, in the unit u of the members.
    members : array of float, shape (..., n)
        Members; NaN ones are left out.
    weights : array of float, shape (..., n) or (..., T, n), optional
        Weights >= 0, normalised here; equal if not given. With one axis more than ``members``,
        T forecasts share the members, which are then sorted once: O(n) a forecast.

    Returns
    -------
    array of float64, shape of ``observations``
        :math:`\sum_i w_i |x_i - y| - \frac{1}{2} \sum_{ij} w_i w_j |x_i - x_j| \ge 0` in u: the
        score of the distribution itself, not the "fair" estimate for an infinite ensemble. NaN
        where the observation is NaN, no member is left, or a weight is NaN.

    Raises
    ------
    ValueError
        If a weight is negative or shapes do not fit.

    Notes
    -----
    Own members go through properscoring, whose silent results for negative weights, missing
    observations and empty ensembles are caught here.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437
    """
    observations, members = np.asarray(observations), np.asarray(members)
    if weights is not None and (np.asarray(weights) < 0).any():
        raise ValueError("weights must not be negative")
    if weights is not None and np.ndim(weights) == members.ndim + 1:
        support, mass, shape = by_support(members, weights)
        _check_shape(observations, shape)
        scores = np.empty(mass.shape[:2])
        verified = np.ascontiguousarray(observations).reshape(scores.shape)
        _fill_crps(verified, support, mass, scores)
        return scores.reshape(shape)
    _check_shape(observations, members.shape[:-1])
    return _own_members(observations, members, weights)


def _check_shape(observations: FloatArray, shape: tuple[int, ...]) -> None:
    if observations.shape != shape:
        raise ValueError(
            f"observations have shape {observations.shape}, but the forecasts need {shape}"
        )


def _own_members(
    observations: FloatArray, members: FloatArray, weights: FloatArray | None
) -> FloatArray:
    import properscoring

    y, x = observations.astype(np.float64), members.astype(np.float64)
    missing = np.isnan(x)
    mass = np.ones_like(x) if weights is None else np.broadcast_to(weights, x.shape)
    mass = np.where(missing, 0.0, mass)
    undefined = np.isnan(y) | ~(mass.sum(-1) > 0)
    y = np.where(undefined, 0.0, y)
    x = np.where(undefined[..., np.newaxis], 0.0, x)
    if weights is None:
        score = properscoring.crps_ensemble(y, x)
    else:
        mass = np.where(undefined[..., np.newaxis], 1.0, mass)
        score = properscoring.crps_ensemble(y, np.where(mass > 0, x, 0.0), weights=mass)
    return np.where(undefined, np.nan, score)


@njit(nogil=True)
def _fill_crps(observations: Any, support: Any, mass: Any, out: Any) -> None:
    """``int (F - 1{z >= y})^2 dz`` for observations (L, T), supports (L, n), weights (L, T, n)."""
    n = support.shape[1]
    values = np.empty(n)
    for cell in range(support.shape[0]):
        for i in range(n):
            values[i] = support[cell, i]
        order = np.argsort(values)
        for t in range(mass.shape[1]):
            y, total = float(observations[cell, t]), 0.0
            for i in range(n):
                if not np.isnan(values[i]):
                    total += mass[cell, t, i]
            if np.isnan(y) or not total > 0:
                out[cell, t] = np.nan
                continue
            score, below, last = 0.0, 0.0, np.nan
            for i in order:
                z, weight = values[i], mass[cell, t, i] / total
                if np.isnan(z) or weight == 0:
                    continue
                if np.isnan(last):
                    score += max(z - y, 0.0)
                elif y <= last:
                    score += (z - last) * (below - 1.0) ** 2
                elif y >= z:
                    score += (z - last) * below**2
                else:
                    score += (y - last) * below**2 + (z - y) * (below - 1.0) ** 2
                below += weight
                last = z
            out[cell, t] = score + max(y - last, 0.0)
