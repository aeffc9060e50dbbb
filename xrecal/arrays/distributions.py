"""What a forecast says about the observation: one object for each form, with the same methods."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from xrecal.typing import FloatArray

from . import normal, scores, weighted


class Distribution(Protocol):
    """Predictive distributions of many forecasts."""

    def mean(self) -> FloatArray:
        """Mean of each forecast."""

    def std(self) -> FloatArray:
        """Standard deviation of each forecast."""

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles at levels (k,), on a new last axis."""

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS of each forecast."""


class Empirical(NamedTuple):
    """Members (..., n) with weights (..., n), or (..., T, n) for T forecasts that share them."""

    members: FloatArray
    weights: FloatArray | None = None

    def mean(self) -> FloatArray:
        """Mean; see :func:`~xrecal.arrays.weighted_mean`."""
        return weighted.weighted_mean(self.members, self.weights)

    def std(self) -> FloatArray:
        """Standard deviation; see :func:`~xrecal.arrays.weighted_std`."""
        return weighted.weighted_std(self.members, self.weights)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles; see :func:`~xrecal.arrays.weighted_quantile`."""
        return weighted.weighted_quantile(self.members, q, self.weights)

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS; see :func:`~xrecal.arrays.crps`."""
        return scores.crps(observations, self.members, self.weights)


class Normal(NamedTuple):
    """Mixtures of normal distributions (..., k), components of equal weight unless given."""

    loc: FloatArray
    scale: FloatArray
    weights: FloatArray | None = None

    def _mixture(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.loc, self.scale, np.ones(1) if self.weights is None else self.weights

    def mean(self) -> FloatArray:
        """Mean; see :func:`~xrecal.arrays.normal_mean_std`."""
        return normal.normal_mean_std(*self._mixture())[0]

    def std(self) -> FloatArray:
        """Standard deviation; see :func:`~xrecal.arrays.normal_mean_std`."""
        return normal.normal_mean_std(*self._mixture())[1]

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles; see :func:`~xrecal.arrays.normal_quantile`."""
        return normal.normal_quantile(q, *self._mixture())

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS; see :func:`~xrecal.arrays.normal_crps`."""
        return normal.normal_crps(observations, *self._mixture())
