"""Bernstein online aggregation: weights of experts at each level, from discounted regrets.

A strategy is a rate of forgetting. For each expert and level it stores a regret R and the sum V of
the squares of its steps. For all levels of an expert together it stores the largest step E. A step
is the gain of the expert over the aggregate; it is positive if the expert was better. The method is
by Wintenberger (2017, doi:10.1007/s10994-016-5592-6). Berrisch & Ziel (2023,
doi:10.1016/j.jeconom.2021.11.008) apply it level by level, and smooth it over levels. In these
papers E never decreases. Here E fades; otherwise a single flood or spike would slow down all later
learning.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import inner
from xrecal.typing import FloatArray

NEGLIGIBLE = 1e-6
"""Cosines with a smaller factor are left out of the smoothing."""


class Regrets(NamedTuple):
    """Regrets of one strategy at one location."""

    regret: Any
    """(K, J)"""
    square: Any
    """(K, J)"""
    largest: Any
    """(K,)"""


@inner
def regrets_of(state: Any, cell: int, s: int) -> Regrets:
    """Return the regrets of one strategy at one location, as views into the state."""
    return Regrets(state.regret[cell, s], state.square[cell, s], state.largest[cell, s])


@inner
def fill_shared(regrets: Any, common: Any, scale: float, part: float, out: Any) -> Any:
    """Write own regrets mixed with common regrets (K, J), in units of a scale, into ``out``.

    The learning rates stay those of the location itself.
    """
    regret, square, largest = regrets
    for k in range(regret.shape[0]):
        for j in range(regret.shape[1]):
            out[k, j] = (1.0 - part) * regret[k, j] + part * scale * common[k, j]
    return Regrets(out, square, largest)


@lru_cache(maxsize=16)
def smoothing_cosines(n_levels: int, deviation: float) -> FloatArray:
    r"""Compute cosines (F, J) that smooth rows over levels: ``cosines.T @ (cosines @ row)``.

    Parameters
    ----------
    n_levels : int
        Number of levels, J.
    deviation : float
        Standard deviation of the smoothing, as a fraction of the levels; 0 leaves rows as they are.

    Returns
    -------
    array of float64, shape (F, J)

    Notes
    -----
    This is a Gaussian average with reflection at the ends, in O(F J). The cosine with f half waves
    has the factor :math:`\exp(-(\pi f \sigma)^2 / 2)`. Each of the two products applies the root of
    this factor. Only a few factors are not negligible (12 at 15 % of the levels).
    """
    places = (np.arange(n_levels) + 0.5) / n_levels
    waves = np.arange(n_levels)[:, np.newaxis]
    factors = np.exp(-((np.pi * waves * deviation) ** 2) / 2)
    norms = np.where(waves == 0, 1.0, 2.0) / n_levels
    cosines = np.sqrt(factors * norms) * np.cos(np.pi * waves * places)
    found = np.ascontiguousarray(cosines[factors[:, 0] > NEGLIGIBLE])
    found.setflags(write=False)  # all callers share this array
    return found


@inner
def expert_weights(regrets: Any, prior: Any, present: Any, out: Any) -> None:
    """Fill weights (K, J) of the experts that are present (K,); they sum to one at each level.

    The weight is the prior (K,) times the rate times exp(rate R). An expert without cases gets a
    regret of 0 and the mean rate of the other experts.
    """
    regret, square, largest = regrets
    n_experts, n_levels = regret.shape
    rate, logarithm = np.empty(n_experts), math.log(n_experts + 1.0)
    for j in range(n_levels):
        mean, learned, highest, total = 0.0, 0, -np.inf, 0.0
        for k in range(n_experts):
            rate[k] = learning_rate(square[k, j], largest[k], logarithm)
            if present[k] and rate[k] > 0.0:
                mean += rate[k]
                learned += 1
        mean = mean / learned if learned > 0 else 1.0
        for k in range(n_experts):
            rate[k] = rate[k] if rate[k] > 0.0 else mean
            if present[k]:
                highest = max(highest, rate[k] * regret[k, j])
        for k in range(n_experts):
            out[k, j] = 0.0
            if present[k]:
                out[k, j] = prior[k] * rate[k] * math.exp(rate[k] * regret[k, j] - highest)
            total += out[k, j]
        for k in range(n_experts):
            out[k, j] /= total


@inner
def learning_rate(square: float, largest: float, logarithm: float) -> float:
    """Return min(1 / 2E, sqrt(log(K + 1) / V)); 0 before the first step."""
    if square > 0.0 and largest > 0.0:
        return min(0.5 / largest, math.sqrt(logarithm / square))
    return 0.0


@inner
def fill_steps(quantiles: Any, weights: Any, y: float, out: Any) -> None:
    """Fill steps (K, J) of the experts against the weighted average of their quantiles (K, J).

    Steps are linear in the quantiles of each expert, and relative to the average before it is
    sorted. Otherwise the weights would not become as good as the best constant weights.
    """
    n_experts, n_levels = quantiles.shape
    for j in range(n_levels):
        aggregate = 0.0
        for k in range(n_experts):
            if weights[k, j] > 0.0:
                aggregate += weights[k, j] * quantiles[k, j]
        slope = 2.0 * ((1.0 if y < aggregate else 0.0) - (j + 0.5) / n_levels)
        for k in range(n_experts):
            out[k, j] = slope * (aggregate - quantiles[k, j])


@inner
def learn_steps(
    regrets: Any, steps: Any, present: Any, forgetting: float, fading: float, cosines: Any
) -> None:
    """Add a case to the regrets of the experts that are present (K,), by their steps (K, J)."""
    regret, square, largest = regrets
    n_experts, n_levels = regret.shape
    smooth, logarithm = np.empty(n_levels), math.log(n_experts + 1.0)
    for k in range(n_experts):
        if not present[k]:
            continue
        smooth.fill(0.0)
        for f in range(cosines.shape[0]):
            part = 0.0
            for j in range(n_levels):
                part += cosines[f, j] * steps[k, j]
            for j in range(n_levels):
                smooth[j] += cosines[f, j] * part
        largest[k] *= fading
        for j in range(n_levels):
            largest[k] = max(largest[k], abs(smooth[j]))
        for j in range(n_levels):
            square[k, j] = forgetting * square[k, j] + smooth[j] * smooth[j]
            rate = learning_rate(square[k, j], largest[k], logarithm)
            gain = 0.5 * smooth[j] * (1.0 - rate * smooth[j])
            regret[k, j] = forgetting * regret[k, j] + gain
