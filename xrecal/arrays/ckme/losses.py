"""What is recorded of a held-out forecast: weights (k,) on ascending points, and what verified."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import inner, kernel
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, subset
from xrecal.typing import FloatArray


@kernel
def crps_loss(weights: Any, points: Any, theta: float, y: float, out: Any) -> None:
    """CRPS ``int (F - 1{z >= y})^2 dz``, into the first entry of ``out``."""
    total, below = 0.0, 0.0
    for i in range(weights.size - 1):
        below += weights[i]
        low, high = points[i], points[i + 1]
        under = min(max(y - low, 0.0), high - low)
        total += below * below * under + (1.0 - below) ** 2 * (high - low - under)
    total += max(points[0] - y, 0.0) + max(y - points[weights.size - 1], 0.0)
    out[0] = total


@kernel
def laplace_loss(weights: Any, points: Any, theta: float, y: float, out: Any) -> None:
    """``l(y, y) - 2 sum w_i l(z_i, y) + w'Lw`` with ``l(u, v) = exp(-|u - v| / theta)``.

    Points ascend, so ``sum_{j<i} w_j l(z_j, z_i)`` is a recursion over neighbours: L is not built.
    """
    quadratic, left, match = 0.0, 0.0, 0.0
    for i in range(weights.size):
        if i > 0:
            left = np.exp((points[i - 1] - points[i]) / theta) * (left + weights[i - 1])
        quadratic += weights[i] * (weights[i] + 2 * left)
        match += weights[i] * np.exp(-abs(points[i] - y) / theta)
    out[0] = 1.0 - 2 * match + quadratic


@kernel
def crps_and_quantiles(weights: Any, points: Any, theta: float, y: float, out: Any) -> None:
    """CRPS, then quantiles at the levels ``(i - 1/2) / q`` into the other q entries of ``out``."""
    crps_loss(weights, points, theta, y, out)
    q = out.size - 1
    below, level = 0.0, 0
    for i in range(weights.size):
        below += weights[i]
        while level < q and below * q >= level + 0.5:
            level += 1
            out[level] = points[i]
    for k in range(level + 1, q + 1):  # weights that sum to a little less than one
        out[k] = points[weights.size - 1]


@kernel
def energy_loss(weights: Any, points: Any, theta: Any, y: float, out: Any) -> None:
    """Energy score ``sum w_i |z_i - y| - 1/2 sum w_i w_j |z_i - z_j|`` of observed vectors.

    ``points`` and ``y`` are numbers of observations, whose vectors are the rows of ``theta``.
    """
    chosen, used = np.empty(weights.size, dtype=np.int64), 0
    for i in range(weights.size):
        if weights[i] > 0.0:
            chosen[used] = i
            used += 1
    observed, total = theta[int(y)], 0.0
    for a in range(used):
        i = chosen[a]
        here, pairs = theta[int(points[i])], 0.0
        for b in range(a):
            pairs += weights[chosen[b]] * _apart(here, theta[int(points[chosen[b]])])
        total += weights[i] * (_apart(here, observed) - pairs)
    out[0] = total


@inner
def _apart(a: Any, b: Any) -> Any:
    """Euclidean distance of two vectors."""
    total = 0.0
    for k in range(a.size):
        total += (a[k] - b[k]) ** 2
    return np.sqrt(total)


def median_gap(target: FloatArray) -> float:
    """Median positive distance of targets (n,), the scale of the Laplace loss; 1 without any."""
    some = target[subset(target.size, MEDIAN_CASES)]
    distance = np.abs(some[:, np.newaxis] - some)
    positive = distance[distance > 0]
    return float(np.median(positive)) if positive.size else 1.0


LOSSES = {"crps": crps_loss, "laplace": laplace_loss, "energy": energy_loss}
"""Losses of the cross-validation by name."""
