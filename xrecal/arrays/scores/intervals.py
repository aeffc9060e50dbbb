"""Prediction intervals: how often they hold the observation, how wide they are, their score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.rows import as_rows, check_level, location_blocks, mean_of_known
from xrecal.typing import FloatArray, IntArray


class Coverage(NamedTuple):
    """Coverage of intervals, arrays (...)."""

    coverage: FloatArray
    """Share of observations inside, ends included"""
    width: FloatArray
    """Mean width in the unit of the observations"""
    n_cases: IntArray
    """Complete cases"""


def interval_coverage(observations: FloatArray, low: FloatArray, high: FloatArray) -> Coverage:
    """Share of observations inside their intervals, and the mean width of these.

    Parameters
    ----------
    observations, low, high : array of float, shape (..., n)
        What verified and the ends of the interval of each case, in one unit. A case with a NaN or
        an infinite observation is left out.

    Returns
    -------
    Coverage
        Float64 and int64 of shape (...); share and width are NaN with fewer than 2 cases. The
        width is infinite where one is.

    Raises
    ------
    ValueError
        If shapes differ or an upper end is below its lower end.

    Notes
    -----
    Compare the share with the level: of n independent cases it varies by
    sqrt(level (1 - level) / n). An observation on the end of an interval is inside, so intervals
    that end at a bound (no rain) hold more than their level. O(n) a location.

    Examples
    --------
    >>> found = interval_coverage(np.array([1.0, 2.0, 9.0, 4.0]), np.zeros(4), np.full(4, 5.0))
    >>> float(found.coverage), float(found.width)
    (0.75, 5.0)
    """
    (y, start, end), shape = as_rows(observations=observations, low=low, high=high)
    _check_ends(start, end)
    coverage, width = np.empty((2, len(y)))
    n_cases = np.empty(len(y), np.int64)
    for block in location_blocks(len(y), 40 * y.shape[1]):
        known = np.isfinite(y[block]) & ~(np.isnan(start[block]) | np.isnan(end[block]))
        inside = (start[block] <= y[block]) & (y[block] <= end[block])
        coverage[block] = mean_of_known(inside, known)
        with np.errstate(invalid="ignore"):  # both ends at the same infinity
            span = end[block].astype(np.float64) - start[block]
        width[block] = mean_of_known(span, known)
        n_cases[block] = known.sum(-1)
    return Coverage(coverage.reshape(shape), width.reshape(shape), n_cases.reshape(shape))


def interval_score(
    observations: FloatArray, low: FloatArray, high: FloatArray, level: float
) -> FloatArray:
    r"""Interval score, also called Winkler score, of each case.

    Parameters
    ----------
    observations, low, high : array of float, shape (...)
        What verified and the ends of central intervals, in one unit.
    level : float
        Probability that the interval promises, in (0, 1).

    Returns
    -------
    array of float64, shape (...)
        :math:`(u - l) + \frac{2}{\alpha} \max(l - y, y - u, 0) \ge 0` with
        :math:`\alpha = 1 - \mathrm{level}`, in the unit of the observations; smaller is better.
        NaN where an input is NaN or the observation is infinite.

    Raises
    ------
    ValueError
        If shapes differ, an upper end is below its lower end or the level is outside (0, 1).

    Notes
    -----
    Smallest on average for the quantiles at :math:`\alpha / 2` and :math:`1 - \alpha / 2`.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation,
       section 6.2. https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> interval_score(np.array([1.0, 6.0]), np.zeros(2), np.full(2, 5.0), 0.5)
    array([5., 9.])
    """
    check_level(level)
    arrays = {"observations": observations, "low": low, "high": high}
    wanted = {name: np.asarray(part)[..., np.newaxis] for name, part in arrays.items()}
    parts, shape = as_rows(**wanted)
    y, start, end = (part[:, 0].astype(np.float64) for part in parts)
    _check_ends(start, end)
    with np.errstate(invalid="ignore"):  # intervals from infinity to infinity
        outside = np.maximum(np.maximum(start - y, y - end), 0.0)
        score = end - start + 2 / (1 - level) * outside
    return np.where(np.isfinite(y), score, np.nan).reshape(shape)


def _check_ends(low: FloatArray, high: FloatArray) -> None:
    crossed = low > high
    if crossed.any():
        raise ValueError(
            f"low must not be above high, found {low[crossed][0]:g} and {high[crossed][0]:g}; "
            "are they swapped?"
        )
