"""Reliability of probabilities and quantiles by isotonic regression, and parts of a mean score.

Users choose no bins: an isotonic regression of the observations on the forecasts gives the
recalibrated forecast of each case. Miscalibration is the score of the forecasts minus the score of
the recalibrated forecasts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.ckme.simplex import push_level
from xrecal.arrays.compiled import Indices, Matrix, OutMatrix, inner, kernel
from xrecal.arrays.distributions.weighted import LEVEL_ROUNDING
from xrecal.arrays.rows import (
    as_rows,
    check_level,
    check_probability,
    location_blocks,
    mean_of_known,
)
from xrecal.arrays.status import FEWEST
from xrecal.typing import FloatArray


class Decomposition(NamedTuple):
    """Parts of a mean score, as arrays (...) of float64 in the unit of the score.

    Score = miscalibration - discrimination + uncertainty, up to rounding; no part is negative.
    """

    miscalibration: FloatArray
    """Gain of recalibration: score of the forecasts minus score of the recalibrated forecasts"""
    discrimination: FloatArray
    """Score of the best constant forecast minus score of the recalibrated forecasts"""
    uncertainty: FloatArray
    """Score of the best constant forecast"""
    score: FloatArray
    """Mean score of the forecasts"""


def corp(probability: FloatArray, event: FloatArray) -> tuple[FloatArray, Decomposition]:
    r"""Compute the reliability of probabilities of an event, and the parts of their Brier score.

    Parameters
    ----------
    probability : array of float, shape (..., n)
        Forecast probability of each case, in [0, 1].
    event : array of bool or float, shape (..., n)
        1 if the event happened, else 0. The function leaves out cases with NaN in the event or in
        the probability.

    Returns
    -------
    recalibrated : array of float64, shape (..., n)
        Estimated frequency, in [0, 1], of the event in cases with this forecast probability.
        Plotted over the probability, it is the curve of a reliability diagram. It is NaN for cases
        left out.
    decomposition : Decomposition
        Parts of the Brier score, the mean of :math:`(p - y)^2` for probabilities p and events y.
        All parts are NaN with fewer than 2 cases.

    Raises
    ------
    ValueError
        If shapes differ, a probability is outside [0, 1] or an event is neither 0 nor 1.

    Notes
    -----
    The method is CORP: consistent, optimally binned, reproducible reliability by
    pool-adjacent-violators [1]_. It finds the non-decreasing function of the forecast with the
    smallest Brier score. This function is fitted to the same cases that it recalibrates. So with
    few cases, even calibrated forecasts show some miscalibration. The cost is O(n log n) per
    location.

    References
    ----------
    .. [1] Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
       classifiers. https://doi.org/10.1073/pnas.2016191118

    Examples
    --------
    >>> recalibrated, parts = corp(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1]))
    >>> recalibrated, round(float(parts.miscalibration), 4)
    (array([0. , 0.5, 0.5, 1. ]), 0.01)
    """
    (p, y), shape = as_rows(probability=probability, event=event)
    check_probability("probability", p)
    wrong = (y != 0) & (y != 1) & ~np.isnan(y)
    if wrong.any():
        raise ValueError(f"event must be 0 or 1, found {y[wrong][0]:g}; compare with a threshold")
    recalibrated, parts = np.empty(p.shape), np.empty((4, len(p)))
    for block in location_blocks(len(p), 96 * p.shape[1]):
        known = ~(np.isnan(p[block]) | np.isnan(y[block]))
        forecast = np.where(known, np.clip(p[block].astype(np.float64), 0.0, 1.0), np.nan)
        event = np.where(known, y[block].astype(np.float64), 0.0)
        order = np.argsort(forecast, axis=-1, kind="stable")
        fitted = np.empty(forecast.shape)
        ascending, hits = (np.take_along_axis(part, order, -1) for part in (forecast, event))
        _fill_means(ascending, hits, known.sum(-1), fitted)
        np.put_along_axis(recalibrated[block], order, fitted, axis=-1)
        r, rate = recalibrated[block], mean_of_known(event, known)
        # Sum the contribution of each case, so that a part that is zero is exactly zero, without
        # cancellation.
        parts[0, block] = mean_of_known((forecast - r) * (forecast + r - 2 * event), known)
        parts[1, block] = mean_of_known((r - rate[:, np.newaxis]) ** 2, known)
        parts[2, block] = rate * (1 - rate)
        parts[3, block] = mean_of_known((forecast - event) ** 2, known)
    return recalibrated.reshape(*shape, p.shape[1]), _decomposition(parts, shape)


def quantile_reliability(
    forecast_quantile: FloatArray, observations: FloatArray, level: float
) -> tuple[FloatArray, Decomposition]:
    r"""Compute the reliability of quantile forecasts, and the parts of their quantile score.

    Parameters
    ----------
    forecast_quantile : array of float, shape (..., n)
        Forecast of the quantile in each case, in the unit of the observations.
    observations : array of float, shape (..., n)
        Observations. The function leaves out cases with NaN or infinity in the observation or in
        the forecast.
    level : float
        Level of the quantile, in (0, 1).

    Returns
    -------
    recalibrated : array of float64, shape (..., n)
        Estimated quantile of the observations in cases with this forecast. Plotted over the
        forecasts, these quantiles are the curve of a reliability diagram. They are NaN for cases
        left out.
    decomposition : Decomposition
        Parts of the quantile score, the mean of :math:`\max(\tau (y - q), (1 - \tau)(q - y))` for
        the level :math:`\tau`, forecasts q and observations y, in the unit of the observations. The
        best constant forecast is the quantile of all observations. All parts are NaN with fewer
        than 2 cases.

    Raises
    ------
    ValueError
        If shapes differ or the level is outside (0, 1).

    Notes
    -----
    The recalibrated forecast is the non-decreasing function of the forecast that has the smallest
    score [1]_. If several functions have the smallest score, the result is the lowest of these
    functions. It equals the quantile of isotonic distributional regression (IDR) on the forecast
    [2]_. This quantile is the smallest observation at which the CDF reaches the level. The method
    is pool-adjacent-violators [3]_, which does not compute the CDFs. Cases with the same forecast
    get the same value. The cost is O(n log n) time per location on most data, at worst O(n²), and
    O(n) memory.

    References
    ----------
    .. [1] Gneiting et al. (2023), Model diagnostics and forecast evaluation for quantiles.
       https://doi.org/10.1146/annurev-statistics-032921-020240
    .. [2] Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression.
       https://doi.org/10.1111/rssb.12450
    .. [3] Jordan, Mühlemann & Ziegel (2022), Characterizing the optimal solutions to the isotonic
       regression problem for identifiable functionals. https://doi.org/10.1007/s10463-021-00808-0

    Examples
    --------
    >>> forecast, observations = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, 4.0, 3.0])
    >>> recalibrated, parts = quantile_reliability(forecast, observations, 0.5)
    >>> recalibrated
    array([1., 1., 3., 3.])
    """
    check_level(level)
    level = float(level)  # the same type, so the same compiled code, for all levels
    (q, y), shape = as_rows(forecast_quantile=forecast_quantile, observations=observations)
    recalibrated, parts = np.empty(q.shape), np.empty((4, len(q)))
    for block in location_blocks(len(q), 96 * q.shape[1]):
        known = np.isfinite(q[block]) & np.isfinite(y[block])
        forecast, target = (
            np.ascontiguousarray(np.where(known, part[block], np.nan), np.float64)
            for part in (q, y)
        )
        order = np.lexsort((target, forecast), axis=-1)
        fitted, constant = np.empty(forecast.shape), np.empty(forecast.shape)
        ascending, verified = (np.take_along_axis(part, order, -1) for part in (forecast, target))
        _fill_quantiles(ascending, verified, known.sum(-1), level, fitted)
        np.put_along_axis(recalibrated[block], order, fitted, axis=-1)
        # If all forecasts are equal, they become the quantile of all observations.
        same, verified = np.zeros(target.shape), np.sort(target, axis=-1)
        _fill_quantiles(same, verified, known.sum(-1), level, constant)
        score, best, least = (
            mean_of_known(_quantile_score(forecasts, target, level), known)
            for forecasts in (forecast, recalibrated[block], constant[:, :1])
        )
        parts[:, block] = score - best, least - best, least, score
    return recalibrated.reshape(*shape, q.shape[1]), _decomposition(parts, shape)


def _decomposition(parts: FloatArray, shape: tuple[int, ...]) -> Decomposition:
    return Decomposition(*(part.reshape(shape) for part in parts))


def _quantile_score(forecast: FloatArray, target: FloatArray, level: float) -> FloatArray:
    error = target - forecast
    return np.asarray(np.maximum(level * error, (level - 1) * error))


@kernel
def _fill_means(forecast: Matrix, event: Matrix, n_used: Indices, out: OutMatrix) -> None:
    """Compute the isotonic regression (L, n) of events on ascending forecasts.

    In each row, the ``n_used`` usable cases come first.
    """
    n = forecast.shape[1]
    level, total, width, length = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    for cell in range(forecast.shape[0]):
        used = n_used[cell] if n_used[cell] >= FEWEST else 0
        blocks, case = 0, 0
        while case < used:
            first, hits = case, 0.0
            while case < used and forecast[cell, case] == forecast[cell, first]:
                hits += event[cell, case]
                case += 1
            count = float(case - first)
            blocks = push_level(hits / count, hits, count, level, total, width, length, blocks)
        case = 0
        for block in range(blocks):
            for _ in range(int(width[block])):
                out[cell, case] = level[block]
                case += 1
        out[cell, case:] = np.nan


@kernel
def _fill_quantiles(
    forecast: Matrix, target: Matrix, n_used: Indices, level: float, out: OutMatrix
) -> None:
    """Compute isotonic quantiles (L, n) for cases sorted by forecast, then by observation.

    In each row, the ``n_used`` usable cases come first. A block is a group of neighbouring cases
    with one quantile; the function sorts the observations of each block. If the quantile of a block
    does not exceed the quantile of the block before, the function merges the two blocks.
    """
    n = forecast.shape[1]
    run, spare, value, start = np.empty(n), np.empty(n), np.empty(n), np.empty(n + 1, np.int64)
    for cell in range(forecast.shape[0]):
        used = n_used[cell] if n_used[cell] >= FEWEST else 0
        blocks, case = 0, 0
        while case < used:
            start[blocks] = case
            while case < used and forecast[cell, case] == forecast[cell, start[blocks]]:
                run[case] = target[cell, case]
                case += 1
            value[blocks] = _lower_quantile(run, start[blocks], case, level)
            while blocks > 0 and value[blocks - 1] >= value[blocks]:
                _merge(run, start[blocks - 1], start[blocks], case, spare)
                blocks -= 1
                value[blocks] = _lower_quantile(run, start[blocks], case, level)
            blocks += 1
        start[blocks] = used
        for block in range(blocks):
            out[cell, start[block] : start[block + 1]] = value[block]
        out[cell, used:] = np.nan


@inner
def _lower_quantile(run, start, end, level):  # type: ignore[no-untyped-def]
    """Return the smallest value of the ascending `run[start:end]` whose CDF reaches `level`."""
    position = int(np.ceil((level - LEVEL_ROUNDING) * (end - start))) - 1
    return run[start + max(position, 0)]


@inner
def _merge(run, start, middle, end, spare):  # type: ignore[no-untyped-def]
    """Merge the ascending `run[start:middle]` and `run[middle:end]` into one ascending run."""
    for i in range(middle, end):
        spare[i] = run[i]
    left, right, free = middle - 1, end - 1, end - 1
    while right >= middle:
        if left >= start and run[left] > spare[right]:
            run[free] = run[left]
            left -= 1
        else:
            run[free] = spare[right]
            right -= 1
        free -= 1
