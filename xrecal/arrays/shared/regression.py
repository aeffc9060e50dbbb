"""Regression of observations on ensemble mean and variance, with one fit for all places."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.baselines.emos import fit_emos
from xrecal.arrays.baselines.robust import EDGE, cut
from xrecal.typing import FloatArray

from .cells import NothingToLearnError

NARROWEST = 0.01
"""Lower limit of the scale of an error, in standard deviations of all errors. Without this limit,
many exact forecasts without spread, such as forecasts of no rain, would make the scale zero."""

EXACT = 1e-9
"""Errors count as rounding errors if their standard deviation is at most this share of the largest
observation."""


class Pooled(NamedTuple):
    """Common regression of all places: N(a + b x, c² + d² v) for ensemble mean x and variance v."""

    coefficients: FloatArray
    """(4,) a, b, c, d"""
    level: float
    """Mean of the ensemble means, with outliers limited"""
    width: float
    """Standard deviation of the ensemble means; the slope of a place is the change of its
    correction per such standard deviation"""
    kurtosis: float
    """Kurtosis of standardised errors. The smaller the kurtosis, the more accurate are estimates of
    variances"""
    inverse_size: float = np.nan
    """Mean of 1 / m over past ensembles of m members, NaN if unknown"""
    past_variance: float = np.nan
    """Mean variance of past ensembles"""
    past_variation: float = np.nan
    """Variance of the variances of past ensembles"""

    def standardised(
        self, mean: FloatArray, variance: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean and scale of the regression and standardised ensemble mean, each (n,)."""
        a, b, c, d = self.coefficients
        scale = np.hypot(c, d * np.sqrt(variance))
        return a + b * mean, scale, (mean - self.level) / self.width


def fit_pooled(mean: FloatArray, variance: FloatArray, observations: FloatArray) -> Pooled:
    """Fit the regression to a sample of cases of all places.

    Parameters
    ----------
    mean, observations : array of float, shape (n,)
        Ensemble means and observations, in the unit of the variable.
    variance : array of float, shape (n,)
        Ensemble variances (>= 0), in the square of this unit.

    Returns
    -------
    Pooled

    Raises
    ------
    ValueError
        If the regression fits exactly, or no case is complete. In both cases there are no errors to
        learn from.
    """
    coefficients, _, _ = fit_emos(*(part[np.newaxis] for part in (mean, variance, observations)))
    known = np.isfinite(mean) & np.isfinite(variance) & np.isfinite(observations)
    x, y = mean[known], observations[known]
    a, b, c, d = coefficients[0]
    apart = float(cut(y - a - b * x).std()) if x.size else 0.0
    fitted = np.array([a, b, max(abs(c), NARROWEST * apart), d])
    near = cut(x, far=EDGE) if x.size else np.zeros(1)
    pooled = Pooled(fitted, float(near.mean()), float(near.std()) or 1.0, 3.0)
    location, scale, _ = pooled.standardised(x, variance[known])
    if not x.size or apart <= EXACT * float(np.abs(cut(y)).max()):
        raise NothingToLearnError(
            f"a regression of {x.size} cases leaves no errors to learn from; give 20 or more "
            "cases, with observations that the ensemble mean does not predict exactly"
        )
    errors = (y - location) / scale
    spread = errors.std()
    kurtosis = float((((errors - errors.mean()) / spread) ** 4).mean())
    return pooled._replace(kurtosis=min(max(kurtosis, 1.5), 30.0))
