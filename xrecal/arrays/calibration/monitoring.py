"""Monitoring of calibration as new observations arrive: e-values and a change detector.

A bet is a density of the probability integral transform (PIT) that differs from the uniform
density. Both methods multiply the values of such densities at the PIT of successive cases. If
forecasts are calibrated, these products do not grow on average. Each bet uses only information that
was known when its forecast was issued, so users may look at the evidence after every case.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Cube, Indices, OutIndexMatrix, OutMatrix, inner, kernel
from xrecal.arrays.rows import check_probability, location_blocks, whole_number
from xrecal.typing import FloatArray, IntArray

PSEUDO_CASES = 10
"""The normal bet (see the Notes of :func:`calibration_e_values`) starts as if it had learned from
this number of artificial cases with standard normal values."""

BINS, PSEUDO_IN_BIN = 10, 5
"""One of the bets is a histogram of past PIT values. The first number is its number of bins; the
second is the number of artificial cases with which each bin starts."""

TAIL = 1e-3
"""The normal bet is constant for PIT values within this distance of 0 or 1. If an observation lies
outside all members of a recalibrated forecast, the PIT is 0 or 1; one such case must not give
infinite evidence."""

LARGEST = 690.0
"""Logarithm of the largest e-value; a logarithm above 709 would overflow double precision."""

BETS = (
    (0.6, 1.0),
    (-0.6, 1.0),
    (0.35, 1.0),
    (-0.35, 1.0),
    (0.0, 1.4),
    (0.0, 0.75),
    (0.0, 1.7),
    (0.25, 1.2),
    (-0.25, 1.2),
)
"""Mean and standard deviation of each bet of the detector. A bet is a normal density of the
standard normal quantile at the PIT; for calibrated forecasts, this quantile has mean 0 and standard
deviation 1."""


def calibration_e_values(
    pit: FloatArray, lag: npt.ArrayLike = 1, stretch: IntArray | None = None
) -> FloatArray:
    r"""Compute e-values: evidence against calibration, which users may look at after each case.

    Parameters
    ----------
    pit : array of float, shape (..., p, n)
        Probability integral transforms (PIT) in [0, 1] of successive cases at p places. The
        function averages the evidence over places. A missing case (NaN) does not change the
        evidence; a place without any case does not count.
    lag : int or array of int, shape (...)
        Number of cases between the issue of a forecast and its verification, at least 1. When the
        forecast of case t is issued, cases up to t - lag have verified.
    stretch : array of int, shape (n,), optional
        Number of the stretch (part of the series) that each case belongs to. Where the number
        changes, the test forgets all earlier cases and restarts. By default, all cases are one
        stretch.

    Returns
    -------
    array of float64, shape (..., n)
        E-values, at least 0. For calibrated forecasts, the probability that an e-value of a stretch
        ever reaches :math:`1/\alpha` is at most :math:`\alpha`. E-values are NaN at locations
        without any case.

    Raises
    ------
    ValueError
        If a PIT is outside [0, 1], the lag is not a whole number of at least 1, or ``stretch`` does
        not have shape (n,).

    Notes
    -----
    The test makes two bets, which are densities f of the PIT u on (0, 1). The first bet is a normal
    density of :math:`\Phi^{-1}(u)`. Its mean and variance are those of past cases and ten
    artificial standard normal values. The bet is constant for u within 0.001 of 0 or 1. The second
    bet is a histogram of ten bins, with five artificial cases in each bin. Let :math:`u_t` be
    uniform, conditional on all information at the issue of the forecast. Then the product of
    :math:`f_t(u_t)` over cases is a martingale, which means that it does not grow on average. The
    reason is that :math:`f_t` depends on this information alone [1]_. The mean of the products of
    the two bets is a martingale, too, and so is the mean of such means over places. With a lag of
    h, the test follows h martingales; each uses every h-th case. The result is the largest of their
    values, divided by h. The division is needed because the largest of h martingales can grow on
    average. The cost is O(p (h + n)) per location, plus O(h n).

    References
    ----------
    .. [1] Arnold, Henzi & Ziegel (2023), Sequentially valid tests for forecast calibration.
       https://doi.org/10.1214/23-AOAS1729

    Examples
    --------
    >>> narrow = np.tile([0.01, 0.99], 20)
    >>> e_values = calibration_e_values(narrow[np.newaxis])
    >>> float(e_values[0]), int((e_values < 100).sum())
    (1.0, 7)
    """
    rows, z, shape = _transforms(pit)
    n = rows.shape[-1]
    lags = check_lags(lag, shape)
    if stretch is None:
        stretch = np.zeros(n, np.int64)
    if np.shape(stretch) != (n,):
        raise ValueError(f"stretch of shape {np.shape(stretch)} does not fit {n} cases")
    e_values = np.full((len(rows), n), np.nan)
    number = np.ascontiguousarray(stretch, np.int64)
    for block in location_blocks(len(rows), 16 * rows[:1].size):
        _fill_e_values(rows[block], z[block], lags[block], number, e_values[block])
    return e_values.reshape(*shape, n)


def calibration_changes(
    pit: FloatArray, run_length: int = 3650, lag: npt.ArrayLike = 1
) -> tuple[FloatArray, IntArray]:
    r"""Detect a loss of calibration, and estimate when it began.

    Parameters
    ----------
    pit, lag
        As for :func:`calibration_e_values`.
    run_length : int
        For calibrated forecasts, the mean number of cases before the first (false) detection is at
        least this number.

    Returns
    -------
    statistic : array of float64, shape (..., n)
        Evidence that calibration was lost, at least 0. If the statistic reaches ``run_length`` at a
        case, the detector reports a change there, and restarts after this case. The statistic is
        NaN at locations without any case.
    since : array of int64, shape (..., n)
        Estimated first case of the last detected change; -1 before the first detection.

    Raises
    ------
    ValueError
        If a PIT is outside [0, 1], or the run length or the lag is not a positive whole number.

    Notes
    -----
    The statistic is the mean of cumulative products (CUSUMs) :math:`D_t = \max(D_{t-1}, 1) f(u_t)`
    of the PIT u. There is one product for each place and each of nine normal densities f of
    :math:`\Phi^{-1}(u)`. The densities do not adapt to past cases, so the detector finds a change
    quickly even after a long calibrated time. Suppose that forecasts are calibrated, and that an
    arbitrary rule stops the series at some case. Then the mean of :math:`D` at this case is at most
    the mean number of cases up to it [1]_. With a lag of h the function computes h such statistics;
    each uses every h-th case. If h is 2 or more, the result is half of the largest statistic. This
    keeps the mean number of cases before a false detection above ``run_length``. The proof: at
    least one of the h statistics reaches a number A within t cases in at most a share :math:`t / A`
    of calibrated series. So the mean number of cases until this event is at least :math:`A / 2`.
    The estimated change begins just after the last case at which the largest product was at most 1.
    The cost is O(p (h + n)) per location, plus O(h n).

    References
    ----------
    .. [1] Shin, Ramdas & Rinaldo (2024), E-detectors: a nonparametric framework for sequential
       change detection. https://doi.org/10.51387/23-NEJSDS51

    Examples
    --------
    >>> calm, narrow = (np.arange(60) * 0.618) % 1, np.tile([0.02, 0.97], 20)
    >>> statistic, since = calibration_changes(np.concatenate([calm, narrow])[np.newaxis])
    >>> detected = int((statistic >= 3650).argmax())
    >>> detected, int(since[detected])
    (73, 60)
    """
    rows, z, shape = _transforms(pit)
    limit = float(whole_number("run_length", run_length, 1))
    lags = check_lags(lag, shape)
    statistic = np.full((len(rows), rows.shape[-1]), np.nan)
    since = np.full(statistic.shape, -1, np.int64)
    for block in location_blocks(len(rows), 16 * rows[:1].size):
        at = rows[block], z[block], lags[block]
        _fill_changes(*at, limit, statistic[block], since[block])
    each = *shape, rows.shape[-1]
    return statistic.reshape(each), since.reshape(each)


def _transforms(pit: FloatArray) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Return clipped PIT values (L, p, n), normal quantiles, and the shape (...) of locations."""
    from scipy.special import ndtri

    pit = np.asarray(pit)
    if pit.ndim < 2:
        raise ValueError(f"pit needs a shape (..., places, cases), got {pit.shape}")
    check_probability("pit", pit)
    rows = np.clip(pit.astype(np.float64, order="C"), TAIL, 1 - TAIL)
    rows = rows.reshape(math.prod(pit.shape[:-2]), *pit.shape[-2:])
    return rows, ndtri(rows), pit.shape[:-2]


def check_lags(lag: npt.ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """Return the lags (L,) of all locations."""
    lags = np.asarray(lag)
    if not np.issubdtype(lags.dtype, np.integer) or (lags < 1).any():
        raise ValueError(f"lag is {lag!r}; give whole numbers of cases from 1")
    return np.broadcast_to(lags, shape).astype(np.int64).reshape(-1)


@kernel
def _fill_e_values(
    pit: Cube, z: Cube, lags: Indices, stretch: Indices, e_values: OutMatrix
) -> None:
    """Compute e-values (L, n) of PIT values (L, p, n)."""
    n = pit.shape[2]
    for location in range(len(pit)):
        known = _known(pit[location])
        if known.sum() == 0:
            continue
        start = 0
        for t in range(1, n + 1):
            if t == n or stretch[t] != stretch[t - 1]:
                part = pit[location], z[location], known, min(lags[location], n)
                _one_stretch(part, start, t, e_values[location])
                start = t


@inner
def _one_stretch(part: Any, start: int, stop: int, e_values: Any) -> None:
    """Compute the e-values of the cases from ``start`` to ``stop`` - 1, from these cases alone."""
    pit, z, known, lag = part
    log_e = np.zeros((lag, len(pit), 2))
    log_mean = np.zeros(lag)
    learned = np.zeros((len(pit), 3 + BINS))
    for t in range(start, stop):
        k, seen = (t - start) % lag, t - lag
        for i in range(len(pit)):
            if seen >= start and not np.isnan(pit[i, seen]):
                _learn(pit[i, seen], z[i, seen], learned[i])
            if not np.isnan(pit[i, t]):
                n, total, squares = learned[i, 0], learned[i, 1], learned[i, 2]
                mean = total / (PSEUDO_CASES + n)
                variance = (PSEUDO_CASES + squares) / (PSEUDO_CASES + n) - mean**2
                log_e[k, i, 0] += _log_bet(pit[i, t], z[i, t], mean, math.sqrt(variance))
                expected = (PSEUDO_IN_BIN * BINS + n) / BINS
                count = PSEUDO_IN_BIN + learned[i, 3 + _bin(pit[i, t])]
                log_e[k, i, 1] += math.log(count / expected)
        log_mean[k] = _log_mean(log_e[k], known)
        e_values[t] = math.exp(min(log_mean.max(), LARGEST)) / lag


@inner
def _learn(u: float, z: float, learned: Any) -> None:
    """Add a verified case to the totals that the bets use: count, two sums, counts in bins."""
    learned[0] += 1
    learned[1] += z
    learned[2] += z * z
    learned[3 + _bin(u)] += 1


@inner
def _bin(u: float) -> int:
    return min(int(u * BINS), BINS - 1)


@inner
def _log_bet(u: float, z: float, mean: float, std: float) -> float:
    """Return the log of the normal bet: a normal density divided by the standard normal density.

    In each tail the bet is constant.
    """
    if u <= TAIL or u >= 1 - TAIL:
        beyond = (abs(z) - mean if z > 0 else abs(z) + mean) / std
        mass = 0.5 * math.erfc(beyond / math.sqrt(2.0))
        return math.log(max(mass, 1e-300) / TAIL)
    return 0.5 * (z * z - ((z - mean) / std) ** 2) - math.log(std)


@inner
def _log_mean(log_e: Any, known: Any) -> float:
    """Return the log of the mean e-value, from logs (p, 2) of e-values of two bets at p places."""
    largest = -np.inf
    for i in range(len(known)):
        if known[i] and max(log_e[i, 0], log_e[i, 1]) > largest:
            largest = max(log_e[i, 0], log_e[i, 1])
    total = 0.0
    for i in range(len(known)):
        if known[i]:
            total += math.exp(log_e[i, 0] - largest) + math.exp(log_e[i, 1] - largest)
    return largest + math.log(total / (2 * known.sum()))


@inner
def _known(pit: Any) -> Any:
    """Return 1 for each place (p,) with at least one case, and 0 for other places."""
    known = np.zeros(len(pit), np.int64)
    for i in range(len(pit)):
        for u in pit[i]:
            if not np.isnan(u):
                known[i] = 1
                break
    return known


@kernel
def _fill_changes(
    pit: Cube,
    z: Cube,
    lags: Indices,
    limit: float,
    statistic: OutMatrix,
    since: OutIndexMatrix,
) -> None:
    """Compute statistics (L, n) and first cases (L, n) of changes, from PIT values (L, p, n)."""
    for location in range(len(pit)):
        known = _known(pit[location])
        if known.sum() > 0:
            part = pit[location], z[location], known, min(lags[location], pit.shape[2])
            _changes(part, limit, statistic[location], since[location])


@inner
def _changes(part: Any, limit: float, statistic: Any, since: Any) -> None:
    """Compute the statistic (n,) and the first cases (n,) of changes at one location."""
    pit, _, known, lag = part
    level = np.zeros((lag, len(pit), len(BETS)))
    begun = np.zeros(level.shape, np.int64)
    mean = np.zeros(lag)
    first, last = 0, -1
    for t in range(pit.shape[1]):
        k = t % lag
        if t >= first:  # forecasts of earlier cases were issued before the restart
            mean[k] = _move(part, t, level[k], begun[k]) / (known.sum() * len(BETS))
        largest = mean.argmax()
        statistic[t] = mean[largest] / min(lag, 2)
        if statistic[t] >= limit:
            last = begun[largest].flat[level[largest].argmax()]
            level = np.zeros(level.shape)
            mean = np.zeros(lag)
            first = t + lag
        since[t] = last


@inner
def _move(part: Any, t: int, level: Any, begun: Any) -> float:
    """Multiply CUSUMs (p, b) of p places and b bets by the bets on case ``t``.

    The function returns the sum of all CUSUMs.
    """
    pit, z, _, _ = part
    total = 0.0
    for i in range(len(pit)):
        for j in range(len(BETS)):
            if not np.isnan(pit[i, t]):
                if level[i, j] <= 1:
                    level[i, j], begun[i, j] = 1.0, t
                level[i, j] *= math.exp(_log_bet(pit[i, t], z[i, t], BETS[j][0], BETS[j][1]))
            total += level[i, j]
    return total
