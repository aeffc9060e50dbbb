"""The CRPS of mixtures of quantiles, as a quadratic form of their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import inner


@inner
def add_scores(quantiles: Any, y: float, i: int, share: float, scores: Any) -> None:
    """Add ``share`` of S of one case."""
    n_components, _, q = quantiles.shape
    miss = np.zeros(n_components)
    for c in range(n_components):
        for k in range(q):
            miss[c] += abs(quantiles[c, i, k] - y) / q
    _add_quadratic(quantiles, i, miss, share, scores)


@inner
def add_beliefs(quantiles: Any, raw: Any, i: int, share: float, beliefs: Any) -> None:
    """Add ``share`` of S of one case if the raw forecast is right."""
    miss = np.zeros(quantiles.shape[0])
    for c in range(miss.size):
        miss[c] = _mean_distance(quantiles[c, i], raw)
    _add_quadratic(quantiles, i, miss, share, beliefs)


@inner
def _add_quadratic(quantiles: Any, i: int, miss: Any, share: float, scores: Any) -> None:
    """Add ``share`` of S of one case, given the mean distance (C,) to what verifies."""
    for c in range(miss.size):
        for d in range(c + 1):
            apart = _mean_distance(quantiles[c, i], quantiles[d, i])
            s = share * 0.5 * (miss[c] + miss[d] - apart)
            scores[c, d] += s
            if d < c:
                scores[d, c] += s


@inner
def quantile_crps(x: Any, y: float) -> float:
    """CRPS of one forecast by its quantiles (Q,)."""
    miss = 0.0
    for k in range(x.size):
        miss += abs(x[k] - y) / x.size
    return miss - 0.5 * _mean_distance(x, x)  # type: ignore[no-any-return]


@inner
def _mean_distance(x: Any, z: Any) -> float:
    """``E|X - Z| = int F (1 - G) + G (1 - F)`` of ascending quantiles (Q,)."""
    q = x.size
    total, i, j = 0.0, 0, 0
    last = min(x[0], z[0])
    while i < q or j < q:
        from_x = j == q or (i < q and x[i] <= z[j])
        point = x[i] if from_x else z[j]
        f, g = i / q, j / q
        total += (f * (1.0 - g) + g * (1.0 - f)) * (point - last)
        last = point
        if from_x:
            i += 1
        else:
            j += 1
    return total
