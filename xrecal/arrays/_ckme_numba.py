"""Compiled loops over locations: fit the embedding, weigh the calibration cases.

Arrays are float64 and contiguous; at each location the ``n_used`` usable cases stand first, by
ascending target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compiled import inner, kernel
from ._normal_numba import fill_normal_distances
from .distance import cross_distances, self_distances
from .kernel import fill_similarity, positive_median
from .status import IDENTICAL, RIDGE_EDGE, TOO_FEW
from .tuning import choose_ridge

# New forecasts weighed at once, so that their similarities to all cases stay small.
ROWS = 256


@kernel
def fit_locations(
    loc: Any,
    scale: Any,
    weights: Any,
    target: Any,
    slot: Any,
    n_used: Any,
    fold: Any,
    gap: int,
    laplace_kernel: bool,
    project: Any,
    between: Any,
    loss: Any,
    min_samples: int,
    bandwidths: Any,
    ridges: Any,
    statuses: Any,
) -> None:
    """Fill bandwidth and ridge where they are NaN, and add to the status."""
    for cell in range(loc.shape[0]):
        n = n_used[cell]
        if n < max(min_samples, 2):
            statuses[cell] |= TOO_FEW
            bandwidths[cell] = ridges[cell] = np.nan
            continue
        gram = _case_distances(loc, scale, weights, cell, n)
        s = positive_median(gram)
        if np.isinf(s):  # K = 1: no forecast says more than climatology, whatever the ridge
            statuses[cell] |= IDENTICAL
            bandwidths[cell], ridges[cell] = s, 1.0
            continue
        if np.isnan(bandwidths[cell]):
            bandwidths[cell] = np.sqrt(s) if laplace_kernel else s
        if np.isnan(ridges[cell]):
            fill_similarity(gram, bandwidths[cell], laplace_kernel)
            ridges[cell], on_edge = choose_ridge(
                gram, target[cell, :n], fold[cell, :n], slot[cell, :n], gap, project, between, loss
            )
            if on_edge:
                statuses[cell] |= RIDGE_EDGE


@kernel
def weigh_locations(
    new_loc: Any,
    new_scale: Any,
    new_weights: Any,
    loc: Any,
    scale: Any,
    weights: Any,
    target: Any,
    slot: Any,
    n_used: Any,
    bandwidths: Any,
    ridges: Any,
    laplace_kernel: bool,
    project: Any,
    out: Any,
) -> None:
    """Fill weights (L, T, n), in slots, at fitted locations; NaN for a NaN forecast."""
    beta, row = np.empty(loc.shape[1]), np.empty(loc.shape[1])
    for cell in range(loc.shape[0]):
        n = n_used[cell]
        if np.isnan(ridges[cell]):
            continue
        gram = _case_distances(loc, scale, weights, cell, n)
        fill_similarity(gram, bandwidths[cell], laplace_kernel)
        for i in range(n):
            gram[i, i] += ridges[cell] * n
        # A Cholesky solve would do less work, but compiling one takes three seconds.
        inverse = np.linalg.inv(gram)
        for first in range(0, out.shape[1], ROWS):
            last = min(first + ROWS, out.shape[1])
            across = _new_distances(
                new_loc, new_scale, new_weights, first, last, loc, scale, weights, cell, n
            )
            fill_similarity(across, bandwidths[cell], laplace_kernel)
            signed = np.dot(across, inverse)
            for t in range(first, last):
                mass = 0.0
                for i in range(n):
                    beta[i] = signed[t - first, i]
                    mass += beta[i]
                for i in range(n):
                    beta[i] += (1.0 - mass) / n
                project(beta[:n], target[cell, :n], row[:n])
                for i in range(out.shape[2]):
                    out[cell, t, slot[cell, i]] = row[i] if i < n else 0.0 * mass


@inner
def _case_distances(loc: Any, scale: Any, weights: Any, cell: int, n: int) -> Any:
    if scale is None:
        return self_distances(loc[cell, :n], weights[cell, :n])
    points, spread, mass = loc[cell, :n], scale[cell, :n], weights[cell, :n]
    squared = np.empty((n, n))
    fill_normal_distances(points, spread, mass, points, spread, mass, squared)
    return squared


@inner
def _new_distances(
    new_loc: Any,
    new_scale: Any,
    new_weights: Any,
    first: int,
    last: int,
    loc: Any,
    scale: Any,
    weights: Any,
    cell: int,
    n: int,
) -> Any:
    if scale is None:
        return cross_distances(
            new_loc[cell, first:last],
            new_weights[cell, first:last],
            loc[cell, :n],
            weights[cell, :n],
        )
    squared = np.empty((last - first, n))
    fill_normal_distances(
        new_loc[cell, first:last],
        new_scale[cell, first:last],
        new_weights[cell, first:last],
        loc[cell, :n],
        scale[cell, :n],
        weights[cell, :n],
        squared,
    )
    return squared
