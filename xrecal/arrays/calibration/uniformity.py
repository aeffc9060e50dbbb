"""Tests whether probability integral transforms (PIT) are uniform.

PIT values of calibrated forecasts are uniform.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.rows import as_rows, check_probability, location_blocks, whole_number
from xrecal.arrays.serial import (
    FEWEST_WAVES,
    block_lengths,
    dates_of,
    is_dependent,
    neighbour_correlation,
    rotations,
    waves,
)
from xrecal.arrays.status import FEWEST
from xrecal.typing import FloatArray, IntArray

LEVELS = np.arange(1, 64) / 64
"""Levels at which :func:`serial_uniform_test` compares the empirical CDF with the uniform CDF."""


def pit_counts(pit: FloatArray, bins: int = 10) -> FloatArray:
    """Count the cases in bins of equal width: the PIT histogram.

    Parameters
    ----------
    pit : array of float, shape (..., n)
        Probability integral transforms (PIT) in [0, 1], such as the results of
        :func:`xrecal.arrays.pit_values`; the function leaves out NaN.
    bins : int, default 10
        Number of bins, at least 1.

    Returns
    -------
    array of float64, shape (..., bins)
        Number of cases in each bin; bin k, from 0, reaches from k / bins to (k + 1) / bins. Only
        the last bin includes its right end. Numbers are NaN with fewer than 2 cases.

    Raises
    ------
    ValueError
        If a value is outside [0, 1] or ``bins`` is not a positive integer.

    Notes
    -----
    The ends of bins are as in :func:`numpy.histogram`. The cost is O(n) per location.
    :func:`xrecal.arrays.flatness_test` tests whether the counts are equal. A hump in the middle of
    the histogram shows too much spread, a U shape shows too little spread, and a slope shows a
    bias.

    Examples
    --------
    >>> pit_counts(np.array([0.1, 0.2, 0.9]), bins=2)
    array([2., 1.])
    """
    (rows,), shape = as_rows(pit=pit)
    bins = whole_number("bins", bins, 1)
    check_probability("pit", rows)
    inner_edges = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    counts = np.empty((len(rows), bins))
    for block in location_blocks(len(rows), 32 * rows.shape[1] + 16 * bins):
        place = np.searchsorted(inner_edges, rows[block], side="right")
        counts[block] = count_by_bin(place, ~np.isnan(rows[block]), bins)
    return counts.reshape(*shape, bins)


def count_by_bin(place: IntArray, known: npt.NDArray[np.bool_], n_bins: int) -> FloatArray:
    """Count the known cases in each bin; return counts (L, n_bins), NaN with fewer than 2 cases.

    ``place`` (L, n) holds the index of the bin of each case, for n cases at each of L locations.
    """
    first = n_bins * np.arange(len(place))[:, np.newaxis]
    counted = np.bincount((place + first)[known], minlength=n_bins * len(place))
    counts = counted.reshape(len(place), n_bins).astype(np.float64)
    counts[known.sum(-1) < FEWEST] = np.nan
    return counts


def uniform_test(pit: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Test whether the PIT is uniform on [0, 1], by a two-sided Kolmogorov-Smirnov test.

    Parameters
    ----------
    pit : array of float, shape (..., n)
        As in :func:`pit_counts`. If forecasts give a positive probability to single values, such as
        no rain, the PIT must be randomised; otherwise dry days make the test reject calibrated
        forecasts.

    Returns
    -------
    statistic, p_value : array of float64, shape (...)
        Largest distance :math:`\sup_u |F_n(u) - u|` of the empirical CDF :math:`F_n` from the
        uniform CDF, in [0, 1], and the exact p-value of this distance; NaN with fewer than 2 cases.

    Raises
    ------
    ValueError
        If a value is outside [0, 1].

    Notes
    -----
    The result equals that of :func:`scipy.stats.kstest` with ``mode="exact"``. p-values are valid
    for independent cases, and too small for autocorrelated cases; see :func:`serial_uniform_test`.
    The cost is O(n log n) per location, plus the cost of SciPy's exact distribution [1]_. SciPy
    holds Python's global lock (GIL) for tens of microseconds.

    References
    ----------
    .. [1] Simard & L'Ecuyer (2011), Computing the two-sided Kolmogorov-Smirnov distribution.
       https://doi.org/10.18637/jss.v039.i11

    Examples
    --------
    >>> statistic, p_value = uniform_test(np.array([0.1, 0.2, 0.3, 0.4]))
    >>> float(statistic.round(2)), float(p_value.round(3))
    (0.6, 0.067)
    """
    from scipy.stats import kstwo

    (rows,), shape = as_rows(pit=pit)
    check_probability("pit", rows)
    count = (~np.isnan(rows)).sum(-1)
    statistic, p_value = np.full((2, len(rows)), np.nan)
    position = np.arange(1.0, rows.shape[1] + 1)
    for block in location_blocks(len(rows), 40 * rows.shape[1]):
        p = np.sort(np.clip(rows[block].astype(np.float64), 0.0, 1.0), axis=-1)  # NaN last
        n = np.maximum(count[block], 1)[:, np.newaxis]
        gap = np.maximum(position / n - p, p - (position - 1) / n)
        statistic[block] = np.where(np.isnan(p), 0.0, gap).max(-1, initial=0.0)
    enough = count >= FEWEST
    statistic[~enough] = np.nan
    p_value[enough] = np.clip(kstwo.sf(statistic[enough], count[enough]), 0.0, 1.0)
    return statistic.reshape(shape), p_value.reshape(shape)


class UniformTest(NamedTuple):
    """Result of :func:`serial_uniform_test`, as arrays (...)."""

    statistic: FloatArray
    """Largest distance of the empirical CDF of the PIT from the uniform CDF"""
    p_value: FloatArray
    """p-value; NaN if the autocorrelation is too strong for the number of cases"""
    block_length: IntArray
    """Number of successive dates that count as one date; 0 with fewer than 2 cases"""
    dependent: npt.NDArray[np.bool_]
    """True if PIT values of successive dates are more alike than chance explains"""


def serial_uniform_test(
    pit: FloatArray,
    block_length: int | None = None,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    simultaneous: int = 1,
) -> UniformTest:
    r"""Test whether the PIT of autocorrelated cases is uniform, by a Kolmogorov-Smirnov test.

    Parameters
    ----------
    pit : array of float, shape (..., n)
        As in :func:`uniform_test`, with cases in order of time.
    block_length : int, optional
        Number of successive dates that count as one date, at least 1. By default the function
        estimates this number.
    n_resamples, seed : int
        Number of random rotations, and seed of random numbers. The seed is the same at all
        locations.
    simultaneous : int, default 1
        Number of successive cases that belong to one date, such as the cases of all places. Cases
        of one date may depend on each other in any way.

    Returns
    -------
    UniformTest
        Arrays of shape (...). If ``simultaneous`` and the block length are 1, the p-value is that
        of :func:`uniform_test`. Statistic and p-value are NaN with fewer than 2 cases.

    Raises
    ------
    ValueError
        If a value is outside [0, 1], a number is out of range, or the number of cases is not a
        multiple of ``simultaneous``.

    Notes
    -----
    Let :math:`e_t(u)` be the sum of :math:`1\{p \le u\} - u` over the PIT values p of date t. Let n
    be the number of dates, and b the block length. The scaled sum over time, and the cosine
    transforms with j half waves for j from 1 to :math:`n / b - 1`, are

    .. math:: \Lambda_0(u) = n^{-1/2} \sum_t e_t(u), \quad \Lambda_j(u) = (2 / n)^{1/2}
       \sum_t e_t(u) \cos \frac{\pi j (t - 1/2)}{n}

    If forecasts are calibrated, these functions of u are nearly independent Gaussian processes with
    one distribution. A rotation of all these processes does not change their distribution, whatever
    the autocorrelation of the cases [1]_. The test compares the largest :math:`|\Lambda_0(u)|` over
    63 levels u with the largest values after random rotations [2]_. The test is like
    :func:`xrecal.arrays.diebold_mariano`, but for a distribution instead of a mean. By default, the
    function estimates two block lengths and takes the larger one. The first is for the PIT, the
    second for the squared distance of the PIT from ½. The cost is O(n log n) plus
    O(n_resamples n / b) per location.

    References
    ----------
    .. [1] Lazarus, Lewis, Stock & Watson (2018), HAR inference: recommendations for practice.
       https://doi.org/10.1080/07350015.2018.1506926
    .. [2] Langsrud (2005), Rotation tests. https://doi.org/10.1007/s11222-005-4789-5

    Examples
    --------
    >>> slow = np.repeat([0.1, 0.2, 0.35, 0.3, 0.15], 20)
    >>> found = serial_uniform_test(slow)
    >>> bool(uniform_test(slow)[1] < 1e-9), bool(np.isnan(found.p_value)), bool(found.dependent)
    (True, True, True)
    """
    statistic, exact = uniform_test(pit)
    (rows,), shape = as_rows(pit=pit)
    simultaneous = whole_number("simultaneous", simultaneous, 1)
    n_resamples = whole_number("n_resamples", n_resamples, 1)
    if rows.shape[1] % simultaneous:
        raise ValueError(f"{rows.shape[1]} cases are not a multiple of simultaneous={simultaneous}")
    given = None if block_length is None else whole_number("block_length", block_length, 1)
    p_value, length = exact.reshape(-1).copy(), np.zeros(len(rows), np.int64)
    dependent = np.zeros(len(rows), np.bool_)
    for i in np.flatnonzero(~np.isnan(p_value)):
        by_date = _sums_by_date(rows[i].astype(np.float64), simultaneous)
        n = by_date.shape[0]
        correlation = neighbour_correlation(by_date[:, -2:].T)
        dependent[i] = is_dependent(correlation, n).any()
        length[i] = block_lengths(correlation, n).max() if given is None else given
        if length[i] > 1 or simultaneous > 1:
            n_waves = n // int(length[i]) - 1
            rng = np.random.default_rng([seed % 2**64, n_waves + 1])
            enough = n_waves >= (FEWEST_WAVES if given is None else 1)
            p_value[i] = _rotated(by_date[:, :-2], n_waves, n_resamples, rng) if enough else np.nan
    parts = statistic.reshape(-1), p_value, length, dependent
    return UniformTest(*(part.reshape(shape) for part in parts))  # type: ignore[arg-type]


def _sums_by_date(p: FloatArray, simultaneous: int) -> FloatArray:
    """Sum up ``1{p <= u} - u`` at all levels u, and two moments, over the cases of each date.

    ``p`` (n,) are the PIT values. The moments are p - ½ and (p - ½)² - 1/12.
    """
    known = ~np.isnan(p)
    p = p[known, np.newaxis]
    centred = p - 0.5
    each = np.concatenate([(p <= LEVELS) - LEVELS, centred, centred**2 - 1 / 12], axis=-1)
    if simultaneous == 1:
        return each
    date = dates_of(known, simultaneous)
    return np.asarray(np.add.reduceat(each, np.searchsorted(date, np.arange(date[-1] + 1)), axis=0))


def _rotated(
    by_date: FloatArray, n_waves: int, n_resamples: int, rng: np.random.Generator
) -> float:
    slow = waves(by_date, n_waves)
    least = np.abs(slow[0]).max() * (1 - 1e-12)
    largest = np.abs(rotations(rng, n_resamples, n_waves) @ slow).max(-1)
    return (1 + int((largest >= least).sum())) / (n_resamples + 1)
