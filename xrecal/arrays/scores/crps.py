"""CRPS of ensembles: the usual score, the fair score, and the score between thresholds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Cube, IndexMatrix, Matrix, OutMatrix, kernel
from xrecal.arrays.distributions.weighted import by_support
from xrecal.arrays.rows import double_blocks
from xrecal.typing import FloatArray


def crps(
    observations: FloatArray, members: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    r"""Compute the continuous ranked probability score of the empirical distribution.

    Parameters
    ----------
    observations : array of float, shape (...) or (..., T)
        Observations, in the unit u of the members.
    members : array of float, shape (..., n)
        Members; NaN marks a missing member.
    weights : array of float, shape (..., n) or (..., T, n), optional
        Weights >= 0, which the function normalises; equal by default. If ``weights`` have one axis
        more than ``members``, T forecasts share the members. The function then sorts the members
        once, and the cost is O(n) per forecast.

    Returns
    -------
    array of float64, shape of ``observations``
        :math:`\sum_i w_i |x_i - y| - \frac{1}{2} \sum_{ij} w_i w_j |x_i - x_j| \ge 0` in u. This is
        the score of the distribution itself, not the "fair" estimate for an infinite ensemble. It
        is NaN if the observation or a weight is NaN, if all members are missing, or if an infinite
        member has positive weight.

    Raises
    ------
    ValueError
        If a weight is negative or shapes do not fit.

    Notes
    -----
    The cost is O(n log n) for a forecast that has its own members.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> crps(np.array([3.0, 1.5]), np.array([[1.0, 2.0], [1.0, 2.0]]))
    array([1.25, 0.25])
    """
    return threshold_weighted_crps(observations, members, weights)


def threshold_weighted_crps(
    observations: FloatArray,
    members: FloatArray,
    weights: FloatArray | None = None,
    *,
    lower: npt.ArrayLike = -np.inf,
    upper: npt.ArrayLike = np.inf,
) -> FloatArray:
    r"""Compute the CRPS of ensembles, from the part of the CDF between two thresholds.

    Parameters
    ----------
    observations, members, weights
        As in :func:`crps`.
    lower, upper : array_like, broadcast to ``observations``
        Thresholds, in the unit u of the members; -inf and inf mean no threshold. If a threshold is
        NaN, the score is NaN.

    Returns
    -------
    array of float64, shape of ``observations``
        :math:`\int_{lower}^{upper} (F(z) - 1\{y \le z\})^2 dz \ge 0` in u. This equals the CRPS
        after members and observations beyond a threshold are moved to this threshold. The scores of
        two neighbouring intervals add up to the score of the joined interval. The score is NaN
        where :func:`crps` is NaN.

    Raises
    ------
    ValueError
        If a weight is negative, if a lower threshold exceeds the upper one, or if shapes do not
        fit.

    Notes
    -----
    The cost is O(n log n) per forecast, or O(n) if forecasts share members. This score is proper
    [1]_. In contrast, a mean CRPS over only the cases with extreme observations is not proper. In
    the terms of [2]_, the move to the thresholds is a chaining function.

    References
    ----------
    .. [1] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110
    .. [2] Allen, Ginsbourger & Ziegel (2023), Evaluating forecasts for high-impact events using
       transformed kernel scores. https://doi.org/10.1137/22M1532184

    Examples
    --------
    >>> float(threshold_weighted_crps(np.array(3.0), np.array([1.0, 2.0]), lower=2.0))
    1.0
    """
    observations = np.asarray(observations)
    if weights is not None and (np.asarray(weights) < 0).any():
        raise ValueError("weights must not be negative")
    support, mass, shape = by_support(members, weights)
    check_shape(observations, shape)
    low, high = thresholds_of(observations, lower, upper)
    scores = np.empty(mass.shape[:2])
    cases = (np.reshape(part, scores.shape) for part in (observations, low, high))
    for block, (y, x, w, *between) in double_blocks(next(cases), support, mass, *cases):
        order = np.argsort(x, axis=-1)
        z = np.take_along_axis(x, order, axis=-1)
        _fill_crps(y, (z, order), w, *between, scores[block])
    return scores.reshape(shape)


def fair_crps(observations: FloatArray, members: FloatArray) -> FloatArray:
    r"""Compute the fair CRPS: the expected CRPS if the ensemble had infinitely many members.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in the unit u of the members.
    members : array of float, shape (..., m)
        Equally likely members; NaN marks a missing member.

    Returns
    -------
    array of float64, shape (...)
        :math:`\frac{1}{m} \sum_i |x_i - y| - \frac{1}{2 m (m-1)} \sum_{ij} |x_i - x_j| \ge 0` in u;
        smaller is better. The score is 0 if no two members are on the same side of the observation.
        It is NaN if the observation is NaN, if there are fewer than two members, or if a member is
        infinite.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    The cost is O(m log m) per forecast. Use the fair score to compare ensembles of different sizes,
    if members are random draws from a forecast distribution; :func:`crps` scores the ensemble
    itself. Do not use the fair score for weighted members, because they are not equally likely
    draws.

    References
    ----------
    .. [1] Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270

    Examples
    --------
    >>> float(fair_crps(np.array(3.0), np.array([1.0, 2.0])))
    1.0
    """
    y, x = np.asarray(observations, np.float64), np.sort(np.asarray(members, np.float64), axis=-1)
    check_shape(y, x.shape[:-1])
    known = ~np.isnan(x)
    m = known.sum(-1)
    undefined = np.isnan(y) | (m < 2) | np.isinf(x).any(-1)
    y = np.where(undefined, 0.0, y)[..., np.newaxis]
    x = np.where(known & ~undefined[..., np.newaxis], x - y, 0.0)
    # sum_ij |x_i - x_j| / 2 contains the sorted member i with the factors i, and -(m - 1 - i).
    rank = 2.0 * np.arange(x.shape[-1]) - (m[..., np.newaxis] - 1)
    m = np.maximum(m, 2)
    score = np.abs(x).sum(-1) / m - (rank * x).sum(-1) / (m * (m - 1))
    return np.where(undefined, np.nan, np.maximum(score, 0.0))


def check_shape(observations: FloatArray, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless observations have the shape of the forecasts."""
    if observations.shape != shape:
        raise ValueError(
            f"observations have shape {observations.shape}, but the forecasts need {shape}"
        )


def thresholds_of(
    observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return thresholds as float64 arrays with the shape of observations.

    The function raises ValueError if shapes do not fit, or if a lower threshold exceeds an upper
    one.
    """
    low, high = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    try:
        low, high = (np.broadcast_to(part, observations.shape) for part in (low, high))
    except ValueError:
        raise ValueError(
            f"lower and upper have shapes {low.shape} and {high.shape}; give numbers, or arrays "
            f"that broadcast to the shape of observations, {observations.shape}"
        ) from None
    wrong = (low > high) | np.isposinf(low) | np.isneginf(high)
    if wrong.any():
        raise ValueError(
            f"lower must not exceed upper, found {low[wrong][0]:g} and {high[wrong][0]:g}; "
            "for no threshold give lower=-inf and upper=inf"
        )
    return low, high


@kernel
def _fill_crps(
    observations: Matrix,
    ordered: tuple[Matrix, IndexMatrix],
    mass: Cube,
    lower: Matrix,
    upper: Matrix,
    out: OutMatrix,
) -> None:
    """Write ``int (F - 1{z >= y})^2 dz`` between thresholds into ``out``, for forecasts with CDF F.

    In each of L rows, T forecasts share n members. Observations and thresholds have shape (L, T),
    weights (L, T, n). ``ordered`` holds ascending members (L, n) and the positions of their
    weights. Below the observation, the integrand is the squared mass below z. Above the
    observation, it is the squared mass above z. The function goes from both ends towards the
    observation, so no member needs a branch or a division.
    """
    support, places = ordered
    n = support.shape[1]
    for cell in range(support.shape[0]):
        z, order = support[cell], places[cell]
        first, last = 0, n  # finite members; NaN and infinity sort to the ends
        while last > 0 and not z[last - 1] < np.inf:
            last -= 1
        while first < last and z[first] == -np.inf:
            first += 1
        for t in range(mass.shape[1]):
            row, low, high = mass[cell, t], lower[cell, t], upper[cell, t]
            y = min(max(np.float64(observations[cell, t]), low), high)
            score, below, above, i = 0.0, 0.0, 0.0, first
            reached = max(z[first], low) if first < last else y
            while i < last and z[i] < y:
                point = max(z[i], low)
                score += (point - reached) * below * below
                reached = point
                below += row[order[i]]
                i += 1
            if i > first:
                score += (y - reached) * below * below
            reached = min(z[last - 1], high) if first < last else y
            for j in range(last - 1, i - 1, -1):
                point = min(z[j], high)
                score += (reached - point) * above * above
                reached = point
                above += row[order[j]]
            if i < last:
                score += (reached - y) * above * above
            total = below + above
            out[cell, t] = score / (total * total) if total > 0 else np.nan
            if np.isnan(low) or np.isnan(high) or np.isnan(observations[cell, t]):
                out[cell, t] = np.nan
            for j in range(n):
                infinite = (j < first or j >= last) and not np.isnan(z[j])
                if infinite and row[order[j]] > 0:
                    out[cell, t] = np.nan
