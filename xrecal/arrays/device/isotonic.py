"""Isotonic regression of many rows at once; see :mod:`xrecal.arrays.ckme.simplex`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace

from .namespace import concat, cumsum, running_max, take_along, truths


def isotonic(values: Any, weights: Any) -> Any:
    """Weighted least squares by levels that ascend, along the last axis.

    Parameters
    ----------
    values, weights : array of float64, shape (..., n)
        What to fit, and weights >= 0. A value whose weight is lost in the sum of those before takes
        the level of the next one.

    Returns
    -------
    array of float64, shape (..., n)
        Levels, not descending. Infinite behind the last value with weight.

    Notes
    -----
    Blocks of neighbours are pooled while the earlier one is not below the later one, as in
    pool-adjacent-violators, where the order of pooling does not matter: here whole runs of them at
    once, until no row has any. Passes of O(n log n) a row, few for noise around a rising curve and
    at most n.
    """
    xp = namespace(values)
    n = values.shape[-1]
    zero = xp.zeros((*values.shape[:-1], 1), dtype=xp.float64)
    width = concat(xp, [zero, cumsum(xp, weights)])
    total = concat(xp, [zero, cumsum(xp, values * weights)])
    place = xp.broadcast_to(xp.arange(n, dtype=xp.int64), values.shape)
    first = truths(xp, (*values.shape[:-1], 1))
    starts = concat(xp, [first, width[..., 1:-1] > width[..., :-2]])
    while True:
        begin = running_max(xp, xp.where(starts, place, 0))
        ends = concat(xp, [starts[..., 1:], first])
        behind = xp.flip(xp.where(ends, n - 1 - place, 0), axis=-1)
        end = n - xp.flip(running_max(xp, behind), axis=-1)
        mass = take_along(xp, width, end) - take_along(xp, width, begin)
        level = take_along(xp, total, end) - take_along(xp, total, begin)
        level = xp.where(mass > 0.0, level / xp.where(mass > 0.0, mass, 1.0), float("inf"))
        pooled = starts[..., 1:] & (level[..., :-1] >= level[..., 1:])
        # Without mass there is nothing to pool, and NaN is never above anything.
        pooled = pooled & xp.isfinite(level[..., :-1])
        if not bool(xp.any(pooled)):
            return level
        starts = concat(xp, [first, starts[..., 1:] & ~pooled])
