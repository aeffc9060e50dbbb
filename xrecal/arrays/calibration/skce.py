"""Squared kernel calibration error (SKCE): terms of all pairs of cases, estimates, and tests.

Public functions come first. The functions below them also serve :func:`skce_locations`: they select
usable cases, and compute the two kernels, the matrix, and p-values by resampling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from xrecal.arrays.compiled import IndexMatrix32, OutMatrix, kernel
from xrecal.arrays.distributions.distance import pairwise_distances, shared_distances
from xrecal.arrays.distributions.forms import VALID, Forecasts, verdicts
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, positive_median, subset
from xrecal.arrays.rows import whole_number
from xrecal.arrays.serial import (
    FEWEST_WAVES,
    block_lengths,
    is_dependent,
    neighbour_correlation,
    rotations,
    waves,
)
from xrecal.typing import FloatArray, IntArray

from .expectations import expectations, normalised, take_cases, target_bandwidth

# How many random numbers and products are in memory at a time (resamples times cases).
RESAMPLED = 1_000_000

SHARE = 0.45
"""Argument ``share`` of :func:`xrecal.arrays.serial.block_lengths` for the test "serial". A smaller
share gives longer blocks. It is below the default, because the statistic of this test, a sum of
squares, has larger errors."""

COMPONENTS, ITERATIONS = 2, 12
"""Number of principal components of the errors in which :func:`error_correlation` measures
autocorrelation, and number of iterations with which it finds the components."""

# Two statistics count as equal if they differ by at most this share of the largest term.
# Otherwise rounding would decide whether an equal resample is larger.
TIES = 1e-12


def skce_matrix(
    similarity: FloatArray, target: FloatArray, cross: FloatArray, within: FloatArray
) -> FloatArray:
    r"""Compute the terms of the squared kernel calibration error (SKCE) for all pairs of cases.

    Parameters
    ----------
    similarity : array of float, shape (n, n)
        Similarities :math:`k_{ij} = k(P_i, P_j)` of forecasts, symmetric.
    target : array of float, shape (n, n)
        Similarities :math:`l_{ij} = l(y_i, y_j)` of observations, symmetric.
    cross : array of float, shape (n, n)
        :math:`A_{ij} = E\,l(Z_i, y_j)`, where :math:`Z_i` has the distribution of forecast i.
    within : array of float, shape (n, n)
        :math:`M_{ij} = E\,l(Z_i, Z'_j)`, where Z and Z' are independent, also for i = j; symmetric.

    Returns
    -------
    array of float64, shape (n, n)
        :math:`h_{ij} = k_{ij} (l_{ij} - A_{ij} - A_{ji} + M_{ij})`, without unit. The matrix is
        symmetric, and positive semi-definite if both kernels are positive definite. If forecasts
        are calibrated, the terms of pairs of independent cases are 0 on average.

    Raises
    ------
    ValueError
        If the four matrices are not square, or differ in shape.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2021), Calibration tests beyond classification.
       https://openreview.net/forum?id=-bxf89v3Nx

    Examples
    --------
    >>> skce_matrix([[1.0]], [[1.0]], [[0.25]], [[0.25]])
    array([[0.75]])
    """
    parts = [np.asarray(a, dtype=np.float64) for a in (similarity, target, cross, within)]
    shape = parts[0].shape
    if len(shape) != 2 or any(a.shape != (shape[0], shape[0]) for a in parts):
        shapes = ", ".join(str(a.shape) for a in parts)
        raise ValueError(f"similarity, target, cross, within must all be (n, n), got {shapes}")
    k, target, cross, within = parts
    h = target - (cross + cross.T)
    h += within
    h *= k
    return h


def skce_unbiased(matrix: FloatArray) -> float:
    r"""Compute the unbiased estimate of the SKCE, :math:`\frac{2}{n (n-1)} \sum_{i<j} h_{ij}`.

    Parameters
    ----------
    matrix : array of float, shape (n, n)
        Terms h, from :func:`skce_matrix`.

    Returns
    -------
    float
        Estimate below 2, which may be negative; NaN with fewer than two cases.

    Raises
    ------
    ValueError
        If the matrix is not square.

    Examples
    --------
    >>> skce_unbiased(np.array([[1.0, 0.5], [0.5, 1.0]]))
    0.5
    """
    h = check_matrix(matrix)
    n = len(h)
    return float((h.sum() - np.trace(h)) / (n * (n - 1))) if n > 1 else np.nan


def skce_biased(matrix: FloatArray) -> float:
    r"""Compute the biased estimate :math:`n^{-2} \sum_{ij} h_{ij} \ge 0`, including terms i = j.

    Parameters and errors are those of :func:`skce_unbiased`. The result is NaN without cases. On
    average the estimate exceeds the SKCE by about the mean of :math:`h_{ii}`, divided by n.

    Examples
    --------
    >>> skce_biased(np.array([[1.0, 0.5], [0.5, 1.0]]))
    0.75
    """
    h = check_matrix(matrix)
    return max(float(h.mean()), 0.0) if h.size else np.nan


def case_matrix(
    forecasts: Forecasts, observations: FloatArray, *, augmented: bool = False
) -> FloatArray:
    r"""Compute the matrix h of :func:`skce_matrix` for the cases of one location.

    Parameters
    ----------
    forecasts : Forecasts
        As in :func:`laplace_expectations`, in the unit u of the variable.
    observations : array of float, shape (n,)
        Observations in u.
    augmented : bool
        If True, the observation of each case becomes a further member of its plain ensemble, which
        then has m + 1 members of equal weight. Even an ideal ensemble has sampling errors if it has
        few members. With enough cases, the test mistakes these errors for a lack of calibration.
        The augmented ensemble is calibrated if observation and members are exchangeable, which
        means that the observation could be any of the members.

    Returns
    -------
    array of float64, shape (p, p)
        Terms h for the p cases that have a forecast and an observation, without infinite values.
        The kernel on forecasts is :math:`\exp(-D^2/s)`, where D is the energy distance. The kernel
        on observations is :math:`\exp(-|y-y'|/\theta)`. s is the median positive :math:`D^2`, and
        theta is the median positive :math:`|y-y'|`. If all forecasts are equal, the kernel on
        forecasts is 1. If all observations are equal, the result is NaN. The cost is O(n² m) time,
        or O(n² m²) for mixtures of normal distributions, and the memory of about five arrays (n,
        n).

    Raises
    ------
    ValueError
        If shapes do not match, a weight or a scale is negative or infinite, weights do not sum to
        one, or ``augmented`` is True for forecasts that are not plain ensembles.

    Examples
    --------
    >>> case_matrix(Forecasts(np.array([[0.0], [1.0]])), np.array([1.0, 0.0])).round(2)
    array([[ 1.26, -0.47],
           [-0.47,  1.26]])
    """
    parts, y = usable_cases(forecasts, observations, augmented)
    theta = target_bandwidth(y)
    if np.isnan(theta):
        return np.full((y.size, y.size), np.nan)
    return matrix_of(parts, y, forecast_similarity(parts)[0], theta)


def skce_blocks(
    forecasts: Forecasts,
    observations: FloatArray,
    block_length: int,
    *,
    forecast_bandwidth: float | None = None,
    bandwidth: float | None = None,
    augmented: bool = False,
) -> FloatArray:
    """Compute unbiased estimates of the SKCE, one from each block of successive cases.

    Blocks save time if there are many cases.

    Parameters
    ----------
    forecasts, observations, augmented
        As in :func:`case_matrix`.
    block_length : int
        Number b of cases in a block, at least 2. The function ignores cases after the last complete
        block.
    forecast_bandwidth, bandwidth : float, optional
        Parameters s and theta of the kernels on forecasts and on observations, as in
        :func:`case_matrix`, in u. By default, s is a median over pairs of at most 400 forecasts
        (the same forecasts in every call), and theta is a median over pairs of all observations.

    Returns
    -------
    array of float64, shape (p // b,)
        One estimate for each block of b cases, where p is the number of usable cases. The mean of
        the estimates is an unbiased estimate, too. All estimates are NaN if all observations are
        equal.

    Raises
    ------
    ValueError
        As for :func:`case_matrix`, or if the block length is not a whole number of at least 2, or a
        bandwidth is not positive.

    Notes
    -----
    The cost is O(n b m) time and O(n m + b²) memory.

    Examples
    --------
    >>> skce_blocks(Forecasts(np.zeros((20, 3))), np.arange(20.0), block_length=5).shape
    (4,)
    """
    if int(block_length) != block_length or block_length < 2:
        raise ValueError(f"block_length is {block_length}; give a whole number from 2")
    parts, y = usable_cases(forecasts, observations, augmented)
    s = subset_bandwidth(parts) if forecast_bandwidth is None else float(forecast_bandwidth)
    theta = target_bandwidth(y) if bandwidth is None else float(bandwidth)
    if s <= 0 or theta <= 0 or np.isnan(s):
        raise ValueError(f"bandwidths are {s} and {theta}; give positive numbers")
    return block_estimates(parts, y, int(block_length), s, theta)


def skce_test(
    matrix: FloatArray,
    test: str = "bootstrap",
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    location_number: int = 0,
    block_length: int | None = None,
) -> float:
    r"""Test whether forecasts are calibrated, by resampling the terms of the SKCE.

    Parameters
    ----------
    matrix : array of float, shape (n, n)
        Terms h, from :func:`skce_matrix`. Each case has an error, which is a vector; a term is the
        product of the errors of two cases.
    test : {"bootstrap", "wild", "serial"}
        "bootstrap" draws cases with replacement. "wild" gives the errors of cases random signs;
        with fewer than 100 cases, its p-values are more accurate than those of the bootstrap.
        "serial" is for autocorrelated cases: it compares the sum of the errors with slow cosine
        waves in the errors.
    n_resamples : int, default 1000
        Number B of resamples.
    seed, location_number : int
        Seed of random numbers, and number of the location. Random numbers depend only on these two.
    block_length : int, optional
        Number of successive cases that count as one; 1 means independent cases. Cases must be in
        order of time. "bootstrap" accepts only 1. The default is 1 for "wild"; for "serial" it is
        the result of :func:`skce_block_length`.

    Returns
    -------
    float
        p-value :math:`(1 + \#\{T' \ge T\}) / (B + 1)`, where T is the statistic of the test (see
        Notes) and T' the statistic of a resample. The p-value is NaN with fewer than two cases, and
        for a matrix with NaN. For "serial" it is also NaN if the autocorrelation is too strong for
        the number of cases.

    Raises
    ------
    ValueError
        If the matrix is not square, the test is unknown, or a number is out of range.

    Notes
    -----
    Let U be the unbiased estimate of the SKCE, and V the biased estimate. The bootstrap [1]_ draws
    n cases with replacement, and C counts how often it draws each case. It compares
    :math:`\frac{n}{n-1} U - V` with

    .. math:: \frac{1}{n^2} \Bigl[ \frac{n}{n-1} \bigl(C^T h C - C^T \mathrm{diag}\, h\bigr)
       - 2\, C^T h 1 \Bigr].

    The test "wild" [2]_ compares :math:`n U` with
    :math:`\varepsilon^T (h - \mathrm{diag}\, h)\, \varepsilon / (n - 1)` for random signs
    :math:`\varepsilon`. With a block length b, the b cases of a block share one sign, and the first
    block begins at a random case. So the signs of two cases that are k cases apart have the
    correlation :math:`\max(1 - k/b, 0)` [3]_.

    The test "serial" compares :math:`\frac{1}{n} 1^T h 1 = a_0^T G a_0` with :math:`a^T G a` for
    random directions a. G contains the products of any two of these vectors: the scaled sum of all
    errors, and the first :math:`n / b - 1` cosine transforms of the errors. The direction
    :math:`a_0` selects the scaled sum. For calibrated forecasts, the sum and the transforms are
    independent and have one distribution [4]_. So :math:`a^T G a` has the same distribution for
    every direction a, and the test draws directions by random rotations [5]_. This extends the test
    of :func:`xrecal.arrays.diebold_mariano` from errors that are numbers to errors that are
    vectors.

    A test that ignores autocorrelation has p-values that are too small. With "wild", blocks must be
    many times longer than the time for which cases depend on each other. If the record has only few
    such blocks, the test has little power. The cost is O(B n²), or O(n² log n + B n² / b²) for
    "serial". The memory holds 1e6 random numbers at a time, or one resample if a resample needs
    more.

    References
    ----------
    .. [1] Arcones & Giné (1992), On the bootstrap of U and V statistics.
       https://doi.org/10.1214/aos/1176348650
    .. [2] Dehling & Mikosch (1994), Random quadratic forms and the bootstrap for U-statistics.
       https://doi.org/10.1006/jmva.1994.1069
    .. [3] Leucht & Neumann (2013), Dependent wild bootstrap for degenerate U- and V-statistics.
       https://doi.org/10.1016/j.jmva.2013.03.003
    .. [4] Lazarus, Lewis, Stock & Watson (2018), HAR inference: recommendations for practice.
       https://doi.org/10.1080/07350015.2018.1506926
    .. [5] Langsrud (2005), Rotation tests. https://doi.org/10.1007/s11222-005-4789-5

    Examples
    --------
    >>> errors = np.array([2.0, 1.0, 3.0, 1.0, 2.0, 2.0])
    >>> skce_test(np.outer(errors, errors), n_resamples=99)
    0.01
    """
    h = check_matrix(matrix)
    n_resamples = whole_number("n_resamples", n_resamples, 1)
    length = 1 if block_length is None else whole_number("block_length", block_length, 1)
    rng = generator(seed, location_number)
    if test == "bootstrap":
        if length != 1:
            raise ValueError(
                f"block_length is {length}, but the bootstrap assumes independent cases; "
                "use test='serial'"
            )
        return bootstrap_p_value(h, n_resamples, rng)
    if test == "wild":
        return wild_p_value(h, n_resamples, rng, length)
    if test == "serial":
        given = block_length is not None
        length = length if given else skce_block_length(h)
        return serial_p_value(h, n_resamples, rng, length, given)
    raise ValueError(f"test is {test!r}; give 'bootstrap', 'wild' or 'serial' for a matrix")


def skce_block_length(matrix: FloatArray) -> int:
    """Find the number of successive cases that count as one case in the test "serial".

    Parameters
    ----------
    matrix : array of float, shape (n, n)
        Terms h, from :func:`xrecal.arrays.skce_matrix`, with cases in order of time.

    Returns
    -------
    int
        Block length, at least 1. The function computes a block length from the lag-1
        autocorrelation of each of the two leading principal components of the errors, and returns
        the larger block length.

    Raises
    ------
    ValueError
        If the matrix is not square.

    Notes
    -----
    The cost is O(n²).

    Examples
    --------
    >>> slow = np.repeat([1.0, -1.0, 1.0, 1.0, -1.0], 20)
    >>> skce_block_length(np.outer(slow, slow)) > 20
    True
    """
    h = check_matrix(matrix)
    if len(h) < 2 or np.isnan(h).any():
        return 1
    return chosen_length(h)


def block_p_value(estimates: FloatArray) -> float:
    r"""Compute the p-value of the SKCE from the estimates of :func:`skce_blocks`.

    Parameters
    ----------
    estimates : array of float, shape (q,)
        Unbiased estimates of the SKCE from q blocks.

    Returns
    -------
    float
        p-value :math:`1 - \Phi(z)`, where z is the mean of the estimates, divided by the standard
        error of this mean. If all estimates are equal, the p-value is 0 for positive estimates, and
        1 otherwise. It is NaN with fewer than two blocks.

    Raises
    ------
    ValueError
        If the estimates do not have one axis.

    Notes
    -----
    The p-value comes from a normal approximation, which is accurate only if there are many blocks.
    It depends on the order of the cases, because the order decides which cases are in one block.
    The cost is O(q).

    References
    ----------
    .. [1] Zaremba, Gretton & Blaschko (2013), B-tests: low variance kernel two-sample tests.
       https://papers.nips.cc/paper/5081

    Examples
    --------
    >>> round(block_p_value(np.array([0.1, -0.1, 0.2, -0.2])), 2)
    0.5
    """
    blocks = np.asarray(estimates, dtype=np.float64)
    if blocks.ndim != 1:
        raise ValueError(f"estimates must have shape (blocks,), got {blocks.shape}")
    if blocks.size < 2 or np.isnan(blocks).any():
        return np.nan
    mean = float(blocks.mean())
    error = float(blocks.std(ddof=1)) / math.sqrt(blocks.size)
    if error <= 1e-15 * abs(mean):  # equal except for rounding
        return 0.0 if mean > 0 else 1.0
    return float(ndtr(-mean / error))


def check_matrix(matrix: FloatArray) -> FloatArray:
    """Return the matrix as float64; raise ValueError unless it is square."""
    h = np.asarray(matrix, dtype=np.float64)
    if h.ndim != 2 or h.shape[0] != h.shape[1]:
        raise ValueError(f"the matrix must be square, (n, n), got {h.shape}; see skce_matrix")
    return h


def usable_cases(
    forecasts: Forecasts, observations: FloatArray, augmented: bool = False
) -> tuple[Forecasts, FloatArray]:
    """Return :func:`normalised` forecasts and observations of usable cases.

    A usable case has a valid forecast and a finite observation.
    """
    y = np.asarray(observations, dtype=np.float64)
    by_case = one_row_each(forecasts)
    if y.shape != by_case.loc.shape[:1]:
        raise ValueError(
            f"observations have shape {y.shape}, but the forecasts need {by_case.loc.shape[:1]}"
        )
    usable = (verdicts(by_case) == VALID) & np.isfinite(y)
    if augmented:
        if forecasts.scale is not None or forecasts.weights is not None:
            raise ValueError(
                "augmented=True is for plain ensembles; these forecasts have weights or scales, so "
                "test them with augmented=False"
            )
        return normalised(Forecasts(np.column_stack([forecasts.loc, y])[usable])), y[usable]
    loc, scale, weights = forecasts
    chosen = Forecasts(
        loc if np.ndim(loc) == 1 else loc[usable],
        None if scale is None else scale[usable],
        None if weights is None else weights[usable],
    )
    return normalised(chosen), y[usable]


def one_row_each(forecasts: Forecasts) -> Forecasts:
    """Return forecasts with one row of ``loc`` for each case, even if all cases share members."""
    loc, scale, weights = forecasts
    if weights is not None and np.ndim(weights) == np.ndim(loc) + 1:
        return Forecasts(np.broadcast_to(loc[..., np.newaxis, :], weights.shape), scale, weights)
    return forecasts


def squared_distances(parts: Forecasts) -> FloatArray:
    """Return squared energy distances (n, n) among :func:`normalised` forecasts."""
    loc, scale, weights = parts
    if loc.ndim == 1:
        return shared_distances(loc, weights)  # type: ignore[arg-type]
    one = Forecasts(*(None if a is None else a[np.newaxis] for a in (loc, scale, weights)))  # type: ignore[arg-type]
    squared: FloatArray = pairwise_distances(one)[0]
    return squared


def forecast_similarity(parts: Forecasts) -> tuple[FloatArray, bool]:
    """Return similarities (n, n) of :func:`normalised` forecasts, and True if all are equal."""
    squared = squared_distances(parts)
    s = positive_median(squared)
    return _decay(squared, s), not np.isfinite(s)


def subset_bandwidth(parts: Forecasts) -> float:
    """Return the median positive squared distance among at most 400 forecasts.

    If the chosen forecasts are equal, but other forecasts differ, the function chooses again, among
    different forecasts. The result is infinite if all forecasts are equal.
    """
    loc, scale, weights = parts
    chosen = subset(len(weights), MEDIAN_CASES)  # type: ignore[arg-type]
    s = positive_median(squared_distances(take_cases(parts, chosen)))
    if np.isfinite(s):
        return s
    rows = [a for a in (loc, scale, weights) if a is not None and a.ndim == 2]
    different = np.unique(np.column_stack(rows), axis=0, return_index=True)[1]
    chosen = np.sort(different)[subset(different.size, MEDIAN_CASES)]
    return positive_median(squared_distances(take_cases(parts, chosen)))


def matrix_of(parts: Forecasts, y: FloatArray, similarity: FloatArray, theta: float) -> FloatArray:
    """Return the matrix h of :func:`normalised` forecasts and finite observations y (n,)."""
    target = _decay(np.abs(np.subtract.outer(y, y)), theta)
    return skce_matrix(similarity, target, *expectations(parts, y, theta))


def _decay(distance: FloatArray, bandwidth: float) -> FloatArray:
    """Overwrite distances with ``exp(-distance / bandwidth)``, and return them."""
    distance /= -bandwidth
    np.exp(distance, out=distance)
    return distance


def block_estimates(parts: Forecasts, y: FloatArray, b: int, s: float, theta: float) -> FloatArray:
    """Return SKCE estimates (n // b,) from blocks of :func:`normalised` forecasts.

    ``s`` is infinite if all forecasts are equal.
    """
    estimates = np.full(y.size // b, np.nan)
    for i in range(0 if np.isnan(theta) else estimates.size):
        block = slice(i * b, (i + 1) * b)
        some = take_cases(parts, block)
        similarity = _decay(squared_distances(some), s)
        estimates[i] = skce_unbiased(matrix_of(some, y[block], similarity, theta))
    return estimates


def bootstrap_p_value(h: FloatArray, n_resamples: int, rng: np.random.Generator) -> float:
    """Return the p-value of the bootstrap for a float64 matrix; see :func:`skce_test`."""
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
    """Return the p-value of the test "wild" for a float64 matrix; see :func:`skce_test`."""
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
    """Draw random signs (n_resamples, n), which are equal within a block of successive cases.

    The first block begins at a random case.
    """
    if block_length == 1:
        return 2.0 * rng.integers(0, 2, (n_resamples, n), dtype=np.int8) - 1.0
    phase = rng.integers(0, block_length, (n_resamples, 1))
    block = (np.arange(n) + phase) // block_length
    of_block = rng.integers(0, 2, (n_resamples, (n - 2) // block_length + 2), dtype=np.int8)
    return 2.0 * np.take_along_axis(of_block, block, axis=-1) - 1.0


def sums_by_date(h: FloatArray, date: IntArray) -> FloatArray:
    """Sum the terms of all pairs of cases for each pair of dates; return a matrix (d, d).

    ``date`` (n,) is the index of the date of each case: 0, 1, ..., d - 1, ascending.
    """
    n = int(date[-1]) + 1 if date.size else 0
    if n == len(h):
        return h
    first = np.searchsorted(date, np.arange(n))
    return np.asarray(np.add.reduceat(np.add.reduceat(h, first, axis=0), first, axis=1))


def error_correlation(h: FloatArray) -> FloatArray:
    """Return lag-1 autocorrelations (2,) of the two leading principal components of the errors.

    The errors of n cases are vectors; h (n, n) contains the products of pairs of vectors. The
    function subtracts the mean error, and finds the components by orthogonal iteration. The
    iteration is accurate for components with large variance; other components matter less.
    """
    n = len(h)
    centred = h - h.mean(0)
    centred -= centred.mean(1, keepdims=True)
    k = min(2 * COMPONENTS, n)
    basis = np.random.default_rng(0).standard_normal((n, k))
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(centred @ basis)[0]
    turned = np.linalg.eigh(basis.T @ centred @ basis)[1][:, ::-1][:, :COMPONENTS]
    return neighbour_correlation((basis @ turned).T)


def chosen_length(h: FloatArray) -> int:
    """Return the block length of a matrix; see :func:`xrecal.arrays.skce_block_length`."""
    return int(block_lengths(error_correlation(h), np.array(len(h)), SHARE).max())


def shows_dependence(h: FloatArray) -> bool:
    """Return True if the errors of successive cases are more alike than chance explains."""
    return bool(is_dependent(error_correlation(h), np.array(len(h))).any())


def serial_p_value(
    h: FloatArray, n_resamples: int, rng: np.random.Generator, block_length: int, given: bool
) -> float:
    """Return the p-value of the test "serial" for a float64 matrix; see :func:`skce_test`.

    The test uses n / b - 1 slow cosine waves, with the block length b. The p-value is NaN with
    fewer than 3 waves; if the user chose b (``given``), one wave is enough.
    """
    n_waves = len(h) // block_length - 1
    if n_waves < (1 if given else FEWEST_WAVES) or np.isnan(h).any():
        return np.nan
    slow = h if block_length == 1 else waves(waves(h, n_waves).T, n_waves)
    # A block length of 1 keeps all waves; their random rotation equals a rotation of the cases.
    statistic = h.sum() / len(h)
    least, count = statistic - TIES * len(h) * np.abs(h).max(), 0
    for size in chunks(n_resamples, n_waves + 1):
        turned = rotations(rng, size, n_waves)
        count += int((np.einsum("bi,bi->b", turned @ slow, turned) >= least).sum())
    return (1 + count) / (n_resamples + 1)


def generator(seed: int, location_number: int) -> np.random.Generator:
    """Return the random number generator of a location, which depends on the arguments alone.

    ``seed`` is any integer; the function takes it modulo 2^64. Location numbers count from 0.
    """
    return np.random.default_rng(
        [int(seed) % 2**64, whole_number("location_number", location_number, 0)]
    )


def chunks(n_resamples: int, n: int) -> Iterator[int]:
    """Yield the number of resamples to draw at a time, if each resample needs n random numbers.

    The numbers add up to ``n_resamples``, and depend on the arguments alone.
    """
    step = max(1, RESAMPLED // max(n, 1))
    for start in range(0, n_resamples, step):
        yield min(step, n_resamples - start)


@kernel
def fill_counts(drawn: IndexMatrix32, out: OutMatrix) -> None:
    """Count how often each case occurs in each of b resamples (b, n) of case positions."""
    for b in range(drawn.shape[0]):
        for i in range(drawn.shape[1]):
            out[b, i] = 0.0
        for i in range(drawn.shape[1]):
            out[b, drawn[b, i]] += 1.0
