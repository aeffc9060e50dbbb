"""Compiled loops of variables on a circle: directions, CRPS, members."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import inner, kernel

from .weighted import LEVEL_ROUNDING, total_mass


@inner
def _in_first_turn(values: Any, period: float) -> Any:
    """Values (m,) between 0 and the period; NaN if they are not finite."""
    return values - period * np.floor(values / period)


@kernel
def fill_directions(
    support: Any, mass: Any, period: float, shortest: float, mean: Any, std: Any
) -> None:
    """Of supports (L, m) with weights (L, T, m); NaN if the mean unit vector is too short."""
    for cell in range(support.shape[0]):
        angles = _in_first_turn(support[cell], period) * (2 * np.pi / period)
        cosines, sines = np.cos(angles), np.sin(angles)
        for t in range(mass.shape[1]):
            total, row = total_mass(support[cell], mass[cell, t]), mass[cell, t]
            c, s = 0.0, 0.0
            for i in range(angles.size):
                if row[i] > 0 and not np.isnan(angles[i]):
                    c += row[i] / total * cosines[i]
                    s += row[i] / total * sines[i]
            length = np.hypot(c, s)
            mean[cell, t] = std[cell, t] = np.nan
            if not length > shortest:
                continue
            c, s, shorter = c / length, s / length, 0.0  # 1 - length, with all digits
            for i in range(angles.size):
                if row[i] > 0 and not np.isnan(angles[i]):
                    apart = (cosines[i] - c) ** 2 + (sines[i] - s) ** 2
                    shorter += row[i] / total * apart / 2
            turn = np.arctan2(s, c) / (2 * np.pi) % 1.0
            mean[cell, t] = turn * period if turn < 1 else 0.0
            std[cell, t] = np.sqrt(-2 * np.log1p(-shorter)) * (period / (2 * np.pi))


@kernel
def fill_circular_crps(observations: Any, support: Any, mass: Any, period: float, out: Any) -> None:
    """Scores (L, T) of supports (L, m) with weights (L, T, m)."""
    m = support.shape[1]
    angles, shares = np.empty(m), np.empty(m)
    for cell in range(support.shape[0]):
        turned = _in_first_turn(support[cell], period)
        order = np.argsort(turned)
        for t in range(mass.shape[1]):
            total, used, near = total_mass(support[cell], mass[cell, t]), 0, 0.0
            for i in order:
                share = mass[cell, t, i] / total
                if share > 0 and not np.isnan(turned[i]):
                    apart = abs(support[cell, i] - observations[cell, t])
                    apart -= period * np.floor(apart / period)
                    near += share * min(apart, period - apart)
                    angles[used], shares[used] = turned[i], share
                    used += 1
            score = near - _half_mean_distance(angles[:used], shares[:used], period)
            known = total > 0 and abs(observations[cell, t]) < np.inf
            out[cell, t] = max(score, 0.0) if known else np.nan  # rounding


@inner
def _half_mean_distance(angles: Any, shares: Any, period: float) -> Any:
    """``E d(X, X') / 2`` along the circle, of angles in order with shares that sum to one.

    Of the angles above one, those up to half a turn away are reached upwards, the others downwards.
    """
    all_mass, all_moment = shares.sum(), (shares * angles).sum()
    mass, moment, mass_near, moment_near = 0.0, 0.0, 0.0, 0.0  # up to i, and up to half a turn away
    near, pairs = 0, 0.0
    for i in range(angles.size):
        while near < angles.size and angles[near] - angles[i] <= period / 2:
            mass_near += shares[near]
            moment_near += shares[near] * angles[near]
            near += 1
        mass += shares[i]
        moment += shares[i] * angles[i]
        upwards = (moment_near - moment) - angles[i] * (mass_near - mass)
        downwards = (period + angles[i]) * (all_mass - mass_near) - (all_moment - moment_near)
        pairs += shares[i] * (upwards + downwards)
    return pairs


@kernel
def fill_circular_members(support: Any, mass: Any, direction: Any, period: float, out: Any) -> None:
    """Quantiles (L, T, n) of supports (L, m) with weights (L, T, m) and mean directions (L, T)."""
    m, n = support.shape[1], out.shape[2]
    for cell in range(support.shape[0]):
        turned = _in_first_turn(support[cell], period)
        order = np.argsort(turned)
        for t in range(mass.shape[1]):
            total = total_mass(support[cell], mass[cell, t])
            undirected = np.isnan(direction[cell, t])
            cut = 0.0 if undirected else direction[cell, t] + period / 2
            cut -= LEVEL_ROUNDING * period
            start, lowest = 0, np.inf
            for k in range(m):
                height = (turned[order[k]] - cut) % period
                if height < lowest:
                    start, lowest = k, height
            level, below, last = 0, 0.0, np.nan
            for k in range(m):
                i = order[(start + k) % m]
                if np.isnan(turned[i]) or not mass[cell, t, i] > 0:
                    continue
                below, last = below + mass[cell, t, i], support[cell, i]
                while level < n and below >= ((level + 0.5) / n - LEVEL_ROUNDING) * total:
                    out[cell, t, level] = last
                    level += 1
            for k in range(level if total > 0 else 0, n):
                out[cell, t, k] = last if total > 0 else np.nan
