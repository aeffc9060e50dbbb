"""Memory that a task frees stays with a worker of Dask, for the next one."""

from __future__ import annotations

import ctypes
import os
import sys

TRIMMED_BY_DASK = "65536"
"""MALLOC_TRIM_THRESHOLD_ of Dask's workers, unless the user sets another."""
KEPT_BYTES = 128 * 2**20
"""Of freed memory at the end of a heap, which malloc then keeps: each thread has a heap."""
MAPPED_BYTES = 32 * 2**20
"""Of a piece that still goes back to the system at once."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def keep_freed_memory() -> None:
    """Let malloc of the GNU C library keep what is freed, in a worker with Dask's own limit.

    With that limit each matrix of a fit goes back to the system when it is freed, and the next one
    is new pages, each a fault: much of the time of a recalibration with hundreds of cases. Limits
    of the user's own are left as they are.
    """
    limits = [os.environ.get(f"MALLOC_{name}_THRESHOLD_") for name in ("TRIM", "MMAP")]
    if sys.platform != "linux" or limits != [TRIMMED_BY_DASK, None]:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
