"""Scores of single quantiles, and the CRPS with more weight on some quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Matrix, OutMatrix, Vector, inner, kernel
from xrecal.arrays.distributions.weighted import by_support, check_levels, total_mass
from xrecal.arrays.rows import double_blocks
from xrecal.typing import FloatArray

from .crps import check_shape

WEIGHTINGS = {
    "center": (0.0, 1.0, -1.0),
    "tails": (1.0, -4.0, 4.0),
    "upper": (0.0, 0.0, 1.0),
    "lower": (1.0, -2.0, 1.0),
}
"""Weight of the quantile at level τ in each weighting: coefficients of 1, τ and τ²."""


def quantile_score(
    observations: FloatArray, quantiles: FloatArray, levels: FloatArray
) -> FloatArray:
    r"""Compute the quantile score, or pinball loss, of single quantiles.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in the unit u of the quantiles.
    quantiles : array of float, shape (..., k)
        Forecasts of the quantiles.
    levels : array of float, shape (k,)
        Levels τ of the quantiles in [0, 1], in any order.

    Returns
    -------
    array of float64, shape (..., k)
        :math:`(1\{y \le q\} - \tau)(q - y) \ge 0` in u: τ times the distance if the observation is
        above the quantile, and 1 - τ times the distance if the observation is below; smaller is
        better. The score is NaN if the observation or the quantile is NaN.

    Raises
    ------
    ValueError
        If a level is outside [0, 1] or shapes do not fit.

    Notes
    -----
    Twice the integral of the score over all levels is the CRPS. Twice the mean score over the
    levels (i - ½) / k is the CRPS of an ensemble whose members are the k quantiles. As in the
    packages scikit-learn, scores and scoringrules, the score itself has no factor 2.

    References
    ----------
    .. [1] Koenker & Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
    .. [2] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110

    Examples
    --------
    >>> quantile_score(np.array([3.0]), np.array([[1.0, 5.0]]), np.array([0.1, 0.9])).round(2)
    array([[0.2, 0.2]])
    """
    levels = check_levels(levels)
    y, q = np.asarray(observations, np.float64), np.asarray(quantiles, np.float64)
    if q.shape != (*y.shape, levels.size):
        raise ValueError(
            f"quantiles have shape {q.shape}, but observations and levels need "
            f"{(*y.shape, levels.size)}; put the levels on the last axis"
        )
    y = y[..., np.newaxis]
    slope = np.where(y <= q, 1.0 - levels, levels)
    with np.errstate(invalid="ignore"):  # the quantile of a normal distribution at level 0
        score = np.where(slope == 0, 0.0, slope * np.abs(q - y))
    return np.where(np.isnan(y) | np.isnan(q), np.nan, score)


def quantile_weighted_crps(
    observations: FloatArray,
    members: FloatArray,
    weights: FloatArray | None = None,
    *,
    weighting: str = "center",
) -> FloatArray:
    r"""Compute the CRPS of ensembles with more weight on some quantiles.

    Parameters
    ----------
    observations, members, weights
        As in :func:`~xrecal.arrays.crps`.
    weighting : {"center", "tails", "upper", "lower"}
        Weight v(τ) of the quantile at level τ: :math:`\tau (1 - \tau)`, :math:`(2 \tau - 1)^2`,
        :math:`\tau^2` or :math:`(1 - \tau)^2`.

    Returns
    -------
    array of float64, shape of ``observations``
        :math:`\int_0^1 2 (1\{y \le q_\tau\} - \tau)(q_\tau - y) \, v(\tau) \, d\tau \ge 0` in the
        unit of the members, smaller is better. The score is NaN where :func:`~xrecal.arrays.crps`
        is NaN. The CRPS is the score with "tails" plus 4 times the score with "center". It is also
        the sum of the scores with "upper" and "lower", plus 2 times the score with "center".

    Raises
    ------
    ValueError
        If ``weighting`` is none of these names, if a weight is negative, or if shapes do not fit.

    Notes
    -----
    The function computes the score exactly, by integration by parts: :math:`\int_{-\infty}^y
    P(F(z)) \, dz + \int_y^\infty \bar P(1 - F(z)) \, dz` with :math:`P(u) = \int_0^u 2 \tau v(\tau)
    \, d\tau`. Here :math:`\bar P` is the same integral with :math:`v(1 - \tau)` instead of
    :math:`v(\tau)`. The cost is O(n log n) per forecast, or O(n) if forecasts share members.

    References
    ----------
    .. [1] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110

    Examples
    --------
    >>> float(quantile_weighted_crps(np.array(3.0), np.array([1.0, 2.0])).round(3))
    0.219
    """
    rising, falling = _polynomials(weighting)
    observations = np.asarray(observations)
    if weights is not None and (np.asarray(weights) < 0).any():
        raise ValueError("weights must not be negative")
    support, mass, shape = by_support(members, weights)
    check_shape(observations, shape)
    scores = np.empty(mass.shape[:2])
    for block, parts in double_blocks(observations.reshape(scores.shape), support, mass):
        _fill_weighted_crps(*parts, rising, falling, scores[block])
    return scores.reshape(shape)


def _polynomials(weighting: str) -> tuple[FloatArray, FloatArray]:
    """Return coefficients of u², u³ and u⁴ in P and P bar of :func:`quantile_weighted_crps`."""
    if weighting not in WEIGHTINGS:
        names = ", ".join(repr(name) for name in WEIGHTINGS)
        raise ValueError(f"weighting is {weighting!r}; give one of {names}")
    constant, linear, square = WEIGHTINGS[weighting]
    by_power = 2.0 / np.array([2.0, 3.0, 4.0])
    rising = np.array([constant, linear, square])
    falling = np.array([constant + linear + square, -linear - 2.0 * square, square])
    return by_power * rising, by_power * falling


@inner
def _polynomial(u: float, c: Any) -> float:
    return u * u * (c[0] + u * (c[1] + u * c[2]))  # type: ignore[no-any-return]


@kernel
def _fill_weighted_crps(
    observations: Matrix,
    support: Matrix,
    mass: Cube,
    rising: Vector,
    falling: Vector,
    out: OutMatrix,
) -> None:
    """Write scores (L, T) of forecasts with members (L, n) and weights (L, T, n) into ``out``.

    The function goes through the members from both ends to the observation. Each sum of weights
    starts in a tail, so a small probability keeps full precision.
    """
    n = support.shape[1]
    z = np.empty(n)
    for cell in range(support.shape[0]):
        order = np.argsort(support[cell])
        for i in range(n):
            z[i] = support[cell, order[i]]
        for t in range(mass.shape[1]):
            y, row = observations[cell, t], mass[cell, t]
            total = total_mass(support[cell], row)
            if np.isnan(y) or np.isnan(total):
                out[cell, t] = np.nan
                continue
            score, below, above, reached, i = 0.0, 0.0, 0.0, y, 0
            while i < n and z[i] < y:
                if row[order[i]] > 0:
                    if below > 0:
                        score += (z[i] - reached) * _polynomial(below / total, rising)
                    below, reached = below + row[order[i]], z[i]
                i += 1
            if below > 0:
                score += (y - reached) * _polynomial(below / total, rising)
            for j in range(n - 1, i - 1, -1):
                if row[order[j]] > 0 and not np.isnan(z[j]):
                    if above > 0:
                        score += (reached - z[j]) * _polynomial(above / total, falling)
                    above, reached = above + row[order[j]], z[j]
            if above > 0:
                score += (reached - y) * _polynomial(above / total, falling)
            out[cell, t] = score
