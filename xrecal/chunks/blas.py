"""One thread of BLAS inside tasks: Dask brings the parallelism."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import parent_process
from typing import Any

_lock = threading.Lock()
_tasks_running = 0
_limiter: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any task runs, and restore the limit after the last one.

    The limit belongs to the process and threadpoolctl's own context manager restores what it
    found, so overlapping tasks would leave a wrong one behind; a counter keeps it right. In a
    process that was started to work for another, as Dask's are, the first task limits it for good.
    """
    global _tasks_running, _limiter
    if parent_process() is not None:
        _limit_for_good()
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
def _limit_for_good() -> None:
    """Limit BLAS to one thread as long as this process lives."""
    with _lock:
        _take_control()
        _controller().limit(limits=1, user_api="blas")


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
