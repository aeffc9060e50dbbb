"""Tasks: named arrays of one chunk of places in, named arrays out.

:func:`run` is the one way from labelled arrays to a task and back. A task is called with groups of
arrays by name, each (L, ...) with the L places of its chunk on the first axis, and returns arrays
(L, ...) by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import as_array

from .blockwise import (
    ToldTask,
    is_lazy,
    labels_for_messages,
    looped_sizes,
    require_one_side,
    run_blockwise,
    with_axes,
)
from .windows import run_windows

Array: TypeAlias = xr.DataArray | xr.Variable
Named: TypeAlias = Mapping[Any, npt.NDArray[Any]]
"""Arrays of a chunk by name."""
Task: TypeAlias = Callable[..., Named]
"""Is called with ``group={name: array}`` for each group of its inputs."""
Inputs: TypeAlias = Mapping[str, Mapping[Any, tuple[Array, Sequence[Hashable]]]]
"""Arrays by group and name, each with its core dimensions: the axes after that of the places.

All other dimensions are looped over. The first array has all of them but those of ``EACH``.
"""
Outputs: TypeAlias = Mapping[Any, tuple[Mapping[Hashable, int], npt.DTypeLike]]
"""Results by name: core dimensions with their sizes, and the type."""

EACH = "xrecal_each"
"""Core dimension that stands for all dimensions ``each`` of a call of :func:`run`, as one axis."""

INSIDE = "inside"
"""Group with which positions of a chunk that overlaps with its neighbours belong to the chunk."""


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

    Parameters
    ----------
    task : callable
        May have attributes ``on_device`` and ``description``; see
        :func:`xrecal.chunks.blockwise.require_one_side`.
    given, out : mapping
        See :data:`Inputs` and :data:`Outputs`.
    what : str
        The work, for messages.
    each : sequence of hashable
        Dimensions that arrays with the core dimension ``EACH``, which is then their first, are
        looped over as well. Dask may cut them, and other arrays are the same along them.
    windows : mapping of hashable to int, optional
        First core dimensions of all arrays and results, which Dask may cut; see
        :func:`xrecal.chunks.windows.run_windows`. The task gets the positions (n,) that results
        are wanted for as ``inside``, where chunks overlap.
    """
    arrays = [array for group in given.values() for array, _ in group.values()]
    options: dict[str, Any] = {
        "core": [_without_each(core) for group in given.values() for _, core in group.values()],
        "out": [_without_each(dims) for dims, _ in out.values()],
        "dtypes": [dtype for _, dtype in out.values()],
        "sizes": {d: n for dims, _ in out.values() for d, n in dims.items() if d != EACH},
        "what": what,
    }
    call = _Call.of(task, given, out, each)
    if windows:
        results = run_windows(call, *map(_labelled, arrays), windows=windows, **options)
    else:
        results = run_blockwise(call, *arrays, **options)
    return dict(zip(out, results, strict=True))


def total(
    task: Task,
    given: Inputs,
    out: Mapping[Hashable, int],
    *,
    over: Sequence[Hashable],
    what: str,
    each: Sequence[Hashable] = (),
) -> xr.DataArray:
    """Add up whole numbers that a task returns for each chunk of the dimensions ``over``.

    The task adds up its own chunk: it returns one array (1, T, n), int64, whose sum is the same in
    any order; ``out`` has its last dimension. Otherwise as :func:`run`.
    """
    ((dim, size),) = out.items()
    call = _Call.of(task, given, {None: ({EACH: 0, **out}, np.int64)}, each)
    core = [_without_each(core) for group in given.values() for _, core in group.values()]
    arrays = [_labelled(array) for group in given.values() for array, _ in group.values()]
    require_one_side(call, arrays, what)
    args = xr.align(*arrays, join="exact", copy=False)
    sizes = looped_sizes(args, core)
    rest = [d for d in sizes if d not in over]
    if 0 in sizes.values():
        nothing = np.zeros([*(sizes[d] for d in rest), size], dtype=np.int64)
        return xr.DataArray(nothing, dims=[*rest, dim])
    labels = labels_for_messages(args, core)
    told = ToldTask(call, what, tuple(labels))
    inputs = [(with_axes(a, sizes, c), (*sizes, *c)) for a, c in zip(args, core, strict=True)]
    inputs += [(label.data, (d,)) for d, label in labels.items()]
    if not any(map(is_lazy, args)):
        totals = told(*(values for values, _ in inputs))
    else:
        import dask.array

        totals = dask.array.blockwise(  # type: ignore[no-untyped-call]
            told,
            (*sizes, dim),
            *(part for pair in inputs for part in pair),
            new_axes={dim: size},
            adjust_chunks=dict.fromkeys(over, 1),
            concatenate=True,
            dtype=np.int64,
            meta=np.empty((0,) * (len(sizes) + 1), dtype=np.int64),
        )
    axes = tuple(i for i, d in enumerate(sizes) if d in over)
    return xr.DataArray(totals.sum(axis=axes), dims=[*rest, dim])


def with_core_last(
    array: xr.DataArray, loops: Sequence[Hashable], each: Sequence[Hashable] = (EACH,)
) -> tuple[xr.DataArray, tuple[Hashable, ...]]:
    """An array with the dimensions ``loops`` first, and its core dimensions: ``each``, the others.

    Without coordinates that are no labels, as those of arrays may differ.
    """
    own = tuple(d for d in array.dims if d not in loops)
    bare = array.drop_vars([c for c in array.coords if c not in array.dims])
    return bare.transpose(*[d for d in loops if d in array.dims], *own), (*each, *own)


def _labelled(array: Array) -> xr.DataArray:
    return array if isinstance(array, xr.DataArray) else xr.DataArray(array)


def _without_each(dims: Sequence[Hashable] | Mapping[Hashable, int]) -> tuple[Hashable, ...]:
    return tuple(d for d in dims if d != EACH)


class Groups(NamedTuple):
    """Arrays of a chunk in groups by name, and the chunk that they are of."""

    arrays: dict[str, dict[Any, npt.NDArray[Any]]]
    places: tuple[int, ...]
    """Axes of the places."""
    rest: tuple[int, ...]
    """Axes of the dimensions ``each``."""
    others: list[Any]
    """Arguments after the arrays."""


@dataclass(frozen=True)
class Grouping:
    """The groups that arrays of a chunk come in, which tasks get by position."""

    names: Mapping[str, Sequence[tuple[Any, int, bool]]]
    """Names of each group, with the number of core axes and whether ``EACH`` is one of them."""
    n_each: int = 0

    @classmethod
    def of(cls, given: Inputs, each: Sequence[Hashable] = ()) -> Grouping:
        """The groups of inputs."""
        names = {
            group: [
                (name, len(_without_each(core)), EACH in core) for name, (_, core) in of.items()
            ]
            for group, of in given.items()
        }
        return cls(names, len(each))

    def __call__(self, values: Sequence[Any]) -> Groups:
        """Group arrays by position, each with all places on its first axis."""
        args = [value if hasattr(value, "shape") else _as_object(value) for value in values]
        cores = [n for of in self.names.values() for _, n, _ in of]
        lead = np.broadcast_shapes(
            *(a.shape[: a.ndim - n] for a, n in zip(args, cores, strict=False))
        )
        cut, arrays = len(lead) - self.n_each, iter(args)
        places, rest = lead[:cut], lead[cut:]
        groups = {
            group: {
                name: _flat(next(arrays), n_core, places, rest, own) for name, n_core, own in of
            }
            for group, of in self.names.items()
        }
        return Groups(groups, places, rest, list(values[len(cores) :]))


@dataclass(frozen=True)
class _Call:
    """Arrays of a chunk by position in, results by position out; in between the task."""

    task: Task
    grouping: Grouping
    out: Mapping[Any, tuple[bool, npt.DTypeLike]]
    """Names of results, with whether ``EACH`` is an axis, and the type."""

    @classmethod
    def of(cls, task: Task, given: Inputs, out: Outputs, each: Sequence[Hashable]) -> _Call:
        """Make the call of a task from what it is given and returns."""
        results = {name: (EACH in dims, dtype) for name, (dims, dtype) in out.items()}
        return cls(task, Grouping.of(given, each), results)

    @property
    def __name__(self) -> str:
        """Name of the tasks of Dask."""
        return getattr(self.task, "__name__", type(self.task).__name__.strip("_"))

    @property
    def on_device(self) -> bool:
        """Whether the task takes CuPy arrays."""
        return bool(getattr(self.task, "on_device", False))

    @property
    def description(self) -> str:
        """The work of the task, for messages."""
        return str(getattr(self.task, "description", ""))

    def __call__(self, *values: Any) -> Any:
        groups, places, rest, wanted = self.grouping(values)
        inside = {INSIDE: reduce(and_, wanted).ravel()} if wanted else {}
        results = self.task(**groups, **inside)
        arrays = ((as_array(results[n]), own, dtype) for n, (own, dtype) in self.out.items())
        shaped = tuple(
            _shaped(array, places, rest if own else None).astype(dtype, copy=False)
            for array, own, dtype in arrays
        )
        return shaped if len(shaped) > 1 else shaped[0]


def _as_object(value: Any) -> npt.NDArray[Any]:
    """An object that is the same at all places, as an array that does not look into it."""
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
    """An array (L, ...), or (L, T, ...) where ``own``, with all places of the chunk."""
    lead, core = array.shape[: array.ndim - n_core], array.shape[array.ndim - n_core :]
    if own:
        whole = np.broadcast_to(array, (*places, *rest, *core))
        return whole.reshape((math.prod(places), math.prod(rest), *core))
    if lead and rest:  # xarray has put an axis of length one for each
        array = array.reshape((*lead[: len(lead) - len(rest)], *core))
    return np.broadcast_to(array, (*places, *core)).reshape((math.prod(places), *core))


def _shaped(
    result: npt.NDArray[Any], places: tuple[int, ...], rest: tuple[int, ...] | None
) -> npt.NDArray[Any]:
    """A result (L, ...), or (L, T, ...) with the axes ``rest``, with the axes of its chunk."""
    if len(result) != math.prod(places):  # a total
        places = (1,) * len(places)
    if rest is None:
        return result.reshape((*places, *result.shape[1:]))
    return result.reshape((*places, *rest, *result.shape[2:]))
