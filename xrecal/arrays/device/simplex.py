"""Projection of weights of any sign to weights >= 0 with sum one, for all rows at once.

See :mod:`xrecal.arrays.ckme.simplex`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace

__all__ = ["simplex_rows"]


def simplex_rows(beta: Any, used: Any) -> Any:
    """Return the nearest weights >= 0 with sum one for the used entries of rows (..., n).

    Other entries get the weight 0. The method is the active-set method of Michelot. The function
    repeats its step for all rows until no row changes.
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
