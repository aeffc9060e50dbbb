"""Recalibration of forecasts by probability integral transforms (PIT) of past cases."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from xrecal.arrays.distributions.forms import VALID, Forecasts, verdicts
from xrecal.arrays.distributions.normal import normal_quantile
from xrecal.arrays.distributions.weighted import weighted_quantile
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray

SMALLEST_LEVEL = 2.0**-53
"""For normal forecasts, levels keep at least this distance from 0 and 1, where quantiles are
infinite. So quantiles lie within 8.2 standard deviations of the mean."""


def pit_values(forecasts: Forecasts, observations: FloatArray, uniform: FloatArray) -> FloatArray:
    r"""Compute the probability integral transform (PIT) of observations.

    If the observation is at a jump of the CDF, as on a dry day, the PIT is random within the jump.

    Parameters
    ----------
    forecasts : Forecasts
        Forecasts of n cases, arrays (L, n, m).
    observations : array of float, shape (L, n)
        Observations y, in the unit of the forecasts.
    uniform : array of float, shape (L, n)
        Random numbers u in (0, 1), such as those of :func:`hash_uniform`.

    Returns
    -------
    array of float64, shape (L, n)
        PIT :math:`F(y-) + u (F(y) - F(y-))` in [0, 1], where F is the CDF of the forecast and
        :math:`F(y-)` its limit from below. For normal distributions of positive scale, the PIT is
        F(y). The PIT is NaN where the observation, u or the forecast is missing or invalid.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    The cost is O(m) per forecast. If y is a random draw from F, the PIT is uniform on (0, 1),
    whatever F is. The PIT is 0 or 1 for an observation outside the range of an ensemble.

    References
    ----------
    .. [1] Czado, Gneiting & Held (2009), Predictive model assessment for count data.
       https://doi.org/10.1111/j.1541-0420.2009.01191.x

    Examples
    --------
    >>> forecasts = Forecasts(np.array([[[1.0, 2.0, 2.0, 3.0]]]))
    >>> pit_values(forecasts, np.array([[2.0]]), np.array([[0.5]]))
    array([[0.5]])
    """
    shape = forecasts.check("forecasts", 3)
    observations, uniform = np.asarray(observations), np.asarray(uniform)
    for name, array in {"observations": observations, "uniform": uniform}.items():
        if array.shape != shape[:2]:
            raise ValueError(f"{name} have shape {array.shape}, but forecasts need {shape[:2]}")
    pit = np.empty(shape[:2])
    for block in location_blocks(shape[0], 32 * math.prod(shape[1:])):
        loc, scale, mass = _valid(forecasts.take(block))
        y = np.where(np.isfinite(observations[block]), observations[block], np.nan)
        jump, below = mass * (loc == y[..., np.newaxis]), mass * (loc < y[..., np.newaxis])
        if scale is not None:
            smooth = scale > 0
            with np.errstate(over="ignore"):  # infinitely many deviations away
                standard = (y[..., np.newaxis] - loc) / np.where(smooth, scale, 1.0)
            jump = np.where(smooth, 0.0, jump)
            below = np.where(smooth, mass * ndtr(standard), below)
        total = np.where(np.isnan(y), np.nan, mass.sum(-1))
        with np.errstate(invalid="ignore"):  # 0/0 without members
            level = (below.sum(-1) + uniform[block] * jump.sum(-1)) / total
        pit[block] = np.clip(level, 0.0, 1.0)
    return pit


def _valid(forecasts: Forecasts) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    """Return members, scales and weights as contiguous float64.

    Missing or invalid members get weight 0.
    """
    loc, scale, weights = forecasts
    mass = np.ones(loc.shape) if weights is None else np.array(weights, np.float64, order="C")
    left_out = np.isnan(loc) | np.isnan(mass) | (verdicts(forecasts) != VALID)[..., np.newaxis]
    if scale is not None:
        left_out |= np.isnan(scale)
        scale = np.ascontiguousarray(np.where(left_out, 0.0, scale), np.float64)
    mass[left_out] = 0.0
    return np.ascontiguousarray(np.where(left_out, 0.0, loc), np.float64), scale, mass


def recalibrated_members(forecasts: Forecasts, levels: FloatArray) -> FloatArray:
    r"""Recalibrate forecasts: compute their quantiles at the PIT values of past observations.

    Parameters
    ----------
    forecasts : Forecasts
        New forecasts, arrays (L, T, m).
    levels : array of float, shape (L, n)
        Levels of quantiles: PIT values of past cases in [0, 1], from :func:`pit_values`; NaN if
        unknown.

    Returns
    -------
    array of the floating type of the forecasts, shape (L, T, n)
        Members of the recalibrated forecast in the order of the levels, in the unit of the
        forecasts. A member is NaN if its level is NaN; all members are NaN if the forecast is
        missing or invalid.

    Raises
    ------
    ValueError
        If shapes do not match or a level is outside [0, 1].

    Notes
    -----
    Let F be the CDF of the forecast, and G the empirical CDF of the levels. If all new members that
    are not NaN get equal weights, their CDF is :math:`G(F(\cdot))`. For ensembles, the quantile is
    the smallest member z whose F(z) reaches the level. At level 0, the quantile is the smallest
    member. So the new members stay in the range of the ensemble. Normal distributions have no
    finite quantiles at the levels 0 and 1. So the function limits levels to the range from
    ``SMALLEST_LEVEL`` to 1 - ``SMALLEST_LEVEL``; this upper limit is the largest float64 number
    below 1. New members of a normal forecast therefore lie within 8.2 standard deviations of its
    mean.

    The cost is O(n) per forecast, after sorting of members and levels. Mixtures of normal
    distributions need about ten evaluations of the CDF per level.

    References
    ----------
    .. [1] Kuleshov, Fenner & Ermon (2018), Accurate uncertainties for deep learning using
       calibrated regression. https://arxiv.org/abs/1807.00263

    Examples
    --------
    >>> recalibrated_members(Forecasts(np.array([[[1.0, 2.0, 3.0, 4.0]]])), np.array([[0.9, 0.3]]))
    array([[[4., 2.]]])
    """
    shape, levels = forecasts.check("forecasts", 3), np.asarray(levels, np.float64)
    if levels.ndim != 2 or len(levels) != shape[0]:
        raise ValueError(f"levels must have shape ({shape[0]}, n), got {levels.shape}")
    known = ~np.isnan(levels)
    if not ((levels >= 0) & (levels <= 1) | ~known).all():
        raise ValueError("levels must lie between 0 and 1, or be NaN where unknown")
    members = np.full((*shape[:2], levels.shape[1]), np.nan, dtype=forecasts.loc.dtype)
    for i in range(shape[0]):
        loc, scale, mass = _valid(forecasts.take(slice(i, i + 1)))
        q = levels[i, known[i]]
        if scale is None:
            members[i][:, known[i]] = weighted_quantile(loc[0], q, mass[0])
        else:
            q = np.clip(q, SMALLEST_LEVEL, 1.0 - SMALLEST_LEVEL)
            members[i][:, known[i]] = normal_quantile(q, loc[0], scale[0], mass[0])
    return members
