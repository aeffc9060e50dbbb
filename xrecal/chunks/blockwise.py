"""Limit the threads of tasks, report their errors, and check chunks and arrays on a GPU."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing import parent_process
from typing import Any

import xarray as xr

from xrecal.arrays.dispatch import is_on_device, namespace

from .malloc import keep_freed_memory

_lock = threading.Lock()
"""Lock to hold while the number of BLAS threads, or one of the variables below, changes."""

_tasks_running = 0

_limiter: Any = None
"""Object of threadpoolctl that limits BLAS while tasks run, and can restore the previous limit."""


def is_lazy(array: xr.DataArray | xr.Variable) -> bool:
    """Return whether an array is lazy: Dask computes a lazy array later.

    The function uses Dask's protocol, which is 30 times faster than reading ``chunks``. A state has
    hundreds of arrays, and each operation on a model checks all of them.
    """
    variable = array if isinstance(array, xr.Variable) else array.variable
    return variable.__dask_graph__() is not None


def work_on(what: str, variable: Hashable | None) -> str:
    """Return a text for messages about the work on a variable, which may have no name."""
    return what if variable is None else f"{what} of {variable!r}"


def require_one_chunk(array: xr.DataArray, dims: Sequence[Hashable], *, name: str) -> None:
    """Raise ValueError if Dask cuts an array along a dimension that every task needs whole."""
    chunks = array.variable.chunksizes  # coordinates may have other chunks
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
    """Raise ValueError if dimensions or coordinates have names that the result needs."""
    taken = {*names}
    for name in (name for name in given if name in taken):
        renamed = f"{name}=..." if str(name).isidentifier() else f"{{{name!r}: ...}}"
        raise ValueError(
            f"the forecast has a dimension {name!r} or a coordinate of that name, but the result "
            f"needs this name; rename it: forecast.rename({renamed})"
        )


class TaskError(RuntimeError):
    """Error of a failed Dask task; the message states the work, the variable and the labels.

    ``__cause__`` is the original error. Workers in other processes can send both errors.
    """

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.__cause__ = cause

    def __reduce__(self) -> tuple[type[TaskError], tuple[str, BaseException | None]]:
        """Pickle the error with its cause, or with the text of a cause that cannot be copied."""
        cause = self.__cause__
        try:
            pickle.loads(pickle.dumps(cause))
        except Exception:  # copying may raise any error of its class
            cause = RuntimeError(f"{type(cause).__name__}: {cause}")
        return type(self), (str(self), cause)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any task runs, and restore the old limit after the last task.

    The limit holds for the whole process. The context manager of threadpoolctl restores the limit
    that it found, so overlapping tasks would leave a wrong limit. A counter of tasks prevents this.
    In a worker process, such as Dask's, the first task limits BLAS permanently, and lets malloc
    keep freed memory.
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
    """Let the calling thread set limits on the threads of BLAS.

    Recent versions of threadpoolctl accept limits only from the first thread that sets a limit, and
    silently ignore limits that other threads set. Without this function, tasks in Dask's threads
    would use all BLAS threads after a fit with NumPy in the main thread.
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
    """Raise TypeError if only some arrays are on a GPU, or if the task does not accept GPU arrays.

    A task that accepts GPU arrays has an attribute ``on_device`` with the value True. An attribute
    ``description`` describes the task in messages.
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
            f"{what} got CuPy arrays and NumPy arrays ({named}); bring all "
            "to one side: to the host by data.as_numpy() or model.as_numpy(), or to the device "
            "by data.copy(data=cupy.asarray(data.data)), with Dask by "
            "data.copy(data=data.data.map_blocks(cupy.asarray))"
        )


def on_device(array: xr.DataArray | xr.Variable) -> bool:
    """Return whether an array, or each chunk of it, is a CuPy array."""
    return is_on_device(sample(array))


def sample(array: xr.DataArray | xr.Variable) -> Any:
    """Return the values of an array or, for a Dask array, an empty array of the type of its chunks.

    The result shows the library of the array: NumPy or CuPy. The function reads no values from
    files.
    """
    data = getattr(getattr(array, "variable", array), "_data", None)
    return getattr(data, "_meta", data)


def like(array: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """Copy an array of labels or settings to the GPU if the array ``other`` is there.

    The function is not for data: only the user copies data.
    """
    if not on_device(other) or on_device(array):
        return array
    xp = namespace(sample(other))
    if array.chunks is None:
        return array.copy(data=xp.asarray(array.to_numpy()))
    return array.copy(data=array.data.map_blocks(xp.asarray))
