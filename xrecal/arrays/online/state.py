"""How an aggregate of experts learns, and what it has learned: arrays of fixed shapes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Matrix, OutCube, OutFloats4, OutMatrix, OutVector, Vector
from xrecal.typing import FloatArray

from .bernstein import smoothing_cosines

FORGETTING = (1.0, 0.998, 0.99)
"""What is left of a regret after a case, for each strategy: no single one is right everywhere."""

FADING = 0.99
"""What is left of the largest step of an expert after a case."""

PARTS = 0.5, 1.0
"""Of the regrets of a strategy that shares them, how much is common to all locations."""

SMOOTHING = 0.15
"""Standard deviation of the smoothing of regrets over levels, as a fraction of these."""

MEMORY = 0.998
"""What is left of the score of a strategy after a case."""

CONTRAST = 1.0
"""How strongly strategies are told apart: a score worse by the mean CRPS of one case counts 1/e."""


class Settings(NamedTuple):
    """How the aggregate of K experts at J levels learns at L locations."""

    forgetting: Vector
    """(S,) what is left of a regret after a case, in (0, 1]"""
    fading: float
    """What is left of the largest step of an expert after a case, in (0, 1]"""
    prior: Vector
    """(K,) weights before anything is learned, which sum to one"""
    alone: int
    """Number of the expert that is a strategy by itself; -1 for none"""
    cosines: Matrix
    """(F, J), see :func:`xrecal.arrays.online.bernstein.smoothing_cosines`"""
    memory: float
    """What is left of the score of a strategy after a case, in (0, 1]"""
    contrast: float
    """How strongly strategies are told apart, >= 0"""
    bounds: Matrix
    """(L, 2) lower and upper bound of the variable, infinite without"""
    parts: Vector
    """(H,) how much of the regrets is common to all locations, for each way of sharing them"""

    @property
    def n_scored(self) -> int:
        """Number of the strategies that are scored: own ones, those that share, the one alone."""
        return self.forgetting.size * (1 + self.parts.size) + 1


class State(NamedTuple):
    """What has been learned at L locations, in the unit u of the variable."""

    regret: OutFloats4
    """(L, S, K, J) in u"""
    square: OutFloats4
    """(L, S, K, J) in u²"""
    largest: OutCube
    """(L, S, K) in u, >= 0, faded"""
    score: OutMatrix
    """(L, S + H S + 1) discounted sums of the CRPS of strategies, in u.

    Own regrets come first, then those of each way of sharing, ``alone`` last.
    """
    cases: OutVector
    """(L,) discounted number of the cases in them"""


def settings_of(
    bounds: npt.ArrayLike, n_experts: int, n_levels: int, *, alone: int = -1
) -> Settings:
    """Settings that have served on real streams: ``python -m benchmarks.streams``.

    Parameters
    ----------
    bounds : array_like, shape (L, 2)
        Lower and upper bound of the variable at each location, infinite without.
    n_experts, n_levels : int
        K and J.
    alone : int
        Number of the expert that is a strategy by itself, such as a pool; -1 for none.

    Returns
    -------
    Settings
        With equal prior weights; ``_replace`` gives others.

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
    """Prior weights (K,) of experts, one of which earlier cases gave a weight.

    Parameters
    ----------
    n_experts : int
        K, at least 2.
    one : int
        Number of the expert.
    share : float
        Weight of that expert from earlier cases; the others have the rest. NaN where unknown.

    Returns
    -------
    array of float64, shape (K,)
        The odds of the expert are the geometric mean of two odds: those of equal weights, and
        those of ``share``. They are at least those of equal weights, and at most 1. All other
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
    """Prior weights (K,) in which one expert has ``share`` at least, others in proportion.

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
    """The state before anything is learned."""
    shape = settings.bounds.shape[0], settings.forgetting.size
    n_experts, n_levels = settings.prior.size, settings.cosines.shape[1]
    return State(
        np.zeros((*shape, n_experts, n_levels)),
        np.zeros((*shape, n_experts, n_levels)),
        np.zeros((*shape, n_experts)),
        np.zeros((shape[0], settings.n_scored)),
        np.zeros(shape[0]),
    )
