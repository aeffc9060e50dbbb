"""Signed weights to probabilities, row by row at once; see :mod:`xrecal.arrays.ckme.simplex`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace

from .namespace import concat, cumsum, doubled, running_max, take_along, truths

__all__ = ["PROJECTIONS", "energy_rows", "project_energy", "project_simplex", "simplex_rows"]


def project_simplex(beta: Any) -> Any:
    """See :func:`xrecal.arrays.project_simplex`."""
    xp = namespace(beta)
    return xp.reshape(simplex_rows(_rows(xp, beta)), beta.shape)


def project_energy(beta: Any, support: Any) -> Any:
    """See :func:`xrecal.arrays.project_energy`."""
    xp = namespace(beta)
    rows, y = _rows(xp, beta), doubled(xp, support)
    if tuple(y.shape) != tuple(rows.shape[1:]):
        raise ValueError(
            f"support has shape {tuple(y.shape)}, but beta has {rows.shape[1]} weights a row"
        )
    if not bool(xp.all(xp.isfinite(y))):
        raise ValueError("support must be finite; leave missing observations out, with their beta")
    order = xp.argsort(y)
    found = energy_rows(xp.take(rows, order, axis=1), xp.take(y, order)[None, :])
    return xp.reshape(xp.take(found, xp.argsort(order), axis=1), beta.shape)


def _rows(xp: Any, beta: Any) -> Any:
    rows = doubled(xp, beta)
    rows = rows[None, ...] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"beta needs shape (N, n) with n > 0, got {tuple(beta.shape)}")
    return rows


def simplex_rows(beta: Any, support: Any = None) -> Any:
    """Euclidean projection of rows (..., n); their support plays no part.

    Michelot's active set, for all rows until none changes.
    """
    xp = namespace(beta)
    below = beta - xp.max(beta, axis=-1, keepdims=True)
    shift = (xp.sum(below, axis=-1, keepdims=True) - 1.0) / beta.shape[-1]
    kept = xp.full(shift.shape, float(beta.shape[-1]), dtype=xp.float64)
    while True:
        active = below > shift
        count = xp.sum(doubled(xp, active), axis=-1, keepdims=True)
        total = xp.sum(xp.where(active, below, 0.0), axis=-1, keepdims=True)
        fewer = (count > 0.0) & (count < kept)
        if not bool(xp.any(fewer)):
            break
        shift = xp.where(fewer, (total - 1.0) / xp.where(fewer, count, 1.0), shift)
        kept = xp.where(fewer, count, kept)
    weight = below - shift
    return xp.where(weight <= 0.0, 0.0, weight)  # which keeps NaN


def energy_rows(beta: Any, support: Any) -> Any:
    """Energy projection of rows (..., n) on ascending supports (..., n), which may be shared."""
    xp = namespace(beta)
    total = xp.sum(beta, axis=-1, keepdims=True)
    last = 1.0 + 0.0 * total  # NaN stays NaN
    if beta.shape[-1] == 1:
        return last
    gap = support[..., 1:] - support[..., :-1]
    apart = gap > 0.0
    above_zero = xp.clip(support[..., 1:], 0.0, None)
    above_zero = xp.minimum(above_zero, gap) / xp.where(apart, gap, 1.0)
    signed = cumsum(xp, beta)[..., :-1] + (1.0 - total) * above_zero
    level = isotonic(signed, xp.broadcast_to(gap, signed.shape))
    level = xp.where(xp.isnan(level), level, xp.clip(level, 0.0, 1.0))
    return _shared_among_ties(xp, concat(xp, [level, last]), apart)


def _shared_among_ties(xp: Any, cdf: Any, apart: Any) -> Any:
    """Weights of CDF values (..., n) that count only at the end of each run of equal points."""
    n = cdf.shape[-1]
    place = xp.broadcast_to(xp.arange(n, dtype=xp.int64), (*apart.shape[:-1], n))
    edge = truths(xp, (*apart.shape[:-1], 1))
    starts = concat(xp, [edge, apart])
    first = running_max(xp, xp.where(starts, place, 0))
    behind = xp.flip(xp.where(concat(xp, [apart, edge]), n - 1 - place, 0), axis=-1)
    end = n - 1 - xp.flip(running_max(xp, behind), axis=-1)
    shape = cdf.shape
    first, end = (xp.broadcast_to(at, shape) for at in (first, end))
    before = take_along(xp, cdf, xp.maximum(first - 1, xp.zeros_like(first)))
    jump = take_along(xp, cdf, end) - xp.where(first > 0, before, 0.0)
    return jump / doubled(xp, end - first + 1)


PROJECTIONS = {"euclidean": simplex_rows, "energy": energy_rows}
"""Projections of rows of weights on their supports, (beta, support)."""


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
