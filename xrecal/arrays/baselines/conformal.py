"""Conformal prediction: intervals that cover new observations as often as past observations."""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray

ROUNDING = 1e-9
"""The module subtracts this number from a rank before it rounds the rank up. For example, the rank
(1 - 0.7) * 10 is 3, but its computed value is above 3."""


def conformal_levels(pit: FloatArray, alpha: float) -> FloatArray:
    r"""Compute the levels of two forecast quantiles that enclose the next observation.

    The next observation lies between the two quantiles with a probability of at least 1 - alpha.

    Parameters
    ----------
    pit : array of float, shape (L, n)
        Probability integral transforms of past cases, in [0, 1]; NaN if unknown.
    alpha : float
        Largest probability of an observation outside the interval, between 0 and 1.

    Returns
    -------
    array of float64, shape (L, 2)
        :math:`1/2 - Q` and :math:`1/2 + Q` in [0, 1], where Q is the k-th smallest :math:`|pit -
        1/2|`, and k is the smallest integer that is at least (1 - alpha)(n + 1). If k exceeds the
        number n of known values, Q is 1/2: there are too few cases, so the interval is the whole
        range of the forecast. The levels are NaN if no value is known.

    Raises
    ------
    ValueError
        If alpha is not between 0 and 1, or ``pit`` does not have two axes.

    Notes
    -----
    The cost is O(n log n) per location. The coverage is guaranteed for exchangeable cases. With
    autocorrelation or a drift, the coverage is only approximate, and only if the series is long.

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
    r"""Compute the margin by which one end of a forecast interval must move outwards.

    The next observation lies beyond the moved end with a probability of at most alpha.

    Parameters
    ----------
    misses : array of float, shape (L, n)
        Distance by which each past observation lies beyond this end of its forecast interval, in
        any unit. The distance is negative for an observation on the other side of this end, and
        NaN if unknown.
    alpha : float
        Largest probability of an observation beyond the moved end, between 0 and 1.
    weights : array of float, shape (L, T, n), optional
        Weights of past cases for each of T new cases. Their sum is one. By default, all weights
        are equal.

    Returns
    -------
    array of float64, shape (L,), or (L, T) with weights
        Without weights, the k-th smallest miss, where k is the smallest integer that is at least
        (1 - alpha)(n + 1). If k exceeds the number n of known misses, no margin is large enough.
        The result is then the largest miss, which the next miss exceeds with a probability of
        1/(n + 1). Margins have the unit of the misses, and are NaN if no miss is known.

    Raises
    ------
    ValueError
        If alpha is not between 0 and 1, or ``misses`` does not have two axes.

    Notes
    -----
    The cost is O(n log n) per location, and O(T n) more with weights. The ends must depend on the
    forecasts alone, and not on a fit to the past cases. Then all past cases are exchangeable with
    the next case [1]_; only then does the probability above hold. Each end has its own margin [1]_,
    because a bias makes the interval too short at one end only.

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
    """Return the smallest score (L,) such that a given share of the cases have at most this score.

    The cases include the new case, which has the mean weight of all cases. Its score is unknown and
    counts as the largest, so the result is infinite if there are too few cases. If no score is
    known, the result is NaN. Weights (L, T, n) of the cases give a result (L, T).
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
