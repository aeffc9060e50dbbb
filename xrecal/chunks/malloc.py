"""Freed memory stays with a Dask worker, for its next task."""

from __future__ import annotations

import ctypes
import os
import sys

TRIMMED_BY_DASK = "65536"
"""MALLOC_TRIM_THRESHOLD_ of Dask's workers, unless the user sets another."""
KEPT_BYTES = 128 * 2**20
"""Bytes of freed memory that malloc keeps at the end of a heap: each thread has a heap."""
MAPPED_BYTES = 32 * 2**20
"""Bytes of a piece that still returns to the system at once."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h


def keep_freed_memory() -> None:
    """Let malloc of the GNU C library keep freed memory, in a worker with Dask's own limit.

    With Dask's limit, each matrix of a fit returns to the system when it is freed. The next matrix
    consists of new pages, each with a page fault. This takes much of the time of a recalibration
    with hundreds of cases. Limits set by the user stay.
    """
    limits = [os.environ.get(f"MALLOC_{name}_THRESHOLD_") for name in ("TRIM", "MMAP")]
    if sys.platform != "linux" or limits != [TRIMMED_BY_DASK, None]:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have no mallopt
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
