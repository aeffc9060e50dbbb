"""Projection of signed weights, for all rows at once; see :mod:`xrecal.arrays.ckme.simplex`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace

__all__ = ["simplex_rows"]


def simplex_rows(beta: Any, used: Any) -> Any:
    """Euclidean projection of the used entries of rows (..., n); other entries get no weight.

    The method is Michelot's active set, repeated for all rows until no row changes.
    """
    xp = namespace(beta)
    top = xp.max(xp.where(used, beta, -float("inf")), axis=-1, keepdims=True)
    below, active, kept = beta - top, used, float("inf")
    shift = xp.zeros_like(top)
    while True:
        count = xp.sum(active.astype(np.float64), axis=-1, keepdims=True)
        fewer = (count > 0.0) & (count < kept)
        if not bool(xp.any(fewer)):
            break
        total = xp.sum(xp.where(active, below, 0.0), axis=-1, keepdims=True)
        shift = xp.where(fewer, (total - 1.0) / xp.where(fewer, count, 1.0), shift)
        kept = xp.where(fewer, count, kept)
        active = used & (below > shift)
    weight = xp.where(below <= shift, 0.0, below - shift)  # keeps NaN
    return xp.where(used, weight, 0.0)
