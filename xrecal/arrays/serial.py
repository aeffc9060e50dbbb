"""Autocorrelation of successive cases, and slow waves, which show how uncertain the mean is.

A series of n cases is the sum of its mean and of n - 1 cosine waves; wave j has j half periods. If
b successive cases count as one, the first n / b - 1 waves are slow. Whatever the autocorrelation,
the amplitudes of slow waves vary about as much as the mean. So these amplitudes measure the
uncertainty of the mean.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

SHARE = 0.7
"""Highest frequency of slow waves, divided by a frequency that :func:`block_lengths` defines."""

CAUTION = 0.5
"""Number of standard errors that :func:`block_lengths` adds to an autocorrelation. Too small an
autocorrelation does more harm than too large an autocorrelation."""

LARGEST = 0.995
""":func:`block_lengths` replaces larger autocorrelations by this value."""

FEWEST_WAVES = 3
"""With fewer slow waves than this, the uncertainty of the mean cannot be estimated."""

CLEAR = 2.58
"""An autocorrelation is significant if it exceeds this number of standard errors. Of all
independent series, 0.5 % exceed this limit."""


def block_lengths(autocorrelation: FloatArray, n: IntArray, share: float = SHARE) -> IntArray:
    r"""Return the number b of successive cases that count as one, from the autocorrelation.

    Parameters
    ----------
    autocorrelation : array of float, shape (...)
        Lag-1 autocorrelation, in [-1, 1], as estimated from n cases.
    n : array of int, shape (...)
        Number of cases.
    share : float
        Highest frequency of slow waves, divided by the frequency in Notes.

    Returns
    -------
    array of int64, shape (...)
        Block length b, at least 1.

    Notes
    -----
    The spectrum of a first-order autoregressive process with lag-1 autocorrelation :math:`\rho` is
    highest at frequency zero. At the frequency :math:`(1 - \rho) / \sqrt \rho` it has half of this
    height. A serial test uses n / b - 1 slow cosine waves. Their highest frequency is ``share``
    times the frequency at half height; this condition determines b. With a share of 0.7, a t-test
    at the level 5 % rejects a true hypothesis with a probability of about 6 %. An estimated
    autocorrelation is too small on average. So the function adds the expected error, :math:`(1 + 3
    \rho) / n`, and half a standard error to it.
    """
    n = np.maximum(n, 1)
    rho = autocorrelation + (1 + 3 * np.maximum(autocorrelation, 0)) / n + CAUTION / np.sqrt(n)
    rho = np.clip(rho, 0.0, LARGEST)
    length = np.rint(np.pi * np.sqrt(rho) / (share * (1 - rho)))
    return np.asarray(np.maximum(length, 1), dtype=np.int64)


def neighbour_correlation(series: FloatArray) -> FloatArray:
    """Return the lag-1 autocorrelation (...) of series (..., n); 0 for a constant series."""
    deviation = series - series.mean(-1, keepdims=True)
    # Rounding errors of a constant series would be autocorrelated.
    deviation[np.ptp(series, axis=-1) == 0.0] = 0.0
    square = (deviation * deviation).sum(-1)
    product = (deviation[..., 1:] * deviation[..., :-1]).sum(-1)
    return np.asarray(product / np.where(square > 0, square, 1.0))


def is_dependent(autocorrelation: FloatArray, n: IntArray) -> npt.NDArray[np.bool_]:
    """Return True if the lag-1 autocorrelation of n cases is too large for independent cases."""
    return np.asarray(autocorrelation * np.sqrt(n) > CLEAR)


def waves(series: FloatArray, n_waves: int) -> FloatArray:
    """Return the scaled sum and the first cosine transforms (n_waves + 1, ...) of series (n, ...).

    Each row is the product of the series with a unit vector. For Gaussian series of mean zero whose
    spectrum is flat at low frequencies, rows are independent and have the same distribution.
    """
    from scipy.fft import dct

    return np.asarray(dct(series, type=2, axis=0, norm="ortho")[: n_waves + 1])


def rotations(rng: np.random.Generator, n_resamples: int, n_waves: int) -> FloatArray:
    """Draw random unit vectors (n_resamples, n_waves + 1).

    The vectors are rows of random rotation matrices.
    """
    directions = rng.standard_normal((n_resamples, n_waves + 1))
    directions /= np.sqrt(np.einsum("bi,bi->b", directions, directions))[:, np.newaxis]
    return directions


def dates_of(known: npt.NDArray[np.bool_], simultaneous: int) -> IntArray:
    """Return the index of the date of each known case; ``known`` (n,) marks known cases.

    ``simultaneous`` is the number of successive cases with the same date. Only dates with known
    cases get an index; the first index is 0.
    """
    date = np.flatnonzero(known) // simultaneous
    return np.unique(date, return_inverse=True)[1].astype(np.int64)
