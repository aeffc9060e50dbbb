"""Conformal prediction: ends of intervals that would have held past observations."""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray

ROUNDING = 1e-9
"""Tolerance for rounding of sums of weights: without it, (1 - 0.7) * 10 would be above 3."""


def conformal_levels(pit: FloatArray, alpha: float) -> FloatArray:
    r"""Compute levels between which the next observation lies with probability 1 - alpha or more.

    Parameters
    ----------
    pit : array of float, shape (L, n)
        Past probability integral transforms in [0, 1]; NaN if unknown.
    alpha : float
        Probability outside the interval, between 0 and 1.

    Returns
    -------
    array of float64, shape (L, 2)
        :math:`1/2 - Q` and :math:`1/2 + Q` in [0, 1], where Q is the k-th smallest :math:`|pit -
        1/2|`, and k is the smallest integer that is at least (1 - alpha)(n + 1). If k exceeds the
        number n of known values, these are too few to exclude any value, and Q is 1/2. NaN without
        known values.

    Raises
    ------
    ValueError
        If alpha is not between 0 and 1, or ``pit`` is not of two axes.

    Notes
    -----
    O(n log n) per location. The coverage is guaranteed for exchangeable cases; with serial
    dependence or a drift it is approximate, for long series.

    References
    ----------
    .. [1] Chernozhukov, Wüthrich & Zhu (2021), Distributional conformal prediction.
       https://doi.org/10.1073/pnas.2107794118

    Examples
    --------
    >>> conformal_levels(np.array([[0.1, 0.3, 0.5, 0.7, 0.8]]), 0.5).round(2)
    array([[0.3, 0.7]])
    """
    pit = np.asarray(pit, np.float64)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    if pit.ndim != 2:
        raise ValueError(f"pit must have shape (locations, cases), got {pit.shape}")
    half = np.minimum(smallest_holding(np.abs(pit - 0.5), 1.0 - alpha), 0.5)
    return np.stack([0.5 - half, 0.5 + half], axis=-1)


def conformal_margins(
    misses: FloatArray, alpha: float, weights: FloatArray | None = None
) -> FloatArray:
    r"""Compute margins that the next case exceeds with probability alpha or less.

    Parameters
    ----------
    misses : array of float, shape (L, n)
        Distance of past observations beyond an end of the forecast interval, in any unit; negative
        inside the interval; NaN if unknown.
    alpha : float
        Probability beyond the end after it is moved, between 0 and 1.
    weights : array of float, shape (L, T, n), optional
        Weights of past cases for each of T new ones, with sum one; equal by default.

    Returns
    -------
    array of float64, shape (L,), or (L, T) with weights
        The k-th smallest miss, in the unit of the misses, where k is the smallest integer that is
        at least (1 - alpha)(n + 1). If k exceeds the number n of known misses, no margin is large
        enough. The result is then the largest miss; the next miss exceeds it with probability 1/(n
        + 1). NaN without known misses.

    Raises
    ------
    ValueError
        If alpha is not between 0 and 1, or ``misses`` is not of two axes.

    Notes
    -----
    The cost is O(n log n) per location, and O(T n) more with weights. If the ends depend on the
    forecasts alone, no cases are needed to fit them, so all cases are exchangeable with the next
    one [1]_. Each end has its own margin [1]_, because a bias makes only one end too short.

    References
    ----------
    .. [1] Romano, Patterson & Candès (2019), Conformalized quantile regression.
       https://arxiv.org/abs/1905.03222

    Examples
    --------
    >>> conformal_margins(np.array([[0.4, -0.2, 1.5, 0.1]]), 0.3)
    array([1.5])
    """
    misses = np.asarray(misses, np.float64)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    if misses.ndim != 2:
        raise ValueError(f"misses must have shape (locations, cases), got {misses.shape}")
    margin = smallest_holding(misses, 1.0 - alpha, weights)
    largest = np.where(np.isnan(misses), -np.inf, misses).max(-1, initial=-np.inf)
    return np.asarray(np.minimum(margin, largest if weights is None else largest[:, np.newaxis]))


def smallest_holding(
    score: FloatArray, share: float, weights: FloatArray | None = None
) -> FloatArray:
    """Return the smallest score that a share of the cases, including the new one, does not exceed.

    The new case has average weight, and its own score may be the largest. So the result, (L,) or
    (L, T) with weights (L, T, n), is infinite with too few cases. The result is NaN without any
    score.
    """
    known = ~np.isnan(score)
    n = known.sum(-1)
    if weights is None:
        shares = np.where(known, 1.0 / np.maximum(n, 1)[:, np.newaxis], 0.0)[:, np.newaxis]
        shares[n == 0] = np.nan
    else:
        shares = weights
    order = np.argsort(score, axis=-1)  # NaN last
    ascending = np.take_along_axis(np.where(known, score, np.inf), order, axis=-1)[:, np.newaxis]
    below = np.cumsum(np.take_along_axis(shares, order[:, np.newaxis], axis=-1), axis=-1)
    count = n[:, np.newaxis, np.newaxis]
    enough = below * count >= share * (count + 1) - ROUNDING
    least = np.where(enough, ascending, np.inf).min(-1, initial=np.inf)
    least[np.isnan(below).any(-1)] = np.nan
    return np.asarray(least[:, 0] if weights is None else least)
