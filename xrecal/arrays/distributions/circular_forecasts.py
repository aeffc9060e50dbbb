"""What forecasts on a circle say about the observation, with the methods of other distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xrecal.typing import FloatArray

from .circular import circular_crps, circular_mean, circular_members, circular_std


@dataclass(frozen=True)
class Circular:
    """Members (..., n) with weights (..., n), or (..., T, n) for T forecasts that share them."""

    members: FloatArray
    weights: FloatArray | None
    period: float

    def mean(self) -> FloatArray:
        """Mean direction; see :func:`~xrecal.arrays.circular_mean`."""
        return circular_mean(self.members, self.weights, period=self.period)

    def std(self) -> FloatArray:
        """Standard deviation; see :func:`~xrecal.arrays.circular_std`."""
        return circular_std(self.members, self.weights, period=self.period)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Members that count equally, at the levels of these alone.

        See :func:`~xrecal.arrays.circular_members`.
        """
        levels = np.atleast_1d(q)
        if not np.allclose(levels, (np.arange(levels.size) + 0.5) / levels.size):
            raise ValueError("values on a circle have no order, and no quantiles")
        return circular_members(self.members, self.weights, levels.size, period=self.period)

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS; see :func:`~xrecal.arrays.circular_crps`."""
        return circular_crps(observations, self.members, self.weights, period=self.period)
