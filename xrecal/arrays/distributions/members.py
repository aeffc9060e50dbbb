"""Members that count equally: in order, or in one drawn for each forecast, without ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import inner, kernel
from xrecal.typing import FloatArray, IntArray

from .draws import GOLDEN, MIXING, keys_at, splitmix64
from .weighted import weighted_quantile

(SHIFT_1, FACTOR_1), (SHIFT_2, FACTOR_2) = (
    (np.uint64(shift), np.uint64(factor)) for shift, factor in MIXING
)
LAST_SHIFT, TO_FRACTION, ONE = np.uint64(31), np.uint64(11), np.uint64(1)


def equal_members(
    members: FloatArray, n_members: int, weights: FloatArray | None = None
) -> FloatArray:
    """Members that count equally: quantiles at the levels (i - ½) / n_members.

    Parameters
    ----------
    members, weights
        As in :func:`xrecal.arrays.weighted_mean`.
    n_members : int
        How many, at least 1.

    Returns
    -------
    array of float64, shape (..., n_members) or (..., T, n_members)
        Ascending. Among n points with equal weights these have the smallest distance to the
        forecast in the 1-Wasserstein sense.

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
    """Members of each forecast in a reproducible random order of its own.

    Parameters
    ----------
    members : array of float, shape (..., n)
        In any unit and order, such as :func:`xrecal.arrays.equal_members`.
    seed : int
        Any integer; it counts modulo 2^64.
    locations, cases : array of int, shape (...)
        Number of the location and of the case of each forecast in the whole data set, so that
        chunks make no difference.

    Returns
    -------
    array of float64, shape (..., n)
        The same values. Every order is equally likely, independent of those of other locations,
        cases and seeds: member k of two locations has no more in common than any two members.

    Raises
    ------
    ValueError
        If shapes do not match, or numbers are no integers.

    Notes
    -----
    O(n) a forecast. A Fisher-Yates shuffle [1]_ whose draws are the SplitMix64 stream of a key
    made from seed, location and case.

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
        found = np.asarray(numbers)
        if found.shape != shuffled.shape[:-1] or not np.issubdtype(found.dtype, np.integer):
            raise ValueError(
                f"{name} must be integers of shape {shuffled.shape[:-1]}, "
                f"got {found.dtype} of shape {found.shape}"
            )
    keys = splitmix64(keys_at(seed, locations), np.asarray(cases).astype(np.uint64))
    rows = shuffled.reshape(-1, shuffled.shape[-1])
    _shuffle_rows(rows, np.ascontiguousarray(keys.reshape(-1)))
    return shuffled


@inner
def _splitmix64(state: Any, position: Any) -> Any:
    """Output of SplitMix64, as :func:`xrecal.arrays.distributions.draws.splitmix64`."""
    bits = state + (position + ONE) * GOLDEN
    bits = (bits ^ (bits >> SHIFT_1)) * FACTOR_1
    bits = (bits ^ (bits >> SHIFT_2)) * FACTOR_2
    return bits ^ (bits >> LAST_SHIFT)


@kernel
def _shuffle_rows(rows: Any, keys: Any) -> None:
    """Shuffle each row (N, n) in place by the stream of its key (N,)."""
    for row in range(rows.shape[0]):
        for last in range(rows.shape[1] - 1, 0, -1):
            bits = _splitmix64(keys[row], np.uint64(last))
            fraction = np.float64(bits >> TO_FRACTION) * 2.0**-53  # times last + 1 stays below it
            chosen = int(fraction * (last + 1))
            rows[row, last], rows[row, chosen] = rows[row, chosen], rows[row, last]
