"""Ensembles of vectors to a matrix of squared energy distances."""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray

from ._vectors_numba import cross_vector_distances, self_vector_distances
from .circular import on_circle
from .distance import ROUNDING


def vector_energy_distance(
    x: FloatArray,
    y: FloatArray | None = None,
    *,
    x_weights: FloatArray | None = None,
    y_weights: FloatArray | None = None,
) -> FloatArray:
    r"""Squared energy distance between ensembles whose members are vectors.

    Parameters
    ----------
    x : array of float, shape (n, d, m)
        ``n`` ensembles of ``m`` members with ``d`` components, all in one unit, u, or scaled to
        comparable size before. A member with a NaN component is left out, so ensembles of
        different sizes are padded with NaN.
    y : array of float, shape (q, d, p), optional
        Ensembles to compare with. Without it, ``x`` against itself: the result is exactly
        symmetric, with zeros on the diagonal.
    x_weights, y_weights : array of float, shapes (n, m) and (q, p), optional
        Weights >= 0 of the members, normalised over each row; a member with a NaN weight is left
        out. Equal ones if not given.

    Returns
    -------
    array of float64, shape (n, q)
        :math:`D^2 = 2 E\|X-Y\| - E\|X-X'\| - E\|Y-Y'\| \ge 0` with Euclidean norms, in u (not u
        squared). NaN for a row without members.

    Raises
    ------
    ValueError
        If an input is not three-dimensional, numbers of components differ, weights do not fit
        their members, or a member or weight is infinite or a weight negative.

    Notes
    -----
    The self terms are V-statistics, as in :func:`squared_energy_distance`, which is the same for
    d = 1 and faster. O(n q m p d) time, about a nanosecond a pair of members for the root, half of
    that for ``x`` against itself; O(n m d + q p d + n q) memory. Absolute accuracy about 1e-13 of
    the largest deviation from the common mean, plus 1e-15 of that mean; smaller distances are
    returned as 0.

    References
    ----------
    .. [1] Székely & Rizzo (2013), Energy statistics: a class of statistics based on distances.
       https://doi.org/10.1016/j.jspi.2013.03.018

    Examples
    --------
    >>> vector_energy_distance(np.array([[[0.0], [0.0]], [[3.0], [4.0]]]))
    array([[ 0., 10.],
           [10.,  0.]])
    """
    x, x_weights = _checked("x", x, x_weights)
    if y is None:
        if y_weights is not None:
            raise ValueError("y_weights is given without y; pass x_weights for the weights of x")
        return self_vector_distances(x, x_weights)  # type: ignore[no-any-return]
    y, y_weights = _checked("y", y, y_weights)
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"x has {x.shape[1]} components and y has {y.shape[1]}; both need the same ones"
        )
    return cross_vector_distances(x, x_weights, y, y_weights)  # type: ignore[no-any-return]


def _checked(
    name: str, values: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim != 3:
        raise ValueError(
            f"{name} needs shape (ensemble, component, member), got {values.shape}; "
            f"a single ensemble is {name}[np.newaxis]"
        )
    if np.isinf(values).any():
        raise ValueError(f"{name} holds infinite members; set them to NaN to leave them out")
    expected = values.shape[0], values.shape[2]
    if weights is None:
        return values, np.ones(expected)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != expected:
        raise ValueError(
            f"{name}_weights has shape {weights.shape}, but {name} has {values.shape}; "
            f"every member needs its weight: {expected}"
        )
    if np.isinf(weights).any() or (weights < 0).any():
        raise ValueError(f"{name}_weights must be finite and >= 0, or NaN to leave a member out")
    return values, weights


def spread_of_observations(observations: FloatArray, period: float | None = None) -> FloatArray:
    """Scale of a component, for dividing it by before it is compared with others.

    Parameters
    ----------
    observations : array of float, shape (..., n)
        Of one component; those that are not finite are left out.
    period : float, optional
        Period of a circular component, in its unit: a full turn.

    Returns
    -------
    array of float64, shape (...)
        Standard deviation without correction for sample size, > 0, in the unit of the component.
        Of a circular one the root mean square distance of its points (:func:`on_circle`) from
        their mean point. 1.0 where that is 0 up to rounding, or no observation is finite.

    Raises
    ------
    ValueError
        If the period is not a positive number.

    Examples
    --------
    >>> float(spread_of_observations(np.array([1.0, 3.0, np.nan])))
    1.0
    """
    values = np.asarray(observations, dtype=np.float64)
    points = values[np.newaxis] if period is None else on_circle(values, period)
    known = np.isfinite(points)
    points = np.where(known, points, 0.0)
    count = np.maximum(known[0].sum(-1), 1)
    apart = np.where(known, points - (points.sum(-1) / count)[..., np.newaxis], 0.0)
    spread = np.sqrt((apart**2).sum(axis=(0, -1)) / count)
    rounding = ROUNDING * np.abs(points).max(axis=(0, -1), initial=0.0)
    return np.where(spread > rounding, spread, 1.0)
