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
"""Approximate bytes of the arrays of the locations that are computed at once."""


@dataclass(frozen=True)
class Cases:
    """The n cases of L locations, float64: the usable ones first, in the order of time."""

    ensembles: Ensembles
    """(L, n) ensembles or their shapes; without members if a case is not usable"""
    squared: Any
    """(L, n, n) squared distances, 0 if a case is not usable"""
    mean: Any
    """(L, n)"""
    variance: Any
    """(L, n)"""
    features: Any
    """(L, n, k), 0 if a case is not usable"""
    target: Any
    """(L, n) observations, 0 if a case is not usable"""
    used: Any
    """(L, n) true if a case is usable"""
    root: Any
    """(L, n) roots of the case weights, 1 for the largest; 0 if a case is not usable"""
    median: Any
    """(L,) median of the distances of forecasts that differ; infinite if no forecasts differ"""
    precision: Any
    """(L, k) weight of each feature in the distance of covariates"""
    slot: IntArray
    """(L, n) position of each usable case among all cases, on the host"""
    n_used: IntArray
    """(L,) on the host"""
    laplace: bool
    """True if the kernel takes D, not D²"""
    predictors: IntArray
    """Columns of the features that centres shrink or leave out"""

    def gram(self, bandwidth: Any, strength: Any) -> Any:
        """Return kernel matrices (L, n, n) with bandwidths and strengths (L,), scaled by roots."""
        of = self.features
        found = similarity(self, self.squared, of, of, bandwidth, strength)
        return found * self.root[:, :, None] * self.root[:, None, :]

    @cached_property
    def on_host(self) -> Cases:
        """Return the inputs for the fit of centres, on the host; members stay on the device."""
        names = ["mean", "variance", "features", "target", "used", "root", "median", "precision"]
        return replace(self, **{name: to_host(getattr(self, name)) for name in names})


def similarity(
    cases: Cases, squared: Any, ones: Any, others: Any, bandwidth: Any, strength: Any
) -> Any:
    """Return the kernel (L, q, n) of squared distances, and of covariates (L, q, k), (L, n, k)."""
    xp = namespace(squared)
    distance = xp.sqrt(squared) if cases.laplace else squared
    exponent = distance / -bandwidth[:, None, None]
    for k in range(ones.shape[-1]):
        apart = (ones[:, :, None, k] - others[:, None, :, k]) ** 2
        exponent = exponent - strength[:, None, None] * cases.precision[:, k, None, None] * apart
    return xp.exp(exponent)


def blocks(n_locations: int, bytes_each: int) -> Iterator[slice]:
    """Yield slices of locations that fit into the workspace, with at least one location."""
    step = max(1, WORKSPACE // max(bytes_each, 1))
    return (slice(start, start + step) for start in range(0, n_locations, step))


def refuse_others(given: Calibration, settings: Settings) -> None:
    """Raise TypeError for settings and inputs without an implementation for devices."""
    if given.cases.scale is not None:
        raise TypeError(only_on_host("the distance of normal distributions"))
    if given.squared is not None or given.vectors is not None:
        raise TypeError(only_on_host("a fit from distances that are known already, or of vectors"))
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
    """Return cases of some locations, and whether each location has an invalid value (L,)."""
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
    """Return ensembles of some locations, and of some of their cases."""
    loc, _, weights = forecasts
    weights = None if weights is None else weights[block, rows, :]
    return Forecasts(loc[block, rows, :], None, weights)


def valid(forecasts: Forecasts) -> tuple[Any, Any]:
    """Mark ensembles (L, n) with a valid member, and those in which an invalid member counts."""
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
    """Mean and variance (L, n) of ensembles; NaN without members."""
    points, mass, known, _ = ensembles
    xp = namespace(points)
    mean = xp.where(known, xp.sum(points * mass, axis=-1), float("nan"))
    return mean, xp.sum(mass * (points - mean[..., None]) ** 2, axis=-1)


def medians(squared: Any, n_used: IntArray) -> Any:
    """Return the median (L,) of positive entries of symmetric matrices (L, n, n), or infinity.

    Entries of unused cases come last and are 0. With more than 400 cases, the median is taken over
    the same fixed subset as on the host.
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
    """Return the median (L,) of entries of symmetric matrices above ``least`` (L,), or infinity.

    Each pair occurs twice, which does not change the median.
    """
    xp = namespace(values)
    flat = xp.reshape(values, (values.shape[0], -1))
    ascending = xp.sort(xp.where(flat > least[:, None], flat, float("inf")), axis=-1)
    return middle_of(ascending, xp.sum(xp.isfinite(ascending).astype(np.float64), axis=-1))


def middle_of(ascending: Any, count: Any) -> Any:
    """Return the median (L,) of the first ``count`` entries of ascending rows (L, n)."""
    xp = namespace(ascending)
    both = xp.stack([xp.floor((count - 1.0) / 2), xp.floor(count / 2)], axis=-1)
    at = xp.clip(both.astype(np.int64), 0, max(ascending.shape[-1] - 1, 0))
    return xp.sum(xp.take_along_axis(ascending, at, axis=-1), axis=-1) / 2
