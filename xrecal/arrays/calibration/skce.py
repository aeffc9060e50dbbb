"""Squared kernel calibration error: its matrix over pairs of cases, and estimates from it."""

from __future__ import annotations

import numpy as np

from xrecal.arrays.distributions.forms import VALID, Forecasts, verdicts
from xrecal.arrays.distributions.pairwise import pairwise_distances, shared_distances
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, positive_median, subset
from xrecal.typing import FloatArray

from .expectations import expectations, normalised, take_cases, target_bandwidth


def skce_matrix(
    similarity: FloatArray, target: FloatArray, cross: FloatArray, within: FloatArray
) -> FloatArray:
    r"""Terms of the squared kernel calibration error (SKCE) for all pairs of cases.

    Parameters
    ----------
    similarity : array of float, shape (n, n)
        :math:`k_{ij} = k(P_i, P_j)` of forecasts, symmetric.
    target : array of float, shape (n, n)
        :math:`l_{ij} = l(y_i, y_j)` of observations, symmetric.
    cross : array of float, shape (n, n)
        :math:`A_{ij} = E\,l(Z_i, y_j)` with Z from forecast i.
    within : array of float, shape (n, n)
        :math:`M_{ij} = E\,l(Z_i, Z'_j)`, independent for i = j too, symmetric.

    Returns
    -------
    array of float64, shape (n, n)
        :math:`h_{ij} = k_{ij} (l_{ij} - A_{ij} - A_{ji} + M_{ij})`, without unit. Symmetric and
        positive semi-definite for positive definite kernels; the mean of h over pairs of
        independent cases is 0 if forecasts are calibrated.

    Raises
    ------
    ValueError
        If the four are not square and of one shape.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2021), Calibration tests beyond classification.
       https://openreview.net/forum?id=-bxf89v3Nx

    Examples
    --------
    >>> skce_matrix([[1.0]], [[1.0]], [[0.25]], [[0.25]])
    array([[0.75]])
    """
    parts = [np.asarray(a, dtype=np.float64) for a in (similarity, target, cross, within)]
    shape = parts[0].shape
    if len(shape) != 2 or any(a.shape != (shape[0], shape[0]) for a in parts):
        found = ", ".join(str(a.shape) for a in parts)
        raise ValueError(f"similarity, target, cross, within must all be (n, n), got {found}")
    k, target, cross, within = parts
    h = target - (cross + cross.T)
    h += within
    h *= k
    return h


def skce_unbiased(matrix: FloatArray) -> float:
    r"""Unbiased estimate of the SKCE, :math:`\frac{2}{n (n-1)} \sum_{i<j} h_{ij}`.

    Parameters
    ----------
    matrix : array of float, shape (n, n)
        From :func:`skce_matrix`.

    Returns
    -------
    float
        Below 2, may be negative; NaN with fewer than two cases.

    Raises
    ------
    ValueError
        If the matrix is not square.

    Examples
    --------
    >>> skce_unbiased(np.array([[1.0, 0.5], [0.5, 1.0]]))
    0.5
    """
    h = check_matrix(matrix)
    n = len(h)
    return float((h.sum() - np.trace(h)) / (n * (n - 1))) if n > 1 else np.nan


def skce_biased(matrix: FloatArray) -> float:
    r"""Estimate :math:`n^{-2} \sum_{ij} h_{ij} \ge 0`, terms of a case with itself included.

    Parameters and errors as in :func:`skce_unbiased`; NaN without cases. Too large by about the
    mean of :math:`h_{ii}` over n.

    Examples
    --------
    >>> skce_biased(np.array([[1.0, 0.5], [0.5, 1.0]]))
    0.75
    """
    h = check_matrix(matrix)
    return max(float(h.mean()), 0.0) if h.size else np.nan


def check_matrix(matrix: FloatArray) -> FloatArray:
    """The matrix as float64; raises ValueError unless it is square."""
    h = np.asarray(matrix, dtype=np.float64)
    if h.ndim != 2 or h.shape[0] != h.shape[1]:
        raise ValueError(f"the matrix must be square, (n, n), got {h.shape}; see skce_matrix")
    return h


def case_matrix(
    forecasts: Forecasts, observations: FloatArray, *, augmented: bool = False
) -> FloatArray:
    r"""Matrix h of :func:`skce_matrix` for the cases of one location.

    Parameters
    ----------
    forecasts : Forecasts
        As in :func:`laplace_expectations`, in the unit u of the variable.
    observations : array of float, shape (n,)
        In u.
    augmented : bool
        Whether each observation joins its own ensemble, which then has m + 1 equal members. The
        empirical distribution of a few exchangeable members is not calibrated, with enough cases
        the test finds out; this one is, if observation and members are exchangeable.

    Returns
    -------
    array of float64, shape (p, p)
        Over the p cases with forecast and observation, without those that hold infinite values.
        The kernel on forecasts is :math:`\exp(-D^2/s)`, that on observations
        :math:`\exp(-|y-y'|/\theta)`, with the median positive distance of each as s and theta;
        1 for forecasts that are all the same, NaN without different observations. Costs O(n² m),
        O(n² m²) for mixtures; about five arrays (n, n) at a time.

    Raises
    ------
    ValueError
        If shapes do not match, weights or scales are negative or infinite, weights do not sum to
        one, or ``augmented`` is asked for forecasts that are no plain ensembles.

    Examples
    --------
    >>> case_matrix(Forecasts(np.array([[0.0], [1.0]])), np.array([1.0, 0.0])).round(2)
    array([[ 1.26, -0.47],
           [-0.47,  1.26]])
    """
    parts, y = usable_cases(forecasts, observations, augmented)
    theta = target_bandwidth(y)
    if np.isnan(theta):
        return np.full((y.size, y.size), np.nan)
    return matrix_of(parts, y, forecast_similarity(parts)[0], theta)


def usable_cases(
    forecasts: Forecasts, observations: FloatArray, augmented: bool = False
) -> tuple[Forecasts, FloatArray]:
    """:func:`normalised` forecasts and observations of the cases that hold both."""
    y = np.asarray(observations, dtype=np.float64)
    by_case = one_row_each(forecasts)
    if y.shape != by_case.loc.shape[:1]:
        raise ValueError(
            f"observations have shape {y.shape}, but the forecasts need {by_case.loc.shape[:1]}"
        )
    usable = (verdicts(by_case) == VALID) & np.isfinite(y)
    if augmented:
        if forecasts.scale is not None or forecasts.weights is not None:
            raise ValueError(
                "augmented=True is for plain ensembles: forecasts with weights or scales are "
                "distributions, test them with augmented=False"
            )
        return normalised(Forecasts(np.column_stack([forecasts.loc, y])[usable])), y[usable]
    loc, scale, weights = forecasts
    chosen = Forecasts(
        loc if np.ndim(loc) == 1 else loc[usable],
        None if scale is None else scale[usable],
        None if weights is None else weights[usable],
    )
    return normalised(chosen), y[usable]


def one_row_each(forecasts: Forecasts) -> Forecasts:
    """Forecasts whose ``loc`` has a row for each case, where they share one."""
    loc, scale, weights = forecasts
    if weights is not None and np.ndim(weights) == np.ndim(loc) + 1:
        return Forecasts(np.broadcast_to(loc[..., np.newaxis, :], weights.shape), scale, weights)
    return forecasts


def squared_distances(parts: Forecasts) -> FloatArray:
    """Squared energy distances (n, n) among :func:`normalised` forecasts."""
    loc, scale, weights = parts
    if loc.ndim == 1:
        return shared_distances(loc, weights)  # type: ignore[arg-type]
    one = Forecasts(*(None if a is None else a[np.newaxis] for a in (loc, scale, weights)))  # type: ignore[arg-type]
    squared: FloatArray = pairwise_distances(one)[0]
    return squared


def forecast_similarity(parts: Forecasts) -> tuple[FloatArray, bool]:
    """Kernel (n, n) on :func:`normalised` forecasts, and whether all of them are the same."""
    squared = squared_distances(parts)
    s = positive_median(squared)
    return _decay(squared, s), not np.isfinite(s)


def matrix_of(parts: Forecasts, y: FloatArray, similarity: FloatArray, theta: float) -> FloatArray:
    """Matrix h of :func:`normalised` forecasts and finite observations y (n,)."""
    target = _decay(np.abs(np.subtract.outer(y, y)), theta)
    return skce_matrix(similarity, target, *expectations(parts, y, theta))


def _decay(distance: FloatArray, bandwidth: float) -> FloatArray:
    """``exp(-distance / bandwidth)``, in place."""
    distance /= -bandwidth
    np.exp(distance, out=distance)
    return distance


def skce_blocks(
    forecasts: Forecasts,
    observations: FloatArray,
    block_length: int,
    *,
    forecast_bandwidth: float | None = None,
    bandwidth: float | None = None,
    augmented: bool = False,
) -> FloatArray:
    """Unbiased estimates of the SKCE from consecutive blocks of cases, for many cases.

    Parameters
    ----------
    forecasts, observations, augmented
        As in :func:`case_matrix`.
    block_length : int
        Cases b in a block, at least 2. Cases left over at the end are not used.
    forecast_bandwidth, bandwidth : float, optional
        s of the kernel on forecasts and theta of that on observations, in u. Without, the median
        positive distance: among at most 400 forecasts, always the same ones, and among all
        observations.

    Returns
    -------
    array of float64, shape (p // b,)
        Their mean estimates the SKCE without bias; NaN without different observations.

    Raises
    ------
    ValueError
        As :func:`case_matrix`, or if the block length is below 2 or a bandwidth not positive.

    Notes
    -----
    O(n b m) time, O(n m + b²) memory.

    Examples
    --------
    >>> skce_blocks(Forecasts(np.zeros((20, 3))), np.arange(20.0), block_length=5).shape
    (4,)
    """
    if int(block_length) != block_length or block_length < 2:
        raise ValueError(f"block_length is {block_length}; give a whole number from 2")
    parts, y = usable_cases(forecasts, observations, augmented)
    s = subset_bandwidth(parts) if forecast_bandwidth is None else float(forecast_bandwidth)
    theta = target_bandwidth(y) if bandwidth is None else float(bandwidth)
    if s <= 0 or theta <= 0 or np.isnan(s):
        raise ValueError(f"bandwidths are {s} and {theta}; give positive numbers")
    return block_estimates(parts, y, int(block_length), s, theta)


def block_estimates(parts: Forecasts, y: FloatArray, b: int, s: float, theta: float) -> FloatArray:
    """Estimates (n // b,) of :func:`normalised` forecasts; ``s`` infinite: all alike."""
    found = np.full(y.size // b, np.nan)
    for i in range(0 if np.isnan(theta) else found.size):
        block = slice(i * b, (i + 1) * b)
        some = take_cases(parts, block)
        similarity = _decay(squared_distances(some), s)
        found[i] = skce_unbiased(matrix_of(some, y[block], similarity, theta))
    return found


def subset_bandwidth(parts: Forecasts) -> float:
    """Median positive distance among at most 400 forecasts; infinite if all are the same.

    Where those chosen are all the same, it is taken among forecasts that differ.
    """
    loc, scale, weights = parts
    chosen = subset(len(weights), MEDIAN_CASES)  # type: ignore[arg-type]
    s = positive_median(squared_distances(take_cases(parts, chosen)))
    if np.isfinite(s):
        return s
    rows = [a for a in (loc, scale, weights) if a is not None and a.ndim == 2]
    different = np.unique(np.column_stack(rows), axis=0, return_index=True)[1]
    chosen = np.sort(different)[subset(different.size, MEDIAN_CASES)]
    return positive_median(squared_distances(take_cases(parts, chosen)))
