"""Coordinates of cases; the similarity of two cases follows from the distance between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.kernels.kernel import MEDIAN_CASES, feature_weights, positive_median, subset
from xrecal.typing import FloatArray

from .cells import cell_averages

POINTS = 100
"""Number of thresholds for the comparison of shapes. A shape is an ensemble minus its mean, divided
by the scale of its error."""


class Coordinates(NamedTuple):
    r"""Map from cases to coordinates v; two cases have the similarity :math:`\exp(-|v - v'|^2)`.

    The similarity is a product of two kernels. One is the Energy Distance Kernel of shapes, on a
    grid of thresholds, :math:`D^2 = 2 \int (F - G)^2 \approx 2 \sum_j (t_{j+1} - t_j) (\bar F_j -
    \bar G_j)^2`. Here F and G are the CDFs of two shapes (ensembles minus their means), t are the
    thresholds, and the bar marks the average of a CDF between two thresholds. The other kernel is a
    product of Gaussian kernels, one for each feature. Both kernels depend on squared distances of
    vectors, so one product of matrices gives the similarities between many cases.
    """

    grid: FloatArray
    """(S,) thresholds, in the unit of the shapes"""
    bandwidth: float
    """Bandwidth, in the unit of squared energy distances; infinite if all shapes are equal"""
    middle: FloatArray
    """(k,) median of each feature in a sample; :meth:`of` subtracts this median to keep products
    small"""
    precision: FloatArray
    """(k,) weight of the squared difference of each feature; 0 for a constant feature"""

    @property
    def n_axes(self) -> int:
        """Return the number of coordinates of a case."""
        return self.grid.size - 1 + self.middle.size

    def scaled(self, shape: float, relevance: FloatArray) -> Coordinates:
        """Return a map to coordinates whose squared distances are multiplied by factors.

        ``shape`` is the factor for shapes, and ``relevance`` (k,) has the factors for features.
        """
        bandwidth = self.bandwidth / shape if shape > 0.0 else np.inf
        return self._replace(bandwidth=bandwidth, precision=self.precision * relevance)

    def of(self, shapes: FloatArray, features: FloatArray) -> FloatArray:
        """Return the coordinates (n, d) of cases.

        Parameters
        ----------
        shapes : array of float, shape (n, m)
            Members of forecasts on a common scale of all places; NaN marks a missing member.
        features : array of float, shape (n, k)
            Features in the units of the fit.

        Returns
        -------
        array of float64, shape (n, d)
            A row is NaN if the forecast has no members, or if a feature with a weight is unknown.

        Raises
        ------
        ValueError
            If the number of features differs from the number in the fit.
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
    """Compute the map to coordinates from a sample of cases, with median distances as scales.

    Parameters
    ----------
    shapes : array of float, shape (n, m)
        As in :meth:`Coordinates.of`.
    features : array of float, shape (n, k)
        Features in any units; a constant feature gets no weight.
    points : int
        Largest number of thresholds. Half of them are quantiles of all members. The other half are
        evenly spaced, because the distance is an integral over thresholds.

    Returns
    -------
    Coordinates
        The scale of shapes and of each feature is the median positive squared distance among 400
        cases. If all members are equal, as in ensembles of one member, shapes get no weight.
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
    """Return thresholds from the smallest to the largest member, denser where members are dense."""
    levels = np.linspace(0.0, 1.0, points - points // 2)
    even = np.linspace(members.min(), members.max(), points // 2 + 2)[1:-1]
    return np.unique(np.concatenate([np.quantile(members, levels), even]))
