"""Forecasts of any form to the matrix of their squared energy distances, location by location."""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray

from ._normal_numba import fill_normal_distances
from .distance import self_distances
from .forms import VALID, Forecasts, verdicts


def pairwise_distances(forecasts: Forecasts) -> FloatArray:
    """Squared energy distances among the forecasts of each location.

    Parameters
    ----------
    forecasts : Forecasts
        Arrays (L, n, m).

    Returns
    -------
    array of float64, shape (L, n, n)
        In the unit of the forecasts; NaN in row and column of a forecast that is missing or
        invalid. See :func:`xrecal.arrays.squared_energy_distance` for ensembles,
        :func:`xrecal.arrays.normal_squared_energy_distance` for normal distributions.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    O(n² m) a location, O(n² m²) for mixtures, and 8 n² bytes. Worth keeping where many fits take
    their cases from the same forecasts.

    Examples
    --------
    >>> pairwise_distances(Forecasts(np.array([[[0.0, 1.0], [2.0, 3.0]]])))
    array([[[0., 3.],
            [3., 0.]]])
    """
    n_locations, n = forecasts.check("forecasts", 3)[:2]
    missing = (verdicts(forecasts) != VALID)[..., np.newaxis]
    loc = np.where(missing, np.nan, forecasts.loc).astype(np.float64)
    weights = _contiguous(np.ones(loc.shape) if forecasts.weights is None else forecasts.weights)
    squared = np.empty((n_locations, n, n))
    if forecasts.scale is None:
        for i in range(n_locations):
            squared[i] = self_distances(loc[i], weights[i])
        return squared
    scale = _contiguous(forecasts.scale)
    for i in range(n_locations):
        one = loc[i], scale[i], weights[i]
        fill_normal_distances(*one, *one, squared[i])
    return squared


def shared_distances(members: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Squared energy distances among forecasts of one location that share their members.

    Parameters
    ----------
    members : array of float64, shape (m,)
        Finite, in a unit u.
    weights : array of float64, shape (n, m)
        Of each forecast, not negative, with sum one.

    Returns
    -------
    array of float64, shape (n, n)
        :math:`2 \int (F - G)^2` in u, symmetric with a zero diagonal; 0 below 1e-13 of the
        largest squared deviation from the mean distribution.

    Notes
    -----
    Distances in Euclidean space of the CDF values, each times the root of the gap behind it: one
    product of (n, m) matrices, where those of separate members take O(n² m) small steps.
    """
    order = np.argsort(members)
    cdf = np.cumsum(weights[:, order], axis=-1)[:, :-1]
    root = (cdf - cdf.mean(axis=0)) * np.sqrt(2 * np.diff(members[order]))
    product = root @ root.T
    norm = np.diag(product)
    squared = norm[:, np.newaxis] + norm - 2 * product
    squared[squared <= 1e-13 * norm.max(initial=0.0)] = 0.0
    np.fill_diagonal(squared, 0.0)
    return np.asarray(np.maximum(squared, squared.T))


def _contiguous(part: FloatArray) -> FloatArray:
    return np.ascontiguousarray(part, dtype=np.float64)
