"""What is best at many locations; see :mod:`xrecal.arrays.ckme.candidates`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xrecal.typing import FloatArray, IntArray

__all__ = ["Best"]


@dataclass
class Best:
    """Best setting of each of S supports at b locations, on the host."""

    kernel: IntArray
    """(b, S) position among the candidates"""
    exponent: FloatArray
    """(b, S) power of ten of the ridge"""
    loss: FloatArray
    """(b, S)"""
    tried_loss: FloatArray
    """(b, G, S) smallest loss of each kernel"""
    tried_exponent: FloatArray
    """(b, G, S) where that is"""
    tried_down_to: FloatArray
    """(b, G) smallest exponent that was tried, or of which nothing was to be gained"""

    @classmethod
    def nothing_yet(cls, b: int, n_kernels: int, n_supports: int) -> Best:
        """Before anything was tried."""
        each, tried = (b, n_supports), (b, n_kernels, n_supports)
        return cls(
            np.zeros(each, np.int64),
            np.zeros(each),
            np.full(each, np.inf),
            np.full(tried, np.inf),
            np.zeros(tried),
            np.full(tried[:2], np.inf),
        )

    @property
    def winner(self) -> IntArray:
        """The best support (b,)."""
        return np.asarray(np.argmin(self.loss, axis=1))

    def of_winner(self, values: Any) -> Any:
        """Entries (b,) of values (b, S) for the best support."""
        return values[np.arange(values.shape[0]), self.winner]

    def note_try(self, at: IntArray, g: int, exponent: FloatArray, losses: FloatArray) -> None:
        """Keep losses (c, S) of one kernel and a ridge at each of some locations, where best.

        Of equal losses the larger ridge counts, which is the smoother forecast.
        """
        self.tried_down_to[at, g] = np.minimum(self.tried_down_to[at, g], exponent)
        tried, where = self.tried_loss[at, g], self.tried_exponent[at, g]
        wide = np.broadcast_to(exponent[:, np.newaxis], losses.shape)
        better = (losses < tried) | ((losses == tried) & (wide >= where))
        self.tried_loss[at, g] = np.where(better, losses, tried)
        self.tried_exponent[at, g] = np.where(better, wide, where)
        same = (losses == self.loss[at]) & (self.kernel[at] == g)
        first = better & ((losses < self.loss[at]) | same)
        self.kernel[at] = np.where(first, g, self.kernel[at])
        self.exponent[at] = np.where(first, wide, self.exponent[at])
        self.loss[at] = np.where(first, losses, self.loss[at])
