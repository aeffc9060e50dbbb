"""Spread and skill: comparison of the spread of forecasts with their errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.calibration.uniformity import count_by_bin
from xrecal.arrays.rows import as_rows, location_blocks, mean_of_known, whole_number
from xrecal.typing import FloatArray

from .significance import standard_error


class SpreadSkill(NamedTuple):
    """Spread and errors, as float64 arrays (...) and (..., bins), in the unit of the forecast."""

    bias: FloatArray
    """Mean error: forecast mean minus observation, averaged over cases"""
    bias_error: FloatArray
    """Standard error of the bias, with allowance for autocorrelation"""
    rmse: FloatArray
    """Root mean square error of the forecast mean"""
    spread: FloatArray
    """Root of the mean variance of the forecasts"""
    ratio: FloatArray
    """Spread divided by rmse: 1 if reliable, less than 1 if overconfident"""
    bin_spread: FloatArray
    bin_rmse: FloatArray
    bin_counts: FloatArray


def spread_skill(
    mean: FloatArray,
    variance: FloatArray,
    observations: FloatArray,
    bins: int = 10,
    n_members: npt.ArrayLike | None = None,
) -> SpreadSkill:
    r"""Compare the spread of forecasts with their errors, over all cases and in bins of spread.

    Parameters
    ----------
    mean, variance : array of float, shape (..., n)
        Mean and variance of each forecast distribution. For ensembles, give the variance with the
        denominator m, which is the square of :func:`xrecal.arrays.weighted_std`. Cases must be in
        order of time for the standard error.
    observations : array of float, shape (..., n)
        Observations, in the unit of the mean. The function leaves out a case with NaN or infinity
        in any array.
    bins : int, default 10
        Number of groups of cases with about equal spread, at least 1.
    n_members : int or array of int, broadcast to shape (..., n), optional
        Number m of members of plain ensembles. The function multiplies their variance by (m + 1) /
        (m - 1), see Notes, and leaves out cases with fewer than 2 members. By default, the function
        does not change the variance. Use the default for forecasts that are not plain ensembles,
        such as normal distributions or weighted ensembles.

    Returns
    -------
    SpreadSkill
        Arrays of shape (...); arrays by bin have shape (..., bins). Bins are in ascending order of
        spread, and their numbers of cases differ by at most one; cases with equal spread are in
        order of time. Results are NaN with fewer than 2 cases, for example over the sea, and in an
        empty bin; the standard error is NaN with fewer than 3 cases. The ratio is NaN if all errors
        are 0.

    Raises
    ------
    ValueError
        If shapes do not fit, if a variance is negative, if ``bins`` is not a positive integer, or
        if all forecasts have at most 1 member.

    Notes
    -----
    Let the observation and m members be random draws from one distribution of variance
    :math:`\sigma^2`. Then the squared error of the ensemble mean is :math:`\frac{m + 1}{m}
    \sigma^2` on average, and the variance with denominator m is :math:`\frac{m - 1}{m} \sigma^2`.
    The function multiplies the variance by (m + 1) / (m - 1). On average, the product equals the
    squared error [1]_. The result is the usual unbiased variance times (m + 1) / m. The spread is
    the root of a mean of variances, not a mean of standard deviations. The cost is O(n log n) per
    location.

    References
    ----------
    .. [1] Fortin et al. (2014), Why should ensemble spread match the RMSE of the ensemble mean?
       https://doi.org/10.1175/JHM-D-14-0008.1

    Examples
    --------
    >>> found = spread_skill(np.zeros(4), np.ones(4), np.array([2.0, -2.0, 2.0, -2.0]), bins=1)
    >>> float(found.rmse), float(found.spread), float(found.ratio)
    (2.0, 1.0, 0.5)
    """
    (centre, square, y), shape = as_rows(mean=mean, variance=variance, observations=observations)
    bins = whole_number("bins", bins, 1)
    if (square < 0).any():
        raise ValueError(f"variance must not be negative, found {square[square < 0][0]:g}")
    factor = _factor(n_members, (*shape, y.shape[1])).reshape(y.shape)
    scalars, by_bin = np.empty((4, len(y))), np.empty((3, len(y), bins))
    for block in location_blocks(len(y), 96 * y.shape[1] + 32 * bins):
        variances = square[block].astype(np.float64) * factor[block]
        errors = centre[block].astype(np.float64) - y[block]
        known = np.isfinite(variances) & np.isfinite(errors)
        errors = np.where(known, errors, np.nan)
        scalars[0, block] = mean_of_known(errors, known)
        scalars[1, block] = standard_error(errors)
        scalars[2, block] = np.sqrt(mean_of_known(errors**2, known))
        scalars[3, block] = np.sqrt(mean_of_known(variances, known))
        by_bin[:, block] = _by_bin(variances, errors**2, known, bins)
    bias, bias_error, rmse, spread = (part.reshape(shape) for part in scalars)
    ratio = np.divide(spread, rmse, where=rmse > 0, out=np.full(shape, np.nan))
    return SpreadSkill(bias, bias_error, rmse, spread, ratio, *by_bin.reshape(3, *shape, bins))


def _factor(n_members: npt.ArrayLike | None, shape: tuple[int, ...]) -> FloatArray:
    """Return the factor (m + 1) / (m - 1) for variances (..., n); NaN for m below 2.

    Without ``n_members`` the factor is 1.
    """
    if n_members is None:
        return np.broadcast_to(1.0, shape)
    m = np.asarray(n_members, dtype=np.float64)
    if (m > 0).any() and not (m >= 2).any():  # zero everywhere: no forecasts, as over the sea
        raise ValueError(f"n_members must be 2 or more, got {m.max():g}: there is no spread")
    try:
        m = np.broadcast_to(m, shape)
    except ValueError:
        raise ValueError(
            f"n_members of shape {m.shape} do not fit cases of shape {shape}"
        ) from None
    enough = np.where(m >= 2, m, np.nan)
    return np.asarray((enough + 1) / (enough - 1))


def _by_bin(
    variances: FloatArray, squares: FloatArray, known: npt.NDArray[np.bool_], bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sort cases (L, n) into bins of variance; return spread, RMSE and size of bins (L, bins)."""
    order = np.argsort(np.where(known, variances, np.nan), axis=-1, kind="stable")
    count = known.sum(-1, keepdims=True)
    place = np.empty(order.shape, np.int64)
    np.put_along_axis(place, order, np.arange(order.shape[1]) * bins // np.maximum(count, 1), -1)
    counts = count_by_bin(place, known, bins)
    at = (place + bins * np.arange(len(place))[:, np.newaxis])[known]
    spread, rmse = np.full((2, *counts.shape), np.nan)
    for part, out in ((variances, spread), (squares, rmse)):
        total = np.bincount(at, part[known], counts.size).reshape(counts.shape)
        np.sqrt(np.divide(total, counts, where=counts > 0, out=out), out=out)
    return spread, rmse, counts
