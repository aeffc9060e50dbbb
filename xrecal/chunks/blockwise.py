"""From labels to arrays and back: the one call of ``apply_ufunc``, on NumPy and on Dask.

:func:`run_blockwise` runs an array function once a chunk of locations; see :mod:`.run` for tasks.
Below them stand what they need: the task that says where it failed, the limit of BLAS to one
thread, and the library (NumPy or CuPy) that arrays belong to.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing import parent_process
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.dispatch import contiguous, is_on_device, namespace

from .malloc import keep_freed_memory
from .texts import quoted

_lock = threading.Lock()
"""Held while the limit of BLAS, which belongs to the process, and the two below change."""

_tasks_running = 0

_limiter: Any = None
"""Of threadpoolctl, while tasks run: it restores the number of threads that it found."""


def run_blockwise(
    function: Callable[..., Any],
    *args: xr.DataArray | xr.Variable,
    core: Sequence[Sequence[Hashable]],
    out: Sequence[Sequence[Hashable]],
    dtypes: Sequence[Any],
    sizes: Mapping[Hashable, int],
    what: str = "the work",
) -> tuple[xr.DataArray, ...]:
    """Apply an array function once a chunk of locations; one result for each entry of ``out``.

    ``core`` and ``out`` name the last axes that the function takes and returns; all others are
    looped over inside it, in compiled code. Labels must be equal, nothing is joined; variables
    have none, which spares looking at them where they are many. A task of Dask that fails raises
    :class:`TaskError`, which says where ``what`` failed.

    Raises
    ------
    ValueError
        If an argument is looped over a dimension that has the name of a new one of a result.
    """
    require_one_side(function, args, what)
    new = {d for dims in out for d in dims}
    options: dict[str, Any] = {
        "input_core_dims": core,
        "output_core_dims": out,
        "join": "exact",
        "keep_attrs": "override",  # which keeps those of coordinates
    }
    every = {d: n for arg in args for d, n in arg.sizes.items()} | dict(sizes)
    inside = {d for dims in (*core, *out) for d in dims}
    require_free(looped_sizes(args, core), new.difference(*core))
    args = tuple(_without_names(arg, new) for arg in args)
    labelled = [arg for arg in args if isinstance(arg, xr.DataArray)]
    if 0 in (n for d, n in every.items() if d not in inside):
        shapes = [[every[d] for d in dims] for dims in out]
        empty = _EmptyResults([len(dims) for dims in core], shapes, dtypes)
        return _bare(xr.apply_ufunc(empty, *args, **options, dask="allowed"), labelled)
    labels = labels_for_messages(args, core)
    result = xr.apply_ufunc(
        ToldTask(function, what, tuple(labels)),
        *args,
        *labels.values(),
        **options | {"input_core_dims": [*core, *[()] * len(labels)]},
        dask="parallelized",
        output_dtypes=list(dtypes),
        dask_gufunc_kwargs={"output_sizes": {d: size for d, size in sizes.items() if d in new}},
    )
    return _bare(result, labelled)


def _without_names(
    array: xr.DataArray | xr.Variable, new: set[Hashable]
) -> xr.DataArray | xr.Variable:
    """An array without the coordinates, but labels, that have names of new dimensions."""
    if isinstance(array, xr.Variable):
        return array
    taken = [c for c, own in array.coords.variables.items() if c in new and own.dims != (c,)]
    return array.drop_vars(taken) if taken else array


def is_lazy(array: xr.DataArray | xr.Variable) -> bool:
    """Whether Dask holds the array: by Dask's protocol, which is asked 30 times faster than chunks.

    A state has hundreds of arrays, and each call asks all of them.
    """
    variable = array if isinstance(array, xr.Variable) else array.variable
    return variable.__dask_graph__() is not None


def work_on(what: str, variable: Hashable | None) -> str:
    """The work on a variable, for messages; variables may have no name."""
    return what if variable is None else f"{what} of {variable!r}"


def require_one_chunk(array: xr.DataArray, dims: Sequence[Hashable], *, name: str) -> None:
    """Raise ValueError if a Dask array is cut along a dimension that every task needs whole."""
    chunks = array.variable.chunksizes  # coordinates may have others
    split = [d for d in dims if len(chunks.get(d, ())) > 1]
    if split:
        counts = " and ".join(f"{d!r} in {len(chunks[d])} chunks" for d in split)
        fix = ", ".join(f"{d!r}: -1" for d in split)
        verb = "have" if name.endswith("s") else "has"
        raise ValueError(
            f"{name} {verb} {counts}, but every task needs all of it; use {name}.chunk({{{fix}}}) "
            "and cut the location dimensions instead"
        )


def require_free(given: Iterable[Hashable], names: Iterable[Hashable]) -> None:
    """Raise ValueError if a forecast has dimensions or coordinates named as those of a result."""
    taken = {*names}
    for name in (name for name in given if name in taken):
        renamed = f"{name}=..." if str(name).isidentifier() else f"{{{name!r}: ...}}"
        raise ValueError(
            f"the forecast has a dimension {name!r} or a coordinate of that name, which the result "
            f"needs; rename it: forecast.rename({renamed})"
        )


def _bare(result: Any, args: Sequence[xr.DataArray]) -> tuple[xr.DataArray, ...]:
    """Results without the attributes of the arguments, but with those of labels, such as units."""
    results = result if isinstance(result, tuple) else (result,)
    bare = []
    for array in results:
        if isinstance(array, xr.Variable):
            bare.append(xr.DataArray(xr.Variable(array.dims, array.data)))
            continue
        array.attrs = {}  # the array was made here
        labels = {d: attrs for d in array.indexes if (attrs := _missing_attrs(array, d, args))}
        if labels:
            array = array.assign_coords(
                {d: array.coords[d].assign_attrs(attrs) for d, attrs in labels.items()}
            )
        bare.append(array)
    return tuple(bare)


def _missing_attrs(
    array: xr.DataArray, label: Hashable, args: Sequence[xr.DataArray]
) -> Mapping[Any, Any]:
    """Attributes that a label lacks, of the first argument where it has any."""
    if array.coords.variables[label].attrs:
        return {}
    variables = (arg.coords.variables.get(label) for arg in args)
    return next((own.attrs for own in variables if own is not None and own.attrs), {})


def looped_sizes(
    args: Sequence[xr.DataArray | xr.Variable], core: Sequence[Sequence[Hashable]]
) -> dict[Hashable, int]:
    """Dimensions that are looped over, with their sizes."""
    return {
        d: n for a, own in zip(args, core, strict=True) for d, n in a.sizes.items() if d not in own
    }


def with_axes(array: xr.DataArray, loops: Iterable[Hashable], core: Sequence[Hashable]) -> Any:
    """Values with one axis for each of ``loops``, of length one where it is lacking."""
    ordered = array.transpose(*[d for d in loops if d in array.dims], *core)
    return ordered.data[tuple(slice(None) if d in array.dims else None for d in loops)]


def labels_for_messages(
    args: Sequence[xr.DataArray | xr.Variable], core: Sequence[Sequence[Hashable]]
) -> dict[Hashable, xr.DataArray]:
    """Labels along each dimension that Dask cuts, positions where there are none.

    Each task gets those of its chunk, so that an error can name it without the graph holding the
    labels of all locations in every task. Without Dask there are no chunks to name.
    """
    if not any(is_lazy(arg) for arg in args):
        return {}
    sizes = looped_sizes(args, core)
    labelled = [arg for arg in args if isinstance(arg, xr.DataArray)]
    cut = {}
    for d, size in sizes.items():
        index = next((arg.indexes[d] for arg in labelled if d in arg.indexes), None)
        labels = np.arange(size) if index is None else index.to_numpy()
        if labels.dtype == object:  # dates of other calendars, strings, several levels
            labels = np.array([str(label) for label in labels], dtype=str)
        cut[d] = xr.DataArray(labels, dims=[d])
    return cut


class _EmptyResults:
    """Results where there is no location or no forecast: no function has to know that case."""

    def __init__(
        self, n_core: Sequence[int], out: Sequence[Sequence[int]], dtypes: Sequence[Any]
    ) -> None:
        self.n_core, self.out, self.dtypes = n_core, out, dtypes

    def __call__(self, *args: Any) -> Any:
        lead = np.broadcast_shapes(
            *(a.shape[: a.ndim - n] for a, n in zip(args, self.n_core, strict=True))
        )
        make: Callable[..., Any] = namespace(args[0]).empty if is_on_device(args[0]) else np.empty
        if any(hasattr(a, "dask") for a in args):
            import dask.array

            make = partial(dask.array.empty, chunks=-1)
        shapes = zip(self.out, self.dtypes, strict=True)
        results = tuple(make((*lead, *core), dtype=dtype) for core, dtype in shapes)
        return results if len(results) > 1 else results[0]


class ToldTask:
    """A function that runs with one BLAS thread and says where it fails.

    Dask brings the parallelism: a second layer of threads below it slows a fit many times over.
    One thread also makes results independent of the machine's number of cores.

    The last arguments of the call are the labels along ``dims`` of the chunk; none without Dask.
    """

    def __init__(self, function: Callable[..., Any], what: str, dims: tuple[Hashable, ...]) -> None:
        self.function, self.what, self.dims = function, what, dims
        # Dask names its tasks by this; by default they would carry the address of the object, so
        # that equal calls had different names.
        self.__name__ = getattr(function, "__name__", type(function).__name__.strip("_"))

    def __call__(self, *args: Any) -> Any:
        """The result of the function."""
        n_given = len(args) - len(self.dims)
        # Of another layout in memory BLAS gives other last bits.
        given = [contiguous(a) if hasattr(a, "strides") else a for a in args[:n_given]]
        with one_blas_thread():
            if not self.dims:
                return self.function(*given)
            try:
                return self.function(*given)
            except Exception as error:
                where = ", ".join(map(_range, self.dims, args[n_given:]))
                message = f"{self.what} failed at {where}: {type(error).__name__}: {error}"
                raise TaskError(quoted(message), error) from error


class TaskError(RuntimeError):
    """A Dask task that failed; the message says what it did, for which variable and where.

    ``__cause__`` is the error itself. Both survive the way from a worker in another process.
    """

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.__cause__ = cause

    def __reduce__(self) -> tuple[type[TaskError], tuple[str, BaseException | None]]:
        """Pickle with the cause, which errors lose otherwise, or with its text if it cannot be."""
        cause = self.__cause__
        try:
            pickle.loads(pickle.dumps(cause))
        except Exception:  # whatever its class does when it is copied
            cause = RuntimeError(f"{type(cause).__name__}: {cause}")
        return type(self), (str(self), cause)


def _range(dim: Hashable, labels: Any) -> str:
    """A dimension with the first and the last label along it."""
    flat = np.ravel(labels)
    ends = [str(label).removesuffix("T00:00:00.000000000") for label in (flat[0], flat[-1])]
    return f"{dim} {ends[0]}" if flat.size == 1 else f"{dim} {ends[0]} to {ends[1]}"


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any task runs, and restore the limit after the last one.

    The limit belongs to the process and threadpoolctl's own context manager restores what it
    found, so overlapping tasks would leave a wrong one behind; a counter keeps it right. In a
    process that was started to work for another, as Dask's are, the first task limits it for good,
    and lets malloc keep what is freed.
    """
    global _tasks_running, _limiter
    if parent_process() is not None:
        _settle()
        yield
        return
    with _lock:
        if _tasks_running == 0:
            _take_control()
            _limiter = _controller().limit(limits=1, user_api="blas")
        _tasks_running += 1
    try:
        yield
    finally:
        with _lock:
            _tasks_running -= 1
            if _tasks_running == 0:
                _take_control()
                _limiter.restore_original_limits()
                _take_control()


@cache
def _settle() -> None:
    """Limit BLAS to one thread, and keep freed memory, as long as this process lives."""
    with _lock:
        _take_control()
        _controller().limit(limits=1, user_api="blas")
        keep_freed_memory()


def _take_control() -> None:
    """Let the calling thread set limits.

    Recent versions of threadpoolctl give them to the first thread that sets one and silently
    ignore all others: after one fit on NumPy, Dask's threads would run with all BLAS threads.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _controller() -> Any:
    import scipy.linalg.cython_lapack  # noqa: F401  the BLAS that compiled code will call
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def require_one_side(
    function: Callable[..., Any], args: Sequence[xr.DataArray | xr.Variable], what: str
) -> None:
    """Raise TypeError for device arrays that a task cannot take, or only with copies.

    Tasks that can have an attribute ``on_device`` that is true. An attribute ``description`` says
    for the message what a task does.
    """
    there = [on_device(arg) for arg in args]
    if not any(there):
        return
    if not getattr(function, "on_device", False):
        description = getattr(function, "description", "")
        raise TypeError(
            f"{what}{description} has no implementation for CuPy arrays; copy to the host first: "
            "data.as_numpy() of a DataArray or Dataset, model.as_numpy() of a model"
        )
    if not all(there):
        host = [arg for arg, here in zip(args, there, strict=True) if not here]
        named = ", ".join(
            repr(name) if (name := getattr(arg, "name", None)) else f"one over {list(arg.dims)}"
            for arg in host[:3]
        )
        raise TypeError(
            f"{what} got arrays of CuPy and of NumPy, of NumPy {named}; bring all "
            "to one side first: data.as_numpy() or model.as_numpy(), or to the device "
            "data.copy(data=cupy.asarray(data.data)), with Dask "
            "data.copy(data=data.data.map_blocks(cupy.asarray))"
        )


def on_device(array: xr.DataArray | xr.Variable) -> bool:
    """Whether an array, or each chunk of it, is one of CuPy's."""
    return is_on_device(sample(array))


def sample(array: xr.DataArray | xr.Variable) -> Any:
    """Values by which the library of an array is known, for Dask an empty array like its chunks.

    Values that are still in a file are not read.
    """
    data = getattr(getattr(array, "variable", array), "_data", None)
    return getattr(data, "_meta", data)


def like(array: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """An array made from labels or settings, copied to the device if another array is there.

    Data is never copied like that: the user does it.
    """
    if not on_device(other) or on_device(array):
        return array
    xp = namespace(sample(other))
    if array.chunks is None:
        return array.copy(data=xp.asarray(array.to_numpy()))
    return array.copy(data=array.data.map_blocks(xp.asarray))
