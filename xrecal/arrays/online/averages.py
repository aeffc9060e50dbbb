"""Averages of forecasts: mean probabilities of a bound, and mean quantiles elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import inner


@inner
def present_experts(quantiles: Any) -> Any:
    """Mark experts (K,) whose quantiles (K, J) have no NaN; also return their number."""
    n_experts, n_levels = quantiles.shape
    present, n_present = np.ones(n_experts, np.bool_), 0
    for k in range(n_experts):
        for j in range(n_levels):
            if np.isnan(quantiles[k, j]):
                present[k] = False
        n_present += present[k]
    return present, n_present


@inner
def average_by_level(quantiles: Any, weights: Any, low: float, high: float, out: Any) -> None:
    """Compute ascending quantiles (J,) as averages of the ascending quantiles (K, J) of forecasts.

    At each level, the weights (K, J) of the forecasts sum to one. A forecast may be NaN if it has
    the weight 0. The function averages the probabilities that the forecasts give to a bound; for
    this, it averages the weights over levels. If it averaged wet and dry quantiles instead, the
    result would be drizzle. Between bounds, the function averages conditional quantiles: the
    quantiles of that part of each forecast which lies between the bounds. It multiplies the weight
    of a forecast by the probability of this part.
    """
    n_experts, n_levels = quantiles.shape
    inside = np.zeros((n_experts, 2), np.int64)  # first level inside, and first after
    below, above = 0.0, 0.0
    for k in range(n_experts):
        weight, first, end = 0.0, 0, n_levels
        for j in range(n_levels):
            weight += weights[k, j] / n_levels
        if weight > 0.0:
            while first < n_levels and quantiles[k, first] <= low:
                first += 1
            while end > first and quantiles[k, end - 1] >= high:
                end -= 1
            below += weight * first / n_levels
            above += weight * (n_levels - end) / n_levels
        inside[k, 0], inside[k, 1] = first, end
    for j in range(n_levels):
        level = (j + 0.5) / n_levels
        if level <= below:
            out[j] = low
        elif level >= 1.0 - above:
            out[j] = high
        else:
            part = (level - below) / (1.0 - below - above)
            out[j] = _average_inside(quantiles, weights, inside, j, part)
    _sort(out)


@inner
def _average_inside(quantiles: Any, weights: Any, inside: Any, j: int, part: float) -> float:
    """Return the average of conditional quantiles at a value strictly between the bounds.

    ``part`` is the level of the conditional quantiles. The function uses the weights at level
    number ``j``. For each forecast, ``inside`` (K, 2) holds two level numbers: the first level
    whose quantile lies between the bounds, and the level after the last such level.
    """
    total, mass, plain = 0.0, 0.0, 0.0
    for k in range(quantiles.shape[0]):
        if weights[k, j] > 0.0:
            first, end = inside[k]
            value = quantiles[k, j]
            plain += weights[k, j] * value
            if end > first:
                at = min(max(first + part * (end - first) - 0.5, first), end - 1.0)
                left = int(at)
                right = min(left + 1, end - 1)
                value = quantiles[k, left]
                value += (at - left) * (quantiles[k, right] - value)
            total += weights[k, j] * (end - first) * value
            mass += weights[k, j] * (end - first)
    # If all forecasts with weight are entirely on bounds, average their values at this level.
    return total / mass if mass > 0.0 else plain


@inner
def _sort(values: Any) -> None:
    """Sort values (J,) by insertion, which is fast because they are nearly sorted."""
    for j in range(1, values.size):
        value, place = values[j], j
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@inner
def quantile_crps(quantiles: Any, y: float) -> float:
    """Return the CRPS of quantiles (J,) at levels (j - ½) / J: twice the mean quantile score."""
    total, n_levels = 0.0, quantiles.size
    for j in range(n_levels):
        level = (j + 0.5) / n_levels
        miss = quantiles[j] - y
        total += (1.0 - level) * miss if miss > 0.0 else -level * miss
    return 2.0 * total / n_levels  # type: ignore[no-any-return]
