"""Pools (mixtures of methods) at each place, with one component that all places share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.run import Named
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.pool import Pool
from xrecal.methods import Method, SharedCKME
from xrecal.methods.base import Cases, SharedFits
from xrecal.methods.covariates import Covariates
from xrecal.methods.shared_cases import IN_MEMORY
from xrecal.methods.shared_ckme import HERE, NUMBER, OWN, SUMMED, as_shared
from xrecal.typing import FloatArray, IntArray

from .kinds import TOGETHER, Choose, Together, places_together, read_choose
from .shared_fit import PassesOverChunks, SharedChunks
from .shared_places import component_of_all, feature_table, in_one_order, shared_method
from .state import Prepared, fit_state
from .together import choose_in_memory, fit_with

if TYPE_CHECKING:
    from xrecal.arrays.shared.held_out import HeldOut, InTime


class Sharing(NamedTuple):
    """Facts about a shared component, for the pools at all positions of an array."""

    method: SharedCKME
    features: FloatArray
    """(P, k) features of P places; row i has the k features of the place with number i"""
    order: IntArray
    """(P,) indexes that put arrays (P, ...) of places in the order of the places in the fit"""
    numbers: IntArray
    """(P,) number of the place at each index of arrays (P, ...) of places"""
    sizes: Mapping[Hashable, int]
    """Sizes of the pooled dimensions."""
    together: Together | None
    """Places of a fit that choose settings together; None if each place chooses alone."""


def sharing(
    method: Method, pairs: Pairs, pool: Pool, n_dates: int, choose: Choose
) -> tuple[Method, Sharing]:
    """Return the method of pools for ``n_dates`` dates, and facts about their shared component."""
    whole = in_one_order(pool, pairs.form)
    assert method.shared_by_places is not None
    shared, _ = shared_method(method.shared_by_places, pairs, whole)
    shared = shared.for_cases(n_dates * shared.places)
    position = np.arange(whole.numbers.size).reshape(pool.sizes)
    order = position.transpose([pool.dims.index(d) for d in whole.dims]).ravel()
    numbers = np.empty_like(order)
    numbers[order] = whole.numbers.ravel()
    table = feature_table(pairs.form, shared, whole)
    dims = read_choose(choose, [d for d in pairs.form.dims if d != pairs.dim])
    together = places_together(pairs.form, [d for d in pool.dims if d in dims], TOGETHER)
    sizes = dict(zip(pool.dims, pool.sizes, strict=True))
    return method.with_shared(shared), Sharing(shared, table, order, numbers, sizes, together)


def fit_sharing(
    given: Sharing, method: Method, cases: Cases, min_samples: int
) -> dict[str, npt.NDArray[Any]]:
    """Fit a pool at each of P places to cases (P, n) in memory; return arrays (P, ...) by name."""
    assert cases.forecasts is not None
    shared, n_places, n = given.method, *cases.observations.shape

    def by_date(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reshape an array (P, n, ...) of P places and n dates to (1, n P, ...)."""
        return np.swapaxes(array[given.order], 0, 1).reshape((1, -1, *array.shape[2:]))

    of_place = np.column_stack([given.numbers, given.features[given.numbers]])
    beside = np.broadcast_to(of_place[:, np.newaxis], (n_places, n, of_place.shape[1]))
    names = (*cases.covariates.names, *shared.of_places)
    periods = (*cases.covariates.periods, *[None] * len(shared.of_places))
    values = np.concatenate([cases.covariates.values, beside], axis=-1)
    of_dates, folds = shared.in_parts(cases.axis, n)
    every = (
        cases.forecasts.map(by_date),
        by_date(cases.observations),
        Covariates(by_date(values), names, periods),
    )
    date, step = np.repeat(np.arange(n), n_places), max(IN_MEMORY // n_places, 1) * n_places
    engine, _ = shared.in_memory(every, of_dates.repeat(n_places), date, step)
    packed, held_out = shared.learn_and_hold_out(engine, given.features, folds, min_samples)
    each = np.empty(n_places, dtype=object)
    each[:] = held_out
    share = SharedFits(each, given.numbers.astype(np.int32), given.features[given.numbers])
    cases = replace(cases, shared=share)
    choices: Named = {}
    if given.together is not None and method.choice_sizes:
        choices = choose_in_memory(given.together, given.sizes, method, cases, min_samples)
    fitted = {**fit_with(method, cases, min_samples, choices)}
    component = component_of_all(method)
    own = {NUMBER: given.numbers, HERE: given.features[given.numbers]}
    for name in component.parameters(0):
        array = np.asarray(packed.get(name))
        whole = own[name] if name in own else np.broadcast_to(array, (n_places, *array.shape))
        fitted[f"{component.label}_{name}"] = whole
    return fitted


def in_time_of(held: HeldOut, packed: Named, part: IntArray) -> InTime:
    """Return the fits that were available when the forecast of each of n dates was issued.

    Cross-validation divides the dates into parts, and a fold consists of parts. ``part`` (n,) has
    the number of the part of each date. The bounds of the variable come from all cases.
    """
    from xrecal.arrays.shared.held_out import in_time

    return in_time(held, part, (float(packed["lower"]), float(packed["upper"])))


def fit_pools_that_share(
    own: Prepared, of_all: Prepared, min_samples: int, choose: Choose
) -> xr.Dataset:
    """Return the lazy or computed state of pools at each place, with their shared component.

    First, passes over the cases of all places fit the shared component. Then a task for each chunk
    of places fits the other components, and learns all weights from held-out forecasts.
    """
    from xrecal.arrays.shared.passes import IfAny

    pool, shared = of_all.pairs.pool, as_shared(of_all.method)
    assert pool is not None
    chunks = SharedChunks(of_all)
    table = feature_table(of_all.pairs.form, shared, pool)
    part, component = chunks.beside["part"].to_numpy(), component_of_all(own.method)
    packs, fits = [], []
    for at in chunks.each_location:
        engine = PassesOverChunks(chunks, at)
        packed, held = shared.learn_and_hold_out(engine, table, chunks.folds, min_samples)
        if component.method.keeps_sums:  # weights use the fits known at issue
            held = engine.once(IfAny(in_time_of), held, packed, part)
        packs.append(packed)
        fits.append(held)
    number = xr.DataArray(pool.numbers.astype(np.int32), dims=pool.dims)
    here = xr.DataArray(table[pool.numbers], dims=[*pool.dims, OWN + "place_feature"])
    shares = chunks.objects_of(fits), number, here
    (state,) = fit_state(own, min_samples, shares, choose)
    arrays: dict[str, Any] = chunks.arrays_of(packs)
    summed = chunks.of_locations([part.size] * len(packs))
    arrays |= {NUMBER: number, HERE: here, SUMMED: summed}
    kept = {
        f"{component.label}_{name}": arrays[name].rename(
            {d: component.dim(str(d)) for d in parameter.dims}
        )
        for name, parameter in component.parameters(0).items()
    }
    # Last, as the first array of a state has all locations.
    return state.assign(kept)
