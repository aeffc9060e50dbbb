"""Usable cases of one location, and the kernel that compares forecasts with these cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.distance import (
    Arranged,
    arrange,
    distances_between,
    mean_apart,
)
from xrecal.arrays.distributions.ensemble_size import excess_of, inverse_sizes, on_footing, past_of
from xrecal.arrays.distributions.forms import (
    VALID,
    Forecasts,
    Squared,
    moments,
    usable_observations,
    verdicts,
)
from xrecal.arrays.kernels.kernel import (
    MEDIAN_CASES,
    Features,
    joint_weights,
    positive_median,
    subset,
)
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray, IntArray

SMALLEST_WEIGHT = 1e-12
"""Smallest weight of an old case; rounding would lose smaller weights."""

MAX_RANK, MAX_RANK_OF_SHAPES = 1000, 150
"""Largest number of landmarks of a location: the first number if the kernel compares forecasts, the
second if it compares shapes. A shape is an ensemble minus its mean, and is mostly noise. More
landmarks of shapes would represent more noise, and would hardly lower the CRPS."""


def most_landmarks(shapes: bool) -> int:
    """Return the largest number of landmarks, for forecasts or for their shapes."""
    return MAX_RANK_OF_SHAPES if shapes else MAX_RANK


class NewForecasts(NamedTuple):
    """Forecasts to recalibrate at one location, as contiguous arrays of float64.

    ``n_slots`` is the number of all cases, usable or not.
    """

    forecasts: Forecasts
    """(T, p), NaN for a missing or invalid forecast"""
    mean: FloatArray
    """(T,)"""
    variance: FloatArray
    """(T,)"""
    features: FloatArray
    """(T, k) features of the covariates"""
    inverse_size: FloatArray
    """(T,) one divided by the number of members, NaN if unknown"""
    across: Squared | None = None
    """(T, n_slots) squared distances to all cases, if already known"""
    excess: FloatArray | None = None
    """(T,) result of :func:`excess_of`, which compares the sizes of past and new ensembles; None if
    the sizes agree"""
    noise: FloatArray | None = None
    """(T,) second result of :func:`on_footing`: sampling variance of the mean of past ensembles,
    minus that of new ensembles; None if the sizes agree"""

    def compared_with(self, where: Location) -> NewForecasts:
        """Return the forecasts, adjusted to the number of members of the past forecasts."""
        excess = excess_of(where.inverse_size, self.inverse_size)
        if not excess.any():
            return self
        past = past_of(np.array([[where.inverse_size]]), where.variance[np.newaxis])
        variance, noise = on_footing(self.variance, self.inverse_size, past)
        return self._replace(variance=variance[0], excess=excess, noise=noise[0])


@dataclass(frozen=True)
class Location:
    """The n usable cases of one location, in the order of time, and settings of their kernel.

    ``n_slots`` is the number of all cases, usable or not. D is the energy distance of two
    forecasts.
    """

    forecasts: Forecasts
    """(n, m) contiguous float64"""
    slot: IntArray
    """(n,) position of each case among all cases"""
    mean: FloatArray
    """(n,) means of the forecasts"""
    variance: FloatArray
    """(n,) variances of the forecasts"""
    features: FloatArray
    """(n, k) features of the covariates"""
    circular: npt.NDArray[np.bool_]
    """(k,) True for a feature that is a sine or cosine"""
    predictors: IntArray
    """Columns of the features that hold predictors; other columns hold the season and the place"""
    target: FloatArray
    """(n,) observations"""
    root: FloatArray
    """(n,) square roots of the case weights; the largest is 1"""
    most_landmarks: int
    """Largest number of landmarks of the location"""
    is_invalid: bool
    """True if any case holds an invalid value"""
    inverse_size: float
    """Mean of 1 / m over ensembles of m members, NaN if unknown"""

    laplace: bool = False
    """True if the kernel is a function of D, not of D²"""
    low_rank: bool = False
    """True if landmarks represent the cases, so that the fit does not compare all pairs"""
    squared: Squared | None = None
    """(n_slots, n_slots) squared distances, if already known"""
    vectors: FloatArray | None = None
    """(n_slots, d) observed vectors; ``target`` holds the row numbers of these vectors"""
    fitted_precision: FloatArray | None = None
    """(k,) weights of the features, if a fit has them"""
    twin: Location | None = None
    """The same cases in the same order, with distances that another method has computed"""

    @cached_property
    def precision(self) -> FloatArray:
        """Return the weight (k,) of each feature in the distance of covariates."""
        if self.fitted_precision is not None:
            return self.fitted_precision
        return joint_weights(self.features, self.circular)

    @cached_property
    def distance(self) -> FloatArray:
        """Return D² (D for the Laplace kernel) between all pairs of cases, (n, n)."""
        if self.twin is not None:
            return self.twin.distance
        return self._rooted(self._among(slice(None)))

    @cached_property
    def median(self) -> float:
        """Return the median ``distance`` of different forecasts; infinity if all are equal."""
        if self.twin is not None:
            return self.twin.median
        if self.low_rank:
            n = self.root.size
            median = positive_median(self._among(subset(n, MEDIAN_CASES)))
            if np.isinf(median) and n > MEDIAN_CASES:  # the sample has no pair that differs
                median = positive_median(self._among(slice(None)))
        else:
            median = positive_median(self.distance**2 if self.laplace else self.distance)
        return float(np.sqrt(median)) if self.laplace else median

    @cached_property
    def theta(self) -> FloatArray:
        """Return the scale of the Laplace loss (1, 1), or all observed vectors."""
        if self.vectors is None:
            return np.array([[median_gap(self.target)]])
        return np.array(self.vectors, np.float64, order="C")

    def gram(self, bandwidth: float, strength: float, ridge: float = 0.0) -> FloatArray:
        """Return the kernel matrix K (n, n), with the ridge λ times n added to its diagonal.

        K includes the roots of the case weights.
        """
        gram = self._kernel(self.distance, slice(None), bandwidth, strength)
        if ridge > 0:
            gram[np.diag_indices_from(gram)] += ridge * gram.shape[0]
        return gram

    def columns(self, cases: IntArray, bandwidth: float, strength: float) -> FloatArray:
        """Return columns (k, n) of the kernel matrix for some cases.

        The distances of a column cost O(n m) the first time; the location stores them.
        """
        known = self._known
        new = np.array([case for case in cases.tolist() if case not in known], np.int64)
        if new.size:  # many columns together take less time than one by one
            known.update(zip(new.tolist(), self._rooted(self._to_all(new)), strict=True))
        distance = np.stack([known[case] for case in cases.tolist()])
        return self._kernel(distance, cases, bandwidth, strength)

    def similarities(
        self,
        new: NewForecasts,
        rows: slice,
        chosen: slice | IntArray,
        bandwidth: float,
        strength: float,
    ) -> FloatArray:
        """Return similarities (q, k) of q forecasts to k cases, times the roots of case weights."""
        exponent = self._rooted(self.from_new(new, rows, chosen)) / -bandwidth
        features = new.features[rows]
        if strength > 0:
            exponent -= strength * self._apart(features, chosen)
        exponent[np.isnan(features).any(-1)] = np.nan  # also if the exponent is zero
        return np.asarray(np.exp(exponent) * self.root[chosen])

    def from_new(self, new: NewForecasts, rows: slice, chosen: slice | IntArray) -> FloatArray:
        """Return squared distances (q, k) from some new forecasts to some cases."""
        squared: FloatArray
        if new.across is not None:
            ours = np.arange(new.mean.size)[rows]
            squared = np.asarray(new.across[np.ix_(ours, self.slot[chosen])], np.float64)
        else:
            squared = distances_between(new.forecasts.take(rows), self.forecasts.take(chosen))
        if new.excess is None:
            return squared
        assert new.forecasts.weights is not None
        apart = mean_apart(new.forecasts.loc[rows], new.forecasts.weights[rows])
        wider = np.where(np.isnan(apart), 0.0, new.excess[rows] * apart)[:, np.newaxis]
        return np.maximum(squared + wider, 0.0)

    def _among(self, chosen: slice | IntArray) -> FloatArray:
        """Return squared distances (k, k) among some cases."""
        if self.squared is not None:
            slot = self.slot[chosen]
            return np.ascontiguousarray(self.squared[np.ix_(slot, slot)], np.float64)
        return distances_between(self.forecasts.take(chosen))

    def _to_all(self, cases: IntArray) -> FloatArray:
        """Return squared distances (k, n) from some cases to all cases."""
        if self.squared is not None:
            return np.asarray(self.squared[np.ix_(self.slot[cases], self.slot)], np.float64)
        if self.forecasts.scale is not None:
            return distances_between(self.forecasts.take(cases), self.forecasts)
        return self._arranged.columns(cases)

    @cached_property
    def _arranged(self) -> Arranged:
        """Return the ensembles with sorted members."""
        if self.twin is not None:
            return self.twin._arranged
        assert self.forecasts.weights is not None
        return arrange(self.forecasts.loc, self.forecasts.weights)

    @cached_property
    def _known(self) -> dict[int, FloatArray]:
        """Return the cache; a key is a case, and its value is the distances (n,) to all cases."""
        if self.twin is not None:
            return self.twin._known
        return {}

    def _kernel(
        self, distance: FloatArray, cases: slice | IntArray, bandwidth: float, strength: float
    ) -> FloatArray:
        """Return similarities (k, n) of k cases to all n cases, times the roots of case weights."""
        exponent = distance / -bandwidth
        if strength > 0:
            exponent -= strength * self._apart(self.features[cases], slice(None))
        np.exp(exponent, out=exponent)
        # The matrix K + λ n W⁻¹, with the case weights W, has a ridge of its own for each case.
        # With the roots R of W, the matrix R K R + λ n has the same ridge for all cases.
        if (self.root != 1).any():
            exponent *= self.root[cases, np.newaxis] * self.root
        return exponent

    def _rooted(self, squared: FloatArray) -> FloatArray:
        """Return the squared distances, or their square roots for a Laplace kernel."""
        return np.sqrt(squared) if self.laplace else squared

    def _apart(self, features: FloatArray, chosen: slice | IntArray) -> FloatArray:
        """Return squared distances (q, k) from features (q, c) to the features of some cases."""
        of = self.features[chosen]
        apart = np.zeros((features.shape[0], of.shape[0]))
        for column, weight in enumerate(self.precision):
            square = np.subtract.outer(features[:, column], of[:, column])
            square *= square
            square *= weight
            apart += square
        return apart


def locations(
    cases: Forecasts,
    observations: FloatArray,
    features: Features,
    weight: FloatArray,
    *,
    centred: bool,
    shapes: bool,
) -> Iterator[Location]:
    """Yield the usable cases of each location in turn, from arrays (L, n, m).

    ``weight`` (L, n) is the logarithm to base 2 of the weight of each case, up to a constant. With
    ``centred`` the function computes means and variances of forecasts, which the centres of errors
    need. With ``shapes`` it subtracts the mean from each forecast.
    """
    n_locations, n, m = cases.loc.shape
    for block in location_blocks(n_locations, 24 * n * m):
        given, *both = _with_moments(cases.take(block), centred, shapes)
        values = features.values[block]
        usable, invalid = usable_observations(given, observations[block])
        usable[~np.isfinite(values).all(-1)] = np.nan
        slots = np.argsort(np.isnan(usable), axis=-1, kind="stable")
        in_order = partial(_in_order, slots)
        forecasts = _weighted(given.map(in_order))
        sizes = inverse_sizes(cases.take(block))
        parts = [in_order(part) for part in (*both, values, usable, weight[block], sizes)]
        predictors = np.array(features.predictors, np.int64)  # compiled code needs a writable array
        for cell, n_used in enumerate(np.isfinite(usable).sum(-1).tolist()):
            used = cell, slice(n_used)
            mean, variance, of, target, logarithm, size = (part[used] for part in parts)
            yield Location(
                forecasts.take(used),
                slots[used],
                mean,
                variance,
                of,
                features.circular,
                predictors,
                target,
                roots_of(logarithm),
                most_landmarks(shapes),
                bool(invalid[cell]),
                float(size.mean()) if n_used else np.nan,
            )


def new_forecasts(
    forecasts: Forecasts, of: Features, *, centred: bool, shapes: bool
) -> Iterator[NewForecasts]:
    """Yield the forecasts (L, T, p) of each location in turn; see :func:`locations`."""
    given, mean, variance = _with_moments(forecasts, centred, shapes)
    bad = (verdicts(given) != VALID)[..., np.newaxis]
    double = partial(np.array, dtype=np.float64, order="C")
    whole = _weighted(given.map(double))
    whole = whole._replace(loc=np.where(bad, np.nan, whole.loc))
    parts = double(mean), double(variance), double(of.values), inverse_sizes(forecasts)
    for cell in range(whole.loc.shape[0]):
        yield NewForecasts(whole.take(cell), *(part[cell] for part in parts))


def _with_moments(
    forecasts: Forecasts, centred: bool, shapes: bool
) -> tuple[Forecasts, FloatArray, FloatArray]:
    """Return forecasts (L, n, m), their means and their variances.

    With ``shapes``, the returned forecasts are the forecasts minus their means. Without
    ``centred``, means and variances are 0.
    """
    if centred:
        mean, variance = moments(forecasts)
    else:
        mean = variance = np.broadcast_to(0.0, forecasts.loc.shape[:2])
    if shapes:
        shift = np.where(np.isfinite(mean), mean, 0.0)[..., np.newaxis]
        forecasts = forecasts._replace(loc=forecasts.loc - shift.astype(forecasts.loc.dtype))
    return forecasts, mean, variance


def _in_order(slots: IntArray, part: FloatArray) -> FloatArray:
    """Return an array (L, n) or (L, n, m) in the order of ``slots`` (L, n), as float64."""
    place = slots if part.ndim == 2 else slots[..., np.newaxis]
    return np.ascontiguousarray(np.take_along_axis(part, place, axis=1), dtype=np.float64)


def _weighted(forecasts: Forecasts) -> Forecasts:
    """Return the forecasts with weights; the weights are equal if the forecasts have none."""
    if forecasts.weights is not None:
        return forecasts
    return forecasts._replace(weights=np.ones(forecasts.loc.shape))


def median_gap(target: FloatArray) -> float:
    """Return the median distance between different targets (n,); 1 if all targets are equal.

    This distance is the scale of the Laplace loss.
    """
    some = target[subset(target.size, MEDIAN_CASES)]
    distance = np.abs(some[:, np.newaxis] - some)
    positive = distance[(distance > 0) & ~np.tri(*distance.shape, dtype=np.bool_)]
    return float(np.median(positive)) if positive.size else 1.0


def roots_of(logarithm: FloatArray) -> FloatArray:
    """Return square roots (n,) of weights, from the logarithms to base 2; the largest root is 1."""
    weight = 2.0 ** (logarithm - logarithm.max(initial=-np.inf))
    return np.asarray(np.sqrt(np.maximum(weight, SMALLEST_WEIGHT)))
