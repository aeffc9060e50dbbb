"""Decomposition of a mean score into calibration error and rest, by a recalibrated forecast."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import Cube, Matrix, OutMatrix, inner, kernel
from xrecal.arrays.distributions.forms import Censored, Distribution, Empirical, Normal
from xrecal.arrays.distributions.normal import as_forecasts, fill_mean_crps
from xrecal.arrays.distributions.weighted import by_support, total_mass
from xrecal.arrays.rows import double_blocks, location_blocks
from xrecal.typing import FloatArray

from .significance import common_cases, mean_of_cases, standard_error

TEMPORARY = 160  # bytes for each member of each case in the evaluation of a closed form


class Decomposition(NamedTuple):
    """Mean score (...) = calibration error + rest, in the unit of the scores."""

    calibration_error: FloatArray
    """Part of the score that recalibration would remove; the estimate may be negative"""
    calibration_error_standard_error: FloatArray
    rest: FloatArray
    """Part due to missing sharpness and to unpredictable variations; scores cannot separate these
    two causes"""
    rest_standard_error: FloatArray
    score: FloatArray
    """Mean score"""


def decompose(
    score_forecast: FloatArray, score_recalibrated: FloatArray, distance: FloatArray
) -> Decomposition:
    r"""Split the mean CRPS of a forecast into calibration error and the rest.

    Parameters
    ----------
    score_forecast : array of float, shape (..., n)
        CRPS of the forecasts Q; cases in order of time.
    score_recalibrated : array of float, shape (..., n)
        CRPS of the recalibrated forecasts R. The recalibration of each case must be learned from
        other cases only.
    distance : array of float, shape (..., n)
        :math:`d(R, Q) = \int (F_R - F_Q)^2`, from :func:`half_squared_distance`.

    Returns
    -------
    Decomposition
        Calibration error and rest with their standard errors, and the mean score, each of shape
        (...) and in the unit of the scores. All are NaN if there is no case; standard errors are
        NaN with fewer than three cases. The function leaves out a case that is missing in any
        array.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    With the score S and the observation y, two terms estimate the calibration error: d(R, Q), and
    S(Q, y) - S(R, y). If R is the distribution of the observation given Q, the expectation of each
    term is the calibration error. R is only an estimate of this distribution. Its errors raise the
    first term and lower the second by nearly the same amount, so the estimate is the average of
    both terms. The rest is the mean score minus this estimate. Standard errors allow for serial
    dependence (:func:`~xrecal.arrays.standard_error`), but not for the estimation of R.

    References
    ----------
    .. [1] Bröcker (2009), Reliability, sufficiency, and the decomposition of proper scores.
       https://doi.org/10.1002/qj.456

    Examples
    --------
    >>> forecast, recalibrated = np.full(5, 0.5), np.full(5, 0.25)
    >>> parts = decompose(forecast, recalibrated, np.full(5, 0.125))
    >>> float(parts.calibration_error), float(parts.rest), float(parts.score)
    (0.1875, 0.3125, 0.5)
    """
    forecast, recalibrated, apart = common_cases(
        score_forecast=score_forecast, score_recalibrated=score_recalibrated, distance=distance
    )
    error = 0.5 * (apart + forecast - recalibrated)
    rest = forecast - error
    return Decomposition(
        mean_of_cases(error),
        standard_error(error),
        mean_of_cases(rest),
        standard_error(rest),
        mean_of_cases(forecast),
    )


def half_squared_distance(q: Distribution, r: Empirical) -> FloatArray:
    r"""Compute half the squared energy distance between the two forecasts of each pair.

    Parameters
    ----------
    q : Distribution
        Forecasts of any form, shape (...).
    r : Empirical
        Ensembles, one for each forecast in ``q``. Each ensemble may have its own members, or
        several may share members.

    Returns
    -------
    array of float64, shape (...)
        :math:`\int (F_Q - F_R)^2 = E|X - Z| - \frac{1}{2} E|X - X'| - \frac{1}{2} E|Z - Z'| \ge 0`
        in the unit of the members. X and X' are drawn from Q, and Z and Z' from R. The result is
        NaN if a forecast of the pair is missing or has an infinite member.

    Raises
    ------
    ValueError
        If the numbers of forecasts differ, or a weight or scale is negative.

    Notes
    -----
    For two ensembles of m and n members, the function goes once through the sorted members of both;
    apart from sorting, the cost is O(m + n) per pair. If ensembles share members, it sorts them
    once. For mixtures of k normal distributions, the cost is O(k² + k n). For other forms of Q, the
    function computes the CRPS of Q for every member of R as the observation, in blocks of cases.

    Examples
    --------
    >>> from xrecal.arrays.distributions.forms import Empirical
    >>> q, r = Empirical(np.array([[0.0, 0.0]])), Empirical(np.array([[2.0, 2.0]]))
    >>> half_squared_distance(q, r)
    array([2.])
    """
    support, mass, shape = by_support(*r)
    if (mass < 0).any():
        raise ValueError("weights must not be negative, found one in r")
    out = np.empty(mass.shape[:2])
    if isinstance(q, Empirical):
        members, weights, own_shape = by_support(*q)
        _check_pairs(own_shape, shape)
        if (weights < 0).any():
            raise ValueError("weights must not be negative, found one in q")
        _fill_pairs((members, weights, support, mass), out)
        return out.reshape(shape)
    if isinstance(q, Normal):
        mixture = as_forecasts(*q, True)
        _check_pairs(mixture[0].shape[:-1], shape)
        loc, scale, weights = (part.reshape(*mass.shape[:2], -1) for part in mixture)
        for block, parts in double_blocks(loc, scale, weights, support, mass):
            fill_mean_crps(*parts, out[block])
    elif isinstance(q, Censored):
        _check_pairs(q.loc.shape[:-1], shape)
        _fill_censored(q, support, mass, out)
    else:
        raise TypeError(f"q is a {type(q).__name__}; give Empirical, Normal or Censored")
    spread = np.empty(out.shape)
    for block, own in double_blocks(support, mass):
        _fill_half_differences(*own, spread[block])
    return np.maximum(out - spread, 0.0).reshape(shape)


def _fill_pairs(parts: tuple[FloatArray, ...], out: FloatArray) -> None:
    """Write the distances of ensembles into ``out``, in blocks, by :func:`_fill_ensembles`."""
    if out.size == 0:
        return
    # A row is a case, or a location with its cases. Each call computes whole rows.
    n = min(map(len, parts))
    grouped = [part.reshape(n, len(part) // n, *part.shape[1:]) for part in parts]
    filled = out.reshape(n, -1)
    for block, some in double_blocks(*grouped):
        rows = (part.reshape(math.prod(part.shape[:2]), *part.shape[2:]) for part in some)
        _fill_ensembles(*rows, filled[block])


def _check_pairs(q: tuple[int, ...], r: tuple[int, ...]) -> None:
    if q != r:
        raise ValueError(f"q has shape {q}, but r has shape {r}; give one ensemble per forecast")


def _fill_censored(q: Censored, support: FloatArray, mass: FloatArray, out: FloatArray) -> None:
    """Write the mean CRPS of censored normal forecasts, with ensemble members as observations."""
    n, n_sharing = mass.shape[2], mass.shape[1]
    parts = [np.broadcast_to(part, q.loc.shape).reshape(-1, 1, 1) for part in q]
    rows, means = mass.reshape(-1, n), out.reshape(-1)
    for block in location_blocks(len(rows), TEMPORARY * n):
        case = np.arange(len(rows))[block]
        points, weights = support[case // n_sharing], rows[block]
        weights = np.where(np.isnan(points), 0.0, weights)
        scores = Censored(*(part[block] for part in parts)).crps(points)
        total = weights.sum(-1)
        mean = np.where(weights == 0, 0.0, weights * scores).sum(-1)
        means[block] = np.where(total > 0, mean / np.where(total > 0, total, 1.0), np.nan)


@kernel
def _fill_half_differences(support: Matrix, mass: Cube, out: OutMatrix) -> None:
    """Write half the mean distances (L, T) between members (L, n) with weights (L, T, n)."""
    for cell in range(mass.shape[0]):
        order = np.argsort(support[cell])
        for t in range(mass.shape[1]):
            row = mass[cell, t]
            total = total_mass(support[cell], row)
            score, below, reached = 0.0, 0.0, 0.0
            for i in order:
                z = np.float64(support[cell, i])
                if row[i] > 0 and not np.isnan(z):
                    score += (z - reached) * below * (total - below)
                    below, reached = below + row[i], z
            out[cell, t] = score / (total * total)


@inner
def _skip(values: Any, weights: Any, order: Any, i: int) -> int:
    """Return the next position, from i on, of a member with positive weight, or the end."""
    while i < order.size and not (weights[order[i]] > 0 and not np.isnan(values[order[i]])):
        i += 1
    return i


@inner
def _walk(x: Any, x_mass: Any, x_order: Any, y: Any, y_mass: Any, y_order: Any) -> float:
    """Compute ``int (F - G)^2`` of two ensembles with CDFs F and G, in one walk through members."""
    x_total, y_total = total_mass(x, x_mass), total_mass(y, y_mass)
    if np.isnan(x_total + y_total):
        return np.nan
    squared, difference, reached = 0.0, 0.0, 0.0
    i, j = _skip(x, x_mass, x_order, 0), _skip(y, y_mass, y_order, 0)
    while i < x.size or j < y.size:
        u = np.float64(x[x_order[i]]) if i < x.size else np.inf
        v = np.float64(y[y_order[j]]) if j < y.size else np.inf
        z = min(u, v)
        squared += (z - reached) * difference * difference
        reached = z
        if u <= v:
            difference += x_mass[x_order[i]] / x_total
            i = _skip(x, x_mass, x_order, i + 1)
        else:
            difference -= y_mass[y_order[j]] / y_total
            j = _skip(y, y_mass, y_order, j + 1)
    return squared


@kernel
def _fill_ensembles(x: Matrix, x_mass: Cube, y: Matrix, y_mass: Cube, out: OutMatrix) -> None:
    """Write the distances of pairs of ensembles into ``out``, in the order of the cases.

    The first ensembles have members (L, n) and weights (L, T, n). The second ensembles have members
    (M, p) and weights (M, S, p). The number of pairs is L T, which equals M S.
    """
    x_order, y_order = np.argsort(x[0]), np.argsort(y[0])
    flat = out.ravel()
    for pair in range(flat.size):
        k, s = pair // x_mass.shape[1], pair % x_mass.shape[1]
        m, t = pair // y_mass.shape[1], pair % y_mass.shape[1]
        if s == 0:
            x_order = np.argsort(x[k])
        if t == 0:
            y_order = np.argsort(y[m])
        flat[pair] = _walk(x[k], x_mass[k, s], x_order, y[m], y_mass[m, t], y_order)
