"""Centres and members at many locations at once; see :mod:`xrecal.arrays.ckme.centre`.

The centre of a forecast is the value from which its errors are measured. The support is the kind of
members: past observations, or a centre plus past errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.arrays.baselines.crps_regression import LARGEST_EXPONENT
from xrecal.arrays.ckme.centre import RATIO, Sample, fit_centre
from xrecal.arrays.ckme.centre import inside as inside_of_one
from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray, IntArray

from .cases import Cases

__all__ = ["Bounds", "centres_of", "errors_of", "fit_centres", "inside", "members_of"]


Flags: TypeAlias = npt.NDArray[np.bool_]


class Bounds(NamedTuple):
    """Lower and upper bounds (L,) of the variable on the host, infinite without a bound."""

    low: FloatArray
    high: FloatArray

    def take(self, block: slice) -> Bounds:
        """Return the bounds of some locations."""
        return Bounds(self.low[block], self.high[block])

    def moved(self, xp: Any) -> tuple[Any, Any]:
        """Return the bounds (L, 1) as arrays of the library ``xp``."""
        return xp.asarray(self.low[:, np.newaxis]), xp.asarray(self.high[:, np.newaxis])


def fit_centres(
    code: IntArray,
    cases: Cases,
    train: npt.NDArray[np.bool_],
    counted: npt.NDArray[np.bool_],
    bounds: Bounds,
) -> FloatArray:
    """Fit coefficients (L, 4 + 2 k) of the centres of each location, on the host.

    ``code`` (L,) is the kind of support. The fit needs only the means, variances, covariates and
    observations of the training cases; ``train`` (L, n) marks these cases. The fit uses covariates
    where ``counted`` (L,) is True.
    """
    n_locations, _, k = cases.features.shape
    coefficients = np.zeros((n_locations, 4 + 2 * k))
    for place, some in enumerate(train):
        known = cases.mean, cases.variance, cases.features, cases.target
        mean, variance, of, target = (part[place, some] for part in known)
        limits = bounds.low[place], bounds.high[place]
        sample = Sample(mean, variance, of, target, *limits, cases.predictors)
        sample = sample.conditioned(float(counted[place]))
        fit_centre(int(code[place]), sample, coefficients[place])
    return coefficients


def centres_of(code: IntArray, coefficients: Any, mean: Any, variance: Any, of: Any) -> Any:
    """Return centre and spread (L, n) of forecasts; ``code`` (L,) is the kind of support."""
    xp = namespace(mean)
    variance = xp.where(xp.asarray(code == RATIO)[:, None], mean * mean, variance)
    k = of.shape[-1]
    centre = coefficients[:, 0:1] + coefficients[:, 1:2] * mean
    exponent = xp.zeros_like(mean)
    for i in range(k):
        centre = centre + coefficients[:, 4 + i : 5 + i] * of[:, :, i]
        exponent = exponent + coefficients[:, 4 + k + i : 5 + k + i] * of[:, :, i]
    exponent = xp.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    spread = xp.sqrt(coefficients[:, 2:3] ** 2 + coefficients[:, 3:4] ** 2 * variance)
    return centre, spread * xp.exp(exponent)


def errors_of(cases: Cases, code: IntArray, coefficients: Any, bounds: Bounds) -> Any:
    """Return errors (L, n) in units of the spread; infinite if the observation is on a bound."""
    xp, target = namespace(cases.target), cases.target
    of = cases.mean, cases.variance, cases.features
    centre, spread = centres_of(code, coefficients, *of)
    low, high = bounds.moved(xp)
    error = xp.where(target >= high, float("inf"), (target - centre) / spread)
    return xp.where(target <= low, -float("inf"), error)


def inside(cases: Cases, train: Flags, bounds: Bounds) -> Bounds:
    """Return limits (L,) for members that are not on a bound, from the cases in ``train``."""
    rows = zip(cases.target, train, *bounds, strict=True)
    found = [inside_of_one(target[some], low, high) for target, some, low, high in rows]
    first, last = np.array(found).reshape(-1, 2).T
    return Bounds(first, last)


def members_of(centre: Any, spread: Any, error: Any, bounds: Bounds, limits: Bounds) -> Any:
    """Return members (L, q, n) from centres (L, q), spreads (L, q) and errors (L, n).

    Finite errors give members within the limits. Infinite errors give members on a bound.
    """
    xp = namespace(error)
    low, high, first, last = (part[:, :, None] for part in (*bounds.moved(xp), *limits.moved(xp)))
    error = error[:, None, :]
    known = xp.isfinite(error)
    points = centre[:, :, None] + spread[:, :, None] * xp.where(known, error, 0.0)
    points = xp.minimum(xp.maximum(points, first), last)
    return xp.where(known, points, xp.where(error < 0.0, low, high))
