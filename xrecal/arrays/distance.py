"""Ensembles to a matrix of squared energy distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.typing import FloatArray

from ._compiled import inner, kernel

# Ensembles compared at once. The inner loop over them is what the compiler turns into vector
# instructions; 32 was fastest among 8, 16, 32 and 64 with AVX2 and with AVX-512.
LANES = 32

# Differences of rounding size count as none: relative to the largest centred member.
ROUNDING = 1e-13
EPSILON = 2.220446049250313e-16  # members themselves are rounded, relative to their offset


def squared_energy_distance(
    x: FloatArray,
    y: FloatArray | None = None,
    *,
    x_weights: FloatArray | None = None,
    y_weights: FloatArray | None = None,
) -> FloatArray:
    r"""Squared energy distance from every ensemble of ``x`` to every ensemble of ``y``.

    Parameters
    ----------
    x : array of float, shape (n, m)
        ``n`` ensembles of ``m`` members in one unit, u. NaN members are left out, so ensembles
        of different sizes are rows padded with NaN.
    y : array of float, shape (q, p), optional
        Ensembles to compare with, in the same unit. Without it, ``x`` against itself: the result
        is exactly symmetric, with zeros on the diagonal.
    x_weights, y_weights : array of float, shapes (n, m) and (q, p), optional
        Non-negative weights of the members, normalised over each row. Equal ones if not given.

    Returns
    -------
    array of float64, shape (n, q)
        :math:`D^2 = 2 E|X-Y| - E|X-X'| - E|Y-Y'| = 2 \int (F-G)^2 \ge 0` in u (not u squared);
        :func:`scipy.stats.energy_distance` returns its root. NaN for a row without members.

    Raises
    ------
    ValueError
        If an input is not two-dimensional, weights have another shape than their members, or a
        member or weight is infinite or a weight negative.

    Notes
    -----
    The self terms are V-statistics (zero differences included), without which the kernels built
    on the distance would not be positive semi-definite. All members are sorted once; each block
    of ensembles then scans them, as ``E|X-z|`` is piecewise linear in z: O(n q p) time with a
    small constant and O(q p + n q) memory. Absolute accuracy about 1e-13 of the largest
    deviation from the common mean, plus 1e-15 of that mean; smaller distances are returned as 0.

    References
    ----------
    .. [1] Székely & Rizzo (2013), Energy statistics: a class of statistics based on distances.
       https://doi.org/10.1016/j.jspi.2013.03.018

    Examples
    --------
    >>> squared_energy_distance(np.array([[0.0, 1.0], [2.0, 3.0]]))
    array([[0., 3.],
           [3., 0.]])
    """
    x, x_weights = _checked("x", x, x_weights)
    if y is None:
        if y_weights is not None:
            raise ValueError("y_weights is given without y; pass x_weights for the weights of x")
        return self_distances(x, x_weights)  # type: ignore[no-any-return]
    y, y_weights = _checked("y", y, y_weights)
    return cross_distances(x, x_weights, y, y_weights)  # type: ignore[no-any-return]


def _checked(
    name: str, values: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"{name} needs shape (ensemble, member), got {values.shape}; "
            f"a single ensemble is {name}[np.newaxis, :]"
        )
    if np.isinf(values).any():
        raise ValueError(f"{name} holds infinite members; set them to NaN to leave them out")
    if weights is None:
        return values, np.ones_like(values)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != values.shape:
        raise ValueError(
            f"{name}_weights has shape {weights.shape}, but {name} has {values.shape}; "
            "every member needs its weight"
        )
    if not (np.isfinite(weights) | np.isnan(values)).all() or (weights < 0).any():
        raise ValueError(f"{name}_weights must be finite and >= 0")
    return values, weights


@kernel
def self_distances(x: Any, weights: Any) -> Any:
    """Squared distances among the rows of float64 ``x``, shapes (n, m) -> (n, n); compiled."""
    n = x.shape[0]
    centre, tolerance = rounding_of(x, weights)
    points, mass, spread = sorted_rows(x, weights, centre)
    squared = np.empty((n, n))
    fill_mean_distances(points, mass, in_order(points, mass), squared)
    for i in range(n):
        squared[i, i] = 0.0 * spread[i]  # NaN for a row without members
        for j in range(i):
            d = 2 * squared[i, j] - spread[i] - spread[j]
            squared[i, j] = squared[j, i] = 0.0 if d <= tolerance else d
    return squared


@kernel
def cross_distances(x: Any, x_weights: Any, y: Any, y_weights: Any) -> Any:
    """Squared distances from rows of float64 ``x`` to rows of ``y``, (n, m), (q, p) -> (n, q)."""
    centre, tolerance = _location_and_rounding(x, x_weights, y, y_weights)
    x_points, x_mass, x_spread = sorted_rows(x, x_weights, centre)
    y_points, y_mass, y_spread = sorted_rows(y, y_weights, centre)
    squared = np.empty((x.shape[0], y.shape[0]))
    fill_mean_distances(x_points, x_mass, in_order(y_points, y_mass), squared)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            d = 2 * squared[i, j] - x_spread[i] - y_spread[j]
            squared[i, j] = 0.0 if d <= tolerance else d
    return squared


@inner
def _location_and_rounding(x: Any, x_weights: Any, y: Any, y_weights: Any) -> Any:
    """A common centre, which keeps offsets such as 273.15 out of the sums, and their rounding."""
    x_total, x_count, x_low, x_high = _total_and_range(x, x_weights)
    y_total, y_count, y_low, y_high = _total_and_range(y, y_weights)
    centre = (x_total + y_total) / max(x_count + y_count, 1)
    widest = max(max(x_high, y_high) - centre, centre - min(x_low, y_low), 0.0)
    return centre, ROUNDING * widest + 4 * EPSILON * abs(centre)


@inner
def rounding_of(x: Any, weights: Any) -> Any:
    """Centre and rounding of ensembles compared with one another."""
    return _location_and_rounding(x, weights, x, weights)


@inner
def _total_and_range(values: Any, weights: Any) -> Any:
    """Sum, number, minimum and maximum of the members that count."""
    total, count, low, high = 0.0, 0, np.inf, -np.inf
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[i, j]
            if not np.isnan(value) and weights[i, j] > 0:
                total += value
                count += 1
                low, high = min(low, value), max(high, value)
    return total, count, low, high


@inner
def sorted_rows(values: Any, weights: Any, centre: float) -> Any:
    """Rows centred and sorted, weights summing to one, and ``E|X-X'|`` of each row.

    Missing members become points of weight zero; a row without members gets NaN as its spread.
    """
    n, m = values.shape
    points, mass, spread = np.empty((n, m)), np.empty((n, m)), np.empty(n)
    row, row_mass = np.empty(m), np.empty(m)
    for i in range(n):
        total = 0.0
        for j in range(m):
            missing = np.isnan(values[i, j]) or not weights[i, j] > 0
            points[i, j] = 0.0 if missing else values[i, j] - centre
            mass[i, j] = 0.0 if missing else weights[i, j]
            total += mass[i, j]
        order = np.argsort(points[i])
        for j in range(m):
            row[j], row_mass[j] = points[i, order[j]], mass[i, order[j]]
        below, moment, pairs = 0.0, 0.0, 0.0
        for j in range(m):
            points[i, j], mass[i, j] = row[j], row_mass[j] / max(total, 1e-300)
            pairs += mass[i, j] * (points[i, j] * below - moment)
            below += mass[i, j]
            moment += mass[i, j] * points[i, j]
        spread[i] = 2 * pairs if total > 0 else np.nan
    return points, mass, spread


@inner
def in_order(points: Any, mass: Any) -> Any:
    """Points (n, m) of all ensembles in ascending order, their mass and the ensemble of each."""
    n, m = points.shape
    owner = np.argsort(points.ravel())
    z, z_mass = np.empty(n * m), np.empty(n * m)
    for s in range(n * m):
        i = owner[s] // m
        z[s], z_mass[s] = points[i, owner[s] - i * m], mass[i, owner[s] - i * m]
        owner[s] = i
    return z, z_mass, owner


@inner
def fill_mean_distances(x: Any, x_mass: Any, ordered: Any, mean: Any) -> None:
    """``E|X-Y|`` for rows of sorted points (n, m) and q ensembles in order, into ``mean`` (n, q).

    ``E|X-z| = slope z + level`` between two neighbouring members of X. A block of ensembles X
    walks once through all points z of all Y in order, and adds its value at z to the owner of z.
    """
    z, z_mass, owner = ordered
    n, m = x.shape
    q = mean.shape[1]
    knots = np.empty(LANES * m)
    sums = np.empty((q, LANES))
    slope, level = np.empty(LANES), np.empty(LANES)
    for first in range(0, n, LANES):
        lanes = min(LANES, n - first)
        for lane in range(LANES):
            slope[lane] = level[lane] = 0.0
            for j in range(q):
                sums[j, lane] = 0.0
        for lane in range(lanes):
            slope[lane] = -1.0
            for j in range(m):
                knots[lane * m + j] = x[first + lane, j]
                level[lane] += x_mass[first + lane, j] * x[first + lane, j]
        by_size = np.argsort(knots[: lanes * m])
        s = 0
        for k in range(lanes * m + 1):
            stop = knots[by_size[k]] if k < lanes * m else np.inf
            while s < z.size and z[s] <= stop:
                weight, moment, row = z_mass[s], z_mass[s] * z[s], sums[owner[s]]
                for lane in range(LANES):
                    row[lane] += weight * level[lane] + moment * slope[lane]
                s += 1
            if k < lanes * m:
                lane = by_size[k] // m
                turn = 2 * x_mass[first + lane, by_size[k] - lane * m]
                slope[lane] += turn
                level[lane] -= turn * stop
        for j in range(q):
            for lane in range(lanes):
                mean[first + lane, j] = sums[j, lane]
