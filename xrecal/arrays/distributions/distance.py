"""Squared energy distances between ensembles, or among the forecasts of each location.

The functions take ensembles as rows of a matrix, forecasts of any form, or forecasts that share
their members. They sort the members of all ensembles once, and compiled loops go through the sorted
members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import IndexMatrix, Indices, Matrix, OutMatrix, Vector, kernel
from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray, IntArray

from .forms import VALID, Forecasts, verdicts
from .normal import fill_normal_distances

# Number of ensembles in the inner loop of a comparison. The compiler turns this loop into vector
# instructions; 32 was fastest among 8, 16, 32 and 64 with AVX2 and with AVX-512.
LANES = 32

# Distances below this share of the largest deviation from the mean are rounding errors.
ROUNDING = 1e-13
EPSILON = 2.220446049250313e-16  # rounding error of members, as a share of their mean


def squared_energy_distance(
    x: FloatArray,
    y: FloatArray | None = None,
    *,
    x_weights: FloatArray | None = None,
    y_weights: FloatArray | None = None,
) -> FloatArray:
    r"""Compute the squared energy distance of every ensemble in ``x`` to every ensemble in ``y``.

    Parameters
    ----------
    x : array of float, shape (n, m)
        ``n`` ensembles of ``m`` members in one unit u. NaN marks a missing member. If an ensemble
        has fewer than ``m`` members, fill up its row with NaN.
    y : array of float, shape (q, p), optional
        Ensembles to compare with ``x``, in the unit u. By default, the function compares the
        ensembles in ``x`` with each other. Then the result is exactly symmetric, with zeros on the
        diagonal.
    x_weights, y_weights : array of float, shapes (n, m) and (q, p), optional
        Weights >= 0 of the members, equal by default. The function divides the weights of each
        ensemble by their sum.

    Returns
    -------
    array of float64, shape (n, q)
        :math:`D^2 = 2 E|X-Y| - E|X-X'| - E|Y-Y'| = 2 \int (F-G)^2 \ge 0` in the unit u
        (not u squared). X and X' are random members of the ensemble in ``x``, with CDF F; Y and Y'
        are random members of the ensemble in ``y``, with CDF G. :func:`scipy.stats.energy_distance`
        returns the root D. The distances of an ensemble without members are NaN.

    Raises
    ------
    ValueError
        If an input is not two-dimensional, weights and members differ in shape, a member is
        infinite, a weight is negative, or the weight of a known member is infinite or NaN.

    Notes
    -----
    The means ``E|X-X'|`` and ``E|Y-Y'|`` include the zero distance of each member to itself.
    Without these zeros, kernels computed from the distance would not be positive semi-definite. The
    function sorts all members once. Then it goes through them once for each group of ensembles X.
    Once is enough, because ``E|X-z|`` is a piecewise linear function of the number z. The time is
    O(n q p) with a small constant, and the memory is O(q p + n q). The absolute error is about
    1e-13 times the largest deviation from the mean of all members, plus 1e-15 times this mean. The
    function returns 0 for distances smaller than this error.

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
        return self_distances(x, x_weights)
    y, y_weights = _checked("y", y, y_weights)
    return cross_distances(x, x_weights, y, y_weights)


def pairwise_distances(forecasts: Forecasts) -> FloatArray:
    """Compute squared energy distances among the forecasts of each location.

    Parameters
    ----------
    forecasts : Forecasts
        n forecasts at each of L locations, as arrays (L, n, m).

    Returns
    -------
    array of float64, shape (L, n, n)
        Squared distances, in the unit of the forecasts. They are NaN in the row and the column of a
        forecast that is missing or invalid. For the formulas see
        :func:`xrecal.arrays.squared_energy_distance` for ensembles, and
        :func:`xrecal.arrays.normal_squared_energy_distance` for normal distributions.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    The time per location is O(n² m) for ensembles, and O(n² m²) for mixtures of normal
    distributions. The result takes 8 n² bytes per location. If many fits learn from the same
    forecasts, compute the distances only once.

    Examples
    --------
    >>> pairwise_distances(Forecasts(np.array([[[0.0, 1.0], [2.0, 3.0]]])))
    array([[[0., 3.],
            [3., 0.]]])
    """
    n_locations, n = forecasts.check("forecasts", 3)[:2]
    missing = (verdicts(forecasts) != VALID)[..., np.newaxis]
    loc = np.where(missing, np.nan, forecasts.loc)
    weights = np.ones(loc.shape) if forecasts.weights is None else forecasts.weights
    given = Forecasts(loc, forecasts.scale, weights).map(_contiguous)
    squared = np.empty((n_locations, n, n))
    for i in range(n_locations):
        squared[i] = distances_between(given.take(i))
    return squared


def distances_between(x: Forecasts, y: Forecasts | None = None) -> FloatArray:
    """Compute the squared distances of forecasts ``x`` (n, m) to forecasts ``y`` (q, p).

    If ``y`` is None, the function compares the forecasts ``x`` with each other. All arrays must be
    contiguous and float64, and the forecasts must have weights.
    """
    assert x.weights is not None
    others = x if y is None else y
    assert others.weights is not None
    if x.scale is None or others.scale is None:
        if y is None:
            return self_distances(x.loc, x.weights)
        return cross_distances(x.loc, x.weights, others.loc, others.weights)
    squared = np.empty((x.loc.shape[0], others.loc.shape[0]))
    fill_normal_distances(
        x.loc, x.scale, x.weights, others.loc, others.scale, others.weights, squared
    )
    return squared


def shared_distances(members: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Compute squared energy distances among forecasts of one location that share their members.

    Parameters
    ----------
    members : array of float64, shape (m,)
        Members in a unit u, all finite.
    weights : array of float64, shape (n, m)
        Weights >= 0 of the members in each forecast; the weights of a forecast sum to one.

    Returns
    -------
    array of float64, shape (n, n)
        :math:`2 \int (F - G)^2` for CDFs F and G, in the unit u, symmetric with a zero diagonal.
        The function sets results to 0 if they are at most 1e-13 times the largest squared distance
        between a forecast and the mean of all forecasts.

    Notes
    -----
    The function turns each forecast into a vector of CDF values at the sorted members. It
    multiplies each CDF value by a factor: the square root of twice the gap between its member and
    the next member. The results are the squared Euclidean distances between these vectors, so one
    product of (n, m) matrices gives all results.
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


def self_distances(x: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute squared distances (n, n) among the ensembles in ``x`` (n, m), float64."""
    points, mass, spread, together, tolerance = arrange(x, weights)
    squared = mean_distances(points, mass, together, spread.size)
    subtract_spread(squared, spread, spread, np.full(spread.size, tolerance), True)
    return squared


class Arranged(NamedTuple):
    """Ensembles (n, m) with sorted members."""

    points: FloatArray
    """(n, m) sorted members of each ensemble, minus the common mean of all ensembles"""
    mass: FloatArray
    """(n, m) weights of the sorted members"""
    spread: FloatArray
    """(n,) ``E|X-X'|`` of each ensemble"""
    together: Ordered
    """Members of all ensembles in one ascending order"""
    tolerance: float
    """Largest squared distance that counts as rounding error"""

    def columns(self, cases: IntArray) -> FloatArray:
        """Compute squared distances (k, n) of ensembles at positions ``cases`` to all ensembles."""
        n = self.spread.size
        distances = mean_distances(self.points[cases], self.mass[cases], self.together, n)
        tolerance = np.full(cases.size, self.tolerance)
        subtract_spread(distances, self.spread[cases], self.spread, tolerance, False)
        distances[np.arange(cases.size), cases] = 0.0
        return distances


def arrange(x: FloatArray, weights: FloatArray) -> Arranged:
    """Sort the members of ensembles (n, m), and prepare them for distances."""
    centre, tolerance = centre_and_rounding(x, weights)
    points, mass, spread = sorted_rows(x, weights, centre)
    return Arranged(points, mass, spread, in_order(points, mass), tolerance)


def cross_distances(
    x: FloatArray, x_weights: FloatArray, y: FloatArray, y_weights: FloatArray
) -> FloatArray:
    """Compute squared distances (n, q) of ensembles ``x`` (n, m) to ``y`` (q, p), all float64."""
    # Rows of x are new forecasts. A row must not change the result of another row, so the centre
    # and the rounding error follow from y and from this row alone.
    centre, tolerance = centre_and_rounding(y, y_weights)
    x_points, x_mass, x_spread = sorted_rows(x, x_weights, centre)
    y_points, y_mass, y_spread = sorted_rows(y, y_weights, centre)
    squared = mean_distances(x_points, x_mass, in_order(y_points, y_mass), y.shape[0])
    widest = np.abs(x_points).max(axis=1, initial=0.0)
    subtract_spread(squared, x_spread, y_spread, np.maximum(tolerance, ROUNDING * widest), False)
    return squared


def _checked(
    name: str, values: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    values = np.ascontiguousarray(values, dtype=np.float64)
    if weights is None:
        check_ensembles(name, values, None)
        return values, np.ones_like(values)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    check_ensembles(name, values, weights)
    return values, weights


def check_ensembles(name: str, values: Any, weights: Any | None) -> None:
    """Raise ValueError unless members and weights (n, m) have valid shapes and values.

    The arrays may come from any array library.
    """
    xp = namespace(values)
    if values.ndim != 2:
        raise ValueError(
            f"{name} needs shape (ensemble, member), got {values.shape}; "
            f"a single ensemble is {name}[np.newaxis, :]"
        )
    if xp.isinf(values).any():
        raise ValueError(f"{name} holds infinite members; set them to NaN to leave them out")
    if weights is None:
        return
    if weights.shape != values.shape:
        raise ValueError(
            f"{name}_weights has shape {weights.shape}, but {name} has {values.shape}; "
            "give each member one weight"
        )
    if not (xp.isfinite(weights) | xp.isnan(values)).all() or (weights < 0).any():
        raise ValueError(f"{name}_weights must be finite and >= 0")


def centre_and_rounding(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the mean of all members of ensembles (n, m), and the rounding error of distances.

    Subtracting this mean from all members reduces rounding errors of values such as 273.15 K.
    """
    centre, smallest, largest = _mean_and_range(values, weights)
    widest = max(largest - centre, centre - smallest)
    return centre, ROUNDING * widest + 4 * EPSILON * abs(centre)


@kernel
def _mean_and_range(values: Matrix, weights: Matrix) -> Any:
    """Return mean, minimum and maximum of members with positive weight; zeros if there are none."""
    total, count, smallest, largest = 0.0, 0, np.inf, -np.inf
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[i, j]
            if weights[i, j] > 0.0 and not np.isnan(value):
                total += value
                count += 1
                smallest, largest = min(smallest, value), max(largest, value)
    if count == 0:
        return 0.0, 0.0, 0.0
    return total / count, smallest, largest


@kernel
def sorted_rows(values: Matrix, weights: Matrix, centre: float) -> Any:
    """Return the sorted members minus ``centre``, their weights, and ``E|X-X'|`` of each ensemble.

    The function divides the weights of each ensemble by their sum. It replaces missing members by
    0, with weight 0. For an ensemble without members, ``E|X-X'|`` is NaN.
    """
    points, mass, spread = np.zeros(values.shape), np.zeros(values.shape), np.empty(values.shape[0])
    point, weight = np.empty(values.shape[1]), np.empty(values.shape[1])
    for i in range(values.shape[0]):
        total = 0.0
        for j in range(point.size):
            counts = weights[i, j] > 0.0 and not np.isnan(values[i, j])
            point[j] = values[i, j] - centre if counts else 0.0
            weight[j] = weights[i, j] if counts else 0.0
            total += weight[j]
        order = np.argsort(point)
        below, moment, apart = 0.0, 0.0, 0.0
        for j in range(point.size):
            points[i, j] = point[order[j]]
            mass[i, j] = weight[order[j]] / max(total, 1e-300)
            below += mass[i, j]
            moment += mass[i, j] * points[i, j]
            apart += mass[i, j] * (points[i, j] * below - moment)
        spread[i] = 2.0 * apart if total > 0.0 else np.nan
    return points, mass, spread


def mean_apart(members: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute the mean distance (n,) between members of each ensemble (n, m), over all pairs."""
    centre, _ = centre_and_rounding(members, weights)
    spread: FloatArray = sorted_rows(members, weights, centre)[2]
    return spread


class Ordered(NamedTuple):
    """Members of q ensembles in one ascending order."""

    points: Vector
    """(N,) ascending members"""
    mass: Vector
    """(N,) weight of each member within its ensemble"""
    owner: Indices
    """(N,) index of the ensemble to which each member belongs"""


def in_order(points: FloatArray, mass: FloatArray) -> Ordered:
    """Sort the members (q, p) of all ensembles together, and their weights in the same order."""
    order = np.argsort(points, axis=None)
    return Ordered(points.ravel()[order], mass.ravel()[order], order // points.shape[1])


def mean_distances(x: FloatArray, mass: FloatArray, ordered: Ordered, q: int) -> FloatArray:
    """Compute ``E|X-Y|`` (n, q) for n ensembles X (n, m) and q ensembles Y with ordered members."""
    n, m = x.shape
    blocks, rest = divmod(n, LANES)
    by_size = np.empty((-(-n // LANES), LANES * m), np.int64)
    by_size[:blocks] = np.argsort(x[: n - rest].reshape(blocks, LANES * m), axis=1)
    by_size[blocks:, : rest * m] = np.argsort(x[n - rest :], axis=None)
    mean = np.empty((n, q))
    fill_mean_distances(x, mass, by_size, ordered, mean)
    return mean


@kernel
def fill_mean_distances(
    x: Matrix, x_mass: Matrix, by_size: IndexMatrix, ordered: Ordered, mean: OutMatrix
) -> None:
    """Write ``E|X-Y|`` into ``mean`` (n, q).

    The function takes a block of ensembles X at a time; ``by_size`` holds the order of the members
    of each block. For a number z between two neighbouring members of X, ``E|X-z|`` is ``slope z +
    level``. For each block, the function goes once through the ordered members z of all ensembles
    Y. It multiplies ``E|X-z|`` by the weight of z. Then it adds the product to the result for X and
    for the ensemble Y that contains z.
    """
    n, m = x.shape
    q = mean.shape[1]
    z, z_mass, owner = ordered
    sums = np.empty((q, LANES))
    slope, level = np.empty(LANES), np.empty(LANES)
    for block in range(by_size.shape[0]):
        first = block * LANES
        lanes = min(LANES, n - first)
        for lane in range(LANES):
            slope[lane] = level[lane] = 0.0
            for j in range(q):
                sums[j, lane] = 0.0
        for lane in range(lanes):
            slope[lane] = -1.0
            for j in range(m):
                level[lane] += x_mass[first + lane, j] * x[first + lane, j]
        s = 0
        for k in range(lanes * m + 1):
            lane, knot, stop = 0, 0, np.inf
            if k < lanes * m:
                lane = by_size[block, k] // m
                knot = by_size[block, k] - lane * m
                stop = x[first + lane, knot]
            while s < z.size and z[s] <= stop:
                weight, moment, row = z_mass[s], z_mass[s] * z[s], sums[owner[s]]
                for each in range(LANES):
                    row[each] += weight * level[each] + moment * slope[each]
                s += 1
            if k < lanes * m:
                turn = 2 * x_mass[first + lane, knot]
                slope[lane] += turn
                level[lane] -= turn * stop
        for j in range(q):
            for lane in range(lanes):
                mean[first + lane, j] = sums[j, lane]


@kernel
def subtract_spread(
    mean: OutMatrix, x_spread: Vector, y_spread: Vector, tolerance: Vector, symmetric: bool
) -> None:
    """Turn ``E|X-Y|`` (n, q) into squared distances, in place.

    Squared distances up to the ``tolerance`` (n,) of their row are rounding errors and become 0.
    """
    for i in range(mean.shape[0]):
        for j in range(i if symmetric else mean.shape[1]):
            d = 2 * mean[i, j] - x_spread[i] - y_spread[j]
            mean[i, j] = 0.0 if d <= tolerance[i] else d
            if symmetric:
                mean[j, i] = mean[i, j]
        if symmetric:
            mean[i, i] = 0.0 * x_spread[i]  # NaN for a row without members


def _contiguous(part: FloatArray) -> FloatArray:
    return np.ascontiguousarray(part, dtype=np.float64)
