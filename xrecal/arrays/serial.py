"""Autocorrelation of successive cases, and slow waves that show how uncertain their mean is.

A series of n cases is the sum of its mean and of n - 1 cosines; the j-th cosine has j half waves.
If b successive cases count as one, the waves up to n / b - 1 are slow: they are as uncertain as the
mean, whatever the dependence. So they measure the uncertainty of the mean.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

SHARE = 0.7
"""Share of waves to use, of the frequency at which a first-order spectrum is half its height at
0."""

CAUTION = 0.5
"""Standard errors added to an autocorrelation, because a value too small does more harm."""

LARGEST = 0.995
"""Largest autocorrelation."""

FEWEST_WAVES = 3
"""Least number of slow waves for an estimate of the uncertainty of their mean."""

CLEAR = 2.58
"""Number of standard errors above which an autocorrelation is significant: 0.5 % of independent
series exceed it."""


def block_lengths(autocorrelation: FloatArray, n: IntArray, share: float = SHARE) -> IntArray:
    r"""Return the number b of successive cases that count as one, by lag-1 autocorrelation.

    Parameters
    ----------
    autocorrelation : array of float, shape (...)
        Estimates from n cases about their mean, in [-1, 1].
    n : array of int, shape (...)
    share : float
        Share of the frequency below, in Notes, up to which waves are used.

    Returns
    -------
    array of int64, shape (...)
        At least 1.

    Notes
    -----
    The spectrum of an autoregressive process of first order with autocorrelation :math:`\rho` falls
    to half of its height at frequency zero at the frequency :math:`(1 - \rho) / \sqrt \rho`. The n
    / b - 1 waves used reach ``share`` of this frequency: with 0.7, a t-test at 5 % rejects about 6
    %. The estimate is increased by its bias, :math:`(1 + 3 \rho) / n`, and half of its standard
    error.
    """
    n = np.maximum(n, 1)
    rho = autocorrelation + (1 + 3 * np.maximum(autocorrelation, 0)) / n + CAUTION / np.sqrt(n)
    rho = np.clip(rho, 0.0, LARGEST)
    length = np.rint(np.pi * np.sqrt(rho) / (share * (1 - rho)))
    return np.asarray(np.maximum(length, 1), dtype=np.int64)


def neighbour_correlation(series: FloatArray) -> FloatArray:
    """Return the lag-1 autocorrelation (...) of series (..., n) about their mean; 0 if constant."""
    deviation = series - series.mean(-1, keepdims=True)
    # Rounding errors of a constant series would be autocorrelated.
    deviation[np.ptp(series, axis=-1) == 0.0] = 0.0
    square = (deviation * deviation).sum(-1)
    product = (deviation[..., 1:] * deviation[..., :-1]).sum(-1)
    return np.asarray(product / np.where(square > 0, square, 1.0))


def is_dependent(autocorrelation: FloatArray, n: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether the autocorrelation is larger than chance allows for independent cases."""
    return np.asarray(autocorrelation * np.sqrt(n) > CLEAR)


def waves(series: FloatArray, n_waves: int) -> FloatArray:
    """Return the scaled sum and first cosines (n_waves + 1, ...) of series, each of unit length.

    For Gaussian series of mean zero, rows are independent with one distribution if the spectrum is
    flat there.
    """
    from scipy.fft import dct

    return np.asarray(dct(series, type=2, axis=0, norm="ortho")[: n_waves + 1])


def rotations(rng: np.random.Generator, n_resamples: int, n_waves: int) -> FloatArray:
    """Draw directions (n_resamples, n_waves + 1): images of the scaled sum under rotations."""
    directions = rng.standard_normal((n_resamples, n_waves + 1))
    directions /= np.sqrt(np.einsum("bi,bi->b", directions, directions))[:, np.newaxis]
    return directions


def dates_of(known: npt.NDArray[np.bool_], simultaneous: int) -> IntArray:
    """Return the date number, from 0 without gaps, of each known case among cases (n,).

    Each date has ``simultaneous`` successive cases.
    """
    date = np.flatnonzero(known) // simultaneous
    return np.unique(date, return_inverse=True)[1].astype(np.int64)
