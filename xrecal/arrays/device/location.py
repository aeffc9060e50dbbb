"""Locations with the same usable cases: their kernel matrices, targets and scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, subset
from xrecal.typing import FloatArray, IntArray

from .case_groups import Cases
from .covariates import feature_distances, feature_weights
from .ensembles import Ensembles, across, among, arrange, take_locations, take_rows
from .kernel import median_gaps, positive_medians
from .namespace import indices, take

__all__ = ["Locations", "locate", "scaled"]


@dataclass(frozen=True)
class Locations:
    """The n usable cases of b locations, in the order of time."""

    cases: Cases
    ensembles: Ensembles
    root: FloatArray
    """(n,) roots of the case weights, on the host"""
    laplace: bool
    median: Any
    """(b,) of the distances of forecasts that differ; infinite where none do"""
    precision: Any
    """(b, k) weight of each feature in the distance of covariates"""
    theta: Any
    """(b,) scale of the Laplace loss"""
    squared: Any | None
    """(b, n, n) squared distances; None with low rank, which needs few of them"""

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.root.size)

    def gram(self, bandwidth: Any, strength: Any) -> Any:
        """Kernel matrices (b, n, n) with a bandwidth and strength (b,), scaled by the roots."""
        of = self.cases.features
        found = self._similarity(self.squared, bandwidth, strength, of, of, self.precision)
        return scaled(scaled(found, self.root, -1), self.root, -2)

    def columns(self, at: IntArray, chosen: Any, bandwidth: Any, strength: Any) -> Any:
        """Columns (c, t, n) of those matrices at c locations, of t cases each on the device."""
        xp = namespace(chosen)
        here = take_locations(self.ensembles, at)
        apart = across(take_rows(here, chosen), here)
        of = take(xp, self.cases.features, at, 0)
        some = xp.take_along_axis(of, chosen[:, :, None], axis=1)
        found = self._similarity(
            apart, bandwidth, strength, some, of, take(xp, self.precision, at, 0)
        )
        if (self.root == 1).all():
            return found
        root = xp.asarray(self.root)
        own = xp.take(root, xp.reshape(chosen, (-1,)))
        return found * root * xp.reshape(own, chosen.shape)[..., None]

    def _similarity(
        self,
        apart: Any,
        bandwidth: Any,
        strength: Any,
        ones: Any,
        others: Any,
        precision: Any,
    ) -> Any:
        """Kernel without weights, from squared distances (c, q, n) and covariates."""
        xp = namespace(apart)
        distance = xp.sqrt(apart) if self.laplace else apart
        exponent = distance / -bandwidth[:, None, None]
        if ones.shape[-1]:
            exponent = exponent - strength[:, None, None] * feature_distances(
                ones, others, precision
            )
        return xp.exp(exponent)


def scaled(values: Any, root: FloatArray, axis: int) -> Any:
    """Values times the roots of the case weights along one of the last two axes."""
    if (root == 1).all():
        return values
    factor = namespace(values).asarray(root)
    return values * (factor if axis == -1 else factor[:, None])


def locate(
    cases: Cases, circular: Any, root: FloatArray, *, laplace: bool, low_rank: bool
) -> Locations:
    """Distances of the cases, all or as many as a median needs, and the scales of kernels."""
    xp = namespace(cases.target)
    ensembles = arrange(cases.loc, cases.weights)
    n = cases.target.shape[1]
    if low_rank:
        squared, median = None, _median_of_some(ensembles, n)
    else:
        squared = among(ensembles)
        median = positive_medians(squared)
    return Locations(
        cases,
        ensembles,
        root,
        laplace,
        xp.sqrt(median) if laplace else median,
        feature_weights(cases.features, circular),
        median_gaps(cases.target),
        squared,
    )


def _median_of_some(ensembles: Ensembles, n: int) -> Any:
    """Median distance of the same part of the cases as on the host; of all where none differ."""
    xp = namespace(ensembles.points)
    chosen = np.asarray(subset(n, MEDIAN_CASES))
    n_locations = ensembles.points.shape[0]
    at = xp.broadcast_to(indices(xp, chosen)[None, :], (n_locations, chosen.size))
    found = positive_medians(among(take_rows(ensembles, at)))
    rare = np.flatnonzero(np.isinf(to_host(found)))
    if rare.size == 0 or n <= MEDIAN_CASES:
        return found
    medians = to_host(found).copy()
    for place in rare.tolist():  # each may be a large matrix
        one = take_locations(ensembles, np.array([place]))
        medians[place] = to_host(positive_medians(among(one)))[0]
    return xp.asarray(medians)
