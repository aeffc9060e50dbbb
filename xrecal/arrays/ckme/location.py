"""Cases of a location as the solver takes them: usable ones first, then compared in a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.distance import cross_distances, self_distances
from xrecal.arrays.distributions.forms import (
    VALID,
    Forecasts,
    Squared,
    moments,
    usable_observations,
    verdicts,
)
from xrecal.arrays.distributions.normal import fill_normal_distances
from xrecal.arrays.kernels.kernel import (
    MEDIAN_CASES,
    Features,
    feature_weights,
    positive_median,
    subset,
)
from xrecal.typing import FloatArray, IntArray

from .columns import Columns

SMALLEST_WEIGHT = 1e-12
"""Least weight of a case, however old: less would only be rounding."""

MAX_RANK, MAX_RANK_OF_SHAPES = 1000, 150
"""Landmarks of a location at most. An ensemble without its mean is mostly noise, of which ever more
landmarks would represent ever more, for next to no gain in the CRPS."""


def most_landmarks(shapes: bool) -> int:
    """Landmarks of a location at most, of forecasts or of their shapes."""
    return MAX_RANK_OF_SHAPES if shapes else MAX_RANK


class Cases(NamedTuple):
    """Calibration cases of L locations as they are given."""

    forecasts: Forecasts
    """(L, n, m)"""
    observations: FloatArray
    """(L, n)"""
    features: Features
    """(L, n, k)"""
    weight: FloatArray
    """(L, n) logarithm to base 2 of how much each case counts, up to a constant"""
    step: IntArray | None = None
    """(n,) step in time; each case is one of its own without"""

    def take(self, block: slice) -> Cases:
        """Cases of some locations."""
        forecasts, observations, features, weight, step = self
        return Cases(
            forecasts.take(block), observations[block], features.take(block), weight[block], step
        )


class OrderedCases(NamedTuple):
    """Cases of L locations, float64: the ``n_used`` usable ones first, in the order of time."""

    loc: FloatArray
    """(L, n, m)"""
    scale: FloatArray | None
    """(L, n, m)"""
    weights: FloatArray
    """(L, n, m)"""
    mean: FloatArray
    """(L, n)"""
    variance: FloatArray
    """(L, n)"""
    features: FloatArray
    """(L, n, k) of the covariates"""
    circular: npt.NDArray[np.bool_]
    """(k,)"""
    target: FloatArray
    """(L, n) observations"""
    weight: FloatArray
    """(L, n) logarithm to base 2 of how much each case counts, up to a constant"""
    slot: IntArray
    """(L, n) place of each case among all"""
    step: IntArray
    """(L, n) step in time of each case"""
    n_used: IntArray
    """(L,)"""
    most_landmarks: int
    """Of a location"""

    def forecasts(self, cell: int) -> Forecasts:
        """The n usable forecasts (n, m) of one location."""
        loc, scale, weights = self[:3]
        n = self.n_used[cell]
        return Forecasts(
            loc[cell, :n], None if scale is None else scale[cell, :n], weights[cell, :n]
        )


class NewForecasts(NamedTuple):
    """Forecasts to recalibrate, contiguous float64, NaN where one is missing or invalid."""

    loc: FloatArray
    """(L, T, p)"""
    scale: FloatArray | None
    """(L, T, p)"""
    weights: FloatArray
    """(L, T, p)"""
    mean: FloatArray
    """(L, T)"""
    variance: FloatArray
    """(L, T)"""
    features: FloatArray
    """(L, T, k)"""


def ordered_cases(
    cases: Cases, *, centred: bool, shapes: bool = False
) -> tuple[OrderedCases, npt.NDArray[np.bool_]]:
    """Put the cases that can be learned from first, with all that is known of them.

    With ``centred`` the moments of forecasts are computed, as centres need them; as ``shapes``
    forecasts lose their means. Also returns whether each location holds an invalid value, (L,).
    """
    mean, variance = moments_of(cases.forecasts, centred=centred)
    loc, scale, weights = shapes_of(cases.forecasts, mean) if shapes else cases.forecasts
    usable, invalid = usable_observations(Forecasts(loc, scale, weights), cases.observations)
    usable[~np.isfinite(cases.features.values).all(-1)] = np.nan
    slot = np.argsort(np.isnan(usable), axis=-1, kind="stable")

    def ordered(part: FloatArray) -> FloatArray:
        place = slot if part.ndim == 2 else slot[..., np.newaxis]
        return np.ascontiguousarray(np.take_along_axis(part, place, axis=1), dtype=np.float64)

    in_order = OrderedCases(
        ordered(loc),
        None if scale is None else ordered(scale),
        np.ones(loc.shape) if weights is None else ordered(weights),
        ordered(mean),
        ordered(variance),
        ordered(cases.features.values),
        cases.features.circular,
        ordered(usable),
        ordered(cases.weight),
        slot,
        slot if cases.step is None else np.asarray(cases.step, np.int64)[slot],
        np.isfinite(usable).sum(-1),
        most_landmarks(shapes),
    )
    return in_order, invalid


def new_forecasts(
    forecasts: Forecasts, features: Features, *, centred: bool, shapes: bool = False
) -> NewForecasts:
    """Forecasts (L, T, p) as compiled code takes them; see :func:`ordered_cases`."""
    mean, variance = moments_of(forecasts, centred=centred)
    loc, scale, weights = shapes_of(forecasts, mean) if shapes else forecasts
    bad = (verdicts(Forecasts(loc, scale, weights)) != VALID)[..., np.newaxis]
    return NewForecasts(
        np.where(bad, np.nan, loc.astype(np.float64, order="C")),
        None if scale is None else np.array(scale, dtype=np.float64, order="C"),
        np.ones(loc.shape) if weights is None else np.array(weights, np.float64, order="C"),
        np.array(mean, np.float64, order="C"),
        np.array(variance, np.float64, order="C"),
        np.array(features.values, np.float64, order="C"),
    )


def shapes_of(forecasts: Forecasts, mean: FloatArray) -> Forecasts:
    """Forecasts (L, n, m) without their means (L, n); those that have none as they are."""
    shift = np.where(np.isfinite(mean), mean, 0.0)[..., np.newaxis]
    return forecasts._replace(loc=forecasts.loc - shift.astype(forecasts.loc.dtype))


def moments_of(forecasts: Forecasts, *, centred: bool) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of forecasts (L, n, m); zeros where no centre needs them."""
    if centred:
        return moments(forecasts)
    zeros = np.broadcast_to(0.0, forecasts.loc.shape[:2])
    return zeros, zeros


@dataclass(frozen=True)
class Location:
    """The n usable cases of one location, in the order of time."""

    distance: FloatArray
    """(n, n) D² of the forecasts (D for the Laplace kernel); empty with columns"""
    apart: FloatArray
    """(n, n) squared distance of the covariates; empty without"""
    precision: FloatArray
    """(k,) weight of each feature in it"""
    root: FloatArray
    """(n,) roots of the case weights, the heaviest case having 1"""
    mean: FloatArray
    """(n,) of the ensembles"""
    variance: FloatArray
    """(n,) of the ensembles"""
    features: FloatArray
    """(n, k) of the covariates"""
    target: FloatArray
    """(n,) observations"""
    columns: Columns | None = None
    """Distances from single cases, where not all pairs are compared"""
    vectors: FloatArray | None = None
    """(n_slots, d) observed, which targets number, where these are vectors"""

    laplace: bool = False
    """True if distances are D, not D²"""
    most_landmarks: int = MAX_RANK
    """With columns"""

    @cached_property
    def median(self) -> float:
        """Of the distances of forecasts that differ; infinite where none do."""
        if self.columns is not None:
            return self.columns.median()
        if not self.laplace:
            return positive_median(self.distance)
        return float(np.sqrt(positive_median(self.distance**2)))

    @cached_property
    def theta(self) -> FloatArray:
        """Scale of the Laplace loss (1, 1); or all observed vectors."""
        if self.vectors is None:
            return np.array([[median_gap(self.target)]])
        return np.array(self.vectors, np.float64, order="C")

    def gram(self, bandwidth: float, strength: float) -> FloatArray:
        """Kernel matrix (n, n), scaled by the roots of the case weights."""
        exponent = self.distance / -bandwidth
        if strength > 0:
            exponent -= strength * self.apart
        np.exp(exponent, out=exponent)
        # (K + λ n W⁻¹) is not symmetric in the case weights W; R (K) R + λ n with their roots is.
        if (self.root != 1).any():
            exponent *= self.root[:, np.newaxis] * self.root
        return exponent

    def inverse(self, bandwidth: float, strength: float, ridge: float) -> FloatArray:
        """``(K + λ n)⁻¹`` (n, n) with that matrix K; its pseudoinverse if it is singular.

        A ridge forbids that, but for rounding, and rounding in one location is no error of others.
        """
        matrix = self.with_ridge(bandwidth, strength, ridge)
        try:
            return np.asarray(np.linalg.inv(matrix))
        except np.linalg.LinAlgError:
            return np.asarray(np.linalg.pinv(matrix))

    def with_ridge(self, bandwidth: float, strength: float, ridge: float) -> FloatArray:
        """``K + λ n`` (n, n) with that matrix K."""
        gram = self.gram(bandwidth, strength)
        gram[np.diag_indices_from(gram)] += ridge * gram.shape[0]
        return gram

    def columns_of(self, cases: IntArray, bandwidth: float, strength: float) -> FloatArray:
        """Columns (k, n) of some cases of that matrix."""
        assert self.columns is not None
        exponent = self.columns.of(cases)
        exponent /= -bandwidth
        if strength > 0:
            exponent -= strength * feature_distances(
                self.features[cases], self.features, self.precision
            )
        np.exp(exponent, out=exponent)
        if (self.root != 1).any():
            exponent *= self.root[cases, np.newaxis] * self.root
        return exponent


def locate(
    cases: OrderedCases,
    cell: int,
    *,
    laplace: bool,
    low_rank: bool,
    squared: Squared | None,
    vectors: FloatArray | None = None,
) -> Location:
    """Location number ``cell``; ``squared`` (n_slots, n_slots) spares computing distances.

    Targets may be numbers of ``vectors`` (n_slots, d).
    """
    n = int(cases.n_used[cell])
    columns: Columns | None = None
    distance: FloatArray = np.empty((0, 0))
    if low_rank:
        slot = cases.slot[cell, :n]
        columns = Columns(cases.forecasts(cell), slot, laplace=laplace, squared=squared)
    else:
        distance = _among_cases(cases, cell, squared)
        distance = np.sqrt(distance) if laplace else distance
    features = np.ascontiguousarray(cases.features[cell, :n])
    precision = feature_weights(features, cases.circular)
    target = cases.target[cell, :n]
    return Location(
        distance,
        np.empty((0, 0)) if low_rank else feature_distances(features, features, precision),
        precision,
        roots_of(cases.weight[cell, :n]),
        cases.mean[cell, :n],
        cases.variance[cell, :n],
        features,
        target,
        columns,
        vectors,
        laplace,
        cases.most_landmarks,
    )


def _among_cases(cases: OrderedCases, cell: int, squared: Squared | None) -> FloatArray:
    """Squared distances (n, n) of the cases."""
    loc, scale, weights = cases.forecasts(cell)
    n = loc.shape[0]
    if squared is not None:
        slot = cases.slot[cell, :n]
        return np.ascontiguousarray(squared[np.ix_(slot, slot)], np.float64)
    assert weights is not None
    if scale is None:
        return self_distances(loc, weights)
    distances, one = np.empty((n, n)), (loc, scale, weights)
    fill_normal_distances(*one, *one, distances)
    return distances


def from_new(
    new: NewForecasts,
    cases: OrderedCases,
    cell: int,
    rows: slice,
    chosen: slice | IntArray,
    across: Squared | None,
) -> FloatArray:
    """Squared distances (q, k) from some new forecasts to some of the cases of a location."""
    if across is not None:
        slot: IntArray = cases.slot[cell, chosen]
        ours: IntArray = np.arange(new.loc.shape[1])[rows]
        return np.asarray(across[np.ix_(ours, slot)], np.float64)
    mine = new.loc[cell, rows], new.weights[cell, rows]
    theirs = cases.loc[cell, chosen], cases.weights[cell, chosen]
    if cases.scale is None or new.scale is None:
        return cross_distances(*mine, *theirs)
    distances = np.empty((mine[0].shape[0], theirs[0].shape[0]))
    fill_normal_distances(
        mine[0], new.scale[cell, rows], mine[1],
        theirs[0], cases.scale[cell, chosen], theirs[1], distances,
    )  # fmt: skip
    return distances


def feature_distances(new: FloatArray, of: FloatArray, precision: FloatArray) -> FloatArray:
    """Squared distances (q, n) of covariates (q, k) and (n, k); empty without covariates."""
    if precision.size == 0:
        return np.empty((0, 0))
    apart = np.zeros((new.shape[0], of.shape[0]))
    for column, weight in enumerate(precision):
        square = np.subtract.outer(new[:, column], of[:, column])
        square *= square
        square *= weight
        apart += square
    return apart


def median_gap(target: FloatArray) -> float:
    """Median positive distance of targets (n,), the scale of the Laplace loss; 1 without any."""
    some = target[subset(target.size, MEDIAN_CASES)]
    distance = np.abs(some[:, np.newaxis] - some)
    positive = distance[(distance > 0) & ~np.tri(*distance.shape, dtype=np.bool_)]
    return float(np.median(positive)) if positive.size else 1.0


def roots_of(logarithm: FloatArray) -> FloatArray:
    """Roots of the weights of the cases used (n,), of which the largest is 1."""
    weight = 2.0 ** (logarithm - logarithm.max(initial=-np.inf))
    return np.asarray(np.sqrt(np.maximum(weight, SMALLEST_WEIGHT)))
