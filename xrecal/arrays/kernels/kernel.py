"""Squared energy distances to similarities: the Energy Distance Kernel and its bandwidth."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import kernel
from xrecal.typing import FloatArray

KERNELS = ("gaussian", "laplace")

# Pairs closer than this share of the largest distance count as identical forecasts.
IDENTICAL = 1e-12

# The median over 400 forecasts (79 800 pairs) is as good as that over all of them.
MEDIAN_CASES = 400


def similarity(
    squared_distance: FloatArray, bandwidth: float, kernel: str = "gaussian"
) -> FloatArray:
    r"""Energy Distance Kernel of squared energy distances.

    Parameters
    ----------
    squared_distance : array of float, any shape
        :math:`D^2 \ge 0` in the unit u of the variable.
    bandwidth : float
        s > 0, in u for the Gaussian and in the root of u for the Laplace kernel. With infinity
        all forecasts are alike, which makes the recalibrated forecast the climatology.
    kernel : {"gaussian", "laplace"}
        :math:`\exp(-D^2/s)` or :math:`\exp(-D/s)`.

    Returns
    -------
    array of float64, same shape
        Similarities in [0, 1], 1 for identical forecasts.

    Raises
    ------
    ValueError
        If the bandwidth is not positive or the kernel unknown.

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
    """Median distance between different forecasts.

    Parameters
    ----------
    squared_distance : array of float, shape (n, n)
        Symmetric matrix of squared energy distances in the unit u; row and column of a forecast
        without members are NaN and left out.
    kernel : {"gaussian", "laplace"}
        Whether the median is taken of D² (in u) or of D.

    Returns
    -------
    float
        Median over the pairs whose D² is above 1e-12 of the largest. Identical forecasts, such
        as those of dry days, would otherwise pull it to zero. Beyond 400 forecasts it is taken
        over a fixed pseudo-random subset of 400.

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
    """Raise unless ``kernel`` is known."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(map(repr, KERNELS))}, got {kernel!r}")


def positive_median(distance: FloatArray) -> float:
    """Median of the positive entries of a symmetric matrix (n, n); infinity where there are none.

    Those of 400 rows and columns; of all where these hold none.
    """
    n = distance.shape[0]
    nothing = IDENTICAL * np.fmax.reduce(distance, axis=None, initial=0.0)  # not NaN
    for size in (MEDIAN_CASES, n):
        chosen = subset(n, size)
        among = distance[np.ix_(chosen, chosen)]
        positive = among[among > nothing]
        if positive.size:
            return float(np.median(positive))
        if size >= n:
            break
    return float(np.inf)


@kernel
def subset(n: int, size: int) -> Any:
    """``size`` of the numbers below n without replacement (all if n is smaller), always the same.

    A shuffle driven by a small linear congruential generator: state of its own, so that neither
    threads nor the caller's random numbers can change a fit.
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


@kernel
def fill_similarity(squared: Any, bandwidth: float, laplace: bool) -> None:
    """Replace squared distances by similarities, in place."""
    for i in range(squared.shape[0]):
        for j in range(squared.shape[1]):
            d = np.sqrt(squared[i, j]) if laplace else squared[i, j]
            squared[i, j] = np.exp(-d / bandwidth)
