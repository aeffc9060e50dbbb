"""Settings and state of an aggregate of experts: arrays of fixed shapes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Matrix, OutCube, OutFloats4, OutMatrix, OutVector, Vector
from xrecal.typing import FloatArray

from .bernstein import smoothing_cosines

FORGETTING = (1.0, 0.998, 0.99)
"""Factor of a regret after each case, one per strategy, as no single factor is the best
everywhere."""

FADING = 0.99
"""Factor of the largest step of an expert after each case."""

PARTS = 0.5, 1.0
"""Shares of common regrets, for the strategies that mix them with own regrets."""

SMOOTHING = 0.15
"""Standard deviation of the smoothing of regrets over levels, as a fraction of the levels."""

MEMORY = 0.998
"""Factor of the score of a strategy after each case."""

CONTRAST = 1.0
"""Sharpness of the weights of strategies: a score worse by one case's mean CRPS gives 1/e."""


class Settings(NamedTuple):
    """Settings of the aggregate of K experts at J levels at L locations."""

    forgetting: Vector
    """(S,) factors of a regret after each case, in (0, 1]"""
    fading: float
    """Factor of the largest step of an expert after each case, in (0, 1]"""
    prior: Vector
    """(K,) weights before the first case, which sum to one"""
    alone: int
    """Number of the expert that is also a strategy; -1 if no expert is"""
    cosines: Matrix
    """(F, J), see :func:`xrecal.arrays.online.bernstein.smoothing_cosines`"""
    memory: float
    """Factor of the score of a strategy after each case, in (0, 1]"""
    contrast: float
    """Sharpness of the weights of strategies, >= 0"""
    bounds: Matrix
    """(L, 2) lower and upper bound of the variable, infinite without a bound"""
    parts: Vector
    """(H,) share of common regrets, for each way of sharing"""

    @property
    def n_scored(self) -> int:
        """Return the number of strategies with a score: own, sharing, and the single expert."""
        return self.forgetting.size * (1 + self.parts.size) + 1


class State(NamedTuple):
    """State of L locations, in the unit u of the variable."""

    regret: OutFloats4
    """(L, S, K, J) in u"""
    square: OutFloats4
    """(L, S, K, J) in u²"""
    largest: OutCube
    """(L, S, K) in u, >= 0, faded"""
    score: OutMatrix
    """(L, S + H S + 1) discounted sums of the CRPS of strategies, in u. Strategies with own regrets
    come first, then the sharing ones, then the single expert."""
    cases: OutVector
    """(L,) discounted number of cases in these sums"""


def settings_of(
    bounds: npt.ArrayLike, n_experts: int, n_levels: int, *, alone: int = -1
) -> Settings:
    """Return settings that were chosen on real streams: ``python -m benchmarks.streams``.

    Parameters
    ----------
    bounds : array_like, shape (L, 2)
        Lower and upper bound of the variable at each location, infinite without a bound.
    n_experts, n_levels : int
        Numbers of experts and levels, K and J.
    alone : int
        Number of the expert that is also a strategy, such as a pool; -1 if no expert is.

    Returns
    -------
    Settings
        Settings with equal prior weights; use ``_replace`` for others.

    Examples
    --------
    >>> settings_of([[0.0, np.inf]], 7, 100, alone=6).forgetting
    array([1.   , 0.998, 0.99 ])
    """
    given = np.array(bounds, np.float64, order="C")
    if given.ndim != 2 or given.shape[1] != 2:
        raise ValueError(
            f"bounds must have shape (locations, 2), found {given.shape}; without a bound give "
            "-inf and inf"
        )
    if not -1 <= alone < n_experts:
        raise ValueError(f"alone must be one of {n_experts} experts from 0, or -1, found {alone}")
    return Settings(
        np.array(FORGETTING),
        FADING,
        np.full(n_experts, 1 / n_experts),
        alone,
        smoothing_cosines(n_levels, SMOOTHING),
        MEMORY,
        CONTRAST,
        given,
        np.array(PARTS),
    )


def prior_weights(n_experts: int, one: int, share: float) -> FloatArray:
    """Return prior weights (K,) of experts, given the weight of one of them from earlier cases.

    Parameters
    ----------
    n_experts : int
        K, at least 2.
    one : int
        Number of the expert.
    share : float
        Weight of that expert from earlier cases; the others share the rest. NaN if unknown.

    Returns
    -------
    array of float64, shape (K,)
        The odds of the expert are the geometric mean of two odds: the odds at equal weights, and
        the odds of ``share``. They are at least the odds at equal weights, and at most 1. All other
        experts have equal weights.

    Examples
    --------
    >>> prior_weights(5, 0, 0.8).round(3)
    array([0.5  , 0.125, 0.125, 0.125, 0.125])
    """
    even = 1.0 / n_experts
    given = min(share, 1.0 - even) if share > even else even
    odds = np.sqrt(given / (1.0 - given) / (n_experts - 1))
    weights = np.full(n_experts, 1.0 / (1.0 + odds) / (n_experts - 1))
    weights[one] = odds / (1.0 + odds)
    return weights


def with_at_least(prior: FloatArray, one: int, share: float) -> FloatArray:
    """Return prior weights (K,), at least ``share`` for one expert; the others in proportion.

    Examples
    --------
    >>> with_at_least(np.full(4, 0.25), 0, 0.4).round(3)
    array([0.4, 0.2, 0.2, 0.2])
    """
    if prior[one] >= share:
        return prior
    weights: FloatArray = prior * (1.0 - share) / (1.0 - prior[one])
    weights[one] = share
    return weights


def empty_state(settings: Settings) -> State:
    """Return the state before the first case."""
    shape = settings.bounds.shape[0], settings.forgetting.size
    n_experts, n_levels = settings.prior.size, settings.cosines.shape[1]
    return State(
        np.zeros((*shape, n_experts, n_levels)),
        np.zeros((*shape, n_experts, n_levels)),
        np.zeros((*shape, n_experts)),
        np.zeros((shape[0], settings.n_scored)),
        np.zeros(shape[0]),
    )
