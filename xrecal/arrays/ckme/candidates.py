"""What may be chosen at a location, and what is best so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xrecal.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Candidates:
    """What may be chosen, and how it is judged; the same at all locations."""

    kernels: tuple[tuple[float, float], ...]
    """Factor of the bandwidth, and exponent of the kernel on covariates (0: without), of each"""
    supports: IntArray
    """(S,) codes of :data:`xrecal.arrays.ckme.centre.SUPPORTS`"""
    fit: Any
    """``fit_centre``, or ``past_observations`` where no centre is wanted: what is not passed to
    compiled code need not be compiled"""
    project: Any
    """Signed weights to probabilities"""
    on_support: bool
    """Whether the projection depends on the support"""
    loss: Any
    """What a held-out forecast is judged by"""
    record: Any
    """What is kept of it: that loss, and perhaps quantiles"""
    width: int
    """How many numbers that is"""
    each: bool
    """Whether every support is of interest, not only the best"""


@dataclass
class Best:
    """Best setting of each of S supports at one location."""

    kernel: IntArray
    """(S,) position among the candidates"""
    exponent: FloatArray
    """(S,) power of ten of the ridge"""
    loss: FloatArray
    """(S,)"""
    recorded: FloatArray
    """(S, n, width) of the held-out cases at the best grid point"""
    tried_loss: FloatArray
    """(G, S) smallest loss of each kernel"""
    tried_exponent: FloatArray
    """(G, S) where that is"""
    tried_down_to: FloatArray
    """(G,) smallest exponent that was tried, or of which nothing was to be gained"""

    @classmethod
    def nothing_yet(cls, candidates: Candidates, n: int) -> Best:
        """Before anything was tried with n cases."""
        n_supports, n_kernels = candidates.supports.size, len(candidates.kernels)
        return cls(
            np.zeros(n_supports, np.int64),
            np.zeros(n_supports),
            np.full(n_supports, np.inf),
            np.full((n_supports, n, candidates.width), np.nan),
            np.full((n_kernels, n_supports), np.inf),
            np.zeros((n_kernels, n_supports)),
            np.full(n_kernels, np.inf),
        )

    @property
    def winner(self) -> int:
        """The best support."""
        return int(np.argmin(self.loss))

    def note_try(self, g: int, exponent: float, losses: FloatArray, recorded: FloatArray) -> None:
        """Keep the losses (S,) of one kernel and ridge, and what was recorded, where they are best.

        Of equal losses the larger ridge counts, which is the smoother forecast.
        """
        self.tried_down_to[g] = min(self.tried_down_to[g], exponent)
        tried, at = self.tried_loss[g], self.tried_exponent[g]
        for s, loss in enumerate(losses.tolist()):
            if loss > tried[s]:
                continue
            if loss < tried[s] or exponent >= at[s]:
                tried[s], at[s] = loss, exponent
                if loss < self.loss[s] or (loss == self.loss[s] and self.kernel[s] == g):
                    self.kernel[s], self.exponent[s], self.loss[s] = g, exponent, loss
                    self.recorded[s] = recorded[s]
