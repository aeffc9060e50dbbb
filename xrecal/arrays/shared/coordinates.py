"""Cases as points in a Euclidean space, where a product of kernels is a function of distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.kernels.kernel import MEDIAN_CASES, feature_weights, positive_median, subset
from xrecal.typing import FloatArray

from .cells import cell_averages

POINTS = 100
"""Thresholds on which shapes of forecasts are compared."""


class Coordinates(NamedTuple):
    r"""How cases are placed, so that their similarity is :math:`\exp(-|v - v'|^2)`.

    The similarity is a product: of the Energy Distance Kernel of shapes, on a grid of thresholds,
    :math:`D^2 = 2 \int (F - G)^2 \approx 2 \sum_j (t_{j+1} - t_j) (\bar F_j - \bar G_j)^2`, and of
    Gaussian kernels of features. Both are squared distances of vectors, so that similarities of
    many cases to many are one product of matrices.
    """

    grid: FloatArray
    """(S,) thresholds, in the unit of the shapes"""
    bandwidth: float
    """Of squared energy distances, in the same unit; infinite where all shapes are alike"""
    middle: FloatArray
    """(k,) of each feature, which keeps offsets out of products"""
    precision: FloatArray
    """(k,) weight of the squared difference of each feature; 0 for a constant one"""

    @property
    def n_axes(self) -> int:
        """Number of coordinates of a case."""
        return self.grid.size - 1 + self.middle.size

    def scaled(self, shape: float, relevance: FloatArray) -> Coordinates:
        """Coordinates whose distances count by these factors: of shapes, of each feature (k,)."""
        bandwidth = self.bandwidth / shape if shape > 0.0 else np.inf
        return self._replace(bandwidth=bandwidth, precision=self.precision * relevance)

    def of(self, shapes: FloatArray, features: FloatArray) -> FloatArray:
        """Coordinates (n, d) of cases.

        Parameters
        ----------
        shapes : array of float, shape (n, m)
            Members of forecasts on a scale that all places share; NaN ones are left out.
        features : array of float, shape (n, k)
            In the units of those that the coordinates were made from.

        Returns
        -------
        array of float64, shape (n, d)
            NaN in a row without members, or with a feature that is unknown and counts.

        Raises
        ------
        ValueError
            If there are other features than those that the coordinates were made from.
        """
        if features.shape != (len(shapes), self.middle.size):
            raise ValueError(
                f"features need shape {(len(shapes), self.middle.size)}, got {features.shape}"
            )
        placed = np.empty((len(shapes), self.n_axes))
        cut = self.grid.size - 1
        roots = np.sqrt(2.0 * np.diff(self.grid) / self.bandwidth)
        np.multiply(cell_averages(shapes, self.grid), roots, out=placed[:, :cut])
        counts = self.precision > 0.0
        apart = np.where(counts, features - self.middle, 0.0)
        np.multiply(apart, np.sqrt(self.precision), out=placed[:, cut:])
        return placed


def coordinates_from(shapes: FloatArray, features: FloatArray, points: int = POINTS) -> Coordinates:
    """Coordinates by the rule of the median, from a sample of cases.

    Parameters
    ----------
    shapes : array of float, shape (n, m)
        As in :meth:`Coordinates.of`.
    features : array of float, shape (n, k)
        In any units; a feature of which no two values differ does not count.
    points : int
        Thresholds at most: half of them quantiles of all members together, half evenly spaced, as
        the distance is an integral over thresholds.

    Returns
    -------
    Coordinates
        With the median positive squared distance of 400 cases as the scale of shapes and of each
        feature. Where no two members differ, as of ensembles of one, shapes do not count.
    """
    members = np.asarray(shapes, np.float64)
    known = members[np.isfinite(members)]
    grid = _thresholds(known, points) if known.size else np.zeros(1)
    if grid.size < 2:
        grid = grid[0] + np.array([0.0, 1.0])
    some = subset(len(members), MEDIAN_CASES)
    plain = Coordinates(grid, 1.0, np.zeros(0), np.zeros(0))
    placed = plain.of(members[some], np.zeros((some.size, 0)))
    placed = placed[np.isfinite(placed).all(1)]
    norm = (placed**2).sum(1)
    squared = np.maximum(norm[:, np.newaxis] + norm - 2.0 * placed @ placed.T, 0.0)
    several = np.asarray(features, np.float64)
    few = several[some]
    precision = feature_weights(few, np.zeros(several.shape[1], np.bool_))
    middle = np.array([np.median(c[np.isfinite(c)]) if np.isfinite(c).any() else 0 for c in few.T])
    return Coordinates(grid, positive_median(squared), middle.astype(np.float64), precision)


def _thresholds(members: FloatArray, points: int) -> FloatArray:
    """Thresholds from the smallest member to the largest, denser where members are."""
    levels = np.linspace(0.0, 1.0, points - points // 2)
    even = np.linspace(members.min(), members.max(), points // 2 + 2)[1:-1]
    return np.unique(np.concatenate([np.quantile(members, levels), even]))
