"""Distances from single cases to all others, computed when they are asked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.distance import (
    Ordered,
    centre_and_rounding,
    in_order,
    mean_distances,
    self_distances,
    sorted_rows,
    subtract_spread,
)
from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.distributions.normal import fill_normal_distances
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, positive_median, subset
from xrecal.typing import FloatArray, IntArray


class Columns:
    """Columns of the matrix of squared energy distances among the n usable cases of a location.

    A low-rank solver needs a few hundred of them. A column costs O(n m), once.
    """

    def __init__(
        self, forecasts: Forecasts, slot: IntArray, *, laplace: bool, squared: Squared | None
    ) -> None:
        self._loc, self._scale, weights = forecasts
        assert weights is not None
        self.n, self._weights, self._laplace = slot.size, weights, laplace
        self._squared, self._slot = squared, slot
        self._arranged: Arranged | None = None
        self._known: dict[int, FloatArray] = {}

    def of(self, cases: IntArray) -> FloatArray:
        """D² (D for the Laplace kernel) from some cases to all, (k, n)."""
        new = np.array([case for case in cases.tolist() if case not in self._known], np.int64)
        if new.size:  # many together take less time than one by one
            distances = self._compute(new)
            distances = np.sqrt(distances) if self._laplace else distances
            self._known |= dict(zip(new.tolist(), distances, strict=True))
        return np.stack([self._known[case] for case in cases.tolist()])

    def median(self) -> float:
        """Median distance of cases that differ; infinite where none do."""
        median = positive_median(self._among(subset(self.n, MEDIAN_CASES)))
        if np.isinf(median) and self.n > MEDIAN_CASES:  # those that differ are too rare to meet
            median = positive_median(self._among(np.arange(self.n)))
        return float(np.sqrt(median)) if self._laplace else median

    def _among(self, chosen: IntArray) -> FloatArray:
        """Squared distances (k, k) among some cases."""
        if self._squared is not None:
            slot = self._slot[chosen]
            return np.ascontiguousarray(self._squared[np.ix_(slot, slot)], np.float64)
        loc, weights = self._loc[chosen], self._weights[chosen]
        if self._scale is None:
            return self_distances(loc, weights)
        distances = np.empty((chosen.size, chosen.size))
        one = loc, self._scale[chosen], weights
        fill_normal_distances(*one, *one, distances)
        return distances

    def _compute(self, cases: IntArray) -> FloatArray:
        """Squared distances (k, n) from some cases to all."""
        if self._squared is not None:
            slot = self._slot[cases]
            return np.asarray(self._squared[np.ix_(slot, self._slot)], np.float64)
        if self._scale is not None:
            distances = np.empty((cases.size, self.n))
            every = self._loc, self._scale, self._weights
            loc, scale, weights = (part[cases] for part in every)
            fill_normal_distances(loc, scale, weights, *every, distances)
            return distances
        if self._arranged is None:
            self._arranged = arrange(self._loc, self._weights)
        return self._arranged.columns(cases)


class Arranged(NamedTuple):
    """Ensembles (n, m) whose members are in order."""

    points: FloatArray
    """(n, m) of each by size, centred"""
    mass: FloatArray
    """(n, m)"""
    spread: FloatArray
    """(n,) ``E|X-X'|``"""
    together: Ordered
    """All members by size"""
    tolerance: float
    """Differences of rounding size"""

    def columns(self, cases: IntArray) -> FloatArray:
        """Squared distances (k, n) from some ensembles to all."""
        n = self.spread.size
        distances = mean_distances(self.points[cases], self.mass[cases], self.together, n)
        tolerance = np.full(cases.size, self.tolerance)
        subtract_spread(distances, self.spread[cases], self.spread, tolerance, False)
        distances[np.arange(cases.size), cases] = 0.0
        return distances


def arrange(x: FloatArray, weights: FloatArray) -> Arranged:
    """Ensembles (n, m) with members in order."""
    centre, tolerance = centre_and_rounding(x, weights)
    points, mass, spread = sorted_rows(x, weights, centre)
    return Arranged(points, mass, spread, in_order(points, mass), tolerance)
