"""Probability integral transforms: uniform if the forecast is calibrated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.arrays.rows import as_rows, check_probability, location_blocks, whole_number
from xrecal.arrays.status import FEWEST
from xrecal.typing import FloatArray, IntArray


def pit_counts(pit: FloatArray, bins: int = 10) -> FloatArray:
    """PIT histogram: number of cases in equal bins.

    Parameters
    ----------
    pit : array of float, shape (..., n)
        Probability integral transforms in [0, 1], as from :func:`xrecal.arrays.pit_values`; NaN
        cases are left out.
    bins : int, default 10
        Number of bins, at least 1.

    Returns
    -------
    array of float64, shape (..., bins)
        Counts in the bins from k / bins to (k + 1) / bins, the right end in the last one only;
        NaN with fewer than 2 cases.

    Raises
    ------
    ValueError
        If a value is outside [0, 1] or ``bins`` is no positive whole number.

    Notes
    -----
    Bins as in :func:`numpy.histogram`. O(n) a location. :func:`xrecal.arrays.flatness_test` tests
    the counts: a hump is overdispersion, a U underdispersion, a slope a bias.

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
    """Number of known cases (L, n) in each bin 0, 1, ..., (L, n_bins); NaN with too few cases."""
    first = n_bins * np.arange(len(place))[:, np.newaxis]
    counted = np.bincount((place + first)[known], minlength=n_bins * len(place))
    counts = counted.reshape(len(place), n_bins).astype(np.float64)
    counts[known.sum(-1) < FEWEST] = np.nan
    return counts


def uniform_test(pit: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Two-sided Kolmogorov-Smirnov test of a uniform distribution on [0, 1].

    Parameters
    ----------
    pit : array of float, shape (..., n)
        As in :func:`pit_counts`. Randomised where forecasts have atoms, else dry days count
        against a calibrated forecast.

    Returns
    -------
    statistic, p_value : array of float64, shape (...)
        Largest distance :math:`\sup_u |F_n(u) - u|` of the empirical CDF from the uniform one, in
        [0, 1], and its exact p-value; NaN with fewer than 2 cases.

    Raises
    ------
    ValueError
        If a value is outside [0, 1].

    Notes
    -----
    That of :func:`scipy.stats.kstest` with ``mode="exact"``. For independent cases: where
    neighbours in time are alike, p-values are too small. O(n log n) a location, and SciPy's exact
    distribution [1]_, tens of microseconds that hold the interpreter.

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
        p = np.sort(np.clip(rows[block].astype(np.float64), 0.0, 1.0), axis=-1)  # NaN come last
        n = np.maximum(count[block], 1)[:, np.newaxis]
        gap = np.maximum(position / n - p, p - (position - 1) / n)
        statistic[block] = np.where(np.isnan(p), 0.0, gap).max(-1, initial=0.0)
    enough = count >= FEWEST
    statistic[~enough] = np.nan
    p_value[enough] = np.clip(kstwo.sf(statistic[enough], count[enough]), 0.0, 1.0)
    return statistic.reshape(shape), p_value.reshape(shape)
