"""Successive cases that depend on each other: how far, and waves that vary as their mean does.

A series of n cases is the sum of its mean and of n - 1 cosines, of which the j-th has j half waves.
Slow ones, up to n / b - 1 where b successive cases count as one, are as uncertain as the mean,
whatever the dependence: they are the measure of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

SHARE = 0.7
"""Of the frequency at which the spectrum of a process of first order is half of that at zero."""

CAUTION = 0.5
"""Standard errors of an autocorrelation that are added to it, as too little costs more."""

LARGEST = 0.995
"""Of an autocorrelation."""

FEWEST_WAVES = 3
"""With fewer slow waves than this the data cannot tell how uncertain their mean is."""

CLEAR = 2.58
"""Standard errors beyond which an autocorrelation is no chance: 0.5 % of independent series."""


def block_lengths(autocorrelation: FloatArray, n: IntArray, share: float = SHARE) -> IntArray:
    r"""Number b of successive cases that count as one, from the autocorrelation of neighbours.

    Parameters
    ----------
    autocorrelation : array of float, shape (...)
        As estimated from n cases about their mean, in [-1, 1].
    n : array of int, shape (...)
    share : float
        Of the frequency below, that the waves reach.

    Returns
    -------
    array of int64, shape (...)
        At least 1.

    Notes
    -----
    The spectrum of an autoregressive process of first order with autocorrelation :math:`\rho` falls
    to half of its height at zero at the frequency :math:`(1 - \rho) / \sqrt \rho`. The n / b - 1
    waves that are kept reach ``share`` of it: with 0.7 a t-test at 5 % rejects about 6 %. To the
    estimate is added its bias, :math:`(1 + 3 \rho) / n`, and half of its standard error.
    """
    n = np.maximum(n, 1)
    rho = autocorrelation + (1 + 3 * np.maximum(autocorrelation, 0)) / n + CAUTION / np.sqrt(n)
    rho = np.clip(rho, 0.0, LARGEST)
    length = np.rint(np.pi * np.sqrt(rho) / (share * (1 - rho)))
    return np.asarray(np.maximum(length, 1), dtype=np.int64)


def neighbour_correlation(series: FloatArray) -> FloatArray:
    """Autocorrelation (...) of neighbours in series (..., n) about their mean; 0 if constant."""
    deviation = series - series.mean(-1, keepdims=True)
    # What rounding leaves of a constant series would be alike at all times.
    deviation[np.ptp(series, axis=-1) == 0.0] = 0.0
    square = (deviation * deviation).sum(-1)
    product = (deviation[..., 1:] * deviation[..., :-1]).sum(-1)
    return np.asarray(product / np.where(square > 0, square, 1.0))


def is_dependent(autocorrelation: FloatArray, n: IntArray) -> npt.NDArray[np.bool_]:
    """Whether neighbours are more alike than those of independent cases would be by chance."""
    return np.asarray(autocorrelation * np.sqrt(n) > CLEAR)


def waves(series: FloatArray, n_waves: int) -> FloatArray:
    """Scaled sum and first cosines (n_waves + 1, ...) of series (n, ...), each of unit length.

    For Gaussian series whose mean is zero, rows are independent with one distribution as far as the
    spectrum is flat.
    """
    from scipy.fft import dct

    return np.asarray(dct(series, type=2, axis=0, norm="ortho")[: n_waves + 1])


def rotations(rng: np.random.Generator, n_resamples: int, n_waves: int) -> FloatArray:
    """Random directions (n_resamples, n_waves + 1): where a rotation takes the scaled sum."""
    directions = rng.standard_normal((n_resamples, n_waves + 1))
    directions /= np.sqrt(np.einsum("bi,bi->b", directions, directions))[:, np.newaxis]
    return directions


def dates_of(known: npt.NDArray[np.bool_], simultaneous: int) -> IntArray:
    """Number, from 0 without gaps, of the date of each known case, of those that stand (n,).

    ``simultaneous`` successive cases have one date.
    """
    date = np.flatnonzero(known) // simultaneous
    return np.unique(date, return_inverse=True)[1].astype(np.int64)
