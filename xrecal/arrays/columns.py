"""Distances from single cases to all others, computed when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.typing import FloatArray, IntArray

from ._compiled import kernel
from ._normal_numba import fill_normal_distances
from .cases import OrderedCases
from .distance import rounding_of, self_distances, sorted_rows
from .forms import Squared
from .kernel import MEDIAN_CASES, positive_median, subset


class Columns:
    """Columns of the matrix of squared energy distances among the n usable cases of a location.

    A low-rank solver needs a few hundred of them. A column costs O(n m), once.
    """

    def __init__(
        self, cases: OrderedCases, cell: int, *, laplace: bool, squared: Squared | None
    ) -> None:
        n = int(cases.n_used[cell])
        self.n, self._laplace = n, laplace
        self._loc, self._weights = cases.loc[cell, :n], cases.weights[cell, :n]
        self._scale = None if cases.scale is None else cases.scale[cell, :n]
        self._squared, self._slot = squared, cases.slot[cell, :n]
        self._points: Any = None
        self._known: dict[int, FloatArray] = {}

    def column(self, case: int) -> FloatArray:
        """D² (D for the Laplace kernel) from one case to all, (n,)."""
        if case not in self._known:
            found = self._compute(case)
            self._known[case] = np.sqrt(found) if self._laplace else found
        return self._known[case]

    def prefetch(self, cases: IntArray) -> None:
        """Make ready the columns of some cases, where many together take less than one by one."""
        if self._squared is None or isinstance(self._squared, np.ndarray):
            return
        new = np.array([case for case in cases.tolist() if case not in self._known], np.int64)
        if new.size:
            found = self._squared[np.ix_(self._slot[new], self._slot)]
            found = np.sqrt(found) if self._laplace else found
            self._known |= dict(zip(new.tolist(), found, strict=True))

    def median(self) -> float:
        """Median distance of cases that differ; infinite where none do."""
        found = positive_median(self._among(subset(self.n, MEDIAN_CASES)))
        if np.isinf(found) and self.n > MEDIAN_CASES:  # those that differ are too rare to meet
            found = positive_median(self._among(np.arange(self.n)))
        return float(np.sqrt(found)) if self._laplace else found

    def _among(self, chosen: IntArray) -> FloatArray:
        """Squared distances (k, k) among some cases."""
        if self._squared is not None:
            slot = self._slot[chosen]
            return np.ascontiguousarray(self._squared[np.ix_(slot, slot)], np.float64)
        loc, weights = self._loc[chosen], self._weights[chosen]
        if self._scale is None:
            return np.asarray(self_distances(loc, weights))
        found = np.empty((chosen.size, chosen.size))
        one = loc, self._scale[chosen], weights
        fill_normal_distances(*one, *one, found)
        return found

    def _compute(self, case: int) -> FloatArray:
        """Squared distances from one case to all."""
        if self._squared is not None:
            slot = self._slot[case : case + 1]
            return np.asarray(self._squared[np.ix_(slot, self._slot)][0], np.float64)
        found = np.empty((1, self.n))
        if self._scale is not None:
            one = self._loc, self._scale, self._weights
            loc, scale, weights = (part[case : case + 1] for part in one)
            fill_normal_distances(loc, scale, weights, *one, found)
            return np.asarray(found[0])
        if self._points is None:
            self._points = arrange_points(self._loc, self._weights)
        fill_column(self._points, case, found[0])
        return np.asarray(found[0])


@kernel
def arrange_points(x: Any, weights: Any) -> Any:
    """Members of all ensembles (n, m) in order, for :func:`fill_column`."""
    centre, tolerance = rounding_of(x, weights)
    points, mass, spread = sorted_rows(x, weights, centre)
    n, m = points.shape
    order = np.argsort(points.ravel())
    z, z_mass, owner = np.empty(n * m), np.empty(n * m), np.empty(n * m, dtype=np.int64)
    for s in range(n * m):
        i = order[s] // m
        z[s], z_mass[s], owner[s] = points[i, order[s] - i * m], mass[i, order[s] - i * m], i
    return points, mass, spread, tolerance, z, z_mass, owner


@kernel
def fill_column(arranged: Any, case: int, out: Any) -> None:
    """Squared distances from one ensemble to all, into ``out`` (n,).

    ``E|X-z| = slope z + level`` between neighbouring members of X, walked through once.
    """
    points, mass, spread, tolerance, z, z_mass, owner = arranged
    n, m = points.shape
    for j in range(n):
        out[j] = 0.0
    slope, level = -1.0, 0.0
    for k in range(m):
        level += mass[case, k] * points[case, k]
    s = 0
    for k in range(m + 1):
        stop = points[case, k] if k < m else np.inf
        while s < z.size and z[s] <= stop:
            out[owner[s]] += z_mass[s] * (level + slope * z[s])
            s += 1
        if k < m:
            slope += 2 * mass[case, k]
            level -= 2 * mass[case, k] * stop
    for j in range(n):
        d = 2 * out[j] - spread[j] - spread[case]
        out[j] = 0.0 if d <= tolerance or j == case else d
