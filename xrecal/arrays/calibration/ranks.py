"""Rank histograms: ranks of observations among ensemble members, and tests for flat histograms."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from xrecal.arrays.rows import as_rows, check_probability, location_blocks, whole_number
from xrecal.arrays.status import FEWEST
from xrecal.typing import FloatArray, IntArray

from .uniformity import count_by_bin


class Flatness(NamedTuple):
    """Results of tests for flat rank histograms, as arrays (...) of float64.

    A small p-value shows that a histogram is not flat.
    """

    statistic: FloatArray
    """Pearson's chi-square; its degrees of freedom are the number of ranks minus one"""
    p_value: FloatArray
    slope: FloatArray
    """Linear part of the differences from a flat histogram, positive if forecasts are too low;
    nearly standard normal if forecasts are calibrated"""
    slope_p_value: FloatArray
    convexity: FloatArray
    """U-shaped part of the differences, positive if the spread is too small; nearly standard normal
    if forecasts are calibrated"""
    convexity_p_value: FloatArray


def observation_ranks(
    observations: FloatArray, members: FloatArray, uniform: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Find the rank of each observation among the members; ties get a random rank.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in the unit of the members.
    members : array of float, shape (..., m)
        Equally weighted members.
    uniform : array of float, shape (...)
        Random numbers in [0, 1], such as those of :func:`xrecal.arrays.hash_uniform`. They choose
        among the possible ranks if members equal the observation.

    Returns
    -------
    rank : array of float64, shape (...)
        Number of members below the observation, from 0 to m. If k members equal the observation, as
        on dry days, each of the k + 1 possible ranks is equally likely. The rank is NaN if the
        observation, the random number or any member is missing or infinite.
    n_members : array of int64, shape (...)
        Number of members that are not NaN, from 0 to m.

    Raises
    ------
    ValueError
        If shapes do not match or a random number is outside [0, 1].

    Notes
    -----
    Ranks among fewer members have a smaller range, so a case with a missing member gets no rank. If
    a member is missing in all cases, remove this member first. The cost is O(m) per case.

    References
    ----------
    .. [1] Hamill (2001), Interpretation of rank histograms for verifying ensemble forecasts.
       https://doi.org/10.1175/1520-0493(2001)129<0550:IORHFV>2.0.CO;2

    Examples
    --------
    >>> members = np.array([1.0, 2.0, 3.0])
    >>> ranks, n_members = observation_ranks(np.array(2.5), members, np.array(0.5))
    >>> float(ranks), int(n_members)
    (2.0, 3)
    """
    members = np.asarray(members)
    shape, m = members.shape[:-1], members.shape[-1] if members.ndim else 0
    parts = {"observations": np.asarray(observations), "uniform": np.asarray(uniform)}
    for name, part in parts.items():
        if members.ndim == 0 or part.shape != shape:
            raise ValueError(
                f"{name} of shape {part.shape} do not fit members of shape {members.shape}, "
                "which need one further axis at the end"
            )
    check_probability("uniform", parts["uniform"])
    rows = members.reshape(math.prod(shape), m)
    y, u = (part.reshape(len(rows)) for part in parts.values())
    rank, n_members = np.empty(len(rows)), np.empty(len(rows), np.int64)
    for block in location_blocks(len(rows), 8 * m):
        x, target = rows[block], y[block, np.newaxis]
        ties = (x == target).sum(-1)
        among = np.minimum(np.floor(u[block].astype(np.float64) * (ties + 1)), ties)
        complete = np.isfinite(x).all(-1) & np.isfinite(y[block])
        rank[block] = np.where(complete, (x < target).sum(-1) + among, np.nan)
        n_members[block] = m - np.isnan(x).sum(-1)
    return rank.reshape(shape), n_members.reshape(shape)


def rank_counts(ranks: FloatArray, n_ranks: int) -> FloatArray:
    """Count the cases of each rank: the rank histogram.

    Parameters
    ----------
    ranks : array of float, shape (..., n)
        Whole numbers from 0 to n_ranks - 1, such as ranks of :func:`observation_ranks`; the
        function ignores NaN.
    n_ranks : int
        Number of members plus one, at least 2.

    Returns
    -------
    array of float64, shape (..., n_ranks)
        Number of cases of each rank; NaN with fewer than 2 cases.

    Raises
    ------
    ValueError
        If a rank is out of range or not a whole number.

    Examples
    --------
    >>> rank_counts(np.array([0.0, 2.0, 2.0, 1.0]), 3)
    array([1., 1., 2.])
    """
    (rows,), shape = as_rows(ranks=ranks)
    n_ranks = whole_number("n_ranks", n_ranks, 2)
    known = ~np.isnan(rows)
    wrong = known & ((rows < 0) | (rows >= n_ranks) | (rows != np.floor(rows)))
    if wrong.any():
        raise ValueError(
            f"ranks must be whole numbers from 0 to {n_ranks - 1}, found {rows[wrong][0]:g}; "
            "n_ranks is the number of members plus one"
        )
    place = np.where(known, rows, 0).astype(np.int64)
    return count_by_bin(place, known, n_ranks).reshape(*shape, n_ranks)


def flatness_test(counts: FloatArray) -> Flatness:
    r"""Test whether a histogram is flat, and whether it has a slope or a U shape.

    Parameters
    ----------
    counts : array of float, shape (..., k)
        Number of cases of each rank, or in each bin of a PIT histogram; k is at least 2.

    Returns
    -------
    Flatness
        Arrays of shape (...), with NaN where a count is NaN or there are fewer than 2 cases. The
        convexity is NaN for 2 ranks, because two counts cannot have a U shape.

    Raises
    ------
    ValueError
        If a count is negative or infinite, or k is below 2.

    Notes
    -----
    Let :math:`n_i` be the count of rank i, e the expected count, which is the same for all ranks,
    and :math:`x_i = (n_i - e) / \sqrt e`. Chi-square is :math:`\sum x_i^2`. Slope and convexity are
    :math:`\sum u_i x_i` with coefficients u that are linear in i for the slope and quadratic in i
    for the convexity. The two vectors u are orthogonal to each other and to a constant, and have
    length one. So the squares of slope and convexity are two of the k - 1 independent parts of
    chi-square [1]_. Slope and convexity each react to one shape only. So they detect a bias (slope)
    or a wrong spread (convexity) with fewer cases than chi-square.

    The p-value of chi-square is accurate if each rank has about 5 expected cases or more. The
    p-values of slope and convexity assume that their squares have chi-square distributions with one
    degree of freedom. All p-values are valid for independent cases, and too small for
    autocorrelated cases.

    References
    ----------
    .. [1] Jolliffe & Primo (2008), Evaluating rank histograms using decompositions of the
       chi-square test statistic. https://doi.org/10.1175/2007MWR2219.1

    Examples
    --------
    >>> flat = flatness_test(np.array([20.0, 5.0, 5.0, 20.0]))
    >>> float(flat.statistic.round(2)), float(flat.p_value.round(4))
    (18.0, 0.0004)
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim == 0 or counts.shape[-1] < 2:
        raise ValueError(f"counts must have shape (..., ranks), ranks >= 2, got {counts.shape}")
    wrong = (counts < 0) | np.isinf(counts)
    if wrong.any():
        raise ValueError(f"counts must be 0 or more and finite, found {counts[wrong][0]:g}")
    total = counts.sum(-1, keepdims=True)
    expected = np.where(total < FEWEST, np.nan, total) / counts.shape[-1]
    x = (counts - expected) / np.sqrt(expected)
    statistic = (x * x).sum(-1)
    slope, convexity = ((x * u).sum(-1) for u in _contrasts(counts.shape[-1]))
    p_values = chdtrc(counts.shape[-1] - 1.0, statistic), chdtrc(1.0, slope**2)
    tests = statistic, p_values[0], slope, p_values[1], convexity, chdtrc(1.0, convexity**2)
    return Flatness(*(np.asarray(part) for part in tests))


def _contrasts(k: int) -> tuple[FloatArray, FloatArray]:
    """Return linear and quadratic coefficients for k ranks, as vectors (k,) of length one.

    The quadratic coefficients are NaN for 2 ranks.
    """
    linear = np.arange(k) - (k - 1) / 2
    quadratic = linear**2 - (linear**2).mean()
    if k == 2:
        quadratic = np.full(k, np.nan)
    return linear / np.sqrt((linear**2).sum()), quadratic / np.sqrt((quadratic**2).sum())
