"""Tasks: functions that take named arrays of one chunk of places, and return named arrays.

:func:`run` passes labelled arrays to a task and labels its results, on NumPy and on Dask. A task
takes groups of named arrays. Each array has the shape (L, ...), with the L places of its chunk on
the first axis. The task returns named arrays of such a shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import as_array, contiguous, namespace

from .blockwise import TaskError, is_lazy, one_blas_thread, require_free, require_one_side
from .labels import labels_along
from .progress import parts
from .texts import quoted
from .windows import overlapped, trimmed

Array: TypeAlias = xr.DataArray | xr.Variable
Named: TypeAlias = Mapping[Any, npt.NDArray[Any]]
"""Arrays of a chunk by name."""
Task: TypeAlias = Callable[..., Named]
"""A task: a function with an argument ``group={name: array}`` for each group of its inputs."""
Inputs: TypeAlias = Mapping[str, Mapping[Any, tuple[Array, Sequence[Hashable]]]]
"""Arrays by group and name, each with its core dimensions: the axes after the axis of places. All
other dimensions are looped dimensions; each position along them is a place. The first array must
have all looped dimensions, except those that ``EACH`` represents."""
Outputs: TypeAlias = Mapping[Any, tuple[Mapping[Hashable, int], npt.DTypeLike]]
"""Descriptions of results by name: core dimensions with their sizes, and the type."""

EACH = "xrecal_each"
"""Core dimension that represents all dimensions in ``each`` of :func:`run`, as one axis."""

OF_PLACE = "of_place"
"""Beginning of the names of groups whose arrays are small, with some values for each place. These
arrays are never on a GPU."""

INSIDE = "inside"
"""Argument of a task on overlapping chunks: a mask of the positions that need results."""


def run(
    task: Task,
    given: Inputs,
    out: Outputs,
    *,
    what: str,
    each: Sequence[Hashable] = (),
    windows: Mapping[Hashable, int] | None = None,
) -> dict[Any, xr.DataArray]:
    """Run a task on each chunk of places.

    Arrays must have equal labels, because this function does not join arrays. If there are
    many arrays, you may pass Variables, which have no labels, to save time. A failed Dask task
    raises :class:`TaskError`, which states where ``what`` failed.

    Parameters
    ----------
    task : callable
        The task, which may have attributes ``on_device`` and ``description``; see
        :func:`xrecal.chunks.blockwise.require_one_side`. An attribute ``by_place`` with the value
        True means that the task takes long. The task then gets some places at a time, so that a bar
        can show the progress.
    given, out : mapping
        See :data:`Inputs` and :data:`Outputs`.
    what : str
        Name of the work, for messages.
    each : sequence of hashable
        Dimensions that the core dimension ``EACH`` represents. In an array with these dimensions,
        ``EACH`` must be the first core dimension. Arrays without ``EACH`` have none of these
        dimensions. Dask may have several chunks along ``each``.
    windows : mapping of hashable to int, optional
        Width of the window, an odd number of positions, along each dimension in this mapping. These
        dimensions are the first core dimensions of all arrays and results. If Dask has several
        chunks along such a dimension, each chunk also gets half a window from its neighbours on
        every side. The task then gets a mask ``inside`` of the positions (n,) that need results.

    Raises
    ------
    ValueError
        If an array has a looped dimension with the name of a new dimension of a result.
    """
    arrays, core = arrays_of(given)
    new = [{d: n for d, n in dims.items() if d != EACH} for dims, _ in out.values()]
    windows = windows or {}
    cut = any(len(array.chunksizes.get(d, ())) > 1 for array in arrays for d in windows)
    if cut:
        arrays = [*overlapped([*map(labelled, arrays)], core, windows)]
        core = [[d for d in own if d not in windows] for own in core] + [[]] * len(windows)
        new = [{d: n for d, n in dims.items() if d not in windows} for dims in new]
    names = [group for group, of in given.items() for _ in of]
    names += [INSIDE] * (len(arrays) - len(names))
    sides = zip(arrays, names, strict=True)
    require_one_side(task, [a for a, group in sides if not group.startswith(OF_PLACE)], what)
    sizes = {d: n for dims in new for d, n in dims.items()}
    looped = looped_sizes(arrays, core)
    require_free(looped, {*sizes}.difference(*core))
    arrays = [_without_names(array, {*sizes}) for array in arrays]
    nothing = 0 in looped.values() and any(map(is_lazy, arrays))
    if nothing:  # Dask's gufuncs do not support this case
        arrays = [a.copy(data=np.broadcast_to(np.zeros((), a.dtype), a.shape)) for a in arrays]
    labels = labels_for_messages(arrays, core)
    results = xr.apply_ufunc(
        replace(Call.of(task, what, given, out, each), labels=tuple(labels)),
        *arrays,
        *labels.values(),
        input_core_dims=[*core, *[()] * len(labels)],
        output_core_dims=[list(dims) for dims in new],
        join="exact",
        keep_attrs="override",  # keeps attributes of coordinates
        dask="parallelized",
        output_dtypes=[dtype for _, dtype in out.values()],
        dask_gufunc_kwargs={"output_sizes": sizes},
    )
    named = zip(out, results if isinstance(results, tuple) else (results,), strict=True)
    bare = {name: _bare(result, arrays) for name, result in named}
    if nothing:
        bare = {name: a.copy(data=a.variable.chunk().data) for name, a in bare.items()}
    return {name: trimmed(result, windows) for name, result in bare.items()} if cut else bare


def total(
    task: Task,
    given: Inputs,
    out: Mapping[Hashable, int],
    *,
    over: Sequence[Hashable],
    what: str,
    each: Sequence[Hashable] = (),
) -> xr.DataArray:
    """Add up integers that a task returns for each chunk of the dimensions ``over``.

    The task adds up its own chunk, and returns one array (1, T, n) of int64: T positions along
    ``each``, and n positions along the dimension in ``out``. The sum of integers does not depend on
    the order of the chunks. Other parameters are as for :func:`run`.
    """
    arrays, core = arrays_of(given)
    require_one_side(task, arrays, what)
    args = xr.align(*map(labelled, arrays), join="exact", copy=False)
    sizes = looped_sizes(args, core)
    rest = [d for d in sizes if d not in over]
    if 0 in sizes.values():
        nothing = np.zeros([*(sizes[d] for d in rest), *out.values()], dtype=np.int64)
        return xr.DataArray(nothing, dims=[*rest, *out])
    call = Call.of(task, what, given, {None: ({EACH: 0, **out}, np.int64)}, each)
    if any(map(is_lazy, args)):
        totals = of_each_chunk(call, args, core, over=over, new=out, dtype=np.int64)
    else:
        totals = call(
            *(with_axes(array, sizes, own) for array, own in zip(args, core, strict=True))
        )
    axes = tuple(i for i, d in enumerate(sizes) if d in over)
    return xr.DataArray(totals.sum(axis=axes), dims=[*rest, *out])


def with_core_last(
    array: xr.DataArray, loops: Sequence[Hashable], each: Sequence[Hashable] = (EACH,)
) -> tuple[xr.DataArray, tuple[Hashable, ...]]:
    """Put the dimensions ``loops`` of an array first; return the array and its core dimensions.

    The array keeps only its labels, because other coordinates may differ between arrays. The
    core dimensions are ``each``, and then all dimensions that are not in ``loops``.
    """
    own = tuple(d for d in array.dims if d not in loops)
    bare = array.drop_vars(set(array.coords) - labels_along(array, array.dims))
    return bare.transpose(*[d for d in loops if d in array.dims], *own), (*each, *own)


def arrays_of(given: Inputs) -> tuple[list[Array], list[list[Hashable]]]:
    """Return the arrays of all groups in order, and their core dimensions without ``EACH``."""
    pairs = [pair for group in given.values() for pair in group.values()]
    return [array for array, _ in pairs], [[d for d in core if d != EACH] for _, core in pairs]


def labelled(array: Array) -> xr.DataArray:
    """Return a DataArray: the array itself, or a Variable without labels as a DataArray."""
    return array if isinstance(array, xr.DataArray) else xr.DataArray(array)


def looped_sizes(
    arrays: Sequence[Array], core: Sequence[Sequence[Hashable]]
) -> dict[Hashable, int]:
    """Return the looped dimensions, which are not core dimensions, with their sizes."""
    pairs = zip(arrays, core, strict=True)
    return {d: n for array, own in pairs for d, n in array.sizes.items() if d not in own}


def with_axes(array: xr.DataArray, loops: Mapping[Hashable, int], core: Sequence[Hashable]) -> Any:
    """Return values with an axis for each of ``loops``; axes that the array lacks have length 1."""
    ordered = array.transpose(*[d for d in loops if d in array.dims], *core)
    return ordered.data[tuple(slice(None) if d in array.dims else None for d in loops)]


def labels_for_messages(
    arrays: Sequence[Array], core: Sequence[Sequence[Hashable]]
) -> dict[Hashable, xr.DataArray]:
    """Return the labels along each looped dimension, or positions if there are no labels.

    Each task gets the labels of its chunk, so that an error can name them. It gets no labels of
    other chunks, because they would make the graph large. Without Dask the result is empty.
    """
    if not any(map(is_lazy, arrays)):
        return {}
    indexed = [array for array in arrays if isinstance(array, xr.DataArray)]
    cut = {}
    for d, size in looped_sizes(arrays, core).items():
        index = next((array.indexes[d] for array in indexed if d in array.indexes), None)
        labels = np.arange(size) if index is None else index.to_numpy()
        if labels.dtype == object:  # dates of other calendars, strings, several levels
            labels = np.array([str(label) for label in labels], dtype=str)
        cut[d] = xr.DataArray(labels, dims=[d])
    return cut


def of_each_chunk(
    call: Call,
    arrays: Sequence[xr.DataArray],
    core: Sequence[Sequence[Hashable]],
    *,
    over: Iterable[Hashable],
    new: Mapping[Hashable, int],
    dtype: npt.DTypeLike,
    passed: Sequence[Any] = (),
) -> Any:
    """Return a Dask array with the results of calling a task on each chunk.

    The array has the looped dimensions, and then the dimensions ``new``. Along the dimensions
    ``over``, the array has one entry per chunk. The call also gets the objects in ``passed``, once
    these are computed.
    """
    import dask.array

    sizes, labels = looped_sizes(arrays, core), labels_for_messages(arrays, core)
    inputs: list[Any] = []
    for array, own in zip(arrays, core, strict=True):
        values = with_axes(array, sizes, own)
        inputs += [values if is_lazy(array) else dask.array.asarray(values), (*sizes, *own)]  # type: ignore[no-untyped-call]
    for d, label in labels.items():
        inputs += [label.data, (d,)]
    return dask.array.blockwise(  # type: ignore[no-untyped-call]
        replace(call, labels=tuple(labels)),
        (*sizes, *new),
        *inputs,
        new_axes=new,
        adjust_chunks=dict.fromkeys(over, 1),
        concatenate=True,
        dtype=dtype,
        meta=np.empty((0,) * (len(sizes) + len(new)), dtype=dtype),
        passed=list(passed),
    )


@dataclass(frozen=True)
class Call:
    """Function that takes and returns arrays by position, and calls a task that uses names.

    The task runs with one BLAS thread. Dask provides the parallelism, and threads within each task
    would make a fit many times slower. With one thread, results also do not depend on the number of
    cores. If the task fails on a Dask chunk, the error names the labels of the chunk.
    """

    task: Callable[..., Any]
    what: str
    groups: Mapping[str, Sequence[tuple[Any, int, bool]]]
    """For each group, the name of each array, the number of its core axes without ``EACH``, and
    True if it has ``EACH``."""
    n_each: int
    out: Mapping[Any, tuple[bool, tuple[int, ...], npt.DTypeLike]]
    """For each result by name: True if it has ``EACH``, the sizes of its last axes, and its type.
    Without names the result is one object."""
    labels: tuple[Hashable, ...] = ()
    """Dimensions whose labels are the last arguments; empty without Dask."""

    @classmethod
    def of(
        cls,
        task: Callable[..., Any],
        what: str,
        given: Inputs,
        out: Outputs,
        each: Sequence[Hashable] = (),
    ) -> Call:
        """Make the call of a task from its inputs and outputs."""
        groups = {
            group: [(name, len({*core} - {EACH}), EACH in core) for name, (_, core) in of.items()]
            for group, of in given.items()
        }
        results = {
            name: (EACH in dims, tuple(n for d, n in dims.items() if d != EACH), dtype)
            for name, (dims, dtype) in out.items()
        }
        return cls(task, what, groups, len(each), results)

    @property
    def __name__(self) -> str:
        """Name of the Dask tasks; without it Dask would use the address of the object as name."""
        return getattr(self.task, "__name__", type(self.task).__name__.strip("_"))

    def __call__(self, *args: Any, passed: Sequence[Any] = ()) -> Any:
        """Return the results by position: a tuple, or the result itself if there is only one."""
        n = len(args) - len(self.labels)
        with one_blas_thread():
            try:
                return self._results(args[:n], passed)
            except Exception as error:
                if not self.labels:
                    raise
                where = ", ".join(map(_range, self.labels, args[n:]))
                message = f"{self.what} failed at {where}: {type(error).__name__}: {error}"
                raise TaskError(quoted(message), error) from error

    def _results(self, given: Sequence[Any], passed: Sequence[Any]) -> Any:
        values = [value if hasattr(value, "shape") else _as_object(value) for value in given]
        cores = [n_core for of in self.groups.values() for _, n_core, _ in of]
        pairs, wanted = list(zip(values, cores, strict=False)), values[len(cores) :]
        lead = np.broadcast_shapes(*(array.shape[: array.ndim - n] for array, n in pairs))
        places, rest = lead[: len(lead) - self.n_each], lead[len(lead) - self.n_each :]
        inside = reduce(and_, wanted) if wanted else None
        if self.out and 0 in lead:  # tasks need not handle this case
            xp, own = namespace(values[0]), () if inside is None else inside.shape
            return _one_or_all(
                xp.empty((*places, *(rest if each else ()), *own, *core[len(own) :]), dtype=dtype)
                for each, core, dtype in self.out.values()
            )
        arrays = iter(pairs)
        groups: dict[str, Any] = {
            group: {name: _flat(*next(arrays), places, rest, each) for name, _, each in of}
            for group, of in self.groups.items()
        }
        if not self.out:
            alone = np.empty((1,) * len(lead), dtype=object)
            alone[(0,) * len(lead)] = self.task(*map(_in_rows, passed), **groups)
            return alone
        if inside is None and getattr(self.task, "by_place", False):
            results = self._in_parts(groups, math.prod(places))
        else:
            results = self.task(**groups, **({} if inside is None else {INSIDE: inside.ravel()}))
        return _one_or_all(
            _shaped(as_array(results[name]), places, rest if each else None).astype(
                dtype, copy=False
            )
            for name, (each, _, dtype) in self.out.items()
        )

    def _in_parts(self, groups: Mapping[str, Named], n: int) -> Named:
        """Return the results of n places; if progress is shown, compute some places at a time."""
        found = list[Named]()
        for at in parts(n):
            some = {g: {name: a[at] for name, a in of.items()} for g, of in groups.items()}
            found.append(self.task(**(groups if at == slice(0, n) else some)))
        if len(found) == 1:
            return found[0]
        xp = namespace(found[0][next(iter(self.out))])
        return {name: xp.concatenate([as_array(one[name]) for one in found]) for name in self.out}


def _one_or_all(results: Iterable[Any]) -> Any:
    """Return results as a tuple, or the result itself if there is only one."""
    every = tuple(results)
    return every if len(every) > 1 else every[0]


def _in_rows(value: Any) -> Any:
    """Return an array with contiguous rows; for other layouts BLAS rounds differently."""
    return contiguous(value) if hasattr(value, "strides") else value


def _range(dim: Hashable, labels: Any) -> str:
    """Return the name of a dimension with its first and its last label, as text."""
    flat = np.ravel(labels)
    ends = [str(label).removesuffix("T00:00:00.000000000") for label in (flat[0], flat[-1])]
    return f"{dim} {ends[0]}" if flat.size == 1 else f"{dim} {ends[0]} to {ends[1]}"


def _as_object(value: Any) -> npt.NDArray[Any]:
    """Return an array without axes that holds one object, even a sequence, for all places."""
    array = np.empty((), dtype=object)
    array[()] = value
    return array


def _flat(
    array: npt.NDArray[Any],
    n_core: int,
    places: tuple[int, ...],
    rest: tuple[int, ...],
    own: bool,
) -> npt.NDArray[Any]:
    """Put all places on one axis (L, ...); if ``own``, put the axes ``rest`` on a second axis."""
    array = _in_rows(array)
    lead, core = array.shape[: array.ndim - n_core], array.shape[array.ndim - n_core :]
    if own:
        whole = np.broadcast_to(array, (*places, *rest, *core))
        return whole.reshape((math.prod(places), math.prod(rest), *core))
    if lead and rest:  # xarray has added an axis of length one for each
        array = array.reshape((*lead[: len(lead) - len(rest)], *core))
    return np.broadcast_to(array, (*places, *core)).reshape((math.prod(places), *core))


def _shaped(
    result: npt.NDArray[Any], places: tuple[int, ...], rest: tuple[int, ...] | None
) -> npt.NDArray[Any]:
    """Split the first axis of a result into axes ``places``, and the second into axes ``rest``."""
    if len(result) != math.prod(places):  # a total
        places = (1,) * len(places)
    if rest is None:
        return result.reshape((*places, *result.shape[1:]))
    return result.reshape((*places, *rest, *result.shape[2:]))


def _without_names(array: Array, new: set[Hashable]) -> Array:
    """Drop coordinates with names of new dimensions, except those that label dimensions."""
    if isinstance(array, xr.Variable):
        return array
    taken = [c for c, own in array.coords.variables.items() if c in new and own.dims != (c,)]
    return array.drop_vars(taken) if taken else array


def _bare(result: xr.DataArray | xr.Variable, arrays: Sequence[Array]) -> xr.DataArray:
    """Return a result without attributes, except the attributes of its labels, such as units."""
    if isinstance(result, xr.Variable):
        return xr.DataArray(xr.Variable(result.dims, result.data))
    result.attrs = {}  # the array was made here
    indexed = [array for array in arrays if isinstance(array, xr.DataArray)]
    labels = {d: attrs for d in result.indexes if (attrs := _missing_attrs(result, d, indexed))}
    described = {d: result.coords[d].assign_attrs(attrs) for d, attrs in labels.items()}
    return result.assign_coords(described) if described else result


def _missing_attrs(
    array: xr.DataArray, label: Hashable, indexed: Sequence[xr.DataArray]
) -> Mapping[Any, Any]:
    """Return attributes for a label that lost its attributes, from one of the original arrays."""
    if array.coords.variables[label].attrs:
        return {}
    variables = (one.coords.variables.get(label) for one in indexed)
    return next((own.attrs for own in variables if own is not None and own.attrs), {})
