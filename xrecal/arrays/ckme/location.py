"""One location: its calibration cases as kernel matrices, targets and folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xrecal.arrays.distributions.distance import cross_distances, self_distances
from xrecal.arrays.distributions.forms import Squared
from xrecal.arrays.distributions.normal import fill_normal_distances
from xrecal.arrays.kernels.covariates import feature_weights
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, positive_median, subset
from xrecal.typing import FloatArray, IntArray

from .columns import Columns
from .embedding import roots_of
from .ordered_cases import NewForecasts, OrderedCases


@dataclass(frozen=True)
class Location:
    """The n usable cases of one location, in the order of time."""

    distance: FloatArray
    """(n, n) D² of the forecasts (D for the Laplace kernel); empty with columns"""
    median: float
    """Of the distances of forecasts that differ; infinite where none do"""
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
    theta: float | FloatArray
    """Scale of the Laplace loss; or all observed vectors (n_slots, d), which targets number"""
    columns: Columns | None = None
    """Distances from single cases, where not all pairs are compared"""

    def gram(self, bandwidth: float, strength: float) -> FloatArray:
        """Kernel matrix (n, n), scaled by the roots of the case weights."""
        exponent = self.distance / -bandwidth
        if strength > 0:
            exponent -= strength * self.apart
        np.exp(exponent, out=exponent)
        if (self.root != 1).any():
            exponent *= self.root[:, np.newaxis] * self.root
        return exponent

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
        columns = Columns(cases, cell, laplace=laplace, squared=squared)
        median = columns.median()
    else:
        distance = _among_cases(cases, cell, n, squared)
        median = positive_median(distance)
        if laplace:
            distance, median = np.sqrt(distance), float(np.sqrt(median))
    features = np.ascontiguousarray(cases.features[cell, :n])
    precision = feature_weights(features, cases.circular)
    target = cases.target[cell, :n]
    return Location(
        distance,
        median,
        np.empty((0, 0)) if low_rank else feature_distances(features, features, precision),
        precision,
        roots_of(cases.weight[cell, :n]),
        cases.mean[cell, :n],
        cases.variance[cell, :n],
        features,
        target,
        median_gap(target) if vectors is None else vectors,
        columns,
    )


def _among_cases(cases: OrderedCases, cell: int, n: int, squared: Squared | None) -> FloatArray:
    """Squared distances (n, n) of the cases."""
    if squared is not None:
        slot = cases.slot[cell, :n]
        return np.ascontiguousarray(squared[np.ix_(slot, slot)], np.float64)
    loc, weights = cases.loc[cell, :n], cases.weights[cell, :n]
    if cases.scale is None:
        return self_distances(loc, weights)
    found, one = np.empty((n, n)), (loc, cases.scale[cell, :n], weights)
    fill_normal_distances(*one, *one, found)
    return found


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
    found = np.empty((mine[0].shape[0], theirs[0].shape[0]))
    fill_normal_distances(
        mine[0], new.scale[cell, rows], mine[1],
        theirs[0], cases.scale[cell, chosen], theirs[1], found,
    )  # fmt: skip
    return found


def feature_distances(new: FloatArray, of: FloatArray, precision: FloatArray) -> FloatArray:
    """Squared distances (q, n) of covariates (q, k) and (n, k); empty without covariates."""
    if precision.size == 0:
        return np.empty((0, 0))
    apart = np.zeros((new.shape[0], of.shape[0]))
    for column, weight in enumerate(precision):
        apart += weight * (new[:, column, np.newaxis] - of[:, column]) ** 2
    return apart


def median_gap(target: FloatArray) -> float:
    """Median positive distance of targets (n,), the scale of the Laplace loss; 1 without any."""
    some = target[subset(target.size, MEDIAN_CASES)]
    distance = np.abs(some[:, np.newaxis] - some)
    positive = distance[distance > 0]
    return float(np.median(positive)) if positive.size else 1.0
