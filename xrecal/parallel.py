"""From labels to arrays and back: the one call of ``apply_ufunc``, on NumPy and on Dask."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import xarray as xr

_lock = threading.Lock()
_tasks_running = 0
_limiter: Any = None


def run_blockwise(
    function: Callable[..., Any],
    *args: xr.DataArray,
    core: Sequence[Sequence[Hashable]],
    out: Sequence[Sequence[Hashable]],
    dtypes: Sequence[Any],
    sizes: Mapping[Hashable, int],
) -> tuple[xr.DataArray, ...]:
    """Apply an array function once a chunk of locations; one result for each entry of ``out``.

    ``core`` and ``out`` name the last axes that the function takes and returns; all others are
    looped over inside it, in compiled code. Labels must be equal, nothing is joined.
    """
    new = {d for dims in out for d in dims}
    result = xr.apply_ufunc(
        _OneThread(function),
        *args,
        input_core_dims=core,
        output_core_dims=out,
        join="exact",
        dask="parallelized",
        output_dtypes=list(dtypes),
        dask_gufunc_kwargs={"output_sizes": {d: size for d, size in sizes.items() if d in new}},
        keep_attrs=False,
    )
    return result if isinstance(result, tuple) else (result,)


def require_one_chunk(array: xr.DataArray, dims: Sequence[Hashable], *, name: str) -> None:
    """Raise ValueError if a Dask array is cut along a dimension that every task needs whole."""
    split = [d for d in dims if len(array.chunksizes.get(d, ())) > 1]
    if split:
        counts = " and ".join(f"{d!r} in {len(array.chunksizes[d])} chunks" for d in split)
        fix = ", ".join(f"{d!r}: -1" for d in split)
        verb = "have" if name.endswith("s") else "has"
        raise ValueError(
            f"{name} {verb} {counts}, but every task needs all of it; use {name}.chunk({{{fix}}}) "
            "and cut the location dimensions instead"
        )


class _OneThread:
    """A function that runs with one BLAS thread.

    Dask brings the parallelism: a second layer of threads below it slows a fit many times over.
    One thread also makes results independent of the machine's number of cores.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        # Dask names its tasks by this; by default they would carry the address of the object, so
        # that equal calls had different names.
        self.__name__ = getattr(function, "__name__", type(function).__name__.strip("_"))

    def __call__(self, *args: Any) -> Any:
        with one_blas_thread():
            return self.function(*args)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any task runs, and restore the limit after the last one.

    The limit belongs to the process and threadpoolctl's own context manager restores what it
    found, so overlapping tasks would leave a wrong one behind; a counter keeps it right.
    """
    global _tasks_running, _limiter
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
