"""Skill, standard errors, tests and intervals from scores of autocorrelated cases.

The module also computes false discovery rates from p-values of many locations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from xrecal.arrays.rows import check_probability, location_blocks, mean_of_known, whole_number
from xrecal.arrays.serial import FEWEST_WAVES, block_lengths
from xrecal.typing import FloatArray, IntArray

SMALLEST = 3
"""Least number of cases for a standard error."""

ROUNDING = 1e-14
"""Two scores count as equal if they differ by at most this share of the larger score."""

METHODS = ("bh", "by", "holm")


class Skill(NamedTuple):
    """Skill (...) of a forecast, with its uncertainty."""

    skill: FloatArray
    """Skill: 1 is perfect, 0 is as good as the reference, a negative skill is worse"""
    standard_error: FloatArray
    """Standard error of the skill"""
    p_value: FloatArray
    """Two-sided p-value of the hypothesis that both mean scores are equal"""
    low: FloatArray
    """Lower end of the interval for the skill"""
    high: FloatArray
    """Upper end of the interval for the skill"""


def skill_score(
    scores: FloatArray,
    reference: FloatArray,
    *,
    block_length: int | None = None,
    cluster: IntArray | None = None,
    level: float = 0.95,
) -> Skill:
    r"""Compute skill: reduction of a score, as a share of the score of a reference.

    Parameters
    ----------
    scores : array of float, shape (..., n)
        Scores s of the forecast: smaller is better, and 0 is perfect. Cases are in order of time.
    reference : array of float, broadcast with ``scores``
        Scores r of the reference. The function leaves out a case that is missing in either array.
    block_length, cluster
        As in :func:`~xrecal.arrays.diebold_mariano`.
    level : float, default 0.95
        Probability that the interval contains the skill, in (0, 1).

    Returns
    -------
    Skill
        :math:`1 - \bar s / \bar r`, the standard error of this skill, the p-value of equal mean
        scores (:func:`~xrecal.arrays.diebold_mariano`), and the ends of an interval for the skill,
        each of shape (...). All results except the p-value are NaN if the mean score of the
        reference is not positive. All results are NaN if there are no common cases.

    Raises
    ------
    ValueError
        If shapes do not match or the level is out of range.

    Notes
    -----
    The function computes the standard error of the mean of :math:`s - (\bar s / \bar r) \, r` under
    serial dependence (:func:`~xrecal.arrays.standard_error`), and divides it by :math:`\bar r`.
    This is the delta method for a ratio of means. The result is accurate only if the mean score of
    the reference is accurate. The interval is the skill plus and minus a number of standard errors.
    This number is the quantile of Student's t at level (1 + ``level``) / 2, with the degrees of
    freedom of the standard error. The interval is NaN if the serial dependence is too strong for
    the number of cases.

    Examples
    --------
    >>> found = skill_score(np.array([1.0, 2.0, 1.5, 1.5]), np.array([2.0, 3.0, 4.0, 3.0]))
    >>> float(found.skill)
    0.5
    """
    s, r = common_cases(scores=scores, reference=reference)
    mean_s, mean_r = mean_of_cases(s), mean_of_cases(r)
    usable = mean_r > 0
    divisor = np.where(usable, mean_r, 1.0)
    ratio = np.where(usable, mean_s / divisor, np.nan)
    if not 0 < level < 1:
        raise ValueError(f"level is {level!r}; give a share between 0 and 1")
    how = _Dependence(block_length=block_length, cluster=cluster)
    error, freedom = _errors(_apart(s, np.where(usable, ratio, 0.0)[..., np.newaxis] * r), how)
    error = np.where(usable, error / divisor, np.nan)
    with np.errstate(invalid="ignore"):
        reach = stdtrit(freedom, (1 + level) / 2) * error
    p_value = diebold_mariano(_apart(s, r), block_length=block_length, cluster=cluster)[1]
    skill = 1.0 - ratio
    return Skill(skill, error, p_value, skill - reach, skill + reach)


def _apart(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return differences of scores; differences as small as rounding errors become 0."""
    apart = a - b
    return np.where(np.abs(apart) <= ROUNDING * np.maximum(np.abs(a), np.abs(b)), 0.0, apart)


def diebold_mariano(
    differences: FloatArray,
    lag: int | None = None,
    *,
    block_length: int | None = None,
    cluster: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Test whether the mean of differences of paired scores is zero.

    Parameters
    ----------
    differences : array of float, shape (..., n)
        Score of a forecast minus score of another forecast in each case, with cases in order of
        time. The function leaves out NaN cases; the cases before and after such a case then count
        as successive.
    lag : int, optional
        Largest distance, from 0 to n - 1 cases, at which the differences of two cases still depend
        on each other. With ``lag``, the function uses the classic test with Bartlett weights [2]_.
    block_length : int, optional
        Number b of successive cases that count as one case, at least 1; 1 means independent cases.
        The function estimates b if ``block_length``, ``lag`` and ``cluster`` are all None.
    cluster : array of int, shape (n,), optional
        Number of the cluster of each case. A cluster is a group of cases, such as one winter, that
        may depend on each other; cases of different clusters must be independent.

    Returns
    -------
    statistic, p_value : array of float64, shape (...)
        Mean divided by its standard error, with the sign of the mean, and the two-sided p-value of
        Student's t. If all differences are zero, the statistic is 0 and the p-value is 1. If all
        differences are equal but not zero, the statistic is infinite and the p-value is 0. Both are
        NaN with fewer than 3 cases or clusters, with an infinite difference, or if the dependence
        is too strong for the number of cases.

    Raises
    ------
    ValueError
        If an argument is out of range, or if two arguments exclude each other.

    Notes
    -----
    The long-run variance is the mean square of the first :math:`\nu` cosine transforms of the
    differences [1]_,

    .. math:: s^2 = \frac{1}{\nu} \sum_{j=1}^{\nu} \frac{2}{n}
        \Bigl( \sum_t d_t \cos \frac{\pi j (t - 1/2)}{n} \Bigr)^2,
        \quad \nu = \lfloor n / b \rfloor - 1

    and :math:`\bar d / \sqrt{s^2 / n}` has Student's t with :math:`\nu` degrees of freedom. If the
    dependence of cases lasts longer, b is larger, and there are fewer degrees of freedom. With b =
    1, the test is the t-test. The estimate of b assumes a first-order autoregressive process: b is
    9 at an autocorrelation of 0.6, and 43 at 0.9. The p-value is NaN if :math:`\nu` is below 3 for
    an estimated b above 1, or below 1 for a given b.

    With a lag, the long-run variance is a sum of autocovariances at the distances k, with the
    weights :math:`1 - k / (\mathrm{lag} + 1)`. As in [3]_, the function corrects the bias that this
    sum has for independent differences; t has n - 1 degrees of freedom. Under strong dependence,
    these p-values are too small. With clusters, the function computes the variance from the sums of
    deviations in each cluster, and t has one degree of freedom less than the number of clusters.

    Each location has its own test, so with many locations some tests reject by chance. The cost is
    O(n log n) per location.

    References
    ----------
    .. [1] Lazarus, Lewis, Stock & Watson (2018), HAR inference: recommendations for practice.
       https://doi.org/10.1080/07350015.2018.1506926
    .. [2] Diebold & Mariano (1995), Comparing predictive accuracy.
       https://doi.org/10.1080/07350015.1995.10524599
    .. [3] Harvey, Leybourne & Newbold (1997), Testing the equality of prediction mean squared
       errors. https://doi.org/10.1016/S0169-2070(96)00719-4

    Examples
    --------
    >>> statistic, p_value = diebold_mariano(np.array([0.1, 0.3, 0.2, 0.4, 0.2]), block_length=1)
    >>> float(statistic.round(2)), float(p_value.round(3))
    (4.71, 0.009)
    """
    rows, shape = _as_rows(differences)
    how = _checked(_Dependence(lag, block_length, cluster), rows.shape[1])
    statistic, p_value = np.empty((2, rows.shape[0]))
    for block in _row_blocks(rows):
        series = _series(rows[block])
        error, freedom = _mean_error(series, rows[block], how)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = series.mean / error
        t = np.where((series.deviation == 0).all(-1) & (series.mean == 0), 0.0, t)
        t = np.where((series.n_known < SMALLEST) | np.isnan(freedom), np.nan, t)
        statistic[block], p_value[block] = t, 2 * stdtr(freedom, -np.abs(t))
    return statistic.reshape(shape), p_value.reshape(shape)


def standard_error(
    scores: FloatArray,
    lag: int | None = None,
    *,
    block_length: int | None = None,
    cluster: IntArray | None = None,
) -> FloatArray:
    """Compute the standard error of the mean of autocorrelated scores.

    Parameters and exceptions are as in :func:`diebold_mariano`, and its Notes have the formula. The
    scores may be differences, or scores of a single forecast.

    Returns
    -------
    array of float64, shape (...)
        Standard error in the unit of the scores: 0 if all scores are equal, NaN with fewer than 3
        scores or with an infinite score. If the dependence is too strong for the number of cases,
        the function uses 3 cosine transforms, and the standard error is too small.

    Examples
    --------
    >>> float(standard_error(np.array([0.1, 0.3, 0.2, 0.4, 0.2]), lag=0).round(3))
    0.051
    """
    return _errors(scores, _Dependence(lag, block_length, cluster))[0]


class _Dependence(NamedTuple):
    """Dependence between cases; if all fields are None, tests estimate a block length."""

    lag: int | None = None
    block_length: int | None = None
    cluster: IntArray | None = None


def _checked(how: _Dependence, n: int) -> _Dependence:
    given = [name for name, part in how._asdict().items() if part is not None]
    if len(given) > 1:
        raise ValueError(f"give one of lag, block_length and cluster, not {' and '.join(given)}")
    if how.lag is not None:
        return _Dependence(lag=whole_number("lag", how.lag, 0, n - 1))
    if how.block_length is not None:
        return _Dependence(block_length=whole_number("block_length", how.block_length, 1))
    if how.cluster is None:
        return how
    cluster = np.asarray(how.cluster)
    if cluster.shape != (n,) or cluster.dtype.kind not in "iu":
        raise ValueError(
            f"cluster must be whole numbers of shape ({n},), got {cluster.dtype} of shape "
            f"{cluster.shape}"
        )
    return _Dependence(cluster=np.unique(cluster, return_inverse=True)[1])


def _errors(scores: FloatArray, how: _Dependence) -> tuple[FloatArray, FloatArray]:
    """Return standard error (...) and degrees of freedom for the mean of scores (..., n)."""
    rows, shape = _as_rows(scores)
    how = _checked(how, rows.shape[1])
    error, freedom = np.empty((2, rows.shape[0]))
    for block in _row_blocks(rows):
        series = _series(rows[block])
        error[block], freedom[block] = _mean_error(series, rows[block], how)
        error[block] *= series.unit
    return error.reshape(shape), freedom.reshape(shape)


def adjusted_p_values(p_values: FloatArray, method: str = "bh") -> FloatArray:
    """Adjust p-values for the number of tests: false discovery rates, or Holm's p-values.

    Parameters
    ----------
    p_values : array of float, shape (...)
        p-values in [0, 1] of all tests that are made together. NaN values, such as over the sea, do
        not count as tests.
    method : {"bh", "by", "holm"}
        "bh" is Benjamini & Hochberg [1]_, for tests that are independent or, as on most maps,
        positively dependent. "by" is Benjamini & Yekutieli [2]_, for any dependence, with less
        power. "holm" is Holm [4]_, for any dependence and few tests.

    Returns
    -------
    array of float64, shape (...)
        Adjusted p-values in [0, 1], NaN where ``p_values`` are NaN. If you reject the hypotheses
        with an adjusted p-value of at most q, at most a share q of these rejections is expected to
        be false. With "holm", the probability of at least one false rejection is at most q.

    Raises
    ------
    ValueError
        If a value is outside [0, 1] or the method is unknown.

    Notes
    -----
    The results of "bh" and "by" are as in :func:`scipy.stats.false_discovery_control` over all
    tests. Without adjustment, tests at the level 5 % reject a perfect forecast on 5 % of a map
    [3]_. The cost is O(N log N) for N tests.

    References
    ----------
    .. [1] Benjamini & Hochberg (1995), Controlling the false discovery rate.
       https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
    .. [2] Benjamini & Yekutieli (2001), The control of the false discovery rate in multiple
       testing under dependency. https://doi.org/10.1214/aos/1013699998
    .. [3] Wilks (2016), "The stippling shows statistically significant grid points".
       https://doi.org/10.1175/BAMS-D-15-00267.1
    .. [4] Holm (1979), A simple sequentially rejective multiple test procedure.
       https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> adjusted_p_values(np.array([0.01, 0.02, 0.03, 0.5]))
    array([0.04, 0.04, 0.04, 0.5 ])
    """
    from scipy.stats import false_discovery_control

    if method not in METHODS:
        raise ValueError(f"method is {method!r}; give 'bh', 'by' or 'holm'")
    p_values = np.asarray(p_values, dtype=np.float64)
    check_probability("p_values", p_values)
    adjusted = np.full(p_values.shape, np.nan)
    known = ~np.isnan(p_values)
    some = np.clip(p_values[known], 0.0, 1.0)
    adjusted[known] = (
        _by_holm(some) if method == "holm" else false_discovery_control(some, method=method)
    )
    return adjusted


def _by_holm(p_values: FloatArray) -> FloatArray:
    order = np.argsort(p_values)
    stepped = p_values[order] * np.arange(p_values.size, 0, -1)
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def common_cases(**scores: FloatArray) -> list[FloatArray]:
    """Return scores (..., n) as float64 of one shape; cases with NaN in any array are NaN in all.

    The error message uses the names of the arguments.
    """
    given = [np.asarray(part, np.float64) for part in scores.values()]
    shapes = ", ".join(f"{name} {part.shape}" for name, part in zip(scores, given, strict=True))
    if any(part.ndim == 0 for part in given):
        raise ValueError(f"scores need cases on the last axis; found {shapes}")
    try:
        given = list(np.broadcast_arrays(*given))
    except ValueError:
        raise ValueError(f"shapes of scores do not match: {shapes}") from None
    missing = np.isnan(given).any(0)
    return [np.where(missing, np.nan, part) for part in given]


def mean_of_cases(scores: FloatArray) -> FloatArray:
    """Return the mean (...) of the scores (..., n) that are not NaN; NaN if all are NaN."""
    return mean_of_known(scores, ~np.isnan(scores), fewest=1)


class _Series(NamedTuple):
    """Known scores of L locations, in units of the largest absolute score of each location.

    This unit avoids overflow and underflow of squares. If all scores of a location are equal, they
    are exactly 1 or -1 in this unit, so their deviations are exactly zero.
    """

    mean: FloatArray
    """(L,) mean of known scores"""
    deviation: FloatArray
    """(L, n) deviations of the known scores from their mean; zeros fill up each row"""
    n_known: IntArray
    """(L,) number of known scores; 0 if a score is infinite"""
    unit: FloatArray
    """(L,) largest absolute score"""


def _as_rows(scores: Any) -> tuple[FloatArray, tuple[int, ...]]:
    rows = np.asarray(scores)
    if rows.ndim == 0:
        raise ValueError("scores have no axis of cases; give an array of shape (..., n)")
    shape = rows.shape[:-1]
    if not rows.shape[-1]:  # no cases give the same result as one missing case
        rows = np.full((*shape, 1), np.nan)
    return rows.reshape(int(np.prod(shape)), rows.shape[-1]), shape


def _row_blocks(rows: FloatArray) -> Any:
    """Yield slices of locations; about eight temporary arrays of a slice fit into the workspace."""
    return location_blocks(rows.shape[0], 64 * rows.shape[1])


def _series(rows: FloatArray) -> _Series:
    x = rows.astype(np.float64)
    missing = np.isnan(x)
    if missing.any():
        x = np.take_along_axis(x, np.argsort(missing, axis=-1, kind="stable"), axis=-1)
    count = np.where(np.isinf(x).any(-1), 0, x.shape[1] - missing.sum(-1))
    known = np.arange(x.shape[1]) < count[:, np.newaxis]
    x = np.where(known, x, 0.0)
    largest = np.abs(x).max(-1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    x /= unit[:, np.newaxis]
    mean = x.sum(-1) / np.maximum(count, 1)
    return _Series(mean, np.where(known, x - mean[:, np.newaxis], 0.0), count, unit)


def _mean_error(
    series: _Series, rows: FloatArray, how: _Dependence
) -> tuple[FloatArray, FloatArray]:
    """Return standard errors of means (L,), in the unit of the series, and degrees of freedom.

    Degrees of freedom are NaN if the dependence is too strong for the number of cases.
    """
    if how.lag is not None:
        error, freedom = _bartlett_error(series, how.lag + 1), series.n_known - 1.0
    elif how.cluster is not None:
        error, freedom = _cluster_error(series, rows, how.cluster)
    else:
        error, freedom = _cosine_error(series, how.block_length)
    few = series.n_known < SMALLEST
    return np.where(few, np.nan, error), np.where(few, np.nan, freedom)


def _bartlett_error(series: _Series, length: int) -> FloatArray:
    n = np.maximum(series.n_known, 1)
    b = np.minimum(length, n)
    share = 1 - ((n - b + 1) * b + (b - 1) * (2 * b - 1) / 3) / n**2  # the sum in closed form
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(_long_run_variance(series.deviation, n, b) / n / share))


def _cosine_error(series: _Series, length: int | None) -> tuple[FloatArray, FloatArray]:
    from scipy.fft import dct

    e, n = series.deviation, series.n_known
    if length is None:
        square = (e * e).sum(-1)
        rho = (e[:, 1:] * e[:, :-1]).sum(-1) / np.where(square > 0, square, 1.0)
        b = np.where(square > 0, block_lengths(rho, n), 1)
    else:
        b = np.full(n.shape, length)
    told = n // b - 1
    least = np.where(b == 1, 1, FEWEST_WAVES) if length is None else np.ones_like(n)
    most = np.maximum(n - 1, 1)
    used = np.minimum(np.where(told < least, FEWEST_WAVES, told), most)
    square = np.zeros(n.shape)
    for size in np.unique(n[n >= SMALLEST]):
        some = np.flatnonzero(n == size)
        slow = dct(e[some, :size], type=2, axis=-1, norm="ortho")[:, 1:]
        kept = np.arange(1, size) <= used[some, np.newaxis]
        square[some] = (slow * slow * kept).sum(-1)
    error = np.sqrt(square / used / np.maximum(n, 1))
    return error, np.where(told < least, np.nan, told.astype(np.float64))


def _cluster_error(
    series: _Series, rows: FloatArray, cluster: IntArray
) -> tuple[FloatArray, FloatArray]:
    known = ~np.isnan(rows)
    member = (cluster[:, np.newaxis] == np.arange(cluster.max(initial=0) + 1)).astype(np.float64)
    unit, mean = series.unit[:, np.newaxis], series.mean[:, np.newaxis]
    with np.errstate(invalid="ignore"):  # infinite scores give NaN
        sums = np.where(known, rows / unit - mean, 0.0) @ member
    count = (known @ member > 0).sum(-1)
    several = np.where(count > 1, count, np.nan)
    n = np.maximum(series.n_known, 1)
    with np.errstate(invalid="ignore"):
        error = np.sqrt(several / (several - 1) * (sums * sums).sum(-1)) / n
    freedom = np.where(several >= SMALLEST, several - 1, np.nan)
    return error, freedom


def _long_run_variance(deviation: FloatArray, n: IntArray, b: IntArray) -> FloatArray:
    """Return the Bartlett estimate (L,): mean square of the sums over b successive deviations.

    Windows of b successive cases slide over the series and beyond its ends. Two cases at the
    distance k share b - k windows, so their product has the weight 1 - k / b. The function computes
    sums over windows as differences of running totals, in O(n) for any b.
    """
    total = _running_total(deviation)
    last = deviation.shape[1]
    end = np.arange(1, last + b.max(initial=1))
    begin = np.clip(end - b[:, np.newaxis], 0, last)
    window = total[:, np.minimum(end, last)] - np.take_along_axis(total, begin, axis=-1)
    return np.asarray((window * window).sum(-1) / (n * b))


def _running_total(deviation: FloatArray) -> FloatArray:
    """Return sums (L, n + 1) of the first 0, 1, ..., n deviations."""
    total = np.zeros((deviation.shape[0], deviation.shape[1] + 1))
    np.cumsum(deviation, axis=-1, out=total[:, 1:])
    return total
