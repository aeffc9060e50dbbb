"""Compiled loops over locations: fit the embedding, weigh the calibration cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compiled import inner, kernel
from ._normal_numba import fill_normal_distances
from .distance import cross_distances, self_distances
from .forms import INVALID_FORECAST, VALID, valid_forecasts
from .kernel import fill_similarity, positive_median
from .status import IDENTICAL, INVALID, RIDGE_EDGE, TOO_FEW
from .tuning import assign_folds, choose_ridge


@kernel
def fit_locations(
    loc: Any,
    scale: Any,
    weights: Any,
    observations: Any,
    groups: Any,
    blocks: int,
    gap: int,
    laplace_kernel: bool,
    project: Any,
    between: Any,
    loss: Any,
    min_samples: int,
    bandwidths: Any,
    ridges: Any,
    n_cases: Any,
    statuses: Any,
) -> None:
    """Fill bandwidth and ridge where they are NaN; compiled loop over locations."""
    for cell in range(loc.shape[0]):
        slots, target, invalid = _used_cases(loc, scale, weights, observations, cell)
        n = slots.size
        status = INVALID if invalid else 0
        n_cases[cell] = n
        if n < max(min_samples, 2):
            statuses[cell] = status | TOO_FEW
            bandwidths[cell] = ridges[cell] = np.nan
            continue
        gram = _case_distances(loc, scale, weights, cell, slots)
        s = positive_median(gram)
        if np.isinf(s):  # K = 1: no forecast says more than climatology, whatever the ridge
            statuses[cell] = status | IDENTICAL
            bandwidths[cell], ridges[cell] = s, 1.0
            continue
        if np.isnan(bandwidths[cell]):
            bandwidths[cell] = np.sqrt(s) if laplace_kernel else s
        if np.isnan(ridges[cell]):
            fill_similarity(gram, bandwidths[cell], laplace_kernel)
            group = np.empty(n)
            for i in range(n):
                group[i] = groups[slots[i]]
            ridges[cell], on_edge = choose_ridge(
                gram, target, assign_folds(group, slots, blocks), slots, gap, project, between, loss
            )
            status |= RIDGE_EDGE if on_edge else 0
        statuses[cell] = status


@kernel
def weigh_locations(
    new_loc: Any,
    new_scale: Any,
    new_weights: Any,
    loc: Any,
    scale: Any,
    weights: Any,
    observations: Any,
    bandwidths: Any,
    ridges: Any,
    laplace_kernel: bool,
    project: Any,
    out: Any,
) -> None:
    """Fill the weights of valid forecasts at fitted locations; compiled loop over locations."""
    beta, row = np.empty(loc.shape[1]), np.empty(loc.shape[1])
    for cell in range(loc.shape[0]):
        new = _valid_slots(valid_forecasts(new_loc, new_scale, new_weights, cell))
        if np.isnan(ridges[cell]) or new.size == 0:
            continue
        slots, support, _ = _used_cases(loc, scale, weights, observations, cell)
        n = slots.size
        gram = _case_distances(loc, scale, weights, cell, slots)
        fill_similarity(gram, bandwidths[cell], laplace_kernel)
        for i in range(n):
            gram[i, i] += ridges[cell] * n
        across = _new_distances(
            new_loc, new_scale, new_weights, new, loc, scale, weights, slots, cell
        )
        fill_similarity(across, bandwidths[cell], laplace_kernel)
        signed = np.dot(across, np.linalg.inv(gram))
        for t in range(new.size):
            mass = 0.0
            for i in range(n):
                beta[i] = signed[t, i]
                mass += beta[i]
            for i in range(n):
                beta[i] += (1.0 - mass) / n
            project(beta[:n], support, row[:n])
            for i in range(out.shape[2]):
                out[cell, new[t], i] = 0.0
            for i in range(n):
                out[cell, new[t], slots[i]] = row[i]


@inner
def _valid_slots(verdict: Any) -> Any:
    slots = np.empty(verdict.size, dtype=np.int64)
    count = 0
    for i in range(verdict.size):
        if verdict[i] == VALID:
            slots[count] = i
            count += 1
    return slots[:count]


@inner
def _used_cases(loc: Any, scale: Any, weights: Any, observations: Any, cell: int) -> Any:
    """Slots with a finite observation and a valid forecast, and the observations, ascending.

    Also whether a case was left out because a value is invalid, not merely missing.
    """
    verdict = valid_forecasts(loc, scale, weights, cell)
    invalid = False
    for i in range(verdict.size):
        y = observations[cell, i]
        invalid = invalid or verdict[i] == INVALID_FORECAST or np.isinf(y)
        if not np.isfinite(y):
            verdict[i] = 0
    slots = _valid_slots(verdict)
    target, ascending = np.empty(slots.size), np.empty(slots.size, dtype=np.int64)
    for i in range(slots.size):
        target[i] = observations[cell, slots[i]]
    order = np.argsort(target)
    for i in range(slots.size):
        target[i] = observations[cell, slots[order[i]]]
        ascending[i] = slots[order[i]]
    return ascending, target, invalid


@inner
def _take(array: Any, cell: int, rows: Any) -> Any:
    """Rows of one location as float64."""
    taken = np.empty((rows.size, array.shape[2]))
    for i in range(rows.size):
        for j in range(array.shape[2]):
            taken[i, j] = array[cell, rows[i], j]
    return taken


@inner
def _take_weights(weights: Any, cell: int, rows: Any, size: int) -> Any:
    if weights is None:
        equal = np.empty((rows.size, size))
        for i in range(rows.size):
            for j in range(size):
                equal[i, j] = 1.0
        return equal
    return _take(weights, cell, rows)


@inner
def _case_distances(loc: Any, scale: Any, weights: Any, cell: int, slots: Any) -> Any:
    points = _take(loc, cell, slots)
    mass = _take_weights(weights, cell, slots, loc.shape[2])
    if scale is None:
        return self_distances(points, mass)
    spread = _take(scale, cell, slots)
    squared = np.empty((slots.size, slots.size))
    fill_normal_distances(points, spread, mass, points, spread, mass, squared)
    return squared


@inner
def _new_distances(
    new_loc: Any,
    new_scale: Any,
    new_weights: Any,
    new: Any,
    loc: Any,
    scale: Any,
    weights: Any,
    slots: Any,
    cell: int,
) -> Any:
    new_points = _take(new_loc, cell, new)
    new_mass = _take_weights(new_weights, cell, new, new_loc.shape[2])
    points = _take(loc, cell, slots)
    mass = _take_weights(weights, cell, slots, loc.shape[2])
    if scale is None:
        return cross_distances(new_points, new_mass, points, mass)
    squared = np.empty((new.size, slots.size))
    new_spread, spread = _take(new_scale, cell, new), _take(scale, cell, slots)
    fill_normal_distances(new_points, new_spread, new_mass, points, spread, mass, squared)
    return squared
