"""Comparison, in short records, of two causes of errors: an annual cycle, or a jump at one date.

If a record has each season only once, held-out cases cannot choose between cycle and jump, because
cases that are nearest in season are also nearest in time. If a fit mistakes a jump for an annual
cycle, its forecasts repeat the jump each year.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from xrecal.typing import FloatArray

from .lines import fit_line
from .robust import believed

YEAR = 365.25
"""Days in a year."""

FAR = 1.345
"""Errors larger than this number of robust standard deviations get less weight."""

ODDS = 99.0
"""Prior odds (without knowledge of the errors) of an annual cycle against a jump."""

LEAST = 1e-12
"""Residual variances below this share of the variance of the errors count as this share."""


def season_kept(means: FloatArray, observations: FloatArray, days: FloatArray) -> FloatArray:
    r"""Return a factor, from 0 to 1, for the weight of a component that uses the season.

    Parameters
    ----------
    means, observations : array of float, shape (L, n)
        Ensemble means and observations of n cases at L places, in order of time; NaN where unknown.
    days : array of float, shape (n,)
        Dates of the cases, in days.

    Returns
    -------
    array of float64, shape (L,)
        Factors near 1, unless a jump explains the errors much better than an annual cycle does. A
        factor is 1 for a record of two years or more, because such a record has held-out cases that
        can choose between cycle and jump.

    Notes
    -----
    The function fits a line of the observations on the means, with Huber weights. It then compares
    two extensions of this line. The first extension adds a sine and a cosine of the time of year.
    The second adds a constant to all cases after a jump. Let :math:`p` be the posterior probability
    of the jump. This probability assumes normal errors, the same prior probability for each date of
    the jump, and prior odds of 99 to 1 for the annual cycle. For a record of Y years the factor is

    .. math:: 1 - p \, \min(\max(2 - Y, 0), 1).

    If errors have the lag-1 autocorrelation :math:`\rho`, n cases count as only
    :math:`n (1 - \rho) / (1 + \rho)`. The cost is O(n) per place.
    """
    kept = np.ones(observations.shape[0])
    pairs = (part.astype(np.float64) for part in (means, observations))
    for i, (mean, observed) in enumerate(zip(*pairs, strict=True)):
        known = np.isfinite(mean + observed)
        known[known] = believed(mean[known, np.newaxis])
        when = days[known]
        doubt = min(2.0 - np.ptp(when) / YEAR, 1.0) if when.size > 4 else 0.0
        if doubt > 0.0:
            evidence = _log_ratio(mean[known], observed[known], when)
            kept[i] = 1.0 - doubt * float(expit(-evidence - np.log(ODDS)))
    return kept


def _log_ratio(mean: FloatArray, observed: FloatArray, days: FloatArray) -> float:
    """Return the log of a ratio: likelihood of an annual cycle, divided by likelihood of a jump.

    The result is 0 if all observations lie on the line, or if all cases have one date.
    """
    intercept, slope = fit_line(mean, np.empty((mean.size, 0)), observed)
    root = _root_weights(observed - intercept - slope * mean)
    line, _ = np.linalg.qr(np.stack([root, root * (mean - mean.mean())], axis=-1))
    errors = root * observed
    errors -= line @ (line.T @ errors)
    total, jumps = float(errors @ errors), np.diff(days) > 0
    if not (total > 0.0 and jumps.any()):
        return 0.0
    of_season = _left_by_season(errors, root, line, days)
    left, of_jump = _left_by_jumps(errors, root, line, jumps)
    better = min(of_season, of_jump, key=lambda e: float(e @ e))
    rho = float(better[1:] @ better[:-1]) / max(float(better @ better), LEAST * total)
    counted = errors.size * (1 - min(max(rho, 0.0), 1.0)) / (1 + max(rho, 0.0))
    season = max(float(of_season @ of_season) / total, LEAST)
    ratios = -counted / 2 * np.log(np.maximum(left / total, LEAST) / season)
    most = float(ratios.max())
    return -most - float(np.log(np.exp(ratios - most).mean()))


def _root_weights(errors: FloatArray) -> FloatArray:
    """Return the square roots (n,) of the Huber weights of errors around a robust line."""
    size = np.abs(errors)
    edge = FAR * 1.4826 * float(np.median(size))
    return np.sqrt(np.where(size > edge, edge / np.where(size > edge, size, 1.0), 1.0))


def _left_by_season(
    errors: FloatArray, root: FloatArray, line: FloatArray, days: FloatArray
) -> FloatArray:
    """Return weighted errors (n,) after a fit of a sine and a cosine of the time of year."""
    angle = 2 * np.pi * days / YEAR
    season = root[:, np.newaxis] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    season -= line @ (line.T @ season)
    return np.asarray(errors - season @ np.linalg.lstsq(season, errors)[0])


def _left_by_jumps(
    errors: FloatArray, root: FloatArray, line: FloatArray, where: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the sum of squared errors for each possible jump, and the errors for the best jump.

    The errors (n,) are weighted residuals after the fit of the jump. ``where`` (n - 1,) marks the
    cases, after the first case, at which a jump is possible.
    """

    def from_here_on(values: FloatArray) -> FloatArray:
        return np.asarray(np.cumsum(values[::-1], axis=0)[::-1][1:][where])

    along = from_here_on(root[:, np.newaxis] * line)  # part of each jump along the line
    size = from_here_on(root**2) - (along**2).sum(-1)
    there = size > LEAST * float(root @ root)
    slope = from_here_on(root * errors) / np.where(there, size, np.inf)
    left = float(errors @ errors) - slope**2 * np.where(there, size, 0.0)
    best = int(left.argmin())
    jump = root * (np.arange(root.size) > np.flatnonzero(where)[best])
    return left, errors - slope[best] * (jump - line @ (line.T @ jump))
