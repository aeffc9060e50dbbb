"""A shared fit: cases of many places in chunks, through passes that only add, to one state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import require_one_chunk, run_blockwise, work_on
from xrecal.chunks.tree import joined_chunks
from xrecal.inputs.covariates import period_of
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.pairing import Pairs
from xrecal.methods import SharedCKME
from xrecal.methods.base import Cases
from xrecal.methods.shared_ckme import IN_MEMORY
from xrecal.typing import FloatArray, IntArray

from .fitted import CASE, CASE_MEMBER, feature_count
from .pooling import DATE
from .shared_places import PLACES, feature_table, place_labels
from .state import cases_of, task_arguments


def fit_shared_state(
    pairs: Pairs,
    method: SharedCKME,
    axis: CaseAxis,
    covariates: Mapping[str, xr.DataArray],
    min_samples: int,
) -> xr.Dataset:
    """Lazy or computed state of a shared fit at each location that is not pooled.

    Its cases are the dates; observations are (date, place), which updates are compared with.
    """
    assert pairs.pool is not None
    chunks = SharedChunks(pairs, method, axis, covariates)
    table = feature_table(pairs.form, method, pairs.pool)
    fits = [
        method.learn(PassesOverChunks(chunks, at), table, min_samples)
        for at in chunks.each_location
    ]
    observed, flags = chunks.observations()
    state = xr.Dataset({**chunks.arrays_of(fits), "observations": observed})
    state["status"] = state["status"] | flags
    dated = [part[pairs.dim] for part in pairs.form.parts.values() if pairs.dim in part.indexes]
    labels: dict[str, Any] = {**place_labels(pairs.form, pairs.pool)}
    if dated:
        labels[f"calibration_{pairs.dim}"] = (CASE, dated[0].to_index(), dated[0].attrs)
    of_locations = {
        d: coordinate.variable
        for part in pairs.form.parts.values()
        for d, coordinate in part.coords.items()
        if d in chunks.locations and coordinate.dims == (d,)
    }
    return state.assign_coords({**of_locations, **labels})


class SharedChunks:
    """Cases of a hindcast as chunks over dates and places, and arrays of its state."""

    def __init__(
        self,
        pairs: Pairs,
        method: SharedCKME,
        axis: CaseAxis,
        covariates: Mapping[str, xr.DataArray],
    ) -> None:
        assert pairs.pool is not None
        self.name, self.method, self.pool = pairs.form.name, method, pairs.pool
        parts, others = task_arguments(pairs, covariates)
        for part in parts.values():
            require_one_chunk(part, (CASE_MEMBER,), name="hindcast")
        n_dates = next(iter(parts.values())).sizes[DATE]
        # What tells the place is the same on all dates.
        others = {
            name: value.isel({DATE: 0}, drop=True) if name in method.of_places else value
            for name, value in others.items()
        }
        numbers = np.arange(n_dates)
        self.loops = (DATE, *self.pool.dims)
        self.periods = {name: period_of(value) for name, value in covariates.items()}
        self.parts = {name: part.drop_vars(list(part.coords)) for name, part in parts.items()}
        self.others = {name: v.drop_vars(list(v.coords)) for name, v in others.items()}
        self.beside = [
            xr.DataArray(numbers, dims=[DATE]),
            xr.DataArray(method.folds(axis, n_dates), dims=[DATE]),
        ]
        """Numbers of dates and folds, and further arrays that functions of a chunk get."""
        first = next(iter(self.parts.values()))
        self.locations = tuple(d for d in first.dims if d not in (*self.loops, CASE_MEMBER))
        self.sizes = {d: first.sizes[d] for d in (*self.locations, *self.loops)}

    @property
    def each_location(self) -> list[dict[Hashable, int]]:
        """Positions along the dimensions that are not pooled, one by one."""
        shape = [self.sizes[d] for d in self.locations]
        return [dict(zip(self.locations, at, strict=True)) for at in np.ndindex(*shape)]

    def joined(
        self,
        at: Mapping[Hashable, int],
        function: Callable[..., Any],
        join: Callable[..., Any],
        *given: Any,
    ) -> Any:
        """What ``function(cases, date, *given)`` makes of all chunks at a location, joined."""
        arrays = [*self.parts.values(), *self.others.values(), *self.beside]
        here = [a.isel({d: i for d, i in at.items() if d in a.dims}) for a in arrays]
        each = int(np.prod([self.sizes[d] for d in self.pool.dims]))
        return joined_chunks(
            _ChunkOfCases(function, self.method, tuple(self.parts), self.periods, len(self.beside)),
            join,
            *here,
            core=[*[(CASE_MEMBER,)] * len(self.parts), *[()] * (len(arrays) - len(self.parts))],
            given=given,
            step=max(IN_MEMORY // each, 1),
            what=work_on("the fit", self.name),
        )

    def observations(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Observations (..., case, place) that are learned from, NaN where there is none.

        And bits of the status of each location.
        """
        from xrecal.arrays.status import FILL, INVALID

        parts, observed = self.parts.values(), self.others.values()
        used, flags = run_blockwise(
            _UsableObservations(tuple(self.parts), self.periods),
            *parts,
            *observed,
            core=[*[(CASE_MEMBER,)] * len(parts), *[()] * len(observed)],
            out=[(), ()],
            dtypes=[self.others["observations"].dtype, np.int16],
            sizes={},
            what=work_on("the fit", self.name),
        )
        bits = [((flags & bit) > 0).any(self.loops) * np.int16(bit) for bit in (FILL, INVALID)]
        used = used.transpose(*self.locations, DATE, *self.pool.dims)
        shape = [*(self.sizes[d] for d in (*self.locations, DATE)), self.method.places]
        dims = (*self.locations, CASE, PLACES)
        flat = xr.DataArray(used.data.reshape(shape), dims=dims).isel({PLACES: [*self.pool.taken]})
        flat = flat if flat.chunks is None else flat.chunk({CASE: -1, PLACES: -1})
        return flat, (bits[0] | bits[1]).transpose(*self.locations)

    def arrays_of(self, fits: Sequence[Any]) -> dict[str, xr.DataArray]:
        """Arrays of the state, from those by name of each location, which may be Delayed."""
        n_features = feature_count(
            {n: p for n, p in self.periods.items() if n not in self.method.of_places}
        )
        due: dict[str, tuple[tuple[str, ...], tuple[int, ...], Any]] = {
            name: (tuple(p.dims), tuple(p.sizes(0).values()), p.dtype)
            for name, p in self.method.parameters(n_features).items()
        }
        due |= {"n_cases": ((), (), np.int32), "status": ((), (), np.int16)}
        shape = tuple(self.sizes[d] for d in self.locations)
        arrays = {}
        for name, (dims, own, dtype) in due.items():
            each = [_array(fit, name, own, np.dtype(dtype)) for fit in fits]
            module = np if isinstance(each[0], np.ndarray) else _dask_array()
            stacked = module.stack(each).reshape((*shape, *own))
            arrays[name] = xr.DataArray(stacked, dims=(*self.locations, *dims))
        return arrays

    def objects_of(self, values: Sequence[Any]) -> xr.DataArray:
        """Objects over the locations, which may be Delayed."""
        from dask.base import is_dask_collection

        shape = tuple(self.sizes[d] for d in self.locations)
        if not any(map(is_dask_collection, values)):
            return xr.DataArray(_as_array(*values).reshape(shape), dims=self.locations)
        from dask.delayed import delayed

        each = [
            _dask_array().from_delayed(delayed(_as_array, pure=True)(v), (1,), object)
            for v in values
        ]
        whole = _dask_array().concatenate(each).reshape(shape)
        return xr.DataArray(whole, dims=self.locations)


def _as_array(*values: Any) -> npt.NDArray[Any]:
    """Objects as an array, which does not look into them."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _dask_array() -> Any:
    import dask.array

    return dask.array


def _array(fit: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array of a fit, lazy if it is."""
    if isinstance(fit, Mapping):
        return np.asarray(fit[name], dtype).reshape(shape)
    from dask.delayed import delayed

    return _dask_array().from_delayed(delayed(_taken, pure=True)(fit, name, dtype), shape, dtype)


def _taken(fit: Mapping[str, npt.NDArray[Any]], name: str, dtype: np.dtype[Any]) -> Any:
    return np.asarray(fit[name], dtype)


class PassesOverChunks:
    """Runs passes over the chunks of one location: at once in memory, as tasks of Dask."""

    def __init__(self, chunks: SharedChunks, at: Mapping[Hashable, int]) -> None:
        self.chunks, self.at = chunks, at

    def total(self, function: Callable[..., Any], join: Callable[..., Any], *given: Any) -> Any:
        """See :class:`xrecal.arrays.shared.passes.Engine`."""
        return self.chunks.joined(self.at, function, join, *given)

    def once(self, function: Callable[..., Any], *args: Any) -> Any:
        """See :class:`xrecal.arrays.shared.passes.Engine`."""
        from dask.base import is_dask_collection

        if not any(map(is_dask_collection, args)):
            return function(*args)
        from dask.delayed import delayed

        return delayed(function, pure=True)(*args)


class _Usable:
    """Arrays of a chunk (date, places, ...) in, its cases in one row out."""

    def __init__(self, parts: tuple[str, ...], periods: Mapping[str, float | None]) -> None:
        self.parts, self.periods = parts, periods

    def cases(self, args: Sequence[npt.NDArray[Any]]) -> tuple[tuple[int, ...], Cases, int]:
        """Shape of the chunk, cases (1, n), and bits of the status."""
        k = len(self.parts)
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in args[:k]), *(a.shape for a in args[k:]))
        rows = [np.broadcast_to(a, (*lead, a.shape[-1])).reshape(-1, a.shape[-1]) for a in args[:k]]
        others = [np.broadcast_to(a, lead).ravel() for a in args[k:]]
        _, cases, flags = cases_of(
            dict(zip(self.parts, rows, strict=True)),
            others,
            self.periods,
            CaseAxis(),
            case_by_case=True,  # what else the chunk holds must not matter
        )
        return lead, cases, int(flags[0])


class _UsableObservations(_Usable):
    """Observations of a chunk, NaN in cases that cannot be learned from, and bits of the status."""

    description = " by CKME of many places"

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[FloatArray, IntArray]:
        lead, cases, flags = self.cases(args)
        return cases.observations.reshape(lead), np.full(lead, flags, np.int16)


class _ChunkOfCases(_Usable):
    """A function of the cases of a chunk, and of the numbers of their dates."""

    description = " by CKME of many places"

    def __init__(
        self,
        function: Callable[..., Any],
        method: SharedCKME,
        parts: tuple[str, ...],
        periods: Mapping[str, float | None],
        n_beside: int,
    ) -> None:
        super().__init__(parts, periods)
        self.function, self.method, self.n_beside = function, method, n_beside
        self.__name__ = f"shared_{function.__name__.strip('_')}"

    def __call__(self, *args: Any) -> Any:
        n = len(self.parts) + 1 + len(self.periods)
        beside, given = args[n : n + self.n_beside], args[n + self.n_beside :]
        lead, cases, _ = self.cases(args[:n])
        date, fold, *rest = (np.broadcast_to(values, lead).ravel() for values in beside)
        assert cases.forecasts is not None
        own, _ = self.method.array_cases(
            cases.forecasts, cases.observations, cases.covariates, fold
        )
        return self.function(own, date, *rest, *given)
