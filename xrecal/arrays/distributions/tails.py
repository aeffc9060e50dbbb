"""Tails beyond the record: generalised Pareto distributions that replace the outer members.

A weighted ensemble of past errors ends at the largest past error. On each side without a bound, the
functions take a share of 5 % to 10 % of the mass from the outer members. They give this mass, in
equal parts, to ten new members beyond a threshold. Each new member is the mean of a tenth of a
generalised Pareto distribution. The mean distance of this distribution from the threshold is a
multiple of the spread of the forecast. All functions use array expressions only, so they work with
all array libraries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray

POINTS = 10
"""Number of members, all of the same mass, that represent one tail."""

EXCEEDANCES = 50.0
"""The mass of a tail is this number divided by the number of past cases, but at least 5 % and at
most 10 %."""

LEAST, MOST = 0.05, 0.10
"""Smallest and largest mass of a tail, as a share of the mass between the bounds."""

SHAPE, PSEUDO = 0.1, 20.0
"""The first number is the prior shape of a tail, which is typical of errors of weather forecasts.
It counts as much as a shape fitted to the second number of cases in the tail."""

THINNEST, HEAVIEST = -0.2, 0.5
"""Smallest and largest shape of a tail; with the largest shape, the variance is infinite."""

WIDTH = 1 / 200
"""Width of the range of levels over which the functions average quantiles, so that quantiles do not
jump from member to member."""

ROUNDING = 1e-9
"""The functions subtract this number from a computed number of cases. Otherwise a rounding error
could add a case."""

SMALLEST_SHAPE = 1e-4
"""This number replaces a shape that is closer to zero, because the formulas divide by the shape."""


class Tails(NamedTuple):
    """Lower and upper tails of the forecasts at L locations."""

    mass: FloatArray
    """(L,) mass of each tail, as a share of the mass between the bounds"""
    excess: FloatArray
    """(L, 2) mean distance of values in each tail from its threshold, in units of the standard
    deviation of the forecast; NaN without a tail"""
    shape: FloatArray
    """(L, 2) shape of each tail; NaN without a tail"""


def mass_of(n_cases: Any) -> Any:
    """Return the mass (L,) of a tail, which decreases with the number of cases (L,)."""
    xp = namespace(n_cases)
    mass = EXCEEDANCES / xp.where(n_cases > 0, n_cases, 1)
    return xp.where(mass < LEAST, LEAST, xp.where(mass > MOST, MOST, mass))


def fit_tails(errors: FloatArray, open_sides: FloatArray) -> Tails:
    """Fit tails to errors (L, n): observations minus the centres of their forecasts, such as means.

    The caller has divided each error by the spread of its forecast. NaN marks a missing case, and
    an infinite error marks an observation on a bound. ``open_sides`` (L, 2) is True for a side
    (lower, upper) without a bound.
    """
    xp = namespace(errors)
    inside = xp.isfinite(errors)
    count = xp.sum(inside, axis=-1)
    mass = mass_of(count)
    values = xp.where(inside, errors, 0.0)
    number = xp.where(count > 0, count, 1)
    mean = xp.sum(values, axis=-1) / number
    variance = xp.sum(xp.where(inside, (errors - mean[:, None]) ** 2, 0.0), axis=-1) / number
    beyond = [
        _beyond(xp, xp.where(inside, sign * errors, -float("inf")), mass * count)
        / xp.sqrt(xp.where(variance > 0, variance, float("nan")))[:, None]
        for sign in (-1.0, 1.0)
    ]
    return with_exceedances(mass, xp.stack(beyond, axis=1), open_sides)


def with_exceedances(
    mass: FloatArray, beyond: FloatArray, open_sides: FloatArray, spread: Any = None
) -> Tails:
    """Fit tails to distances (L, 2, n) of past observations beyond thresholds.

    A distance is NaN if the observation is not beyond the threshold. The caller has divided each
    distance by the spread of its forecast. If ``spread`` (L, 1, n) is given, the spread of each
    forecast is the weight of its distance. Without such weights, forecasts with almost no spread
    would decide the fit, because their errors may be many times larger than their spread.

    Notes
    -----
    The fit uses probability-weighted moments [1]_. It mixes the fitted shape with a prior shape of
    0.1. The prior shape counts as much as 20 distances.

    References
    ----------
    .. [1] Hosking & Wallis (1987), Parameter and quantile estimation for the generalized Pareto
       distribution. https://doi.org/10.2307/1269343
    """
    xp = namespace(beyond)
    order = xp.argsort(beyond, axis=-1)  # NaN last
    ascending = xp.take_along_axis(beyond, order, axis=-1)
    known = ~xp.isnan(ascending)
    values = xp.where(known, ascending, 0.0)
    weights = xp.where(xp.isnan(beyond), 0.0, 1.0 if spread is None else spread)
    weights = xp.take_along_axis(weights, order, axis=-1)
    total, squares = xp.sum(weights, axis=-1), xp.sum(weights**2, axis=-1)
    count = total**2 / xp.where(squares > 0, squares, 1.0)  # effective number
    weights = weights / xp.where(total > 0, total, 1.0)[..., None]
    above = 1.0 - (xp.cumsum(weights, axis=-1) - 0.35 * weights)
    first = xp.sum(weights * values, axis=-1)
    second = xp.sum(weights * above * values, axis=-1)
    apart = first - 2 * second
    shape = 2.0 - first / xp.where(apart > 0, apart, float("inf"))
    shape = xp.where(apart > 0, shape, HEAVIEST)
    shape = (count * shape + PSEUDO * SHAPE) / (count + PSEUDO)
    shape = xp.where(shape < THINNEST, THINNEST, xp.where(shape > HEAVIEST, HEAVIEST, shape))
    there = open_sides & (count > 0) & (first > 0)
    return Tails(mass, xp.where(there, first, float("nan")), xp.where(there, shape, float("nan")))


def _beyond(xp: Any, errors: Any, n: Any) -> Any:
    """Return the n largest errors minus the largest of the other errors, as an array (L, N).

    ``n`` (L,) has one number for each location. The array is NaN in place of the other errors.
    """
    descending = -xp.sort(-errors, axis=-1)
    place = xp.arange(errors.shape[-1])[None, :]
    n = n[:, None] - ROUNDING  # positions count from 0
    threshold = xp.max(xp.where(place >= n, descending, -float("inf")), axis=-1)[:, None]
    found = (place < n) & xp.isfinite(descending) & xp.isfinite(threshold)
    return xp.where(
        found, descending - xp.where(xp.isfinite(threshold), threshold, 0.0), float("nan")
    )


class Outer(NamedTuple):
    """Weighted ensembles (L, T, n) after the removal of mass from their outer members."""

    weights: FloatArray
    """(L, T, n) remaining weights of the members"""
    threshold: FloatArray
    """(L, T, 2) quantile on each side. All mass beyond it was removed; the quantile is infinite if
    no mass was removed"""
    mass: FloatArray
    """(L, T, 2) mass removed on each side"""
    spread: FloatArray
    """(L, T) standard deviation of the members between the bounds, before the removal"""


def without_outer(
    members: FloatArray, weights: FloatArray, mass: FloatArray, bounds: FloatArray
) -> Outer:
    """Remove mass from the outer members on both sides.

    ``mass`` (L, 2) is the removed mass, as a share of the mass between the ``bounds`` (L, 2).
    """
    xp = namespace(members)
    low, high = bounds[:, 0, None, None], bounds[:, 1, None, None]
    order = xp.argsort(members, axis=-1)
    points = xp.take_along_axis(members, order, axis=-1)
    kept = xp.take_along_axis(weights, order, axis=-1)
    inside = (points > low) & (points < high) & (kept > 0)
    within = xp.where(inside, kept, 0.0)
    total = xp.sum(within, axis=-1)
    number = xp.where(total > 0, total, 1.0)
    mean = xp.sum(within * xp.where(inside, points, 0.0), axis=-1) / number
    deviation = xp.where(inside, points - mean[..., None], 0.0)
    spread = xp.sqrt(xp.sum(within * deviation**2, axis=-1) / number)
    below = xp.cumsum(within, axis=-1) - within
    above = total[..., None] - below - within
    thresholds, taken, taken_from = [], xp.zeros_like(within), []
    for side, (outside, far) in enumerate(((below, -float("inf")), (above, float("inf")))):
        # The outermost members give their mass first; each next member gives the mass that is still
        # needed.
        level = mass[:, side, None, None] * total[..., None]
        needs = level - outside
        gives = xp.where(needs < within, xp.where(needs > 0, needs, 0.0), within)
        half = xp.where(level < WIDTH / 2, level, WIDTH / 2)
        threshold = _mean_quantile(xp, points, (outside, within), level, half)
        thresholds.append(xp.where(level[..., 0] > 0, threshold, far))
        taken_from.append(xp.sum(gives, axis=-1))
        taken = taken + gives
    left = _put_back(xp, kept - taken, order)
    return Outer(left, xp.stack(thresholds, axis=-1), xp.stack(taken_from, axis=-1), spread)


def _mean_quantile(xp: Any, points: Any, masses: Any, level: Any, half: Any) -> Any:
    """Return the mean (L, T) of the quantiles at levels from ``level - half`` to ``level + half``.

    Levels count from the outermost member inwards. ``masses`` holds two arrays: the mass outside
    each member, and the mass of the member itself.
    """
    outside, own = masses
    start, end = level - half, level + half
    first = xp.where(outside > start, outside, start)
    last = xp.where(outside + own < end, outside + own, end)
    part = xp.where(last > first, last - first, 0.0)
    total = xp.sum(part, axis=-1)
    values = xp.where(part > 0, points, 0.0)
    centre = xp.max(xp.where(part > 0, points, -float("inf")), axis=-1)
    centre = xp.where(xp.isfinite(centre), centre, 0.0)[..., None]
    away = xp.sum(part * (values - centre), axis=-1)
    return centre[..., 0] + away / xp.where(total > 0, total, 1.0)


def _put_back(xp: Any, values: Any, order: Any) -> Any:
    """Put sorted values back into their original order."""
    if not hasattr(xp, "put_along_axis"):
        return xp.take_along_axis(values, xp.argsort(order, axis=-1), axis=-1)
    back = xp.empty_like(values)
    xp.put_along_axis(back, order, values, axis=-1)
    return back


def with_tails(
    members: FloatArray, weights: FloatArray, tails: Tails, bounds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return members and weights (L, T, n + 20); the last 20 members represent tails.

    The weights of the tails come from the outer members between the bounds. The ten members of the
    lower tail come first. If a tail is missing, its members are NaN and have weight 0.
    """
    xp = namespace(members)
    there = xp.isfinite(tails.excess)
    outer = without_outer(members, weights, xp.where(there, tails.mass[:, None], 0.0), bounds)
    missing = xp.isnan(xp.sum(weights, axis=-1))
    new_members, new_weights = [members], [outer.weights]
    for side, sign in enumerate((-1.0, 1.0)):
        reach = outer.spread * tails.excess[:, side, None]
        points = _points(xp, tails.shape[:, side])[:, None, :] * reach[..., None]
        mass = outer.mass[..., side, None] / POINTS * xp.ones(POINTS)
        points = outer.threshold[..., side, None] + sign * points
        new_members.append(xp.where(mass > 0, points, float("nan")))
        new_weights.append(xp.where(missing[..., None], float("nan"), mass))
    return (
        xp.concatenate(new_members, axis=-1).astype(members.dtype),
        xp.concatenate(new_weights, axis=-1).astype(weights.dtype),
    )


def _points(xp: Any, shape: Any) -> Any:
    """Return the mean (L, 10) of each tenth of a generalised Pareto distribution with mean one."""
    shape = xp.where(xp.abs(shape) < SMALLEST_SHAPE, SMALLEST_SHAPE, shape)[:, None]
    edge = 1.0 - xp.arange(POINTS + 1) / POINTS
    powers = edge[None, :] ** (1.0 - shape)
    return (POINTS * (powers[:, :-1] - powers[:, 1:]) - (1.0 - shape)) / shape
