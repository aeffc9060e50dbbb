"""How loops are compiled: serial, without the GIL, without a cache on disk."""

from __future__ import annotations

from typing import Any

from numba import njit

kernel = njit(nogil=True)
"""For functions called from Python."""

inner = njit(  # type: ignore[call-overload]
    nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""For functions called only from compiled ones: no wrapper for Python, so they compile faster."""


@inner
def copy(values: Any, out: Any) -> None:
    """Values (n,) into ``out``, where assigning to a slice compiles the text of its errors: 2 s."""
    for i in range(out.size):
        out[i] = values[i]
