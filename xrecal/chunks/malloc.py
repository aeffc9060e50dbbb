"""Let a Dask worker keep freed memory for its next task."""

from __future__ import annotations

import ctypes
import os
import sys

TRIMMED_BY_DASK = "65536"
"""Value of MALLOC_TRIM_THRESHOLD_ in Dask's workers, unless the user sets another value."""
KEPT_BYTES = 128 * 2**20
"""Bytes of freed memory that malloc keeps at the end of each heap (its memory for one thread)."""
MAPPED_BYTES = 32 * 2**20
"""Freed pieces of memory of at least this many bytes still return to the system at once."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h


def keep_freed_memory() -> None:
    """Let malloc of the GNU C library keep freed memory in a Dask worker.

    Dask limits the freed memory that malloc keeps. With this limit, the memory of each matrix of a
    fit returns to the system as soon as it is freed. The next matrix needs new pages, each with a
    page fault. These faults take much of the time of a recalibration with hundreds of cases. If the
    user has set a limit, this limit stays.
    """
    limits = [os.environ.get(f"MALLOC_{name}_THRESHOLD_") for name in ("TRIM", "MMAP")]
    if sys.platform != "linux" or limits != [TRIMMED_BY_DASK, None]:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have no mallopt
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
