"""Statistics of weighted ensembles, and members in a random order; see :mod:`xrecal.arrays`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.distributions.members import shuffled_members as shuffled
from xrecal.arrays.distributions.weighted import LEVEL_ROUNDING, check_levels

from .namespace import cumsum, doubled, indices, take_along, whole

__all__ = [
    "ascending",
    "by_support",
    "shuffled_members",
    "weighted_cdf",
    "weighted_exceedance",
    "weighted_mean",
    "weighted_quantile",
    "weighted_std",
]


def weighted_mean(members: Any, weights: Any | None = None) -> Any:
    """See :func:`xrecal.arrays.weighted_mean`."""
    values, mass = _present(members, weights)
    return namespace(mass).sum(values * mass, axis=-1)


def weighted_std(members: Any, weights: Any | None = None) -> Any:
    """See :func:`xrecal.arrays.weighted_std`."""
    values, mass = _present(members, weights)
    xp = namespace(mass)
    mean = xp.sum(values * mass, axis=-1, keepdims=True)
    return xp.sqrt(xp.sum(mass * (values - mean) ** 2, axis=-1))


def weighted_cdf(members: Any, thresholds: Any, weights: Any | None = None) -> Any:
    """See :func:`xrecal.arrays.weighted_cdf`."""
    values, mass = _present(members, weights)
    xp = namespace(mass)
    given = doubled(xp, xp.asarray(thresholds))
    below = [xp.sum(mass * doubled(xp, values <= given[k]), axis=-1) for k in range(given.shape[0])]
    found = xp.stack(below, axis=-1)
    return xp.where(found > 1.0, 1.0, found)


def weighted_exceedance(members: Any, thresholds: Any, weights: Any | None = None) -> Any:
    """See :func:`xrecal.arrays.weighted_exceedance`."""
    values, mass = _masses(members, weights)
    xp = namespace(mass)
    given = doubled(xp, xp.asarray(thresholds))
    total = xp.sum(mass, axis=-1)
    shape = tuple(total.shape)
    wanted = xp.broadcast_to(given, (*shape, given.shape[-1]))
    found = []
    for k in range(given.shape[-1]):
        threshold = wanted[..., k]
        above = xp.sum(xp.where(values > threshold[..., None], mass, 0.0), axis=-1)
        known = (total > 0.0) & ~xp.isnan(threshold)
        share = above / xp.where(total > 0.0, total, 1.0)
        found.append(xp.where(known, share, float("nan")))
    return xp.stack(found, axis=-1)


def weighted_quantile(members: Any, q: Any, weights: Any | None = None) -> Any:
    """See :func:`xrecal.arrays.weighted_quantile`."""
    levels = check_levels(q)
    values, mass = ascending(*by_support(members, weights))
    xp = namespace(mass)
    below = cumsum(xp, mass)
    total = below[..., -1:]
    # Members before the first that counts are no quantile, not even at level 0.
    below = xp.where(below > 0.0, below, -float("inf"))
    last = xp.sum(doubled(xp, below < total), axis=-1)
    n, shared = mass.shape[-1], xp.broadcast_to(values, mass.shape)
    found = []
    for level in levels.tolist():
        short = below < (level - LEVEL_ROUNDING) * total
        place = xp.minimum(xp.sum(doubled(xp, short), axis=-1), last)
        place = xp.where(place < n, place, float(n - 1))
        one = take_along(xp, shared, whole(xp, place)[..., None])[..., 0]
        found.append(xp.where(total[..., 0] > 0.0, one, float("nan")))
    return xp.stack(found, axis=-1)


def by_support(members: Any, weights: Any | None) -> tuple[Any, Any]:
    """Members and weights, float64, with axes that broadcast against each other.

    Raises ValueError if the shapes do not fit.
    """
    xp = namespace(members)
    members = doubled(xp, members)
    if weights is None:
        return members, xp.ones(members.shape, dtype=xp.float64)
    weights = doubled(xp, weights)
    given = tuple(members.shape)
    if weights.ndim == members.ndim + 1:
        fits = given == (*weights.shape[:-2], weights.shape[-1])
        members = members[..., None, :]
    else:
        sizes = zip(reversed(given), reversed(weights.shape), strict=False)
        fits = weights.ndim <= members.ndim and all(own in (1, size) for size, own in sizes)
        weights = xp.broadcast_to(weights, given) if fits else weights
    if not fits:
        raise ValueError(
            f"weights of shape {tuple(weights.shape)} do not fit members of shape {given}; "
            "they need the same axes, or one more before the last for forecasts that share members"
        )
    return members, weights


def _masses(members: Any, weights: Any | None) -> tuple[Any, Any]:
    """Members and weights, 0 for missing members."""
    values, mass = by_support(members, weights)
    xp = namespace(mass)
    return values, xp.where(xp.isnan(values), 0.0, mass)


def _present(members: Any, weights: Any | None) -> tuple[Any, Any]:
    """Members with 0 for those that do not count, and weights that sum to one."""
    values, mass = _masses(members, weights)
    xp = namespace(mass)
    values = xp.where(xp.isnan(values) | (mass == 0.0), 0.0, values)  # infinity times zero
    total = xp.sum(mass, axis=-1, keepdims=True)
    return values, mass / xp.where(total > 0.0, total, float("nan"))


def ascending(values: Any, mass: Any) -> tuple[Any, Any]:
    """Members in order, each row once, missing ones last, and their weights, 0 for those."""
    xp = namespace(mass)
    order = xp.argsort(xp.where(xp.isnan(values), float("inf"), values), axis=-1)
    values = take_along(xp, values, order)
    mass = take_along(xp, mass, xp.broadcast_to(order, mass.shape))
    return values, xp.where(xp.isnan(values), 0.0, mass)


def shuffled_members(members: Any, seed: int, locations: Any, cases: Any) -> Any:
    """See :func:`xrecal.arrays.shuffled_members`.

    The order follows from the numbers of location and case alone: it is made on the host, and
    members are put into it where they are.
    """
    xp, shape = namespace(members), tuple(members.shape)
    places = np.broadcast_to(np.arange(shape[-1], dtype=np.float64), shape)
    order = shuffled(places, seed, to_host(locations), to_host(cases))
    return take_along(xp, doubled(xp, members), indices(xp, order))
