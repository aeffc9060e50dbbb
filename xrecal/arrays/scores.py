"""Forecasts and observations to scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.typing import FloatArray

from ._compiled import kernel
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
        where the observation is NaN, no member is left, a weight is NaN, or an infinite member
        has positive weight.

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
    undefined = np.isnan(y) | ~(mass.sum(-1) > 0) | (np.isinf(x) & (mass > 0)).any(-1)
    y = np.where(undefined, 0.0, y)
    x = np.where(undefined[..., np.newaxis], 0.0, x)
    if weights is None:
        score = properscoring.crps_ensemble(y, x)
    else:
        mass = np.where(undefined[..., np.newaxis], 1.0, mass)
        score = properscoring.crps_ensemble(y, np.where(mass > 0, x, 0.0), weights=mass)
    return np.where(undefined, np.nan, score)


@kernel
def _fill_crps(observations: Any, support: Any, mass: Any, out: Any) -> None:
    """``int (F - 1{z >= y})^2 dz`` for observations (L, T), supports (L, n), weights (L, T, n).

    Below the observation the integrand is the squared mass below z, above it that above z: two
    walks towards the observation, without a branch or a division for each member.
    """
    n = support.shape[1]
    z = np.empty(n)
    for cell in range(support.shape[0]):
        for i in range(n):
            z[i] = support[cell, i]
        order = np.argsort(z)
        first, last = 0, n  # finite members; NaN and infinity sort to the ends
        for i in range(n):
            z[i] = support[cell, order[i]]
        while last > 0 and not z[last - 1] < np.inf:
            last -= 1
        while first < last and z[first] == -np.inf:
            first += 1
        for t in range(mass.shape[1]):
            y, row = observations[cell, t], mass[cell, t]
            score, below, above, i = 0.0, 0.0, 0.0, first
            while i < last and z[i] < y:
                if i > first:
                    score += (z[i] - z[i - 1]) * below * below
                below += row[order[i]]
                i += 1
            for j in range(last - 1, i - 1, -1):
                if j < last - 1:
                    score += (z[j + 1] - z[j]) * above * above
                above += row[order[j]]
            if i > first:
                score += (y - z[i - 1]) * below * below
            if i < last:
                score += (z[i] - y) * above * above
            total = below + above
            out[cell, t] = score / (total * total) if total > 0 else np.nan
            for j in range(n):
                infinite = (j < first or j >= last) and not np.isnan(z[j])
                if infinite and row[order[j]] > 0:
                    out[cell, t] = np.nan
