"""Calibration cases of many locations, in groups that the same cases can be used of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.ckme.location import most_landmarks, roots_of
from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.kernels.kernel import Features
from xrecal.typing import FloatArray, IntArray

from .namespace import doubled, take
from .weighted import weighted_mean, weighted_std

__all__ = ["Cases", "Group", "groups_of", "moments", "select", "usable", "valid"]

WORKSPACE = 2**31
"""Bytes of the arrays of the locations that are worked on at once, about."""


class Group(NamedTuple):
    """Locations whose usable cases, and the weights of these, are the same."""

    places: IntArray
    """(b,) among all locations"""
    slots: IntArray
    """(n,) of the usable cases, in the order of time"""
    root: FloatArray
    """(n,) roots of the case weights, the heaviest case having 1"""

    def parts(self, bytes_each: int) -> Iterator[Group]:
        """The group in parts that fit the workspace, of one location at least."""
        step = max(1, WORKSPACE // max(bytes_each, 1))
        for start in range(0, self.places.size, step):
            yield self._replace(places=self.places[start : start + step])


class Cases(NamedTuple):
    """Usable cases of b locations, float64."""

    loc: Any
    """(b, n, m)"""
    weights: Any | None
    """(b, n, m)"""
    mean: Any
    """(b, n)"""
    variance: Any
    """(b, n)"""
    features: Any
    """(b, n, k)"""
    target: Any
    """(b, n) observations"""
    most_landmarks: int
    """Of a location"""


def valid(forecasts: Forecasts) -> tuple[Any, Any]:
    """True where an ensemble (L, n) has a valid member; and where one that counts is invalid."""
    loc, _, weights = forecasts
    xp = namespace(loc)
    counts, bad = ~xp.isnan(loc), xp.isinf(loc)
    if weights is not None:
        counts = counts & ~xp.isnan(weights) & (weights != 0)
        total = xp.sum(xp.where(counts, doubled(xp, weights), 0.0), axis=-1)[..., None]
        bad = bad | (weights < 0) | ~xp.isfinite(total)
    invalid = xp.any(counts & bad, axis=-1)
    return xp.any(counts, axis=-1) & ~invalid, invalid


def usable(cases: Forecasts, observations: Any, features: Features) -> tuple[Any, Any]:
    """Cases (L, n) that can be learned from, and locations (L,) that hold an invalid value."""
    xp = namespace(observations)
    sound, invalid = valid(cases)
    infinite = xp.isinf(observations)
    found = sound & xp.isfinite(observations)
    if features.values.shape[-1]:
        found = found & xp.all(xp.isfinite(features.values), axis=-1)
    return found, xp.any(invalid | infinite, axis=-1)


def groups_of(used: Any, lives: FloatArray, days: FloatArray | None, fewest: int) -> list[Group]:
    """Groups of locations with at least so many cases (L, n).

    ``lives`` (L,) are half-lives and ``days`` (n,) the dates of cases. Locations with other missing
    cases are a group of their own.
    """
    age = None if days is None else np.max(days) - np.asarray(days, np.float64)
    alike: dict[tuple[bytes, float], list[int]] = {}
    for place, row in enumerate(np.packbits(used, axis=1)):
        alike.setdefault((row.tobytes(), float(lives[place])), []).append(place)
    found = []
    for (_, life), places in alike.items():
        slots = np.flatnonzero(used[places[0]])
        if slots.size >= fewest:
            logarithm = np.zeros(slots.size) if age is None else -age[slots] / life
            found.append(Group(np.array(places), slots, roots_of(logarithm)))
    return found


def select(
    cases: Forecasts,
    observations: Any,
    features: Features,
    group: Group,
    *,
    centred: bool,
    shapes: bool = False,
) -> Cases:
    """The usable cases of the locations of a group; as ``shapes`` they lose their means."""
    xp = namespace(observations)

    def of_group(part: Any) -> Any:
        return doubled(xp, take(xp, take(xp, part, group.places, 0), group.slots, 1))

    loc, _, weights = cases
    chosen = Forecasts(of_group(loc), None, None if weights is None else of_group(weights))
    mean, variance = moments(chosen, centred=centred)
    compared = chosen.loc - mean[..., None] if shapes else chosen.loc
    return Cases(
        compared, chosen.weights, mean, variance, of_group(features.values),
        of_group(observations), most_landmarks(shapes),
    )  # fmt: skip


def moments(forecasts: Forecasts, *, centred: bool) -> tuple[Any, Any]:
    """Mean and variance (L, n) of ensembles; zeros where no centre needs them."""
    loc, _, weights = forecasts
    if not centred:
        zeros = namespace(loc).zeros(tuple(loc.shape[:2]), dtype=namespace(loc).float64)
        return zeros, zeros
    return weighted_mean(loc, weights), weighted_std(loc, weights) ** 2
