"""Scores of fields: forecasts whose members are joint values at several places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Matrix, OutVector, inner, kernel
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray


def energy_score(
    observations: FloatArray, members: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    r"""Compute the energy score: the CRPS with Euclidean distances between whole fields.

    Parameters
    ----------
    observations : array of float, shape (..., d)
        Observations at d places, in the unit of the members.
    members : array of float, shape (..., d, m)
        Members, along the last axis; the leading axes broadcast with the axes of the observations.
    weights : array of float, shape (..., m), optional
        Weights >= 0, equal by default; each member has one weight for all places. The function
        normalises the weights.

    Returns
    -------
    array of float64, shape (...)
        :math:`\sum_i w_i \|x_i - y\| - \frac12 \sum_{i,j} w_i w_j \|x_i - x_j\|` [1]_, >= 0, in the
        unit of the members. The score is NaN if there is no usable place or member, or if a weight
        is negative or NaN.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    A place is usable if its observation is known and at least one member has a value there. A
    member is usable if it has values at all usable places. If two forecasts are missing at
    different places, their scores are not comparable: first set both forecasts to NaN wherever one
    of them is missing. The cost is O(m² d) per case.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> members = np.array([[0.0, 2.0], [0.0, 2.0]])
    >>> float(energy_score(np.array([1.0, 1.0]), members).round(3))
    0.707
    """
    return _score(_fill_energy, observations, members, weights)


def variogram_score(
    observations: FloatArray,
    members: FloatArray,
    weights: FloatArray | None = None,
    *,
    order: float = 0.5,
) -> FloatArray:
    r"""Compute the variogram score of differences between places.

    Parameters
    ----------
    observations, members, weights
        As for :func:`energy_score`.
    order : float
        Power p > 0 of the absolute differences between places.

    Returns
    -------
    array of float64, shape (...)
        :math:`\sum_{i,j} (|y_i - y_j|^p - \sum_k w_k |x_{ki} - x_{kj}|^p)^2` over all pairs of
        places, each in both orders [1]_. It is >= 0, in the unit of the members to the power of 2p.
        The score is NaN where :func:`energy_score` is NaN.

    Raises
    ------
    ValueError
        If shapes do not fit, or the order is not positive.

    Notes
    -----
    The score is sensitive to the dependence between places, but not to common errors: the same bias
    at all places does not change the score. The cost is O(m d²) per case.

    References
    ----------
    .. [1] Scheuerer & Hamill (2015), Variogram-based proper scoring rules for probabilistic
       forecasts of multivariate quantities. https://doi.org/10.1175/MWR-D-14-00269.1

    Examples
    --------
    >>> members = np.array([[0.0, 2.0], [1.0, 3.0]])
    >>> float(variogram_score(np.array([1.0, 1.0]), members))
    2.0
    """
    if not 0 < order < math.inf:
        raise ValueError(f"order must be a positive number, got {order!r}")
    return _score(_fill_variogram, observations, members, weights, float(order))


def _score(
    fill: Any,
    observations: FloatArray,
    members: FloatArray,
    weights: FloatArray | None,
    *settings: float,
) -> FloatArray:
    """Compute scores (...) for some cases at a time; copies of all cases would fill memory."""
    y, x = np.asarray(observations), np.asarray(members)
    w = np.ones(1) if weights is None else np.asarray(weights)
    if y.ndim < 1 or x.ndim < 2 or y.shape[-1] != x.shape[-2]:
        swapped = x.ndim > 1 and y.shape[-1:] == x.shape[-1:]
        raise ValueError(
            f"observations (..., d) of shape {y.shape} do not fit members (..., d, m) of shape "
            f"{x.shape}{'; members come last: use np.swapaxes(members, -1, -2)' if swapped else ''}"
        )
    x = np.swapaxes(x, -1, -2)  # places come last, for the distances
    m, d = x.shape[-2:]
    if weights is not None and w.shape[-1:] != (m,):
        raise ValueError(f"weights of shape {w.shape} do not fit {m} members; they need (..., m)")
    lead = np.broadcast_shapes(y.shape[:-1], x.shape[:-2], w.shape[:-1])
    y = np.broadcast_to(y, (*lead, d)).reshape(-1, d)
    x = np.broadcast_to(x, (*lead, m, d)).reshape(-1, m, d)
    w = np.broadcast_to(w, (*lead, m)).reshape(-1, m)
    out = np.empty(len(y))
    for block in location_blocks(len(y), 8 * m * d):
        rows = (np.ascontiguousarray(part[block], dtype=np.float64) for part in (y, x, w))
        fill(*rows, *settings, out[block])
    return out.reshape(lead)


@inner
def _places(observed: Any, members: Any, used: Any) -> int:
    """Write the positions of usable places to ``used``; return their number."""
    n = 0
    for j in range(observed.size):
        given = False
        for i in range(members.shape[0]):
            given |= not np.isnan(members[i, j])
        if given and not np.isnan(observed[j]):
            used[n] = j
            n += 1
    return n


@inner
def _shares(members: Any, weights: Any, places: Any, share: Any) -> bool:
    """Write normalised weights, or 0 for unusable members; return True if a member is usable."""
    total = 0.0
    for i in range(weights.size):
        complete = True
        for j in places:
            complete &= not np.isnan(members[i, j])
        share[i] = weights[i] if complete else 0.0
        if weights[i] < 0 or np.isnan(weights[i]):
            return False
        total += share[i]
    for i in range(weights.size):
        share[i] /= total if total > 0 else 1.0
    return total > 0


@inner
def _distance(a: Any, b: Any, places: Any) -> Any:
    """Return the Euclidean distance between two fields at usable places."""
    total = 0.0
    for j in places:
        total += (a[j] - b[j]) ** 2
    return np.sqrt(total)


@kernel
def _fill_energy(observations: Matrix, members: Cube, weights: Matrix, out: OutVector) -> None:
    """Write energy scores of observations (N, d) and ensembles (N, m, d) into ``out`` (N,)."""
    m = members.shape[1]
    kept, share = np.empty(members.shape[2], np.int64), np.empty(m)
    for row in range(out.size):
        x = members[row]
        places = kept[: _places(observations[row], x, kept)]
        out[row] = np.nan
        if places.size == 0 or not _shares(x, weights[row], places, share):
            continue
        score = 0.0
        for i in range(m):
            if share[i] == 0:
                continue
            score += share[i] * _distance(x[i], observations[row], places)
            for k in range(i):
                if share[k] > 0:
                    score -= share[i] * share[k] * _distance(x[i], x[k], places)
        out[row] = max(score, 0.0)  # negative only by rounding


@inner
def _power(difference: float, order: float) -> Any:
    """Return a power of the absolute difference; the usual power ½ takes a fast branch."""
    size = abs(difference)
    return np.sqrt(size) if order == 0.5 else size**order


@kernel
def _fill_variogram(
    observations: Matrix, members: Cube, weights: Matrix, order: float, out: OutVector
) -> None:
    """Write variogram scores of observations (N, d) and ensembles (N, m, d) into ``out`` (N,)."""
    m, d = members.shape[1:]
    kept, share, ours = np.empty(d, np.int64), np.empty(m), np.empty((d, m))
    for row in range(out.size):
        x, y = members[row], observations[row]
        places = kept[: _places(y, x, kept)]
        out[row] = np.nan
        if places.size == 0 or not _shares(x, weights[row], places, share):
            continue
        used = 0
        for i in range(m):  # usable members lie side by side in memory
            if share[i] > 0:
                share[used] = share[i]
                for j in range(places.size):
                    ours[j, used] = x[i, places[j]]
                used += 1
        score = 0.0
        for j in range(places.size):
            for k in range(j):
                expected = 0.0
                for i in range(used):
                    expected += share[i] * _power(ours[j, i] - ours[k, i], order)
                score += (_power(y[places[j]] - y[places[k]], order) - expected) ** 2
        out[row] = 2 * score
