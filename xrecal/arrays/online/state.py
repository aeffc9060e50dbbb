"""Settings and state of an aggregate: a weighted average of experts, which keeps learning.

A strategy is one way to weight the experts. The regret of an expert is the sum of its gains over
the aggregate, and a step is its gain in one case. All arrays have fixed shapes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Matrix, OutCube, OutFloats4, OutMatrix, OutVector, Vector
from xrecal.typing import FloatArray

from .bernstein import smoothing_cosines

FORGETTING = (1.0, 0.998, 0.99)
"""Factors by which each case multiplies the earlier regrets, one factor for each strategy. No
single factor is the best everywhere."""

FADING = 0.99
"""Factor by which each case multiplies the largest earlier step of an expert."""

PARTS = 0.5, 1.0
"""Shares that common regrets get, one for each strategy that mixes them with the regrets of the
location."""

SMOOTHING = 0.15
"""Standard deviation of the Gaussian weights that smooth regrets over levels, as a fraction of all
levels."""

MEMORY = 0.998
"""Factor by which each case multiplies the earlier score of a strategy."""

CONTRAST = 1.0
"""How strongly the weights of strategies depend on their scores. With 1, the weight falls to 1/e if
the score rises by the mean CRPS of one case."""


class Settings(NamedTuple):
    """Settings of the aggregate of K experts at J levels at L locations."""

    forgetting: Vector
    """(S,) factors by which each case multiplies the earlier regrets, in (0, 1]"""
    fading: float
    """Factor by which each case multiplies the largest earlier step of an expert, in (0, 1]"""
    prior: Vector
    """(K,) weights before the first case, which sum to one"""
    alone: int
    """Position of the expert that is also a strategy; -1 if no expert is a strategy"""
    cosines: Matrix
    """(F, J) result of :func:`xrecal.arrays.online.bernstein.smoothing_cosines`"""
    memory: float
    """Factor by which each case multiplies the earlier score of a strategy, in (0, 1]"""
    contrast: float
    """How strongly the weights of strategies depend on their scores, at least 0; 0 gives equal
    weights"""
    bounds: Matrix
    """(L, 2) lower and upper bound of the variable, infinite without a bound"""
    parts: Vector
    """(H,) shares that common regrets get, one for each strategy that mixes them with the regrets
    of the location"""

    @property
    def n_scored(self) -> int:
        """Return the number of scores: of S (1 + H) strategies, and of the single expert."""
        return self.forgetting.size * (1 + self.parts.size) + 1


class State(NamedTuple):
    """State of the aggregate at L locations; u is the unit of the variable."""

    regret: OutFloats4
    """(L, S, K, J) regret of each expert at each level, in u"""
    square: OutFloats4
    """(L, S, K, J) discounted sum of squared steps, in u²"""
    largest: OutCube
    """(L, S, K) largest step of each expert, slowly decreasing, in u"""
    score: OutMatrix
    """(L, S + H S + 1) discounted sums of the CRPS of strategies, in u. Strategies that use only
    the regrets of the location come first, then strategies that mix regrets, then the single
    expert."""
    cases: OutVector
    """(L,) discounted number of cases in the scores"""


def settings_of(
    bounds: npt.ArrayLike, n_experts: int, n_levels: int, *, alone: int = -1
) -> Settings:
    """Return default settings, chosen on real data by ``python -m benchmarks.streams``.

    Parameters
    ----------
    bounds : array_like, shape (L, 2)
        Lower and upper bound of the variable at each location, infinite without a bound.
    n_experts, n_levels : int
        Number K of experts, and number J of levels.
    alone : int
        Position of the expert that is also a strategy, such as a pool; -1 if no expert is a
        strategy.

    Returns
    -------
    Settings
        Settings with equal prior weights of experts; use ``_replace`` for other prior weights.

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
        raise ValueError(f"alone must be one of {n_experts} positions from 0, or -1, found {alone}")
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
    """Return prior weights (K,) of experts, from the weight of one expert in earlier cases.

    Parameters
    ----------
    n_experts : int
        Number K of experts, at least 2.
    one : int
        Position of the expert with a known weight.
    share : float
        Weight of this expert from earlier cases; NaN if unknown.

    Returns
    -------
    array of float64, shape (K,)
        Weights with sum one. The odds of an expert are its weight divided by the sum of all other
        weights. The odds of expert ``one`` are the geometric mean of its odds with equal weights
        and its odds with the weight ``share``. The function limits this mean: it is at least the
        odds with equal weights, and at most 1. All other experts have equal weights.

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
    """Raise the prior weight of expert ``one`` to ``share``, unless this weight is larger already.

    The weights of all other experts keep their ratios.

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
