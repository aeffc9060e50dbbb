"""Where members sit, at many locations; see :mod:`xrecal.arrays.ckme.centre` and its errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.baselines.crps_regression import LARGEST_EXPONENT
from xrecal.arrays.ckme.centre import MEAN, OBSERVATIONS, RATIO, SMALLEST_MEAN, Sample, fit_centre
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.distributions.forms import FEWEST_AT_BOUND, SHARE_AT_BOUND
from xrecal.typing import IntArray

from .namespace import concat, doubled

__all__ = ["centres_of", "errors_of", "find_bounds", "fit_centres", "inside", "members_of"]


def fit_centres(code: int, sample: Sample, room: int) -> Any:
    """Coefficients (L, room) of a support from cases (L, n) with covariates (L, n, k).

    A regression, and that of EMOS, is an optimisation of a few numbers: it runs on the host, on
    the means, variances, covariates and observations of the cases, and never on members.
    """
    mean = sample.mean
    xp = namespace(mean)
    if code in (OBSERVATIONS, MEAN, RATIO):
        first = xp.zeros_like(mean[:, :1])
        b, d = float(code == MEAN), float(code == RATIO)
        spread = xp.ones_like(first)
        if code == RATIO:
            total = xp.sum(xp.abs(mean), axis=-1, keepdims=True)
            share = SMALLEST_MEAN * total / mean.shape[-1]
            spread = xp.where(total > 0.0, share, 1.0)
        rest = xp.zeros((mean.shape[0], room - 4), dtype=xp.float64)
        return concat(xp, [first, first + b, spread, first + d, rest])
    coefficients = np.zeros((mean.shape[0], room))
    host = [np.ascontiguousarray(to_host(part)) for part in sample]
    for place in range(coefficients.shape[0]):
        *cases, low, high = (part[place] for part in host)
        fit_centre(code, Sample._make([*cases, float(low), float(high)]), coefficients[place])
    return xp.asarray(coefficients)


def centres_of(
    code: IntArray, coefficients: Any, mean: Any, variance: Any, of: Any
) -> tuple[Any, Any]:
    """Centre and spread (L, n) of forecasts, of the support that each location has (L,)."""
    xp = namespace(mean)
    ratio = xp.asarray(code == RATIO)[:, None]
    variance = xp.where(ratio, mean * mean, variance)
    k = of.shape[-1]
    centre = coefficients[:, 0:1] + coefficients[:, 1:2] * mean
    exponent = xp.zeros_like(mean)
    for i in range(k):
        centre = centre + coefficients[:, 4 + i : 5 + i] * of[:, :, i]
        exponent = exponent + coefficients[:, 4 + k + i : 5 + k + i] * of[:, :, i]
    exponent = xp.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    spread = xp.sqrt(coefficients[:, 2:3] ** 2 + coefficients[:, 3:4] ** 2 * variance)
    return centre, spread * xp.exp(exponent)


def errors_of(target: Any, centre: Any, spread: Any, low: Any, high: Any) -> Any:
    """Errors (L, n) in units of the spread; infinite for observations on a bound (L,)."""
    xp = namespace(target)
    error = xp.where(target >= high[:, None], float("inf"), (target - centre) / spread)
    return xp.where(target <= low[:, None], -float("inf"), error)


def inside(target: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Smallest and largest observation (L,) between the bounds; infinite where there is none."""
    xp = namespace(target)
    between = (low[:, None] < target) & (target < high[:, None])
    first = xp.min(xp.where(between, target, float("inf")), axis=-1)
    last = xp.max(xp.where(between, target, -float("inf")), axis=-1)
    some = first <= last
    first = xp.where(some & ~xp.isinf(low), first, low)
    return first, xp.where(some & ~xp.isinf(high), last, high)


def members_of(
    centre: Any, spread: Any, error: Any, bounds: tuple[Any, Any], limits: tuple[Any, Any]
) -> Any:
    """Members (L, q, n) from centres (L, q) and ascending errors (L, n), within limits (L,)."""
    xp = namespace(error)
    low, high, first, last = (part[:, None, None] for part in (*bounds, *limits))
    error = error[:, None, :]
    known = xp.isfinite(error)
    points = centre[:, :, None] + spread[:, :, None] * xp.where(known, error, 0.0)
    points = xp.minimum(xp.maximum(points, first), last)
    return xp.where(known, points, xp.where(error < 0.0, low, high))


def find_bounds(
    observations: Any, bounds: str | tuple[float | None, float | None] | None
) -> tuple[Any, Any, Any]:
    """Lower and upper bounds (L,), and whether given ones are violated (L,)."""
    xp = namespace(observations)
    infinity = xp.full((observations.shape[0],), float("inf"), dtype=xp.float64)
    observations = doubled(xp, observations)
    if bounds is None:
        return -infinity, infinity, infinity < 0.0
    known = xp.isfinite(observations)
    least = xp.min(xp.where(known, observations, float("inf")), axis=-1)
    most = xp.max(xp.where(known, observations, -float("inf")), axis=-1)
    if not isinstance(bounds, str):
        start = -float("inf") if bounds[0] is None else float(bounds[0])
        end = float("inf") if bounds[1] is None else float(bounds[1])
        violated = (least < start) | (most > end)
        low, high = xp.full_like(infinity, start), xp.full_like(infinity, end)
        return xp.where(violated, -infinity, low), xp.where(violated, infinity, high), violated
    below, above = _is_bound(xp, observations, least), _is_bound(xp, -observations, -most)
    low, high = xp.where(below, least, -infinity), xp.where(above, most, infinity)
    return low, high, infinity < 0.0


def _is_bound(xp: Any, observations: Any, least: Any) -> Any:
    """True where the least observation (L,) of a location is a lower bound."""
    known = xp.isfinite(observations)
    above = known & (observations > least[:, None])
    following = xp.min(xp.where(above, observations, float("inf")), axis=-1)
    at_least = xp.sum(doubled(xp, observations == least[:, None]), axis=-1)
    at_following = xp.sum(doubled(xp, observations == following[:, None]), axis=-1)
    enough = SHARE_AT_BOUND * xp.sum(doubled(xp, known), axis=-1)
    enough = xp.where(enough > FEWEST_AT_BOUND, enough, float(FEWEST_AT_BOUND))
    return xp.any(above, axis=-1) & (at_least >= enough) & (at_least > 2 * at_following)
