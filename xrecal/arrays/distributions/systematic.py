"""Systematic draws from discrete distributions: as even as whole numbers allow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

from .draws import uniform_at
from .members import shuffled_members

UNIT = 2.0**36
"""Weights are added up as multiples of 1 / UNIT: whole numbers have one sum in any order."""


def whole_weights(weights: FloatArray) -> IntArray:
    """Weights as whole multiples of ``1 / UNIT``; 0 for a missing one.

    Parameters
    ----------
    weights : array of float, shape (...)
        In [0, 1]. Sums over 2^27 distributions fit an int64.

    Returns
    -------
    array of int64, shape (...)
        Rounded to 1.5e-11. Float sums would depend on how the summands are cut into chunks.

    Examples
    --------
    >>> whole_weights(np.array([0.5, np.nan])) / whole_weights(np.array([1.0]))
    array([0.5, 0. ])
    """
    scaled = np.asarray(weights, dtype=np.float64) * UNIT
    return np.asarray(np.rint(np.where(np.isnan(scaled), 0.0, scaled)).astype(np.int64))


def systematic_draws(
    totals: IntArray, n: int, seed: int, cases: npt.ArrayLike, places: npt.ArrayLike = 0
) -> IntArray:
    """Draw n items of each discrete distribution, each item about n times its probability.

    Parameters
    ----------
    totals : array of int, shape (..., N)
        Weights >= 0 of N items, such as sums of :func:`whole_weights`; need not be normalised.
    n : int
        How many draws, at least 1.
    seed : int
        Any integer; it counts modulo 2^64.
    cases : array of int, shape (...)
        Number of the case of each distribution in the whole data set.
    places : array of int, shape (...), optional
        And of its location, where locations are drawn for independently.

    Returns
    -------
    array of int64, shape (..., n)
        Items from 0 to N - 1 in random order; -1 where all weights are 0. An item of probability p
        is drawn floor(n p) or ceil(n p) times, n p times on average over seeds.

    Notes
    -----
    Systematic sampling [1]_: n evenly spaced points on the cumulated weights, moved together by
    one random number a case. O(N + n log N) a distribution.

    References
    ----------
    .. [1] Madow & Madow (1944), On the theory of systematic sampling, I.
       https://doi.org/10.1214/aoms/1177731312

    Examples
    --------
    >>> np.bincount(systematic_draws(np.array([1, 3]), 8, 0, 0))
    array([2, 6])
    """
    totals, numbers = np.asarray(totals), np.asarray(cases)
    rows = totals.reshape(-1, totals.shape[-1]).cumsum(-1)
    at = np.broadcast_to(places, numbers.shape)
    start = uniform_at(seed, at, numbers).reshape(-1)
    drawn = np.full((len(rows), n), -1)
    for row, cumulated in enumerate(rows):
        whole = cumulated[-1]
        if whole > 0:
            points = (np.arange(n) + start[row]) / n * whole
            below = np.minimum(points.astype(np.int64), whole - 1)  # the last one may be rounded up
            drawn[row] = np.searchsorted(cumulated, below, side="right")
    shaped = drawn.reshape(*numbers.shape, n).astype(np.float64)
    shuffled = shuffled_members(shaped, seed, at, numbers)
    return np.asarray(shuffled.astype(np.int64))
