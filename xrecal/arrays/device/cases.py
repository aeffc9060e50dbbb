"""Sorted calibration cases of many locations, and their kernel matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.ckme.embedding import Calibration, Settings, case_weights
from xrecal.arrays.ckme.location import roots_of
from xrecal.arrays.dispatch import namespace, only_on_host, to_host
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.kernels.kernel import IDENTICAL, MEDIAN_CASES, subset
from xrecal.typing import FloatArray, IntArray

from .ensembles import Ensembles, among, arrange
from .stacked import take

__all__ = [
    "Cases", "blocks", "cases_of", "middle_of", "moments_of", "refuse_others", "similarity",
    "take_block", "valid",
]  # fmt: skip

WORKSPACE = 2**31
"""Approximate memory, in bytes, for the arrays of locations that are computed together."""


@dataclass(frozen=True)
class Cases:
    """Cases of L locations, in float64: usable cases come first, in order of time.

    At each location there are n cases, usable or not.
    """

    ensembles: Ensembles
    """(L, n) ensembles, minus their means if the kernel compares only the shapes of ensembles; a
    case that is not usable has no members"""
    squared: Any
    """(L, n, n) squared energy distances between the ensembles of two cases, 0 if a case is not
    usable"""
    mean: Any
    """(L, n) means of ensembles, 0 if a case is not usable"""
    variance: Any
    """(L, n) variances of ensembles, 0 if a case is not usable"""
    features: Any
    """(L, n, k) features made from covariates, 0 if a case is not usable"""
    target: Any
    """(L, n) observations, 0 if a case is not usable"""
    used: Any
    """(L, n) True if a case is usable"""
    root: Any
    """(L, n) square root of the weight of each case, divided by the largest root at the location; 0
    if a case is not usable"""
    median: Any
    """(L,) median of D or D² (see ``laplace``) of unequal forecasts; infinite if all are equal"""
    precision: Any
    """(L, k) weight of each feature in the distance of covariates"""
    slot: IntArray
    """(L, n) position of each sorted case in the original order, on the host"""
    n_used: IntArray
    """(L,) number of usable cases, on the host"""
    laplace: bool
    """True if the kernel is a function of the energy distance D, False if it is a function of D²"""
    predictors: IntArray
    """Indices of the features that the fit of centres may shrink or leave out"""

    def gram(self, bandwidth: Any, strength: Any) -> Any:
        """Return kernel matrices (L, n, n), multiplied by the roots of case weights on both sides.

        ``bandwidth`` (L,) divides the distances; ``strength`` (L,) is the weight of covariates.
        """
        of = self.features
        found = similarity(self, self.squared, of, of, bandwidth, strength)
        return found * self.root[:, :, None] * self.root[:, None, :]

    @cached_property
    def on_host(self) -> Cases:
        """Return the cases, with those arrays on the host that the fit of centres needs.

        Ensembles and distances stay on the device.
        """
        names = ["mean", "variance", "features", "target", "used", "root", "median", "precision"]
        return replace(self, **{name: to_host(getattr(self, name)) for name in names})


def similarity(
    cases: Cases, squared: Any, ones: Any, others: Any, bandwidth: Any, strength: Any
) -> Any:
    """Return the similarities (L, q, n) of q forecasts to n cases.

    ``squared`` (L, q, n) are squared distances; ``ones`` (L, q, k) and ``others`` (L, n, k) are the
    covariates of forecasts and of cases.
    """
    xp = namespace(squared)
    distance = xp.sqrt(squared) if cases.laplace else squared
    exponent = distance / -bandwidth[:, None, None]
    for k in range(ones.shape[-1]):
        apart = (ones[:, :, None, k] - others[:, None, :, k]) ** 2
        exponent = exponent - strength[:, None, None] * cases.precision[:, k, None, None] * apart
    return xp.exp(exponent)


def blocks(n_locations: int, bytes_each: int) -> Iterator[slice]:
    """Yield slices of locations; a slice of several locations needs at most ``WORKSPACE`` bytes.

    ``bytes_each`` is the memory that one location needs.
    """
    step = max(1, WORKSPACE // max(bytes_each, 1))
    return (slice(start, start + step) for start in range(0, n_locations, step))


def refuse_others(given: Calibration, settings: Settings) -> None:
    """Raise TypeError for settings and inputs that have no implementation for devices."""
    if given.cases.scale is not None:
        raise TypeError(only_on_host("the distance of normal distributions"))
    if given.squared is not None or given.vectors is not None:
        raise TypeError(only_on_host("a fit from given distances, or a fit of vectors"))
    for name, value, there in (
        ("loss", settings.loss, ("crps",)),
        ("projection", settings.projection, ("euclidean",)),
        ("solver", settings.solver, ("auto", "exact")),
    ):
        if value not in there:
            raise TypeError(only_on_host(f"the embedding with {name}={value!r}"))


def cases_of(
    given: Calibration, settings: Settings, half_life: FloatArray, block: slice
) -> tuple[Cases, Any]:
    """Return the cases of some locations, and a mask (L,) of locations with an invalid value."""
    xp = namespace(given.observations)
    observations = given.observations[block, ...].astype(np.float64)
    features = given.features.values[block, ...]
    forecasts = take_block(given.cases, block)
    sound, invalid = valid(forecasts)
    invalid = xp.any(invalid | xp.isinf(observations), axis=-1)
    usable = sound & xp.isfinite(observations) & xp.all(xp.isfinite(features), axis=-1)
    there = to_host(usable)
    slot = np.argsort(~there, axis=-1, kind="stable")
    used = take(xp, usable, slot)

    def ordered(part: Any, missing: float = 0.0) -> Any:
        which = xp.reshape(used, (*used.shape, *[1] * (part.ndim - 2)))
        return xp.where(which, take(xp, part.astype(np.float64), slot), missing)

    loc, weights = ordered(forecasts.loc, float("nan")), forecasts.weights
    weights = None if weights is None else ordered(weights)
    ensembles = arrange(loc, weights)
    mean, variance = (xp.where(used, part, 0.0) for part in moments_of(ensembles))
    if settings.shapes:
        ensembles = arrange(loc - mean[..., None], weights)
    both = used[:, :, None] & used[:, None, :]
    squared = xp.where(both, among(ensembles), 0.0)
    of, n_used = ordered(features), there.sum(-1)
    weight = case_weights(given.days, half_life, slot.shape[1])
    root = np.zeros(slot.shape)
    for place, n in enumerate(n_used.tolist()):
        root[place, :n] = roots_of(weight[place, slot[place, :n]])
    median = medians(squared, n_used)
    precision = joint_weights(of, given.features.circular, both, n_used)
    cases = Cases(
        ensembles, squared, mean, variance, of, ordered(observations), used, xp.asarray(root),
        xp.sqrt(median) if settings.kernel == "laplace" else median,
        precision, slot, n_used, settings.kernel == "laplace", given.features.predictors,
    )  # fmt: skip
    return cases, invalid


def joint_weights(of: Any, circular: npt.NDArray[np.bool_], both: Any, n_used: IntArray) -> Any:
    """Return weights (L, k) of features; see :func:`xrecal.arrays.kernels.kernel.joint_weights`."""
    xp = namespace(of)
    weights = xp.full((of.shape[0], of.shape[-1]), 0.5)
    joint = xp.zeros(both.shape)
    others = np.flatnonzero(~circular).tolist()
    for k in others:
        squared = xp.where(both, of[:, :, k, None] - of[:, None, :, k], 0.0) ** 2
        weights[:, k] = 1.0 / medians(squared, n_used)
        joint = joint + weights[:, k, None, None] * squared
    if len(others) > 1:
        several = sum((weights[:, k] > 0).astype(np.int64) for k in others) > 1
        width = xp.where(several, medians(joint, n_used), 1.0)
        weights = weights / xp.where(xp.asarray(circular), 1.0, width[:, None])
    return weights


def take_block(forecasts: Forecasts, block: slice, rows: slice = slice(None)) -> Forecasts:
    """Return the ensembles of some locations, for some cases."""
    loc, _, weights = forecasts
    weights = None if weights is None else weights[block, rows, :]
    return Forecasts(loc[block, rows, :], None, weights)


def valid(forecasts: Forecasts) -> tuple[Any, Any]:
    """Return two masks (L, n): of valid ensembles, and of ensembles with an invalid member.

    The function ignores members without weight. A valid ensemble has at least one member with
    weight.
    """
    loc, _, weights = forecasts
    xp = namespace(loc)
    counts, bad = ~xp.isnan(loc), xp.isinf(loc)
    if weights is not None:
        counts = counts & ~xp.isnan(weights) & (weights != 0)
        total = xp.sum(xp.where(counts, weights.astype(np.float64), 0.0), axis=-1)[..., None]
        bad = bad | (weights < 0) | ~xp.isfinite(total)
    invalid = xp.any(counts & bad, axis=-1)
    return xp.any(counts, axis=-1) & ~invalid, invalid


def moments_of(ensembles: Ensembles) -> tuple[Any, Any]:
    """Return mean and variance (L, n) of ensembles; NaN without members."""
    points, mass, known, _ = ensembles
    xp = namespace(points)
    mean = xp.where(known, xp.sum(points * mass, axis=-1), float("nan"))
    return mean, xp.sum(mass * (points - mean[..., None]) ** 2, axis=-1)


def medians(squared: Any, n_used: IntArray) -> Any:
    """Return the median (L,) of the positive entries of symmetric matrices (L, n, n).

    The result is infinite if no entry is positive. Entries of unused cases come last and are 0.
    With more than 400 cases, the function uses the same 400 cases as the function for NumPy.
    """
    xp, n = namespace(squared), squared.shape[-1]
    least = IDENTICAL * xp.max(squared, axis=(1, 2))
    found = median_above(squared, least)
    if n <= MEDIAN_CASES:
        return found
    chosen = [subset(int(k), MEDIAN_CASES) for k in n_used]  # an unused last case does not count
    padded = [np.pad(one, (0, MEDIAN_CASES - one.size), constant_values=n - 1) for one in chosen]
    some = take(xp, squared, np.stack(padded))
    some = median_above(take(xp, xp.moveaxis(some, -1, -2), np.stack(padded)), least)
    return xp.where(xp.isfinite(some), some, found)


def median_above(values: Any, least: Any) -> Any:
    """Return the median (L,) of those entries of symmetric matrices that exceed ``least`` (L,).

    The result is infinite if no entry exceeds this number. A symmetric matrix holds each entry
    twice, which does not change the median.
    """
    xp = namespace(values)
    flat = xp.reshape(values, (values.shape[0], -1))
    ascending = xp.sort(xp.where(flat > least[:, None], flat, float("inf")), axis=-1)
    return middle_of(ascending, xp.sum(xp.isfinite(ascending).astype(np.float64), axis=-1))


def middle_of(ascending: Any, count: Any) -> Any:
    """Return the median (L,) of the first ``count`` (L,) entries of ascending rows (L, n)."""
    xp = namespace(ascending)
    both = xp.stack([xp.floor((count - 1.0) / 2), xp.floor(count / 2)], axis=-1)
    at = xp.clip(both.astype(np.int64), 0, max(ascending.shape[-1] - 1, 0))
    return xp.sum(xp.take_along_axis(ascending, at, axis=-1), axis=-1) / 2
