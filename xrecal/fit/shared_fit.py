"""Shared fit of many places, from sums over all cases.

Each pass reads the cases chunk by chunk, and adds up the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import xarray as xr

from xrecal.arrays.predictors import NO_PREDICTORS
from xrecal.arrays.status import FILL, INVALID
from xrecal.chunks.blockwise import is_lazy, require_one_chunk, work_on
from xrecal.chunks.run import Inputs, Named, run
from xrecal.chunks.tree import joined_chunks
from xrecal.inputs.dates import CaseAxis
from xrecal.methods import SharedCKME
from xrecal.methods.base import Cases
from xrecal.methods.shared_cases import IN_MEMORY, OfDates
from xrecal.methods.shared_ckme import PLACE, as_shared
from xrecal.typing import FloatArray

from .cases import covariates_of, parameters_of, usable_cases, without_absurd
from .common_regrets import as_objects
from .fitted import CASE, CASE_MEMBER
from .pooling import DATE
from .shared_places import PLACES, feature_table, place_labels
from .state import Prepared, arrays_of_cases

if TYPE_CHECKING:
    from xrecal.arrays.shared.samples import Values


def fit_shared_state(prepared: Prepared, min_samples: int) -> xr.Dataset:
    """Return the lazy or computed state of a shared fit.

    If some dimensions of locations are not pooled, each position along these has its own shared
    fit. The state has one entry for each date. It keeps observations (date, place), with which an
    update compares its new observations.
    """
    pairs, chunks = prepared.pairs, SharedChunks(prepared)
    method, pool = chunks.method, chunks.pool
    table = feature_table(pairs.form, method, pool)
    fits = [
        method.learn(PassesOverChunks(chunks, at), table, chunks.folds, min_samples)
        for at in chunks.each_location
    ]
    observed, flags = chunks.observations()
    state = xr.Dataset({**chunks.arrays_of(fits), "observations": observed})
    state["status"] = state["status"] | flags
    dated = [part[pairs.dim] for part in pairs.form.parts.values() if pairs.dim in part.indexes]
    labels: dict[str, Any] = {**place_labels(pairs.form, pool)}
    if dated:
        labels[f"calibration_{pairs.dim}"] = (CASE, dated[0].to_index(), dated[0].attrs)
    of_locations = {
        d: coordinate.variable
        for part in pairs.form.parts.values()
        for d, coordinate in part.coords.items()
        if d in chunks.locations and coordinate.dims == (d,)
    }
    return state.assign_coords({**of_locations, **labels})


IN_SAME_PIECES = 2**25
"""Up to this number of ensemble values, the fit cuts arrays into pieces of a fixed size, so that
the user's chunks do not affect the rounding of sums. With more values, the fit uses the user's
chunks, which need not be in memory together; the rounding then depends on these chunks."""

CoreArrays: TypeAlias = dict[Any, tuple[xr.DataArray, Sequence[Hashable]]]
"""Arrays by name, each with its core dimensions."""


class SharedChunks:
    """Cases of a hindcast in chunks of dates and places, from which a fit makes its state."""

    read_again = True
    """If true, Dask reads the chunks again for each pass, and does not keep them in memory."""

    def __init__(self, prepared: Prepared) -> None:
        pairs, method = prepared.pairs, as_shared(prepared.method)
        assert pairs.pool is not None
        self.name, self.method, self.pool = pairs.form.name, method, pairs.pool
        self.periods, cases = prepared.periods, arrays_of_cases(pairs, prepared.covariates)
        parts = cases["forecasts"]
        for part in parts.values():
            require_one_chunk(part, (CASE_MEMBER,), name="hindcast")
        first = next(iter(parts.values()))
        n_dates = first.sizes[DATE]
        # Arrays that identify the place are the same on all dates.
        of_places = {name: {DATE: 0} for name in method.of_places}
        self.cases: dict[str, CoreArrays] = {
            group: {
                name: (
                    value.isel(of_places.get(name, {}), drop=True).drop_vars(list(value.coords)),
                    (CASE_MEMBER,) if group == "forecasts" else (),
                )
                for name, value in of.items()
            }
            for group, of in cases.items()
        }
        of_dates, self.folds = method.in_parts(prepared.axis, n_dates)
        self._set_dates(of_dates, first)

    def _set_dates(self, of: OfDates, first: xr.DataArray) -> None:
        """Set the dates and places of the cases; ``first`` is the first array of the cases."""
        known = {"date": np.arange(of.part.size), **of._asdict()}
        self.beside = {name: xr.DataArray(array, dims=[DATE]) for name, array in known.items()}
        """Arrays over dates, such as numbers and weights of dates, for the work on a chunk."""
        self.loops = (DATE, *self.pool.dims)
        self.locations = tuple(d for d in first.dims if d not in (*self.loops, CASE_MEMBER))
        self.sizes = {d: first.sizes[d] for d in (*self.locations, *self.loops)}

    @property
    def each_location(self) -> list[dict[Hashable, int]]:
        """Position of each location along the dimensions that are not pooled."""
        shape = [self.sizes[d] for d in self.locations]
        return [dict(zip(self.locations, at, strict=True)) for at in np.ndindex(*shape)]

    def joined(
        self,
        at: Mapping[Hashable, int],
        function: Callable[..., Any],
        join: Callable[..., Any],
        *given: Any,
    ) -> Any:
        """Call ``function`` with cases and dates of each chunk at a location, and join the results.

        The first object in ``given`` has the usual values of covariates, such as the median. The
        other objects are further arguments of the function.
        """
        task = _ChunkOfCases(function, self.method, self.periods)
        return self._joined(at, self.cases, task, join, given)

    def values(self, at: Mapping[Hashable, int]) -> Any:
        """Return a sample of covariates that may be missing or broken, from a location's chunks."""
        from xrecal.arrays.shared.samples import join_values

        names = PLACE, *self.method.breakable
        known = {name: self.cases["covariates"][name] for name in names}
        task = _ChunkOfValues(self.method, {name: self.periods[name] for name in names})
        return self._joined(at, {"covariates": known}, task, join_values, ())

    def _joined(
        self,
        at: Mapping[Hashable, int],
        cases: Mapping[str, CoreArrays],
        task: Callable[..., Any],
        join: Callable[..., Any],
        given: tuple[Any, ...],
    ) -> Any:
        """Run a task on each chunk at a location, and join the results."""
        beside: CoreArrays = {name: (array, ()) for name, array in self.beside.items()}
        here = {
            group: {
                name: (a.isel({d: i for d, i in at.items() if d in a.dims}), core)
                for name, (a, core) in of.items()
            }
            for group, of in {**cases, "beside": beside}.items()
        }
        each = int(np.prod([self.sizes[d] for d in self.pool.dims]))
        what, step = work_on("the fit", self.name), max(IN_MEMORY // each, 1)
        if sum(array.size for array, _ in here.get("forecasts", {}).values()) <= IN_SAME_PIECES:
            here = self._in_pieces(here, step)
        again = self.read_again
        return joined_chunks(task, join, here, given, step=step, what=what, read_again=again)

    def _in_pieces(self, given: Mapping[str, CoreArrays], step: int) -> dict[str, CoreArrays]:
        """Cut lazy arrays into pieces as large as the pieces of arrays in memory."""
        pieces = {DATE: step, **dict.fromkeys(self.pool.dims, -1)}

        def cut(array: xr.DataArray) -> xr.DataArray:
            ordered = array.transpose(*self.loops, ..., missing_dims="ignore")
            own = {d: size for d, size in pieces.items() if d in array.dims}
            return ordered.chunk(own) if is_lazy(array) else ordered

        return {g: {n: (cut(a), core) for n, (a, core) in of.items()} for g, of in given.items()}

    def observations(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the usable observations (..., case, place), NaN for other cases.

        The second result has the status bits of each location.
        """
        dtype = self.cases["observed"][0][0].dtype
        used, flags = run(
            _UsableObservations(self.periods),
            self.cases,
            {"observations": ({}, dtype), "flags": ({}, np.int16)},
            what=work_on("the fit", self.name),
        ).values()
        bits = [((flags & bit) > 0).any(self.loops) * np.int16(bit) for bit in (FILL, INVALID)]
        used = used.transpose(*self.locations, DATE, *self.pool.dims)
        shape = [*(self.sizes[d] for d in (*self.locations, DATE)), self.method.places]
        dims = (*self.locations, CASE, PLACES)
        flat = xr.DataArray(used.data.reshape(shape), dims=dims).isel({PLACES: [*self.pool.taken]})
        flat = flat if flat.chunks is None else flat.chunk({CASE: -1, PLACES: -1})
        return flat, (bits[0] | bits[1]).transpose(*self.locations)

    def arrays_of(self, fits: Sequence[Any]) -> dict[str, xr.DataArray]:
        """Return the arrays of the state from the fit of each location, which may be Delayed."""
        of_places = self.method.of_places
        periods = {name: p for name, p in self.periods.items() if name not in of_places}
        parameters = parameters_of(self.method, periods)
        out: dict[str, Any] = {name: (p.sizes(0), p.dtype) for name, p in parameters.items()}
        out |= {"n_cases": ({}, np.int32), "status": ({}, np.int16)}
        given: Inputs = {"fits": {0: (self.objects_of(fits), ())}}
        return run(arrays_of_fits, given, out, what=work_on("the fit", self.name))

    def of_locations(self, counts: Sequence[int]) -> xr.DataArray:
        """Put counts, one for each location, in an array over the locations."""
        shape = [self.sizes[d] for d in self.locations]
        return xr.DataArray(np.array(counts, np.int32).reshape(shape), dims=self.locations)

    def objects_of(self, values: Sequence[Any]) -> xr.DataArray:
        """Put objects, one for each location, in an array over the locations.

        The objects may be Delayed.
        """
        from dask.base import is_dask_collection

        shape = tuple(self.sizes[d] for d in self.locations)
        lazy = any(is_lazy(a) for of in self.cases.values() for a, _ in of.values())
        if not (lazy or any(map(is_dask_collection, values))):
            return xr.DataArray(as_objects(values).reshape(shape), dims=self.locations)
        import dask.array
        from dask.delayed import delayed

        alone = delayed(as_objects, pure=True)
        values = [v if is_dask_collection(v) else delayed(v, traverse=False) for v in values]
        each = [dask.array.from_delayed(alone([v]), (1,), object) for v in values]  # type: ignore[no-untyped-call]
        whole = dask.array.concatenate(each).reshape(shape)  # type: ignore[no-untyped-call]
        return xr.DataArray(whole, dims=self.locations)


def arrays_of_fits(fits: Named) -> Named:
    """Stack the arrays of L fits to arrays (L, ...), by name."""
    return {name: np.stack([fit[name] for fit in fits[0]]) for name in fits[0][0]}


class PassesOverChunks:
    """Engine that runs passes over the chunks of one location: at once, or as tasks of Dask.

    ``usual`` (1, p, 8) has 8 usual values, such as the median, of each of p covariates. By default
    the object computes them from all chunks.
    """

    def __init__(self, chunks: SharedChunks, at: Mapping[Hashable, int], usual: Any = None) -> None:
        from xrecal.arrays.shared.samples import Values

        self.chunks, self.at = chunks, at
        if usual is None and chunks.method.breakable:
            periods = [chunks.periods[name] for name in chunks.method.breakable]
            usual = self.once(Values.usual, chunks.values(at), periods)
        self.usual = NO_PREDICTORS if usual is None else usual

    def total(self, function: Callable[..., Any], join: Callable[..., Any], *given: Any) -> Any:
        """See :class:`xrecal.arrays.shared.passes.Engine`."""
        return self.chunks.joined(self.at, function, join, self.usual, *given)

    def once(self, function: Callable[..., Any], *args: Any) -> Any:
        """See :class:`xrecal.arrays.shared.passes.Engine`."""
        from dask.base import is_dask_collection

        if not any(map(is_dask_collection, args)):
            return function(*args)
        from dask.delayed import delayed

        return delayed(function, pure=True)(*args)


def cases_of_places(
    forecasts: Named, observed: Named, covariates: Named, periods: Mapping[str, float | None]
) -> tuple[Cases, int]:
    """Return cases (1, n) from n forecasts of any places and dates, and bits of the status.

    The search for absurdly large values compares only values of the same case, because the result
    must not depend on chunks.
    """
    each = {name: a[:, np.newaxis] for name, a in forecasts.items()}
    given = observed[0][:, np.newaxis]
    parts, (own,), filled = without_absurd(each, [given])
    whole = {name: a.reshape((1, len(a), a.shape[-1])) for name, a in parts.items()}
    known = {name: covariates[name][np.newaxis] for name in periods}
    cases, flags = usable_cases(whole, [own.reshape(1, -1)], known, CaseAxis(), periods)
    return cases, int((flags | FILL * filled.any())[0])


@dataclass(frozen=True)
class _UsableObservations:
    """Task that returns observations of a chunk, NaN in unusable cases, and bits of the status."""

    periods: Mapping[str, float | None]
    description = " by CKME of many places"

    def __call__(self, **given: Named) -> Named:
        cases, flags = cases_of_places(**given, periods=self.periods)
        used = cases.observations[0]
        return {"observations": used, "flags": np.full(used.shape, flags, np.int16)}


@dataclass(frozen=True)
class _ChunkOfCases:
    """Task that calls a function with the cases of a chunk and the numbers of their dates."""

    function: Callable[..., Any]
    method: SharedCKME
    periods: Mapping[str, float | None]
    description = " by CKME of many places"

    @property
    def __name__(self) -> str:
        """Name of the Dask tasks."""
        return f"shared_{self.function.__name__.strip('_')}"

    def __call__(self, usual: FloatArray, *passed: Any, beside: Named, **given: Named) -> Any:
        cases, _ = cases_of_places(**given, periods=self.periods)
        assert cases.forecasts is not None
        date, part, weight, *others = beside.values()
        parts = cases.forecasts, cases.observations, cases.covariates
        own, _ = self.method.array_cases(*parts, OfDates(part, weight), usual)
        return self.function(own, date, *others, *passed)


@dataclass(frozen=True)
class _ChunkOfValues:
    """Task that returns a sample of covariate values of a chunk.

    The sample has those covariates that may be missing or broken.
    """

    method: SharedCKME
    periods: Mapping[str, float | None]
    description = " by CKME of many places"
    __name__ = "shared_values"

    def __call__(self, covariates: Named, beside: Named) -> Values:
        given = [a[np.newaxis] for a in covariates.values()]
        return self.method.values(covariates_of(given, self.periods, given[0]), beside["date"])
