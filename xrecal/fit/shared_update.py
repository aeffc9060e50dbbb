"""More cases for a shared fit: sums are added, what the fit has chosen stays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.pairing import Pairs
from xrecal.methods import SharedCKME
from xrecal.methods.shared_ckme import as_shared, packed_fit
from xrecal.typing import FloatArray, IntArray

from .case_order import Order
from .fitted import CASE, FittedVariable
from .pooling import DATE
from .shared_fit import PassesOverChunks, SharedChunks
from .shared_places import PLACES, places_of_fit

if TYPE_CHECKING:
    from xrecal.arrays.shared.network import Cases
    from xrecal.arrays.shared.passes import Shared


def with_shared_cases(
    fitted: FittedVariable,
    pairs: Pairs,
    covariates: Mapping[str, xr.DataArray],
    dates: CaseAxis,
    order: Order,
) -> xr.Dataset:
    """The state of a shared fit with more cases, whose order among all is given.

    Of cases that are known nothing is added; one that was missing is.

    Raises
    ------
    ValueError
        If an observation differs from the one that is known: sums do not give it back.
    """
    method, pool = as_shared(fitted.method), fitted.pool
    assert pool is not None
    state = fitted.state
    pairs = replace(pairs, pool=pool)
    if state.chunks and not pairs.observations.chunks:
        pairs = replace(pairs, observations=pairs.observations.chunk())
    along = {pairs.dim: pairs.observations.sizes[pairs.dim]}
    places = places_of_fit(pairs.form, method, pool)
    given = {**covariates, **{name: v.expand_dims(along) for name, v in places.items()}}
    chunks = SharedChunks(pairs, method, dates, given)
    seen = _seen(state["observations"], order).isel({PLACES: pool.numbers.ravel()})
    shape = dict(zip(pool.dims, pool.sizes, strict=True))
    at_places = seen.data.reshape([*(seen.sizes[d] for d in seen.dims[:-1]), *pool.sizes])
    dims = [*seen.dims[:-2], DATE, *shape]
    chunks.beside["seen"] = xr.DataArray(at_places, dims=dims)
    arrays = {str(n): v for n, v in state.items() if n != "observations"}
    names = list(arrays)
    fits = []
    for at in chunks.each_location:
        engine = PassesOverChunks(chunks, at)
        of_dims = [{d: i for d, i in at.items() if d in v.dims} for v in arrays.values()]
        here = [_whole(v.isel(own)) for v, own in zip(arrays.values(), of_dims, strict=True)]
        fit = engine.once(_Unpacked(names), *here)
        added = engine.total(_Added(pool.dims), _join, fit)
        fits.append(engine.once(_Repacked(method, fitted.min_samples, names), fit, added, *here))
    updated = {n: v.assign_attrs(state[n].attrs) for n, v in chunks.arrays_of(fits).items()}
    new, flags = chunks.observations()
    updated["status"] = (updated["status"] | flags).assign_attrs(state["status"].attrs)
    observed = _joined(state["observations"], new, order)
    bare = state.drop_dims(CASE)
    return bare.assign(
        {**updated, "observations": observed.assign_attrs(state["observations"].attrs)}
    )[list(state.data_vars)]


def _whole(array: xr.DataArray) -> Any:
    """Values of an array of the state, as a Delayed where it is lazy.

    Of a single chunk: arrays that are handed on to ``delayed`` as they are would each be optimised
    by themselves, and the fit run once for each.
    """
    if array.chunks is None:
        return array.data
    return array.chunk(-1).data.to_delayed(optimize_graph=False).item()


def _seen(kept: xr.DataArray, order: Order) -> xr.DataArray:
    """Known observations (..., t, place) of added dates, NaN of new ones."""
    bare = kept.drop_vars(list(kept.coords))
    known = xr.DataArray(order.known >= 0, dims=[CASE])
    return bare.isel({CASE: np.maximum(order.known, 0)}).where(known).transpose(..., CASE, PLACES)


def _joined(kept: xr.DataArray, added: xr.DataArray, order: Order) -> xr.DataArray:
    """Kept and added observations (..., case, place) in order; what was missing is filled in."""
    kept = kept.drop_vars(list(kept.coords)).transpose(..., CASE, PLACES)
    added = added.transpose(*kept.dims).astype(kept.dtype)
    known = np.flatnonzero(order.known >= 0)
    filled = kept.isel({CASE: order.known[known]}).fillna(added.isel({CASE: known}))
    # Places in [kept, added, filled] of all cases: a known one is among the filled ones.
    place = order.order.copy()
    count = kept.sizes[CASE] + added.sizes[CASE]
    for k, at in enumerate(order.known[known]):
        place[order.order == at] = count + k
    whole = xr.concat([kept, added, filled], dim=CASE).isel({CASE: place})
    return whole if whole.chunks is None else whole.chunk({CASE: -1, PLACES: -1})


class _Added:
    """Cases of a chunk and what is known of them in, sums over those that are not known out."""

    __name__ = "added"

    def __init__(self, pooled: tuple[Hashable, ...]) -> None:
        self.pooled = pooled[0] if len(pooled) == 1 else pooled

    def __call__(self, cases: Cases, date: IntArray, seen: FloatArray, fit: Shared | None) -> Any:
        """Sums; None of a location without a fit."""
        from xrecal.arrays.shared.passes import added_sums_of

        new = cases.observations
        revised = np.isfinite(new) & np.isfinite(seen) & (new.astype(seen.dtype) != seen)
        if revised.any():
            first = int(np.flatnonzero(revised)[0])
            raise ValueError(
                f"{int(revised.sum())} observations that the model has learned from are others "
                f"now, the first {new[first]:g} in place of {seen[first]:g}; a fit that places "
                "share keeps sums, which do not give them back: fit anew with all cases, "
                f"hindcast.recal.fit(observations, model.method, pool={self.pooled!r})"
            )
        if fit is None:
            return None
        enters = np.where(np.isfinite(seen), np.nan, new)
        return added_sums_of(fit, cases._replace(observations=enters))


def _join(one: Any, other: Any) -> Any:
    from xrecal.arrays.shared.passes import join_added

    return None if one is None else join_added(one, other)


class _Unpacked:
    """Arrays of the state in the order of their names in, the fit out; None where there is none."""

    __name__ = "unpacked"

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __call__(self, *arrays: npt.NDArray[Any]) -> Any:
        """The fit."""
        from xrecal.arrays.shared.packed import unpack

        packed = dict(zip(self.names, arrays, strict=True))
        return None if np.isnan(packed["regression"]).any() else unpack(packed)


class _Repacked:
    """A fit, sums to be added and arrays of the state in, arrays of the new state out."""

    __name__ = "repacked"

    def __init__(self, method: SharedCKME, min_samples: int, names: list[str]) -> None:
        self.method, self.min_samples, self.names = method, min_samples, names

    def __call__(self, fit: Any, added: Any, *arrays: npt.NDArray[Any]) -> dict[str, Any]:
        """Arrays by name."""
        from xrecal.arrays.shared.passes import with_added
        from xrecal.arrays.shared.places import COUNT

        kept = dict(zip(self.names, arrays, strict=True))
        if fit is None:
            return kept
        whole = with_added(fit, added)
        n_cases = np.int32(whole.place_sums[COUNT].sum())
        return {**kept, **packed_fit(self.method, whole, self.min_samples), "n_cases": n_cases}
