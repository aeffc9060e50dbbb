"""Losses of held-out forecasts at many locations; see :mod:`xrecal.arrays.ckme.held_out_losses`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, subset

from .kernel import median_above
from .namespace import concat, cumsum, take

__all__ = ["LOSSES", "crps_loss", "laplace_loss", "median_gaps"]


def crps_loss(weights: Any, points: Any, y: Any, theta: Any = None) -> Any:
    """CRPS ``int (F - 1{z >= y})^2 dz`` of weights on ascending points (..., k), of y (...)."""
    xp = namespace(weights)
    below = cumsum(xp, weights)[..., :-1]
    low, high = points[..., :-1], points[..., 1:]
    verified = y[..., None]
    under = xp.minimum(xp.maximum(verified - low, xp.zeros_like(low)), high - low)
    inner = below * below * under + (1.0 - below) ** 2 * (high - low - under)
    beyond = xp.maximum(points[..., 0] - y, y - points[..., -1])
    return xp.sum(inner, axis=-1) + xp.where(beyond > 0.0, beyond, 0.0)


def laplace_loss(weights: Any, points: Any, y: Any, theta: Any) -> Any:
    """``1 - 2 sum w_i l(z_i, y) + w'Lw`` with ``l(u, v) = exp(-|u - v| / theta)``.

    ``left_i = sum_{j<i} w_j l(z_j, z_i)`` follows from its neighbour before; so do spans of 2, 4,
    ... of them from each other, in log2 k steps.
    """
    xp = namespace(weights)
    scale = theta[..., None]
    shape = weights.shape
    fade = xp.exp((points[..., :-1] - points[..., 1:]) / scale)
    fade = xp.broadcast_to(concat(xp, [xp.zeros_like(fade[..., :1]), fade]), shape)
    left = fade * concat(xp, [xp.zeros_like(weights[..., :1]), weights[..., :-1]])
    reach = 1
    while reach < shape[-1]:
        ahead = left[..., reach:] + fade[..., reach:] * left[..., :-reach]
        left = concat(xp, [left[..., :reach], ahead])
        fade = concat(xp, [fade[..., :reach], fade[..., reach:] * fade[..., :-reach]])
        reach *= 2
    match = xp.sum(weights * xp.exp(-xp.abs(points - y[..., None]) / scale), axis=-1)
    return 1.0 - 2 * match + xp.sum(weights * (weights + 2 * left), axis=-1)


def median_gaps(target: Any) -> Any:
    """Median positive distance (L,) of targets (L, n), the scale of the Laplace loss; 1 without."""
    xp = namespace(target)
    some = take(xp, target, subset(target.shape[1], MEDIAN_CASES), 1)
    apart = xp.abs(some[:, :, None] - some[:, None, :])
    found = median_above(apart, xp.zeros_like(target[:, 0]))
    return xp.where(xp.isfinite(found), found, 1.0)


LOSSES = {"crps": crps_loss, "laplace": laplace_loss}
"""Losses of the cross-validation by name, (weights, points, y, theta)."""
