"""Updates of a shared fit: an update adds cases to the sums of the fit, and keeps its choices."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.predictors import NO_PREDICTORS
from xrecal.chunks.blockwise import is_lazy, work_on
from xrecal.chunks.run import Named, run
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.pool import Pool
from xrecal.methods import SharedCKME
from xrecal.methods.shared_ckme import OWN, PLACE, as_shared
from xrecal.methods.shared_packing import USUAL, nothing_learned, packed_fit
from xrecal.typing import FloatArray, IntArray

from .case_order import ADDED, Order, known_observations
from .common_regrets import as_objects
from .fitted import CASE
from .more_places import Grown
from .pooling import DATE
from .shared_fit import PassesOverChunks, SharedChunks
from .shared_places import PLACES
from .state import Prepared
from .update_task import joined_values

if TYPE_CHECKING:
    from xrecal.arrays.shared.network import Cases
    from xrecal.arrays.shared.passes import Shared


def with_shared_cases(grown: Grown, dates: CaseAxis, axis: CaseAxis, order: Order) -> xr.Dataset:
    """Return the state of a shared fit with more cases.

    ``dates`` has the dates of the added cases, and ``axis`` the dates of all cases. A known case
    adds nothing, unless its observation was missing before. New places join the fit.

    Raises
    ------
    ValueError
        If an observation has changed, because the old value cannot be subtracted from sums.
    """
    fitted, pairs = grown.fitted, grown.pairs
    method, pool, state = as_shared(fitted.method), fitted.pool, fitted.state
    assert pool is not None
    pairs = replace(pairs, pool=pool)
    if state.chunks and not pairs.observations.chunks:
        pairs = replace(pairs, observations=pairs.observations.chunk())
    chunks = SharedChunks(Prepared(pairs, method, dates, _with_places(grown, pool)))
    kept = _with_room(state.variables["observations"], method.places)
    seen = known_observations(kept, order)
    seen = seen.isel({PLACES: pool.numbers.ravel()}).transpose(..., ADDED, PLACES)
    dims = [*seen.dims[:-2], DATE, *pool.dims]
    weight, fading = _weights(method, fitted.axis, axis, order)
    chunks.beside["weight"] = xr.DataArray(weight, dims=[DATE])
    chunks.beside["seen"] = xr.DataArray(
        seen.data.reshape((*seen.shape[:-1], *pool.sizes)), dims=dims
    )
    arrays = {n: v for n, v in fitted.arrays.items() if n != "observations"}
    packed, fits = packed_fits(arrays, chunks), []
    for at in chunks.each_location:
        engine, here = engine_of(chunks, at, packed)
        fit = engine.once(Unpacked(grown.features), here)
        added = engine.total(_Added(pool.dims), join_any, fit)
        fits.append(engine.once(_Repacked(method, fitted.min_samples, fading), fit, added, here))
    updated = {n: v.assign_attrs(state[n].attrs) for n, v in chunks.arrays_of(fits).items()}
    new, flags = chunks.observations()
    updated["status"] = (updated["status"] | flags).assign_attrs(state["status"].attrs)
    observed = joined_values(kept, new.rename({CASE: ADDED}), order).transpose(*kept.dims)
    bare = state.drop_dims([CASE, PLACES]).drop_vars([*updated], errors="ignore")
    bare = bare.drop_dims([d for d in bare.dims if str(d).startswith(OWN)])
    whole = bare.assign({**updated, "observations": observed.variable})
    whole["observations"].attrs = state["observations"].attrs
    return whole[list(state.data_vars)].assign_coords(grown.labels or _labels_of(state))


def _labels_of(state: xr.Dataset) -> dict[Hashable, xr.Variable]:
    """Return the labels and names of the places of a state."""
    return {name: c.variable for name, c in state.coords.items() if c.dims == (PLACES,)}


def _with_places(grown: Grown, pool: Pool) -> dict[str, xr.DataArray]:
    """Return covariates of added cases, with the numbers of places.

    The function sets features of places to 0, because the fit uses its own copy of the features.
    """
    pairs, method = grown.pairs, as_shared(grown.fitted.method)
    given = {name: xr.DataArray(0.0) for name in method.of_places}
    given[PLACE] = xr.DataArray(pool.numbers.astype(np.float64), dims=pool.dims)
    along = {pairs.dim: pairs.observations.sizes[pairs.dim]}
    return {**grown.covariates, **{name: v.expand_dims(along) for name, v in given.items()}}


def _with_room(observed: xr.Variable, n_places: int) -> xr.Variable:
    """Return known observations (..., case, place), with NaN for new places."""
    room = n_places - observed.sizes[PLACES]
    padded: xr.Variable = observed.pad({PLACES: (0, room)}) if room else observed
    return padded


def engine_of(
    chunks: SharedChunks, at: Mapping[Hashable, int], packed: xr.DataArray
) -> tuple[PassesOverChunks, Any]:
    """Return an engine that runs passes over the cases of a location, and the arrays of its fit.

    The passes use the usual values of covariates, such as the median, that this fit has stored.
    """
    engine, here = PassesOverChunks(chunks, at, NO_PREDICTORS), packed.isel(at).data
    if packed.chunks is not None:
        here = here.to_delayed(optimize_graph=False).item()
    if chunks.method.breakable:
        engine.usual = engine.once(_usual, here)
    return engine, here


def packed_fits(arrays: Mapping[str, xr.Variable], chunks: SharedChunks) -> xr.DataArray:
    """Return the arrays of a fit as one object per location."""
    cores = {n: [d for d in v.dims if d not in chunks.locations] for n, v in arrays.items()}
    return run(
        _packed,
        {"state": {n: (_uncut(v, cores[n]), cores[n]) for n, v in arrays.items()}},
        {0: ({}, object)},
        what=work_on("the update", chunks.name),
    )[0]


def _weights(
    method: SharedCKME, kept: CaseAxis, every: CaseAxis, order: Order
) -> tuple[FloatArray, float]:
    """Return the weights of added cases (t,), and a factor that multiplies all stored weights."""
    weights, number = np.empty(order.n_kept + order.known.size), order.order.size
    weights[order.order] = method.weights(every, number)
    newest = order.n_kept - 1
    fading = weights[newest] / method.weights(kept, order.n_kept)[newest]
    added = np.where(order.known < 0, np.arange(order.known.size) + order.n_kept, order.known)
    return weights[added], float(fading)


def _uncut(array: xr.Variable, dims: Sequence[Hashable]) -> xr.Variable:
    """Return an array in one Dask chunk along some dimensions."""
    return array.chunk(dict.fromkeys(dims, -1)) if is_lazy(array) else array


def _packed(state: Named) -> Named:
    """Return arrays (L, ...) of the state as one object per location (L,)."""
    n = len(next(iter(state.values())))
    return {0: as_objects([{name: a[place] for name, a in state.items()} for place in range(n)])}


class _Added:
    """Function that returns sums over new cases, from cases of a chunk and known observations."""

    __name__ = "added"

    def __init__(self, pooled: tuple[Hashable, ...]) -> None:
        self.pooled = pooled[0] if len(pooled) == 1 else pooled

    def __call__(self, cases: Cases, date: IntArray, seen: FloatArray, fit: Shared | None) -> Any:
        """Return the sums; None for a location without a fit."""
        from xrecal.arrays.shared.passes import added_sums_of

        new = cases.observations
        revised = np.isfinite(new) & np.isfinite(seen) & (new.astype(seen.dtype) != seen)
        if revised.any():
            first = int(np.flatnonzero(revised)[0])
            raise ValueError(
                f"{int(revised.sum())} observations that the model has learned from have "
                f"changed, the first from {seen[first]:g} to {new[first]:g}; a shared fit keeps "
                "sums, from which old values cannot be subtracted: fit again to all cases, "
                f"hindcast.recal.fit(observations, model.method, pool={self.pooled!r})"
            )
        if fit is None:
            return None
        enters = np.where(np.isfinite(seen), np.nan, new)
        return added_sums_of(fit, cases._replace(observations=enters))


def join_any(one: Any, other: Any) -> Any:
    """Add the sums over two sets of cases; return None if the location has no fit."""
    from xrecal.arrays.shared.passes import join_added

    return None if one is None else join_added(one, other)


class Unpacked:
    """Function that rebuilds the fit of a location, and adds a place for each row of features."""

    __name__ = "unpacked"

    def __init__(self, features: FloatArray) -> None:
        self.features = features

    def __call__(self, packed: npt.NDArray[Any]) -> Any:
        """Return the fit; None for a location without a fit."""
        from xrecal.arrays.shared.packed import unpack
        from xrecal.arrays.shared.passes import with_places

        arrays = packed.item()
        if np.isnan(arrays["regression"]).any():
            return None
        fit = unpack(arrays)
        return with_places(fit, self.features) if len(self.features) else fit


def _usual(packed: npt.NDArray[Any]) -> FloatArray:
    """Return the 8 usual values of each of p covariates (1, p, 8) that a location stores."""
    return np.asarray(packed.item()[USUAL][np.newaxis])


class _Repacked:
    """Function that returns arrays of the new state, from a fit, added sums and old arrays."""

    __name__ = "repacked"

    def __init__(self, method: SharedCKME, min_samples: int, fading: float) -> None:
        self.method, self.min_samples, self.fading = method, min_samples, fading

    def __call__(self, fit: Any, added: Any, packed: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the arrays by name."""
        from xrecal.arrays.shared.passes import with_added
        from xrecal.arrays.shared.places import NUMBER

        kept: dict[str, Any] = packed.item()
        if fit is None:
            return {**kept, **nothing_learned(self.method.sizes(0), kept["seen"].shape[0] - 2)}
        whole = with_added(fit, added, self.fading)
        n_cases = np.int32(whole.place_sums[NUMBER].sum())
        return {
            **kept,
            **packed_fit(self.method.sizes(0), whole, self.min_samples),
            "n_cases": n_cases,
        }
