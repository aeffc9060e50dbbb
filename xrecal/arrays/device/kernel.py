"""Squared energy distances to similarities; see :mod:`xrecal.arrays.kernels.kernel`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.kernels.kernel import IDENTICAL, MEDIAN_CASES, check_kernel, subset

from .namespace import doubled, indices, take, whole

__all__ = ["median_bandwidth", "median_gaps", "positive_medians", "similarity"]


def similarity(squared_distance: Any, bandwidth: float, kernel: str = "gaussian") -> Any:
    """See :func:`xrecal.arrays.similarity`."""
    check_kernel(kernel)
    if not bandwidth > 0:
        raise ValueError(f"bandwidth must be positive, got {bandwidth}")
    xp = namespace(squared_distance)
    d = doubled(xp, squared_distance)
    return xp.exp(-(xp.sqrt(d) if kernel == "laplace" else d) / float(bandwidth))


def median_bandwidth(squared_distance: Any, kernel: str = "gaussian") -> float:
    """See :func:`xrecal.arrays.median_bandwidth`."""
    check_kernel(kernel)
    xp = namespace(squared_distance)
    if squared_distance.ndim != 2 or squared_distance.shape[0] != squared_distance.shape[1]:
        raise ValueError(
            f"squared_distance must be square, (n, n), got {tuple(squared_distance.shape)}"
        )
    squared = doubled(xp, squared_distance)
    own = xp.where(xp.eye(squared.shape[0]) > 0.0, squared, 0.0)  # the diagonal
    present = np.flatnonzero(~np.isnan(to_host(xp.sum(own, axis=1))))
    squared = take(xp, take(xp, squared, present, 0), present, 1)
    found = float(to_host(positive_medians(squared[None, ...]))[0])
    if not np.isfinite(found):
        raise ValueError(
            f"the {present.size} forecasts are identical, so their distances have no "
            "positive median; give a bandwidth, or use climatology"
        )
    return float(np.sqrt(found)) if kernel == "laplace" else found


def positive_medians(squared: Any) -> Any:
    """Median of the positive entries of symmetric matrices (L, n, n), (L,); infinity without.

    Beyond 400 cases it is taken over the same fixed part of them as on the host.
    """
    xp = namespace(squared)
    n = squared.shape[-1]
    if n < 2:
        return xp.full((squared.shape[0],), float("inf"), dtype=xp.float64)
    least = IDENTICAL * xp.max(squared, axis=(1, 2))
    chosen = np.asarray(subset(n, MEDIAN_CASES))
    some = take(xp, take(xp, squared, chosen, 1), chosen, 2)
    found = median_above(some, least)
    rare = np.flatnonzero(np.isinf(to_host(found)))
    if rare.size and n > MEDIAN_CASES:  # those that differ are too rare to meet
        among = take(xp, squared, rare, 0)
        others = median_above(among, take(xp, least, rare, 0))
        known = np.full(squared.shape[0], -1)
        known[rare] = np.arange(rare.size)
        other = xp.take(others, indices(xp, np.maximum(known, 0)), axis=0)
        found = xp.where(xp.asarray(known >= 0), other, found)
    return found


def median_above(values: Any, least: Any) -> Any:
    """Median (L,) of the entries of symmetric matrices above ``least`` (L,); infinity without any.

    Each pair stands there twice, which leaves the median as it is.
    """
    xp = namespace(values)
    flat = xp.reshape(values, (values.shape[0], -1))
    flat = xp.where(flat > least[:, None], flat, float("inf"))
    ascending = xp.sort(flat, axis=-1)
    count = xp.sum(whole(xp, xp.isfinite(flat)), axis=-1, keepdims=True)
    places = xp.asarray([[0, 1]], dtype=xp.int64)
    middle = xp.maximum((count - 1 + places) // 2, xp.zeros_like(places))
    return xp.sum(xp.take_along_axis(ascending, middle, axis=-1), axis=-1) / 2


def median_gaps(target: Any) -> Any:
    """Median positive distance (L,) of targets (L, n), the scale of the Laplace loss; 1 without."""
    xp = namespace(target)
    some = take(xp, target, subset(target.shape[1], MEDIAN_CASES), 1)
    apart = xp.abs(some[:, :, None] - some[:, None, :])
    found = median_above(apart, xp.zeros_like(target[:, 0]))
    return xp.where(xp.isfinite(found), found, 1.0)
