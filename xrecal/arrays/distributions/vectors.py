"""Squared energy distances between ensembles whose members are vectors.

The functions compute the distances of all pairs of ensembles, or of requested pairs only.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from xrecal.arrays.compiled import Cube, Indices, Matrix, Vector, inner, kernel
from xrecal.typing import FloatArray, IntArray

from .circular import on_circle
from .distance import EPSILON, ROUNDING

# Number of members in the inner loop. For two or more components, 256 was faster than 512 to 2048,
# because so many members stay in the first-level cache.
BLOCK = 256


def vector_energy_distance(
    x: FloatArray,
    y: FloatArray | None = None,
    *,
    x_weights: FloatArray | None = None,
    y_weights: FloatArray | None = None,
) -> FloatArray:
    r"""Compute squared energy distances between ensembles whose members are vectors.

    Parameters
    ----------
    x : array of float, shape (n, d, m)
        ``n`` ensembles of ``m`` members with ``d`` components, all in one unit u, or scaled to
        comparable size. The function leaves out a member with a NaN component. So fill up an
        ensemble of fewer than ``m`` members with NaN.
    y : array of float, shape (q, d, p), optional
        Ensembles to compare with ``x``. By default, the function compares the ensembles in ``x``
        with each other. Then the result is exactly symmetric, with zeros on the diagonal.
    x_weights, y_weights : array of float, shapes (n, m) and (q, p), optional
        Weights >= 0 of the members, equal by default. The function divides the weights of each
        ensemble by their sum, and leaves out a member with a NaN weight.

    Returns
    -------
    array of float64, shape (n, q)
        :math:`D^2 = 2 E\|X-Y\| - E\|X-X'\| - E\|Y-Y'\| \ge 0` with Euclidean norms, in the unit u
        (not u squared). The distances of an ensemble without members are NaN.

    Raises
    ------
    ValueError
        If x or y does not have three axes, if the numbers of components differ, if the shape of
        weights does not match their members, if a member or weight is infinite, or if a weight is
        negative.

    Notes
    -----
    The means :math:`E\|X-X'\|` and :math:`E\|Y-Y'\|` include the zero distance of each member to
    itself. For d = 1, :func:`squared_energy_distance` gives the same result in less time. The time
    of this function is O(n q m p d); the root for each pair of members takes about one nanosecond.
    Without y, the function needs half of this time. The memory is O(n m d + q p d + n q). The
    absolute error is about 1e-13 of the largest deviation of a member from the mean of all members,
    plus 1e-15 of this mean. The function returns 0 for distances smaller than this error.

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
        return VectorDistances(x, x_weights).of_all()
    y, y_weights = _checked("y", y, y_weights)
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"x has {x.shape[1]} components and y has {y.shape[1]}; give both the same components"
        )
    return VectorDistances(x, x_weights, y, y_weights).of_all()


class VectorDistances:
    """Squared energy distances for requested pairs of ensembles.

    The first ensemble of a pair is from ``x`` (n, d, m), and the second is from ``y`` (q, d, p). If
    ``y`` is None, both are from ``x``.
    """

    def __init__(
        self,
        x: FloatArray,
        x_weights: FloatArray,
        y: FloatArray | None = None,
        y_weights: FloatArray | None = None,
    ) -> None:
        others = x if y is None else y
        centre = _mean_point(others, x_weights if y_weights is None else y_weights)
        self._rows = prepare_vectors(x, x_weights, centre)
        self._columns = self._rows if y is None else prepare_vectors(y, y_weights, centre)
        self._tolerance = rounding_of_vectors(
            self._rows[0], self._rows[2], self._columns[0], centre
        )
        self._shape = len(x), len(others)

    def __getitem__(self, chosen: tuple[IntArray, ...]) -> FloatArray:
        rows, columns = (np.ascontiguousarray(part.ravel()) for part in chosen)
        same = self._rows is self._columns and np.array_equal(rows, columns)
        known = self._rows, rows, self._columns, columns
        return np.asarray(prepared_distances(*known, self._tolerance, same))

    def of_all(self) -> FloatArray:
        """Compute the squared distances (n, q) of all pairs."""
        return self[tuple(map(np.arange, self._shape))]


def _mean_point(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean (d,) of the members (n, d, m) that are known and have a positive weight."""
    known = (np.isfinite(points).all(1) & (weights > 0))[:, np.newaxis]
    total = np.where(known, points, 0.0).sum((0, 2))
    return np.asarray(total / max(int(known.sum()), 1))


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
            f"give each member one weight, in shape {expected}"
        )
    if np.isinf(weights).any() or (weights < 0).any():
        raise ValueError(f"{name}_weights must be finite and >= 0, or NaN to leave a member out")
    return values, weights


def spread_of_observations(observations: FloatArray, period: float | None = None) -> FloatArray:
    """Return the spread of the observations of one component of a vector.

    Divide each component by its spread before you compute distances between vectors.

    Parameters
    ----------
    observations : array of float, shape (..., n)
        Observations of one component. The function leaves out values that are not finite.
    period : float, optional
        Length of a full turn, in the unit of the component, if the component is a direction.

    Returns
    -------
    array of float64, shape (...)
        Standard deviation of the observations, > 0, in the unit of the component. It has no
        correction for the number of observations. For directions, the result is the root mean
        square distance of their points (:func:`on_circle`) from the mean point. The function
        returns 1.0 if the result is 0 up to rounding, or if no observation is finite.

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


@inner
def _side_by_side(values: Any, weights: Any) -> Any:
    """Put all members with positive weight into the columns of one matrix.

    Return the matrix (d', N), the weights of the members (N,), and the first column of each
    ensemble (n + 1,). The weights of each ensemble sum to one. d' is d, but at least 2; if d is 1,
    the second component is zero.
    """
    n, d, m = values.shape
    points, mass = np.zeros((max(d, 2), n * m)), np.empty(n * m)
    start = np.zeros(n + 1, np.int64)
    for i in range(n):
        used, total = start[i], 0.0
        for k in range(m):
            complete = weights[i, k] > 0
            for c in range(d):
                complete &= not np.isnan(values[i, c, k])
            if complete:
                for c in range(d):
                    points[c, used] = values[i, c, k]
                mass[used] = weights[i, k]
                total += weights[i, k]
                used += 1
        for s in range(start[i], used):
            mass[s] /= total
        start[i + 1] = used
    return np.ascontiguousarray(points[:, : start[n]]), mass[: start[n]], start


@inner
def _largest_norm(points: Any) -> Any:
    widest = 0.0
    for s in range(points.shape[1]):
        squared = 0.0
        for c in range(points.shape[0]):
            squared += points[c, s] ** 2
        widest = max(widest, squared)
    return np.sqrt(widest)


@inner
def _mean_distances(x: Any, y: Any, below: bool) -> Any:
    """Compute ``E|X-Y|`` (n, q) for ensembles X and Y in the form of :func:`_side_by_side`.

    If ``below`` is True, the function fills the result only up to the diagonal. The inner loop runs
    over members of many ensembles Y. This loop contains no sum, so the compiler turns it into
    vector instructions.
    """
    x_start, (y_points, y_mass, y_start) = x[2], y
    n, q = x_start.size - 1, y_start.size - 1
    mean = np.zeros((n, q))
    sums, partial = np.empty(BLOCK), np.zeros(BLOCK)
    owner = 0
    for first in range(0, y_mass.size, BLOCK):
        while y_start[owner + 1] <= first:
            owner += 1
        for i in range(n):
            last = min(first + BLOCK, x_start[i + 1] if below else y_mass.size)
            if last <= first:
                continue
            _sum_distances(x, i, y_points, (first, last), sums, partial)
            j = owner
            while j < q and y_start[j] < last:
                total = 0.0
                for s in range(max(y_start[j], first), min(y_start[j + 1], last)):
                    total += y_mass[s] * sums[s - first]
                mean[i, j] += total
                j += 1
    return mean


@inner
def _mean_self_distances(x: Any) -> Any:
    """Compute ``E|X-X'|`` (n,) for ensembles in the form of :func:`_side_by_side`.

    The result is NaN for an ensemble without members.
    """
    points, mass, start = x
    n = start.size - 1
    mean = np.zeros(n)
    sums, partial = np.empty(BLOCK), np.zeros(BLOCK)
    for i in range(n):
        for first in range(start[i], start[i + 1], BLOCK):
            last = min(first + BLOCK, start[i + 1])
            _sum_distances(x, i, points, (first, last), sums, partial)
            for s in range(first, last):
                mean[i] += mass[s] * sums[s - first]
        if start[i] == start[i + 1]:
            mean[i] = np.nan
    return mean


@inner
def _sum_distances(x: Any, i: int, y: Any, block: Any, sums: Any, partial: Any) -> Any:
    """Write the mean distances of a block of points in ``y`` to ensemble i of ``x`` into ``sums``.

    ``block`` has two numbers: the first column of the block, and the first column after it.
    """
    (points, mass, start), (first, last) = x, block
    d, size = y.shape[0], last - first
    u, v = y[d - 2, first:last], y[d - 1, first:last]
    for s in range(size):
        sums[s] = 0.0
    for k in range(start[i], start[i + 1]):
        for c in range(d - 2):
            at, along = points[c, k], y[c, first:last]
            for s in range(size):
                partial[s] = (partial[s] if c > 0 else 0.0) + (at - along[s]) ** 2
        at_u, at_v, weight = points[d - 2, k], points[d - 1, k], mass[k]
        for s in range(size):
            sums[s] += weight * np.sqrt(partial[s] + (at_u - u[s]) ** 2 + (at_v - v[s]) ** 2)


Prepared: TypeAlias = tuple[Matrix, Vector, Indices, Vector]
"""Result of :func:`prepare_vectors` for several ensembles"""


@kernel
def prepare_vectors(x: Cube, weights: Matrix, centre: Vector) -> Any:
    """Return the results of :func:`_side_by_side` and ``E|X-X'|`` (n,).

    The function subtracts the ``centre`` (d,) from all members.
    """
    points, mass, start = _side_by_side(x, weights)
    for c in range(x.shape[1]):
        points[c] -= centre[c]
    return points, mass, start, _mean_self_distances((points, mass, start))


@kernel
def rounding_of_vectors(x: Matrix, start: Indices, y: Matrix, centre: Vector) -> Any:
    """Return upper limits (n,) for rounding errors of squared distances from ensembles x to y.

    ``x`` and ``y`` hold members minus the ``centre`` as columns (d, N). The members of ensemble i
    of x are the columns from ``start[i]`` to ``start[i + 1] - 1``.
    """
    widest = _largest_norm(y)
    rounding = np.empty(start.size - 1)
    for i in range(rounding.size):
        own = max(widest, _largest_norm(x[:, start[i] : start[i + 1]]))
        rounding[i] = ROUNDING * own + 4 * EPSILON * np.sqrt((centre**2).sum())
    return rounding


@kernel
def prepared_distances(
    x: Prepared, rows: Indices, y: Prepared, columns: Indices, tolerance: Vector, same: bool
) -> Any:
    """Compute squared distances of the ensembles ``rows`` of x to the ensembles ``columns`` of y.

    ``x`` and ``y`` are results of :func:`prepare_vectors`. ``same`` is True if rows and columns are
    the same ensembles. If a squared distance is at most the ``tolerance`` of its ensemble of x, it
    becomes 0.
    """
    squared = _mean_distances(_taken(x, rows), _taken(y, columns), same)
    for i in range(rows.size):
        if same:
            squared[i, i] = 0.0 * x[3][rows[i]]
        for j in range(i if same else columns.size):
            d = 2 * squared[i, j] - x[3][rows[i]] - y[3][columns[j]]
            squared[i, j] = 0.0 if d <= tolerance[rows[i]] else d
            if same:
                squared[j, i] = squared[i, j]
    return squared


@inner
def _taken(prepared: Any, chosen: Any) -> Any:
    """Return members, weights and first columns of the ensembles at positions ``chosen``."""
    points, mass, start = prepared[0], prepared[1], prepared[2]
    first = np.zeros(chosen.size + 1, np.int64)
    for i in range(chosen.size):
        first[i + 1] = first[i] + start[chosen[i] + 1] - start[chosen[i]]
    some, shares = np.empty((points.shape[0], first[chosen.size])), np.empty(first[chosen.size])
    for i in range(chosen.size):
        at = start[chosen[i]]
        for s in range(first[i + 1] - first[i]):
            shares[first[i] + s] = mass[at + s]
            for c in range(points.shape[0]):
                some[c, first[i] + s] = points[c, at + s]
    return some, shares, first
