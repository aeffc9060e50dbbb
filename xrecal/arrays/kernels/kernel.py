"""The Energy Distance Kernel, which turns distances into similarities, and its bandwidth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Matrix, kernel
from xrecal.arrays.dispatch import namespace
from xrecal.arrays.order_statistics import median
from xrecal.typing import FloatArray, IntArray

KERNELS = ("gaussian", "laplace")

# Pairs closer than this share of the largest distance are identical forecasts. Without the share,
# distances of rounding size would make the median zero if most days are dry.
IDENTICAL = 1e-12

# The median over 400 forecasts (79 800 pairs) is as good as the median over all of them.
MEDIAN_CASES = 400

LARGEST = 1e150
"""Largest absolute value of a covariate. Squares of much larger values are infinite in float64."""


def similarity(
    squared_distance: FloatArray, bandwidth: float, kernel: str = "gaussian"
) -> FloatArray:
    r"""Compute the Energy Distance Kernel of squared energy distances.

    Parameters
    ----------
    squared_distance : array of float, any shape
        :math:`D^2 \ge 0` in the unit u of the variable.
    bandwidth : float
        Bandwidth s > 0. Its unit is u for the Gaussian kernel, and the square root of u for the
        Laplace kernel. With an infinite bandwidth, all similarities are 1, so the recalibrated
        forecast is the climatology.
    kernel : {"gaussian", "laplace"}
        The Gaussian kernel is :math:`\exp(-D^2/s)`, and the Laplace kernel :math:`\exp(-D/s)`.

    Returns
    -------
    array of float64, same shape
        Similarities in [0, 1]; identical forecasts have similarity 1.

    Raises
    ------
    ValueError
        If the bandwidth is not positive or the kernel is unknown.

    Examples
    --------
    >>> similarity(np.array([0.0, 1.0, 2.0]), 1.0).round(2)
    array([1.  , 0.37, 0.14])
    """
    check_kernel(kernel)
    if not bandwidth > 0:
        raise ValueError(f"bandwidth must be positive, got {bandwidth}")
    d = np.asarray(squared_distance, dtype=np.float64)
    return np.exp(-(np.sqrt(d) if kernel == "laplace" else d) / bandwidth)


def median_bandwidth(squared_distance: FloatArray, kernel: str = "gaussian") -> float:
    """Compute the median distance between different forecasts.

    Parameters
    ----------
    squared_distance : array of float, shape (n, n)
        Symmetric matrix of squared energy distances in the unit u. Rows and columns of forecasts
        without members are NaN; the function ignores these rows and columns.
    kernel : {"gaussian", "laplace"}
        For a Gaussian kernel, the result is the median of D² (in u); for a Laplace kernel, the
        median of D.

    Returns
    -------
    float
        Median over the pairs whose D² is above 1e-12 times the largest D². Without this limit,
        identical forecasts, such as forecasts of dry days, would pull the median to zero. If there
        are more than 400 forecasts, the median is over a fixed pseudo-random subset of 400
        forecasts.

    Raises
    ------
    ValueError
        If no two forecasts differ, or the matrix is not square.

    Examples
    --------
    >>> median_bandwidth(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]))
    1.0
    """
    check_kernel(kernel)
    d = np.ascontiguousarray(squared_distance, dtype=np.float64)
    if d.ndim != 2 or d.shape[0] != d.shape[1]:
        raise ValueError(f"squared_distance must be square, (n, n), got {d.shape}")
    present = ~np.isnan(np.diag(d))
    s = positive_median(d[np.ix_(present, present)])
    if not np.isfinite(s):
        raise ValueError(
            f"the {int(present.sum())} forecasts are identical, so their distances have no "
            "positive median; give a bandwidth, or use climatology"
        )
    return float(np.sqrt(s)) if kernel == "laplace" else s


def check_kernel(kernel: str) -> None:
    """Raise ValueError unless ``kernel`` is known."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(map(repr, KERNELS))}, got {kernel!r}")


def positive_median(distance: FloatArray) -> float:
    """Return the median of the positive entries of a symmetric matrix (n, n), or infinity.

    The median is over 400 rows and columns, or over all rows and columns if these 400 have no
    positive entries.
    """
    n = distance.shape[0]
    nothing = IDENTICAL * np.fmax.reduce(distance, axis=None, initial=0.0)  # ignores NaN
    for size in (MEDIAN_CASES, n) if n > MEDIAN_CASES else (n,):
        chosen = subset(n, size)
        among = distance if size == n else distance[np.ix_(chosen, chosen)]
        median = _median_above(np.ascontiguousarray(among, np.float64), nothing)
        if median < np.inf:
            break
    return float(median)


@kernel
def _median_above(distance: Matrix, nothing: float) -> float:
    """Return the median of the positive entries right of the diagonal.

    Entries up to ``nothing`` count as 0. If no entry is positive, the result is infinity.
    """
    n, count = distance.shape[0], 0
    larger = np.empty(n * (n - 1) // 2)
    for i in range(n):
        for j in range(i + 1, n):
            if distance[i, j] > nothing:
                larger[count] = distance[i, j]
                count += 1
    return median(larger[:count]) if count else np.inf


@kernel
def subset(n: int, size: int) -> Any:
    """Draw ``size`` different numbers from 0 to n - 1, or return all if n is at most ``size``.

    Each call draws the same numbers, because the function has its own linear congruential
    generator. So threads and the caller's random numbers cannot change a fit.
    """
    numbers = np.empty(n, dtype=np.int64)
    for i in range(n):
        numbers[i] = i
    if n <= size:
        return numbers
    state = np.uint64(20240229)
    for i in range(size):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = i + int((state >> np.uint64(33)) % np.uint64(n - i))
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return numbers[:size]


class Features(NamedTuple):
    """Covariates in the form that distances and regressions need."""

    values: FloatArray
    """(L, n, k) values; a circular covariate becomes a sine and a cosine, others are unchanged"""
    circular: npt.NDArray[np.bool_]
    """(k,) True for a column that is a sine or cosine"""
    predictors: IntArray = np.zeros(0, np.int64)
    """Columns that hold predictors. Regressions shrink the coefficients of these columns; other
    columns hold the season and the place"""

    def take(self, block: slice) -> Features:
        """Return the features of some locations."""
        return self._replace(values=self.values[block])


def features(covariates: FloatArray, periods: tuple[float | None, ...]) -> Features:
    """Convert covariates to features.

    Parameters
    ----------
    covariates : array of float, shape (L, n, p)
        Values in any unit, NaN if unknown. Infinite values count as unknown. Values beyond ±1e150
        are set to ±1e150.
    periods : tuple of float or None, length p
        Period of a circular covariate in its unit; None for any other covariate.

    Returns
    -------
    Features
        Float64, (L, n, k) with k = p plus the number of circular covariates.

    Raises
    ------
    ValueError
        If the numbers of periods and covariates differ, or a period is not positive.

    Examples
    --------
    >>> values = np.array([[[0.0, 5.0], [90.0, 6.0]]])
    >>> features(values, (360.0, None)).values.shape
    (1, 2, 3)
    """
    if covariates.ndim != 3 or covariates.shape[2] != len(periods):
        raise ValueError(
            f"covariates need shape (locations, cases, {len(periods)}), got {covariates.shape}"
        )
    xp = namespace(covariates)
    columns, circular = [], []
    for i, period in enumerate(periods):
        value = covariates[..., i].astype(np.float64)
        value = xp.where(xp.isinf(value), np.nan, value)
        if period is None:
            columns.append(xp.clip(value, -LARGEST, LARGEST))
            circular.append(False)
            continue
        if not period > 0:
            raise ValueError(f"periods must be positive, got {period}")
        angle = 2 * np.pi * (value / period)
        columns += [xp.sin(angle), xp.cos(angle)]
        circular += [True, True]
    if not columns:
        return no_features(covariates.shape[0], covariates.shape[1], xp)
    return Features(xp.stack(columns, axis=-1), np.array(circular, dtype=np.bool_))


def no_features(n_locations: int, n: int, xp: Any = np) -> Features:
    """Return features (L, n, 0) of cases without covariates; ``xp`` is the array library."""
    return Features(xp.zeros((n_locations, n, 0)), np.zeros(0, dtype=np.bool_))


def feature_weights(of: FloatArray, circular: npt.NDArray[np.bool_]) -> FloatArray:
    r"""Compute the weight of the squared difference of each feature.

    Parameters
    ----------
    of : array of float, shape (n, k)
        Features of the calibration cases at one location.
    circular : array of bool, shape (k,)
        Marks sines and cosines.

    Returns
    -------
    array of float64, shape (k,)
        Sines and cosines have the weight ½. So a circular covariate of period P at distance d adds
        :math:`2 \sin^2(\pi d / P)` to a squared distance. The weight of any other feature is one
        divided by the median squared difference of cases that differ in this feature. A constant
        feature has the weight 0.
    """
    weights = np.full(of.shape[1], 0.5)
    for column in np.flatnonzero(~circular):
        weights[column] = 1.0 / _median_distance(of[:, [column]])
    return weights


def joint_weights(of: FloatArray, circular: npt.NDArray[np.bool_]) -> FloatArray:
    """Compute the weight of each feature in the joint squared distance of covariates.

    Parameters
    ----------
    of, circular
        As in :func:`feature_weights`.

    Returns
    -------
    array of float64, shape (k,)
        Weights of :func:`feature_weights`. The function scales the weights of covariates that are
        not circular, so that the joint squared distance of these covariates has a median of 1. Then
        a kernel of many covariates is as wide as a kernel of one covariate. The function does not
        scale the weights of circular covariates.
    """
    weights = feature_weights(of, circular)
    counted = np.flatnonzero(~circular & (weights > 0))
    if counted.size > 1:
        weights[counted] /= _median_distance(of[:, counted] * np.sqrt(weights[counted]))
    return weights


def _median_distance(rows: FloatArray) -> float:
    """Return the median squared distance of rows (n, k) that differ, or infinity if all are equal.

    The median is over 400 rows, and over all rows if these 400 are equal.
    """
    n, median = rows.shape[0], np.inf
    for size in sorted({min(n, MEDIAN_CASES), n}):
        some = rows[subset(n, size)].astype(np.float64)
        squared = np.zeros((size, size))
        for column in some.T:
            squared += (column[:, np.newaxis] - column) ** 2
        median = positive_median(squared)
        if np.isfinite(median):
            break
    return median
