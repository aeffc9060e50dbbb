"""A pool at each place, and among its components one fit that all places share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.pairing import Pairs
from xrecal.methods import Method
from xrecal.methods.components import components_of
from xrecal.methods.shared_ckme import NUMBER, as_shared

from .shared_fit import PassesOverChunks, SharedChunks
from .shared_places import feature_table
from .state import fit_state


class Cases(NamedTuple):
    """Cases that a method learns from."""

    pairs: Pairs
    method: Method
    axis: CaseAxis
    covariates: Mapping[str, xr.DataArray]


def fit_pools_that_share(own: Cases, of_all: Cases, min_samples: int) -> xr.Dataset:
    """Lazy or computed state of a pool at each place, with what all of them share.

    The passes over the cases of all places come first. A task for each chunk of places then fits
    what is local, and weighs all by forecasts of cases that neither has seen.
    """
    pool, shared = of_all.pairs.pool, as_shared(of_all.method)
    assert pool is not None
    chunks = SharedChunks(of_all.pairs, shared, of_all.axis, of_all.covariates)
    table = feature_table(of_all.pairs.form, shared, pool)
    learned = [
        shared.learn_and_hold_out(PassesOverChunks(chunks, at), table, min_samples)
        for at in chunks.each_location
    ]
    number = xr.DataArray(pool.numbers.astype(np.int32), dims=pool.dims)
    held_out = chunks.objects_of([fits for _, fits in learned])
    state = fit_state(*own, min_samples, shared=(held_out, number))
    arrays: dict[str, Any] = chunks.arrays_of([packed for packed, _ in learned])
    arrays[NUMBER] = number
    component = next(c for c in components_of(own.method.mixed) if c.method.by_sums)
    kept = {
        f"{component.label}_{name}": arrays[name].rename(
            {d: component.dim(str(d)) for d in parameter.dims}
        )
        for name, parameter in component.parameters(0).items()
    }
    # Last, as the first array of a state has all locations.
    return state.assign(kept)
