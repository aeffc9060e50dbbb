"""Matrix of calibration errors over pairs of cases -> p-values of the hypothesis of calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr

from xrecal.arrays.compiled import kernel
from xrecal.arrays.rows import whole_number
from xrecal.typing import FloatArray

from .skce import check_matrix

# Random numbers and products exist for this many resamples times cases at a time.
RESAMPLED = 1_000_000

# Statistics that differ by this share of the largest term count as equal: rounding must not
# decide between a sample and a resample that is the same.
TIES = 1e-12


def skce_test(
    matrix: FloatArray,
    test: str = "bootstrap",
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    location_number: int = 0,
    block_length: int = 1,
) -> float:
    r"""Test whether forecasts are calibrated, by resampling the matrix of their errors.

    Parameters
    ----------
    matrix : array of float, shape (n, n)
        h of :func:`skce_matrix`.
    test : {"bootstrap", "wild"}
        Resampled cases, or random signs, which come closer to their level below 100 cases.
    n_resamples : int, default 1000
        B.
    seed, location_number : int
        Random numbers depend on these two alone.
    block_length : int, default 1
        For "wild", in cases in order of time: how far cases are taken to depend on each other;
        1 for independent ones, which "bootstrap" always assumes.

    Returns
    -------
    float
        Right-tailed p-value, :math:`(1 + \#\{T' \ge T\}) / (B + 1)`; NaN for fewer than two cases
        or a matrix with NaN.

    Raises
    ------
    ValueError
        If the matrix is not square, the test unknown, or a number out of range.

    Notes
    -----
    With U and V the unbiased and biased estimates and C how often each of n cases is drawn, with
    replacement, the bootstrap [1]_ compares :math:`\frac{n}{n-1} U - V` with

    .. math:: \frac{1}{n^2} \Bigl[ \frac{n}{n-1} \bigl(C^T h C - C^T \mathrm{diag}\, h\bigr)
       - 2\, C^T h 1 \Bigr].

    Random signs [2]_ compare :math:`n U` with
    :math:`\varepsilon^T (h - \mathrm{diag}\, h)\, \varepsilon / (n - 1)`. With a block length b
    the b cases of a block share their sign, and blocks begin at a random case, so that cases k
    apart agree with correlation :math:`\max(1 - k/b, 0)` [3]_.

    Serial dependence that is not accounted for makes p-values too small. Strong dependence needs
    blocks of many times its reach, and few blocks leave little power; p-values are then still
    somewhat too small. O(B n²) as matrix products; memory for 1e6 random numbers, or those of one
    resample.

    References
    ----------
    .. [1] Arcones & Giné (1992), On the bootstrap of U and V statistics.
       https://doi.org/10.1214/aos/1176348650
    .. [2] Dehling & Mikosch (1994), Random quadratic forms and the bootstrap for U-statistics.
       https://doi.org/10.1006/jmva.1994.1069
    .. [3] Leucht & Neumann (2013), Dependent wild bootstrap for degenerate U- and V-statistics.
       https://doi.org/10.1016/j.jmva.2013.03.003

    Examples
    --------
    >>> errors = np.array([2.0, 1.0, 3.0, 1.0, 2.0, 2.0])
    >>> skce_test(np.outer(errors, errors), n_resamples=99)
    0.01
    """
    h = check_matrix(matrix)
    n_resamples = whole_number("n_resamples", n_resamples, 1)
    block_length = whole_number("block_length", block_length, 1)
    rng = generator(seed, location_number)
    if test == "bootstrap":
        if block_length != 1:
            raise ValueError(
                f"block_length is {block_length}, but the bootstrap assumes independent cases; "
                "use test='wild'"
            )
        return bootstrap_p_value(h, n_resamples, rng)
    if test == "wild":
        return wild_p_value(h, n_resamples, rng, block_length)
    raise ValueError(f"test is {test!r}; give 'bootstrap' or 'wild' for a matrix")


def bootstrap_p_value(h: FloatArray, n_resamples: int, rng: np.random.Generator) -> float:
    """p-value of the bootstrap of a float64 matrix; see :func:`skce_test`."""
    n = len(h)
    if n < 2 or np.isnan(h).any():
        return np.nan
    diagonal, row = np.diag(h), h.sum(-1)
    unbiased = (row.sum() - diagonal.sum()) / (n * (n - 1))
    statistic = n / (n - 1) * unbiased - row.sum() / n**2
    linear = diagonal / (n - 1) + 2 * row / n  # n / (n - 1) (C'h - diag h) - 2 h1 as one factor
    least, count = statistic - TIES * np.abs(h).max(), 0
    for size in chunks(n_resamples, n):
        drawn = np.empty((size, n))
        fill_counts(rng.integers(0, n, (size, n), dtype=np.int32), drawn)
        resampled = drawn @ h
        resampled /= n - 1
        resampled -= linear
        count += int((np.einsum("bi,bi->b", resampled, drawn) >= n * least).sum())
    return (1 + count) / (n_resamples + 1)


def wild_p_value(
    h: FloatArray, n_resamples: int, rng: np.random.Generator, block_length: int = 1
) -> float:
    """p-value with random signs of a float64 matrix; see :func:`skce_test`."""
    n = len(h)
    if n < 2 or np.isnan(h).any():
        return np.nan
    off = h - np.diag(np.diag(h))
    least, count = off.sum() - n**2 * TIES * np.abs(h).max(), 0
    for size in chunks(n_resamples, n):
        signs = random_signs(rng, size, n, block_length)
        count += int((np.einsum("bi,bi->b", signs @ off, signs) >= least).sum())
    return (1 + count) / (n_resamples + 1)


def random_signs(
    rng: np.random.Generator, n_resamples: int, n: int, block_length: int
) -> FloatArray:
    """Signs (n_resamples, n) that b successive cases share, from a random first case on."""
    if block_length == 1:
        return 2.0 * rng.integers(0, 2, (n_resamples, n), dtype=np.int8) - 1.0
    phase = rng.integers(0, block_length, (n_resamples, 1))
    block = (np.arange(n) + phase) // block_length
    of_block = rng.integers(0, 2, (n_resamples, (n - 2) // block_length + 2), dtype=np.int8)
    return 2.0 * np.take_along_axis(of_block, block, axis=-1) - 1.0


def block_p_value(estimates: FloatArray) -> float:
    r"""p-value of estimates from separate blocks of cases, :func:`skce_blocks`.

    Parameters
    ----------
    estimates : array of float, shape (q,)
        Unbiased estimates of the SKCE.

    Returns
    -------
    float
        :math:`1 - \Phi(z)`, with z the mean over its standard error. Equal estimates give 0 if
        they are positive, else 1. NaN with fewer than two blocks.

    Raises
    ------
    ValueError
        If there is not one axis.

    Notes
    -----
    O(q). A normal approximation for many blocks; the order of cases decides who meets whom.

    References
    ----------
    .. [1] Zaremba, Gretton & Blaschko (2013), B-tests: low variance kernel two-sample tests.
       https://papers.nips.cc/paper/5081

    Examples
    --------
    >>> round(block_p_value(np.array([0.1, -0.1, 0.2, -0.2])), 2)
    0.5
    """
    found = np.asarray(estimates, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"estimates must have shape (blocks,), got {found.shape}")
    if found.size < 2 or np.isnan(found).any():
        return np.nan
    mean = float(found.mean())
    error = float(found.std(ddof=1)) / math.sqrt(found.size)
    if error <= 1e-15 * abs(mean):  # equal but for rounding
        return 0.0 if mean > 0 else 1.0
    return float(ndtr(-mean / error))


def generator(seed: int, location_number: int) -> np.random.Generator:
    """Random numbers of a location, whatever else is computed with it.

    ``seed`` is any integer and counts modulo 2^64; the number is one from 0.
    """
    return np.random.default_rng(
        [int(seed) % 2**64, whole_number("location_number", location_number, 0)]
    )


def chunks(n_resamples: int, n: int) -> Iterator[int]:
    """Sizes of parts of the resamples, of n numbers each, that depend on nothing else."""
    step = max(1, RESAMPLED // max(n, 1))
    for start in range(0, n_resamples, step):
        yield min(step, n_resamples - start)


@kernel
def fill_counts(drawn: Any, out: Any) -> None:
    """How often each case is drawn, (b, n), from case numbers (b, n)."""
    for b in range(drawn.shape[0]):
        for i in range(drawn.shape[1]):
            out[b, i] = 0.0
        for i in range(drawn.shape[1]):
            out[b, drawn[b, i]] += 1.0
