"""Bernstein online aggregation: weights of experts at each level, from discounted regrets.

Each strategy is one way to weight the experts, and forgets old cases at its own rate. A step is the
gain of an expert over the aggregate in one case; it is positive if the expert was better. For each
expert and level, a strategy stores the regret R, a sum of steps, and V, a sum of squared steps. In
both sums, old cases count less (discounted sums). For each expert, it also stores E, the size of
the largest step of this expert at any level. The method is by Wintenberger (2017,
doi:10.1007/s10994-016-5592-6). Berrisch & Ziel (2023, doi:10.1016/j.jeconom.2021.11.008) apply it
level by level, and smooth the steps over levels. In these papers E never decreases. Here E slowly
decreases: a large E makes learning slow, so a single flood or spike would otherwise slow down all
later learning.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import inner
from xrecal.typing import FloatArray

NEGLIGIBLE = 1e-6
"""The smoothing over levels is a sum of cosines with factors. It leaves out cosines whose factor is
smaller than this."""


class Regrets(NamedTuple):
    """Regrets of one strategy at one location."""

    regret: Any
    """(K, J) regret R of each expert at each level"""
    square: Any
    """(K, J) discounted sum V of squared steps"""
    largest: Any
    """(K,) largest change E of the regret of each expert so far; older changes count less"""


@inner
def regrets_of(state: Any, cell: int, s: int) -> Regrets:
    """Return the regrets of strategy ``s`` at location ``cell``, in the memory of the state."""
    return Regrets(state.regret[cell, s], state.square[cell, s], state.largest[cell, s])


@inner
def fill_shared(regrets: Any, common: Any, scale: float, part: float, out: Any) -> Any:
    """Mix the regrets of a location with common regrets (K, J), and write the result to ``out``.

    ``part`` is the share of the common regrets in the mixture; the function multiplies the common
    regrets by ``scale``, the CRPS of the location. Common regrets do not change the learning rates.
    """
    regret, square, largest = regrets
    for k in range(regret.shape[0]):
        for j in range(regret.shape[1]):
            out[k, j] = (1.0 - part) * regret[k, j] + part * scale * common[k, j]
    return Regrets(out, square, largest)


@lru_cache(maxsize=16)
def smoothing_cosines(n_levels: int, deviation: float) -> FloatArray:
    r"""Compute cosines (F, J) for the smoothing over levels: ``cosines.T @ (cosines @ row)``.

    Parameters
    ----------
    n_levels : int
        Number J of levels.
    deviation : float
        Standard deviation :math:`\sigma` of the Gaussian weights of the smoothing, as a fraction of
        all levels; 0 means no smoothing.

    Returns
    -------
    array of float64, shape (F, J)
        F cosines, each multiplied by the square root of its factor in Notes.

    Notes
    -----
    The smoothing is a Gaussian average with reflection at the ends, in O(F J). The cosine with f
    half periods has the factor :math:`\exp(-(\pi f \sigma)^2 / 2)`. Each of the two products
    multiplies the cosine by the square root of this factor. The function keeps the F cosines whose
    factors are not negligible; F is 12 if the standard deviation is 15 % of the levels.
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
    """Compute weights (K, J) of experts, with sum one at each level; 0 for missing experts.

    The weight is proportional to ``p r exp(r R)``, with the prior weight p (K,), the learning rate
    r and the regret R. An expert that has been missing in all cases has a regret of 0, and gets the
    mean learning rate of the other experts.
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
    """Return the learning rate min(1 / 2E, sqrt(log(K + 1) / V)), or 0 before the first step."""
    if square > 0.0 and largest > 0.0:
        return min(0.5 / largest, math.sqrt(logarithm / square))
    return 0.0


@inner
def fill_steps(quantiles: Any, weights: Any, y: float, out: Any) -> None:
    """Compute the steps (K, J) of experts from their quantiles (K, J), weights and observation y.

    A step is the gain of an expert over the weighted average. Steps are linear in the quantiles of
    the expert, and use the average before its quantiles are sorted. Because of these two
    properties, the weights become as good as the best constant weights.
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
    """Add the steps (K, J) of a case to the regrets of experts that ``present`` (K,) marks."""
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
