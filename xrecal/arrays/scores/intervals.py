"""Prediction intervals: coverage, width and scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.weighted import check_levels
from xrecal.arrays.rows import as_rows, check_level, location_blocks, mean_of_known
from xrecal.typing import FloatArray, IntArray

from .quantile_scores import quantile_score

NEAR = 1e-6
"""Two levels are partners if their sum is 1 within this tolerance. The tolerance allows for levels
in single precision."""


class Coverage(NamedTuple):
    """Coverage of intervals, as arrays (...)."""

    coverage: FloatArray
    """Share of observations inside the intervals, ends included"""
    width: FloatArray
    """Mean width in the unit of the observations"""
    n_cases: IntArray
    """Number of complete cases"""


def interval_coverage(observations: FloatArray, low: FloatArray, high: FloatArray) -> Coverage:
    """Compute the share of observations inside their intervals, and the mean interval width.

    Parameters
    ----------
    observations, low, high : array of float, shape (..., n)
        Observations and the ends of the interval of each case, in one unit. The function leaves out
        a case with a NaN or an infinite observation.

    Returns
    -------
    Coverage
        Arrays of float64 and int64, shape (...); share and width are NaN with fewer than 2 cases.
        The mean width is infinite if a width is infinite.

    Raises
    ------
    ValueError
        If shapes differ or an upper end is below its lower end.

    Notes
    -----
    Compare the share with the level of the interval. For n independent cases and a calibrated
    forecast, the standard deviation of the share is sqrt(level (1 - level) / n). An observation on
    the end of an interval counts as inside. So intervals that end at a bound, such as 0 for rain,
    have a coverage above their level. The cost is O(n) per location.

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
        with np.errstate(invalid="ignore"):  # both ends may be infinite
            span = end[block].astype(np.float64) - start[block]
        width[block] = mean_of_known(span, known)
        n_cases[block] = known.sum(-1)
    return Coverage(coverage.reshape(shape), width.reshape(shape), n_cases.reshape(shape))


def interval_score(
    observations: FloatArray, low: FloatArray, high: FloatArray, level: float
) -> FloatArray:
    r"""Compute the interval score, also called Winkler score, of each case.

    Parameters
    ----------
    observations, low, high : array of float, shape (...)
        Observations and the ends of central intervals, in one unit.
    level : float
        Nominal probability of the interval, in (0, 1).

    Returns
    -------
    array of float64, shape (...)
        :math:`(u - l) + \frac{2}{\alpha} \max(l - y, y - u, 0) \ge 0` for the observation y and the
        interval from l to u, with :math:`\alpha = 1 - \mathrm{level}`, in the unit of the
        observations; smaller is better. The score is NaN if an input is NaN or the observation is
        infinite.

    Raises
    ------
    ValueError
        If shapes differ, an upper end is below its lower end or the level is outside (0, 1).

    Notes
    -----
    On average, the score is smallest for an interval between the true quantiles at :math:`\alpha /
    2` and :math:`1 - \alpha / 2`.

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


def weighted_interval_score(
    observations: FloatArray, quantiles: FloatArray, levels: FloatArray
) -> FloatArray:
    r"""Compute the weighted interval score (WIS) of the median and central intervals around it.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in the unit u of the quantiles.
    quantiles : array of float, shape (..., k)
        Forecast quantiles: the median and the ends of the intervals.
    levels : array of float, shape (k,)
        Levels of the quantiles in [0, 1], all different, in any order: ½, and pairs of levels that
        add up to 1.

    Returns
    -------
    array of float64, shape (...)
        :math:`\frac{1}{K + 1/2} (\frac12 |y - m| + \sum_k \frac{\alpha_k}{2} S_{\alpha_k}) \ge 0`
        in u, with the median m and the scores :math:`S_{\alpha_k}` of :func:`interval_score` for
        the K intervals of level :math:`1 - \alpha_k`; smaller is better. The score is NaN if the
        observation or a quantile is NaN.

    Raises
    ------
    ValueError
        If a level is outside [0, 1], lacks its partner (one minus the level) or occurs twice, if
        there is no median, or if shapes do not fit.

    Notes
    -----
    The function computes the same score in another way: as twice the mean of
    :func:`~xrecal.arrays.quantile_score` over the levels. It does not sort quantiles that are in
    the wrong order. For many equally spaced levels, the score is close to the CRPS.

    References
    ----------
    .. [1] Bracher, Ray, Gneiting & Reich (2021), Evaluating epidemic forecasts in an interval
       format. https://doi.org/10.1371/journal.pcbi.1008618

    Examples
    --------
    >>> quantiles = np.array([[1.0, 2.0, 4.0]])
    >>> weighted_interval_score(np.array([5.0]), quantiles, np.array([0.1, 0.5, 0.9])).round(2)
    array([1.87])
    """
    levels = check_symmetric(levels)
    return np.asarray(2.0 * quantile_score(observations, quantiles, levels).mean(-1))


def check_symmetric(levels: npt.ArrayLike) -> FloatArray:
    """Return levels as a float64 array of one axis; raise ValueError unless the WIS allows them."""
    levels = check_levels(levels)
    paired = has_partner(levels)
    ascending = np.sort(levels)
    middle = np.abs(levels - 0.5) <= NEAR
    if paired.all() and middle.any() and (np.diff(ascending) > NEAR).all():
        return levels
    if (np.diff(ascending) <= NEAR).any():
        raise ValueError(f"levels must hold each level once, got {levels}")
    kept = ", ".join(f"{level:g}" for level in levels[paired])
    if not middle.any():
        raise ValueError(
            f"levels must hold the median, 0.5, got {levels}; without the median, "
            "use quantile_score for single quantiles, or interval_score for intervals"
        )
    alone = ", ".join(f"{level:g}" for level in levels[~paired])
    raise ValueError(
        f"levels must be symmetric about 0.5, but one minus the level is missing for {alone}; "
        f"keep the levels that have partners: levels=[{kept}]"
    )


def has_partner(levels: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark levels (k,) with a partner; the partner of a level is one minus this level."""
    apart = np.abs(levels[:, np.newaxis] + levels - 1.0)
    return np.asarray((apart <= NEAR).any(axis=-1))


def _check_ends(low: FloatArray, high: FloatArray) -> None:
    crossed = low > high
    if crossed.any():
        raise ValueError(
            f"low must not be above high, found {low[crossed][0]:g} and {high[crossed][0]:g}; "
            "are they swapped?"
        )
