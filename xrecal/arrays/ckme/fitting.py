"""The loop over locations: cases in, what cross-validation finds at each of them out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import find_bounds
from xrecal.arrays.rows import location_blocks
from xrecal.arrays.status import BOUNDS, CONSTANT, IDENTICAL, INVALID, RIDGE_EDGE, TOO_FEW
from xrecal.typing import FloatArray, IntArray

from .candidates import Candidates
from .centre import SUPPORTS, fit_centre, past_observations
from .embedding import Calibration, Settings, case_weights, ordered_cases
from .held_out_losses import LOSSES, crps_and_quantiles
from .location import Location, locate
from .ordered_cases import OrderedCases, assign_folds
from .search import Search
from .simplex import PROJECTIONS
from .solvers import is_low_rank, landmark_slots
from .tuning import Folds, arrange_folds

LATER_PARTS = 8
"""Parts of the period; all but the first are forecast from those before."""


class Found(NamedTuple):
    """As :class:`FittedCKME`, for each of S supports where shapes say so."""

    bandwidth: FloatArray
    """(L,)"""
    precision: FloatArray
    """(L, k)"""
    low: FloatArray
    """(L,)"""
    high: FloatArray
    """(L,)"""
    support: IntArray
    """(L,)"""
    status: IntArray
    """(L,)"""
    ridge: FloatArray
    """(L, S)"""
    strength: FloatArray
    """(L, S)"""
    widening: FloatArray
    """(L, S)"""
    loss: FloatArray
    """(L, S)"""
    centre: FloatArray
    """(L, S, 4 + 2 k)"""
    landmark: IntArray
    """(L, S, r)"""


def search_locations(
    known: Calibration,
    settings: Settings,
    half_life: FloatArray,
    *,
    forward: bool = False,
    grid_only: bool = False,
    n_quantiles: int = 0,
) -> tuple[Found, IntArray, FloatArray]:
    """What is found at each location and for each support, cases used, and quantiles recorded.

    ``forward`` folds train on earlier cases alone. With ``n_quantiles`` these are recorded of
    held-out forecasts, (L, 2, S, n, q): of the folds searched over, and of later cases from
    earlier ones.
    """
    observations, features, step = known.observations, known.features, known.step
    n_locations, n = observations.shape
    centred = settings.supports != ("observations",)
    candidates = _candidates(settings, features.circular.size > 0, n_quantiles)
    low, high, violated = find_bounds(observations, settings.bounds if centred else None)
    room = landmark_slots(settings.solver, settings.kernel, n)
    found = _empty(n_locations, candidates.supports.size, features.circular.size, room, low, high)
    found.support[:] = candidates.supports[0]  # where nothing is searched for
    found.status[violated] |= BOUNDS
    n_cases = np.zeros(n_locations, np.int32)
    passes = 2 if n_quantiles else 1
    recorded = np.full((n_locations, passes, candidates.supports.size, n, n_quantiles), math.nan)
    weight = case_weights(known.days, half_life, n)
    for block in location_blocks(n_locations, 24 * math.prod(known.cases.loc.shape[1:])):
        ordered, invalid = ordered_cases(
            known.cases.take(block),
            observations[block],
            features.take(block),
            weight[block],
            centred,
            step,
            shapes=settings.shapes,
        )
        n_cases[block] = ordered.n_used
        found.status[block] |= np.where(invalid, INVALID, 0)
        fold = _folds(ordered, known.groups, known.blocks, step)
        later = _folds(ordered, step, LATER_PARTS, step) if passes > 1 else fold
        for cell in range(ordered.n_used.size):
            place = block.start + cell
            if ordered.n_used[cell] < max(settings.min_samples, 2):
                found.status[place] |= TOO_FEW
                continue
            low_rank = is_low_rank(settings.solver, settings.kernel, int(ordered.n_used[cell]))
            one = locate(
                ordered, cell, laplace=settings.kernel == "laplace", low_rank=low_rank,
                squared=None if known.squared is None else known.squared[place],
                vectors=None if known.vectors is None else known.vectors[place],
            )  # fmt: skip
            used = slice(ordered.n_used[cell])
            folds = [
                arrange_folds(part[cell, used], ordered.step[cell, used], settings.gap, ahead)
                for part, ahead in ((fold, forward), (later, True))[:passes]
            ]
            kept = _fit_location(
                one, folds, candidates, settings, grid_only or forward, place, found
            )
            marked = found.landmark[place]
            marked[marked >= 0] = ordered.slot[cell][marked[marked >= 0]]
            recorded[place][:, :, ordered.slot[cell, used]] = kept[..., 1:]
    return found, n_cases, recorded


def _fit_location(
    one: Location,
    folds: list[Folds],
    candidates: Candidates,
    settings: Settings,
    grid_only: bool,
    place: int,
    found: Found,
) -> FloatArray:
    """Fill what is found at one location; what is recorded (P, S, n, width) of its cases."""
    identical = np.isinf(one.median)
    bandwidth = one.median if identical or settings.bandwidth is None else settings.bandwidth
    found.bandwidth[place], found.precision[place] = bandwidth, one.precision
    found.status[place] |= IDENTICAL * identical | CONSTANT * (one.precision == 0).any()
    bounds = float(found.low[place]), float(found.high[place])
    search = Search(one, bandwidth, bounds, folds[0], candidates)
    widening, strength = np.array(candidates.kernels).T
    # Forecasts that are all the same say nothing whatever the ridge; covariates may.
    silent = identical and not (strength > 0).any()
    ridge = 1.0 if silent and settings.ridge is None else settings.ridge
    if ridge is not None and not grid_only and candidates.supports.size * widening.size == 1:
        best = search.take(ridge)
    else:
        best = search.run(ridge)
        found.loss[place] = best.loss
    records = search.records(best, folds[1:])
    found.support[place] = candidates.supports[best.winner]
    if ridge is None and search.on_edge(best):
        found.status[place] |= RIDGE_EDGE
    elif ridge is None and not grid_only:
        search.refine(best)
    found.ridge[place] = 10.0**best.exponent if settings.ridge is None else settings.ridge
    found.strength[place], found.widening[place] = strength[best.kernel], widening[best.kernel]
    for s in range(candidates.supports.size) if candidates.each else [best.winner]:
        landmarks = search.landmarks(best, s)
        found.landmark[place, s, : len(landmarks)] = landmarks
    for s, code in enumerate(candidates.supports):
        features = one.features[:, : None if found.strength[place, s] > 0 else 0]
        candidates.fit(
            code, one.mean, one.variance, np.ascontiguousarray(features), one.target, *bounds,
            found.centre[place, s],
        )  # fmt: skip
    return records


def _candidates(settings: Settings, conditioned: bool, n_quantiles: int) -> Candidates:
    """What the settings leave to choose."""
    return Candidates(
        tuple(k for k in settings.kernels if k[1] == 0 or conditioned),
        np.array([SUPPORTS.index(support) for support in settings.supports]),
        past_observations if settings.supports == ("observations",) else fit_centre,
        PROJECTIONS[settings.projection],
        settings.projection == "energy",
        LOSSES["crps" if n_quantiles else settings.loss],
        crps_and_quantiles if n_quantiles else LOSSES[settings.loss],
        1 + n_quantiles,
        n_quantiles > 0,
    )


def _empty(
    n_locations: int, n_supports: int, k: int, room: int, low: FloatArray, high: FloatArray
) -> Found:
    def missing(*shape: int) -> FloatArray:
        return np.full((n_locations, *shape), math.nan)

    return Found(
        missing(),
        missing(k),
        low,
        high,
        np.zeros(n_locations, np.int64),
        np.zeros(n_locations, np.int64),
        missing(n_supports),
        missing(n_supports),
        missing(n_supports),
        missing(n_supports),
        missing(n_supports, 4 + 2 * k),
        np.full((n_locations, n_supports, room), -1, np.int32),
    )


def _folds(ordered: OrderedCases, groups: IntArray, blocks: int, step: IntArray) -> IntArray:
    """Fold (L, n) of the ordered cases."""
    n = groups.size
    usable = np.arange(n) < ordered.n_used[:, np.newaxis]
    in_time = np.zeros_like(usable)
    np.put_along_axis(in_time, ordered.slot, usable, axis=1)
    return np.take_along_axis(assign_folds(groups, in_time, blocks, step), ordered.slot, axis=1)
