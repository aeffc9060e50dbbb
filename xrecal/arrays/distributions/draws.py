"""Reproducible random numbers: a hash of the seed, the location and the case."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import as_array, namespace
from xrecal.typing import FloatArray, IntArray

# SplitMix64: the step of its counter, and multipliers and shifts of its output.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def hash_uniform(seed: int, location_numbers: IntArray, n: int) -> FloatArray:
    """Reproducible uniform numbers that depend only on seed, location and case.

    Parameters
    ----------
    seed : int
        Any integer, taken modulo 2^64.
    location_numbers : array of int, shape (L,)
        Number of each location in the whole data set, so that the result does not depend on chunks.
    n : int
        Number of cases at each location.

    Returns
    -------
    array of float64, shape (L, n)
        Multiples of 2^-53 inside (0, 1).

    Raises
    ------
    ValueError
        If the location numbers are not integers along one axis.

    Notes
    -----
    O(1) per number. Each location has the SplitMix64 stream of a key made from seed and location.

    References
    ----------
    .. [1] Steele, Lea & Flood (2014), Fast splittable pseudorandom number generators.
       https://doi.org/10.1145/2660193.2660195

    Examples
    --------
    >>> numbers = hash_uniform(0, np.array([0, 1]), 3)
    >>> bool((hash_uniform(0, np.array([1]), 3) == numbers[1]).all())
    True
    """
    numbers = np.asarray(location_numbers)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            "location_numbers must be integers of shape (L,), "
            f"got {numbers.dtype} of shape {numbers.shape}"
        )
    return uniform_at(seed, numbers[:, np.newaxis], np.arange(n))


def uniform_at(seed: int, locations: npt.ArrayLike, cases: npt.ArrayLike) -> FloatArray:
    """Return the numbers of :func:`hash_uniform` for any locations and cases, which broadcast.

    Parameters
    ----------
    seed : int
        Any integer, taken modulo 2^64.
    locations, cases : array_like of int >= 0
        Number of the location and of the case in the whole data set.

    Returns
    -------
    array of float64, shape of both after broadcasting
        Multiples of 2^-53 inside (0, 1).

    Examples
    --------
    >>> bool(uniform_at(0, 1, 2) == hash_uniform(0, np.array([1]), 3)[0, 2])
    True
    """
    keys = keys_at(seed, locations)
    return _fractions(splitmix64(keys, as_array(cases).astype(np.uint64)))


def uniforms_at(seed: int, locations: IntArray, cases: IntArray, n: int) -> FloatArray:
    """Return several numbers for each location and case.

    Parameters
    ----------
    seed, locations, cases
        As for :func:`uniform_at`, both of one shape (...).
    n : int
        Number of random numbers for each location and case.

    Returns
    -------
    array of float64, shape (..., n)
        Multiples of 2^-53 inside (0, 1).
    """
    streams = splitmix64(keys_at(seed, locations), np.asarray(cases).astype(np.uint64))
    draws = np.arange(n).astype(np.uint64)
    return _fractions(splitmix64(streams[..., np.newaxis], draws))


def _fractions(bits: IntArray) -> FloatArray:
    """Return numbers inside (0, 1) from random bits, uint64."""
    fractions: FloatArray = as_array(((bits >> np.uint64(12)) + 0.5) * 2.0**-52)
    return fractions


def keys_at(seed: int, locations: npt.ArrayLike) -> IntArray:
    """Return the state of the stream of each location, uint64."""
    start = splitmix64(np.array([int(seed) % 2**64], dtype=np.uint64), np.zeros(1, np.uint64))
    numbers = as_array(locations).astype(np.uint64)
    return splitmix64(namespace(numbers).asarray(start), numbers)


def splitmix64(state: IntArray, position: IntArray) -> IntArray:
    """Return outputs of SplitMix64, uint64, at positions from 0 of streams with a given state."""
    with np.errstate(over="ignore"):
        bits = state + (position + np.uint64(1)) * GOLDEN
        for shift, multiplier in MIXING:
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(multiplier)
    outputs: IntArray = as_array(bits ^ (bits >> np.uint64(31)))
    return outputs
