"""Conformal prediction: how far intervals must reach to hold what past ones would have held."""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray

ROUNDING = 1e-9
"""Weights may sum to so much less than a share: without it (1 - 0.7) * 10 would be above 3."""


def conformal_levels(pit: FloatArray, alpha: float) -> FloatArray:
    r"""Levels between which the next observation falls with probability 1 - alpha or more.

    Parameters
    ----------
    pit : array of float, shape (L, n)
        Past probability integral transforms in [0, 1]; NaN: unknown.
    alpha : float
        Probability to fall outside, between 0 and 1.

    Returns
    -------
    array of float64, shape (L, 2)
        :math:`1/2 - Q` and :math:`1/2 + Q` in [0, 1], with Q the k-th smallest of
        :math:`|pit - 1/2|`, k the smallest integer at least (1 - alpha)(n + 1). Where k exceeds
        the number n of known values Q is 1/2: too few to exclude anything. NaN without any.

    Raises
    ------
    ValueError
        If alpha is not between 0 and 1, or ``pit`` is not of two axes.

    Notes
    -----
    O(n log n) a location. The coverage holds for exchangeable cases; with serial dependence or a
    drift only approximately, in long series.

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
    r"""Margins beyond which the next case misses with probability alpha or less.

    Parameters
    ----------
    misses : array of float, shape (L, n)
        How far past observations lay beyond an end of the interval that was forecast, in any unit;
        negative inside of it, NaN: unknown.
    alpha : float
        Probability to lie beyond the end after it is moved, between 0 and 1.
    weights : array of float, shape (L, T, n), optional
        How much past cases count for each of T new ones, with sum one; alike if not given.

    Returns
    -------
    array of float64, shape (L,), or (L, T) with weights
        The k-th smallest miss, k the smallest integer at least (1 - alpha)(n + 1), in the unit of
        the misses. Where k exceeds the number n of known ones no margin is large enough: the
        largest miss, beyond which the next one lies with probability 1/(n + 1). NaN without any.

    Raises
    ------
    ValueError
        If alpha is not between 0 and 1, or ``misses`` is not of two axes.

    Notes
    -----
    O(n log n) a location, O(T n) more with weights. Ends that depend on the forecasts alone need no
    part of the cases to be fitted to: all of them are exchangeable with the next one [1]_. The two
    ends have margins of their own [1]_, as a bias makes only one of them short.

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
    """Smallest of the scores (L, n) at or below which a share of the cases lies, the new one's too.

    The new case counts as one of average weight; its own score may be the largest, so the result
    (L,), or (L, T) by weights (L, T, n), is infinite where there are too few. NaN without any.
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
