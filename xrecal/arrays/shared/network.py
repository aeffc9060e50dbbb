"""A distribution of errors ("law") for a network of places, learned in two passes over cases.

Both passes compute sums over cases. The first pass computes the sums that each place needs for its
own centre and spread. The second pass learns the law of errors around these centres, for all places
together. A case never helps to learn its own centre: for places with a record, the passes leave out
folds of dates; for places without a record, they leave out folds of places. There are two laws,
because errors around a centre from a record are smaller than errors around a centre from features
alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.ensemble_size import (
    Past,
    inverse_sizes,
    narrowing,
    on_footing,
)
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.distributions.weighted import weighted_quantile
from xrecal.typing import FloatArray, IntArray

from .cells import NothingToLearnError, error_grid
from .coordinates import Coordinates, coordinates_from
from .folds import Folds, whole_folds
from .landmarks import MAX_RANK, Landmarks, choose_landmarks
from .law import SharedLaw
from .places import Corrections, Places, fit_places, inflation_of, place_sums
from .regression import Pooled
from .relevance import choose_relevance

ROOM = 3.0
"""Factor by which the ends of the grid of thresholds are farther from the median of a sample than
the smallest and largest value of the sample."""

Law = tuple[FloatArray, FloatArray, FloatArray]
"""Distributions of n cases: centres (n,), scales (n,), and probabilities (n, J + 1) of the
thresholds of errors."""


class Cases(NamedTuple):
    """Cases of a network of places."""

    members: FloatArray
    """(n, m) members of the ensembles, NaN if missing"""
    observations: FloatArray
    """(n,) observations of the cases"""
    place: IntArray
    """(n,) number of the place"""
    part: IntArray
    """(n,) number of the part of the record that the date belongs to. A part is a fold or, if there
    are gaps, a piece of a fold"""
    covariates: FloatArray
    """(n, q) covariates that are known when a forecast is issued, without features of the place"""
    weight: FloatArray
    """(n,) weights: cases whose weights sum to W count as much as W cases of weight 1"""

    def take(self, rows: slice | IntArray) -> Cases:
        """Select cases."""
        return Cases(*(part[rows] for part in self))  # type: ignore[arg-type]

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return means and variances (n,) of the ensembles, NaN without members."""
        return moments_of(self.members)


class Standards(NamedTuple):
    """Corrections for errors around the common regression, one set of corrections for each fold."""

    pooled: Pooled
    corrections: Corrections
    """(F P,) corrections: all P places for the first fold, then all P for the second fold, etc."""
    features: FloatArray
    """(P, k) features of P places"""
    n_places: int
    folds: Folds
    """F folds"""
    place_fold: IntArray | None
    """(P,) fold of each place, if the folds hold out places; None if they hold out dates"""

    def part_of(self, cases: Cases) -> IntArray:
        """Return the part (n,) of each case, by date, or by place if the folds hold out places."""
        return cases.part if self.place_fold is None else self.place_fold[cases.place]

    def standardised(self, cases: Cases) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return errors (n,) and shapes (n, m) in units of the scale, and features (n, k + q).

        The features are k features of the place and q covariates. A shape is an ensemble minus
        its mean.
        """
        at = self.folds.of_part[self.part_of(cases)] * self.n_places + cases.place
        mean, variance = cases.moments()
        centre, scale = self.corrections.apply(self.pooled, at, mean, variance)
        errors = (cases.observations - centre) / scale
        return errors, shapes_of(cases.members, mean, scale), features_of(self.features, cases)


class Basis(NamedTuple):
    """Grid of error thresholds, and coordinates and landmarks of cases; all from a sample."""

    coordinates: Coordinates
    landmarks: Landmarks
    grid: FloatArray

    def placed(self, standards: Standards, cases: Cases) -> tuple[FloatArray, FloatArray]:
        """Return coordinates (n, d) and errors (n,) of cases."""
        errors, shapes, features = standards.standardised(cases)
        return self.coordinates.of(shapes, features), errors


class Network(NamedTuple):
    """A law (distribution) of errors, with the corrections and features of P places."""

    pooled: Pooled
    corrections: Corrections
    features: FloatArray
    """(P, k) features of P places"""
    coordinates: Coordinates
    law: SharedLaw

    def placed(self, cases: Cases) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return centres and scales (n,) of cases, and their coordinates (n, d).

        The results are NaN if an ensemble has no members, or a feature with a weight is unknown.
        """
        mean, variance = cases.moments()
        pooled, place = self.pooled, cases.place
        past = Past(*(np.array([getattr(pooled, name)]) for name in Past._fields))
        sizes = inverse_sizes(Forecasts(cases.members))
        (variance,), (noise,) = on_footing(variance[np.newaxis], sizes[np.newaxis], past)
        centre, scale = self.corrections.apply(pooled, place, mean, variance)
        shapes = shapes_of(cases.members, mean, scale)
        slope = pooled.coefficients[1] + self.corrections.slope[place] / pooled.width
        scale = scale * narrowing(slope**2 * noise, scale**2)
        return centre, scale, self.coordinates.of(shapes, features_of(self.features, cases))

    def predict(self, cases: Cases) -> Law:
        """Predict distributions for cases, whose observations may be unknown.

        The values of a distribution are ``centre + scale t`` for all thresholds t of the grid; the
        weights of the thresholds are their probabilities.
        """
        centre, scale, placed = self.placed(cases)
        return centre, scale, self.law.weights(placed)

    def quantiles(self, cases: Cases, levels: FloatArray) -> FloatArray:
        """Return quantiles (n, q) of the predicted distributions at levels (q,) in [0, 1]."""
        centre, scale, weights = self.predict(cases)
        found = weighted_quantile(self.law.grid[np.newaxis], levels, weights[np.newaxis])[0]
        return np.asarray(centre[:, np.newaxis] + scale[:, np.newaxis] * found)


def moments_of(members: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and variances (n,) of ensembles (n, m), over the members that are not NaN."""
    x = np.asarray(members, np.float64)
    known = ~np.isnan(x)
    size = known.sum(-1)
    if known.all():
        mean = x.mean(-1)
        return mean, np.einsum("nm,nm->n", x, x - mean[:, np.newaxis]).clip(0.0) / x.shape[-1]
    with np.errstate(invalid="ignore"):  # ensembles without members
        mean = np.where(known, x, 0.0).sum(-1) / np.where(size > 0, size, np.nan)
        apart = np.where(known, x - mean[:, np.newaxis], 0.0)
        return mean, (apart**2).sum(-1) / np.where(size > 0, size, np.nan)


def shapes_of(members: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Return ensembles (n, m) minus their means, in units of the scales (n,) of their errors."""
    return np.asarray((members - mean[:, np.newaxis]) / scale[:, np.newaxis])


def features_of(places: FloatArray, cases: Cases) -> FloatArray:
    """Return a row for each of n cases: the features of its place, then its covariates."""
    return np.concatenate([places[cases.place], cases.covariates], axis=1)


def place_sums_of(pooled: Pooled, cases: Cases, n_places: int, n_parts: int) -> FloatArray:
    """Return eight sums over the cases of each part and place, (G, 8, P); see :func:`.place_sums`.

    Sums over other cases can be added to the result.
    """
    values = (*cases.moments(), cases.observations)
    at = cases.part * n_places + cases.place
    sums = place_sums(pooled, at, n_parts * n_places, values, cases.weight)
    return np.ascontiguousarray(np.swapaxes(sums.reshape(-1, n_parts, n_places), 0, 1))


def with_record(
    pooled: Pooled, sums: FloatArray, features: FloatArray, folds: Folds
) -> tuple[Places, Standards]:
    """Return corrections from all records, and from the records without the dates of each fold.

    The mean error of a record must not be a feature of the law. If errors in a fold are high, the
    mean error of all other folds is below that of the whole record. A law that learned this
    relation would get information from the held-out cases. The same holds for the spread.
    """
    whole = sums.sum(0)
    inflation = inflation_of(folds.held(sums))
    places = fit_places(whole, features, pooled.kurtosis, inflation=inflation)
    each = [
        fit_places(others, features, pooled.kurtosis, places.settings).local
        for others in np.tensordot(folds.learned, sums, 1)
    ]
    corrections = Corrections(*(np.concatenate(parts) for parts in zip(*each, strict=True)))
    return places, Standards(pooled, corrections, features, sums.shape[-1], folds, None)


def without_record(
    pooled: Pooled, sums: FloatArray, features: FloatArray, places: Places, fold: IntArray
) -> Standards:
    """Return corrections from features alone, as if the places of each fold had no record.

    ``fold`` (P,) is the fold of each place.
    """
    whole, folds = sums.sum(0), []
    for f in range(fold.max() + 1):
        kept = np.where(fold == f, 0.0, whole)
        one = fit_places(kept, features, pooled.kurtosis, places.settings)
        folds.append(one.at(features))
    corrections = Corrections(*(np.concatenate(parts) for parts in zip(*folds, strict=True)))
    left_out = whole_folds(len(folds))
    return Standards(pooled, corrections, features, sums.shape[-1], left_out, fold)


def basis_from(standards: Standards, sample: Cases, max_rank: int = MAX_RANK) -> Basis:
    """Return grid, coordinates and landmarks from a sample; keep only features that help the law.

    Raises ValueError if the sample has no usable cases.
    """
    errors, shapes, features = standards.standardised(sample)
    coordinates = coordinates_from(shapes, features)
    used = np.isfinite(coordinates.of(shapes, features)).all(1) & np.isfinite(errors)
    if not used.any():
        raise NothingToLearnError(
            "no case of the sample has members, an observation and known features"
        )
    known = errors[used]
    middle = float(np.median(known))
    extremes = (
        middle - ROOM * (middle - float(known.min())),
        middle + ROOM * (float(known.max()) - middle),
    )
    grid = error_grid(known, extremes)
    cases = known, shapes[used], features[used]
    part = standards.part_of(sample)[used]
    # Fewer landmarks suffice to compare features, and make many trials affordable.
    few = max(max_rank // 5, 1)
    coordinates = choose_relevance(coordinates, grid, cases, part, standards.folds, few)
    placed = coordinates.of(*cases[1:])
    return Basis(coordinates, choose_landmarks(placed, max_rank), grid)
