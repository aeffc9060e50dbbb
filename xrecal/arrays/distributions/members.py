"""Equally weighted members, in an ascending or random order, or in the order of a template.

:func:`equal_members` returns quantiles as members, in ascending order. :func:`shuffled_members`
gives the members of each forecast a random order. :func:`reordered_members` orders members so that
each member is consistent over places and variables. :func:`systematic_draws` draws past cases or
other items with given probabilities; :func:`whole_weights` prepares its weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Keys, OutMatrix, inner, kernel
from xrecal.typing import FloatArray, IntArray

from .draws import GOLDEN, MIXING, keys_at, splitmix64, uniform_at, uniforms_at
from .weighted import weighted_quantile

(SHIFT_1, FACTOR_1), (SHIFT_2, FACTOR_2) = (
    (np.uint64(shift), np.uint64(factor)) for shift, factor in MIXING
)
LAST_SHIFT, TO_FRACTION, ONE = np.uint64(31), np.uint64(11), np.uint64(1)

UNIT = 2.0**36
"""Weights are rounded to integer multiples of 1 / UNIT, because sums of integers do not depend on
the order of the terms."""


def equal_members(
    members: FloatArray, n_members: int, weights: FloatArray | None = None
) -> FloatArray:
    """Return equally weighted members: quantiles at the levels (i - ½) / n_members.

    Parameters
    ----------
    members, weights
        The same as in :func:`xrecal.arrays.weighted_mean`.
    n_members : int
        Number of members to return, at least 1.

    Returns
    -------
    array of float64, shape (..., n_members) or (..., T, n_members)
        Members in ascending order, for i = 1, ..., n_members. The area between their CDF and the
        CDF of the forecast is called the 1-Wasserstein distance. No other set of ``n_members``
        equally weighted members has a smaller distance to the forecast.

    Raises
    ------
    ValueError
        If ``n_members`` is not a positive integer.

    Examples
    --------
    >>> equal_members(np.array([1.0, 2.0, 3.0, 4.0]), 2)
    array([1., 3.])
    """
    if int(n_members) != n_members or n_members < 1:
        raise ValueError(f"n_members must be a positive integer, got {n_members}")
    return weighted_quantile(members, (np.arange(n_members) + 0.5) / n_members, weights)


def shuffled_members(
    members: FloatArray, seed: int, locations: IntArray, cases: IntArray
) -> FloatArray:
    """Put the members of each forecast in a reproducible random order.

    Parameters
    ----------
    members : array of float, shape (..., n)
        Members in any unit and order, such as those of :func:`xrecal.arrays.equal_members`.
    seed : int
        Any integer; seeds that differ by a multiple of 2^64 give the same order.
    locations, cases : array of int, shape (...)
        Index of the location and index of the case of each forecast in the whole data set. So a
        forecast gets the same order even if a call has only a part of the data.

    Returns
    -------
    array of float64, shape (..., n)
        The members in their new order. Every order is equally likely. The order of a forecast is
        independent of the orders at other locations, in other cases and for other seeds. So the
        k-th members at two locations do not belong together.

    Raises
    ------
    ValueError
        If shapes do not match, or ``locations`` or ``cases`` are not integers.

    Notes
    -----
    The cost is O(n) per forecast. The method is a Fisher-Yates shuffle [1]_. It takes its random
    numbers from the SplitMix64 generator, started from a hash of the seed, the location and the
    case.

    References
    ----------
    .. [1] Durstenfeld (1964), Algorithm 235: random permutation.
       https://doi.org/10.1145/364520.364540

    Examples
    --------
    >>> members = np.array([[1.0, 2.0, 3.0]])
    >>> np.sort(shuffled_members(members, 0, np.array([0]), np.array([7])))
    array([[1., 2., 3.]])
    """
    shuffled = np.array(members, dtype=np.float64, order="C")
    for name, numbers in {"locations": locations, "cases": cases}.items():
        given = np.asarray(numbers)
        if given.shape != shuffled.shape[:-1] or not np.issubdtype(given.dtype, np.integer):
            raise ValueError(
                f"{name} must be integers of shape {shuffled.shape[:-1]}, "
                f"got {given.dtype} of shape {given.shape}"
            )
    keys = splitmix64(keys_at(seed, locations), np.asarray(cases).astype(np.uint64))
    rows = shuffled.reshape(-1, shuffled.shape[-1])
    _shuffle_rows(rows, np.ascontiguousarray(keys.reshape(-1)))
    return shuffled


@inner
def _splitmix64(state: Any, position: Any) -> Any:
    """Compute :func:`xrecal.arrays.distributions.draws.splitmix64` in compiled code."""
    bits = state + (position + ONE) * GOLDEN
    bits = (bits ^ (bits >> SHIFT_1)) * FACTOR_1
    bits = (bits ^ (bits >> SHIFT_2)) * FACTOR_2
    return bits ^ (bits >> LAST_SHIFT)


@kernel
def _shuffle_rows(rows: OutMatrix, keys: Keys) -> None:
    """Shuffle each row (N, n) in place, with random numbers that depend on its key (N,)."""
    for row in range(rows.shape[0]):
        for last in range(rows.shape[1] - 1, 0, -1):
            bits = _splitmix64(keys[row], np.uint64(last))
            fraction = np.float64(bits >> TO_FRACTION) * 2.0**-53  # below 1
            chosen = int(fraction * (last + 1))
            rows[row, last], rows[row, chosen] = rows[row, chosen], rows[row, last]


def reordered_members(
    members: FloatArray, template: FloatArray, seed: int, cases: IntArray
) -> FloatArray:
    """Order the members of each forecast like the values of a template.

    Parameters
    ----------
    members : array of float, shape (..., n)
        Members in any unit and order.
    template : array of float, shape (..., n)
        Values that determine the order: raw members [1]_, or observations at n dates [2]_.
    seed : int
        Any integer; seeds that differ by a multiple of 2^64 give the same result.
    cases : array of int, shape (...)
        Index of the case of each forecast in the whole data set. All places of a case use the same
        random numbers.

    Returns
    -------
    array of float64, shape (..., n)
        The members of each forecast in their new order. The k-th smallest member has the position
        that the k-th smallest value has in the template.

    Raises
    ------
    ValueError
        If shapes do not match, or ``cases`` are not integers.

    Notes
    -----
    Each position in the template has one random number per case, uniform in (0, 1), which is the
    same at all places. The function puts equal values of the template, such as dry members, in the
    order of these numbers. It replaces a missing value of the template by a quantile of the known
    values; the level of this quantile is the random number of the position. The cost is O(n log n)
    per forecast.

    References
    ----------
    .. [1] Schefzik, Thorarinsdottir & Gneiting (2013), Uncertainty quantification in complex
       simulation models using ensemble copula coupling. https://doi.org/10.1214/13-STS443
    .. [2] Clark et al. (2004), The Schaake shuffle.
       https://doi.org/10.1175/1525-7541(2004)005<0243:TSSAMF>2.0.CO;2

    Examples
    --------
    >>> members, template = np.array([[1.0, 2.0, 3.0]]), np.array([[5.0, 9.0, 7.0]])
    >>> reordered_members(members, template, 0, np.array([0]))
    array([[1., 3., 2.]])
    """
    ascending = np.sort(np.asarray(members, dtype=np.float64), axis=-1)
    pattern, numbers = np.asarray(template), np.asarray(cases)
    if pattern.shape != ascending.shape:
        raise ValueError(
            f"template has shape {pattern.shape}, but members have {ascending.shape}; each "
            "member needs one value of the template"
        )
    if numbers.shape != ascending.shape[:-1] or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            f"cases must be integers of shape {ascending.shape[:-1]}, "
            f"got {numbers.dtype} of shape {numbers.shape}"
        )
    n = ascending.shape[-1]
    order = _order(pattern, uniforms_at(seed, np.zeros_like(numbers), numbers, n))
    reordered = np.empty_like(ascending)
    np.put_along_axis(reordered, order, ascending, axis=-1)
    return reordered


def _order(template: FloatArray, uniform: FloatArray) -> IntArray:
    """Return the positions of the values of the template (..., n), in ascending order of values."""
    order = np.lexsort((uniform, template), axis=-1)  # missing values last
    missing = np.isnan(template)
    if missing.any():
        n = template.shape[-1]
        n_known = np.maximum(n - missing.sum(-1, keepdims=True), 1)
        levels = np.empty(template.shape)
        np.put_along_axis(levels, order, (np.arange(n) + 0.5) / n_known, axis=-1)
        levels = np.where(missing, uniform, levels)
        order = np.lexsort((uniform, levels), axis=-1)
    return np.asarray(order)


def whole_weights(weights: FloatArray) -> IntArray:
    """Turn weights into integers: multiples of ``1 / UNIT``.

    Parameters
    ----------
    weights : array of float, shape (...)
        Weights in [0, 1]; NaN marks a missing weight.

    Returns
    -------
    array of int64, shape (...)
        Weights in units of ``1 / UNIT`` (1.5e-11), rounded; 0 for a missing weight. Sums of these
        integers do not depend on the order of summation; sums of floats do. An int64 can hold the
        sum of up to 2^27 weights.

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
    """Draw n items from each of several discrete distributions; an item may be drawn several times.

    Parameters
    ----------
    totals : array of int, shape (..., N)
        Weights >= 0 of N items, such as sums of :func:`whole_weights`. The probability of an item
        is its weight divided by the sum of the weights.
    n : int
        Number of draws from each distribution, at least 1.
    seed : int
        Any integer; seeds that differ by a multiple of 2^64 give the same draws.
    cases : array of int, shape (...)
        Index of the case of each distribution in the whole data set.
    places : array of int, shape (...), optional
        Index of the location of each distribution. Draws at different locations are independent.

    Returns
    -------
    array of int64, shape (..., n)
        Indices of the drawn items, from 0 to N - 1, in random order; -1 where all weights are 0. An
        item with probability p occurs floor(n p) or ceil(n p) times, and n p times on average over
        seeds.

    Notes
    -----
    The method is systematic sampling [1]_. It places n evenly spaced points on the cumulated
    weights, and shifts all points by one random number per case and location. The cost is
    O(N + n log N) per distribution.

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
            below = np.minimum(points.astype(np.int64), whole - 1)  # against rounding
            drawn[row] = np.searchsorted(cumulated, below, side="right")
    shaped = drawn.reshape(*numbers.shape, n).astype(np.float64)
    shuffled = shuffled_members(shaped, seed, at, numbers)
    return np.asarray(shuffled.astype(np.int64))
