"""Reproducible random numbers: each is a hash of the seed, the location and the case."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import as_array, namespace
from xrecal.typing import FloatArray, IntArray

# Constants of SplitMix64: step of the counter, and multipliers and shifts for the output.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def hash_uniform(seed: int, location_numbers: IntArray, n: int) -> FloatArray:
    """Return uniform random numbers that depend only on the seed, the location and the case.

    Parameters
    ----------
    seed : int
        Any integer; seeds that differ by a multiple of 2^64 give the same numbers.
    location_numbers : array of int, shape (L,)
        Index of each location in the whole data set. So a location gets the same random numbers
        even if a call has only a part of the data.
    n : int
        Number of cases at each location.

    Returns
    -------
    array of float64, shape (L, n)
        Uniform random numbers in (0, 1), all multiples of 2^-53.

    Raises
    ------
    ValueError
        If the location numbers are not integers, or not an array with one axis.

    Notes
    -----
    The cost is O(1) per number. The numbers of a location are successive outputs of the SplitMix64
    generator, which starts from a hash of the seed and the location.

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
    """Return the numbers of :func:`hash_uniform` for any locations and cases.

    Parameters
    ----------
    seed : int
        Any integer; seeds that differ by a multiple of 2^64 give the same numbers.
    locations, cases : array_like of int >= 0
        Indices of the locations and of the cases in the whole data set. The two arrays broadcast
        with each other.

    Returns
    -------
    array of float64, shape of locations and cases after broadcasting
        Uniform random numbers in (0, 1), all multiples of 2^-53.

    Examples
    --------
    >>> bool(uniform_at(0, 1, 2) == hash_uniform(0, np.array([1]), 3)[0, 2])
    True
    """
    keys = keys_at(seed, locations)
    return _fractions(splitmix64(keys, as_array(cases).astype(np.uint64)))


def uniforms_at(seed: int, locations: IntArray, cases: IntArray, n: int) -> FloatArray:
    """Return several random numbers for each pair of a location and a case.

    Parameters
    ----------
    seed, locations, cases
        The same as in :func:`uniform_at`; locations and cases have one shape (...).
    n : int
        Number of random numbers for each pair of a location and a case.

    Returns
    -------
    array of float64, shape (..., n)
        Uniform random numbers in (0, 1), all multiples of 2^-53.
    """
    streams = splitmix64(keys_at(seed, locations), np.asarray(cases).astype(np.uint64))
    draws = np.arange(n).astype(np.uint64)
    return _fractions(splitmix64(streams[..., np.newaxis], draws))


def _fractions(bits: IntArray) -> FloatArray:
    """Turn random integers (uint64) into numbers in (0, 1)."""
    fractions: FloatArray = as_array(((bits >> np.uint64(12)) + 0.5) * 2.0**-52)
    return fractions


def keys_at(seed: int, locations: npt.ArrayLike) -> IntArray:
    """Return the initial state (uint64) of the random generator of each location."""
    start = splitmix64(np.array([int(seed) % 2**64], dtype=np.uint64), np.zeros(1, np.uint64))
    numbers = as_array(locations).astype(np.uint64)
    return splitmix64(namespace(numbers).asarray(start), numbers)


def splitmix64(state: IntArray, position: IntArray) -> IntArray:
    """Return output number ``position`` (from 0) of SplitMix64 started at ``state``, uint64."""
    with np.errstate(over="ignore"):
        bits = state + (position + np.uint64(1)) * GOLDEN
        for shift, multiplier in MIXING:
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(multiplier)
    outputs: IntArray = as_array(bits ^ (bits >> np.uint64(31)))
    return outputs
