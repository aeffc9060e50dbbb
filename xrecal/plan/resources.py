"""What there is to compute with, and what a task needs beside its input and output."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from xrecal.methods import CKME, LinearPool, Method, VectorCKME

MATRICES = 6
"""Float64 matrices of its cases that a solver holds for one location."""

PROCESS = 300_000_000
"""Bytes of a process that has loaded and compiled what it needs, before it holds data."""


PAUSE = 0.8
"""Part of its memory limit from which a Dask worker starts no more tasks."""


@dataclass(frozen=True)
class Resources:
    """Memory in bytes that one task may use, None if unknown, and tasks that run at a time."""

    memory: int | None
    at_once: int


def find_resources() -> Resources:
    """Resources of the Dask client of this process, or else of this machine."""
    if "distributed" in sys.modules:
        from distributed import default_client

        try:
            client = default_client()  # type: ignore[no-untyped-call]
        except ValueError:
            return _local()
        workers = client.scheduler_info()["workers"].values()
        if workers:
            limits = [
                int(PAUSE * w["memory_limit"] - PROCESS) // w["nthreads"]
                for w in workers
                if w["memory_limit"]
            ]
            memory = max(min(limits), 1) if limits else None
            return Resources(memory, sum(client.nthreads().values()))
    return _local()


def _local() -> Resources:
    """Of the scheduler without a client: threads of this process, unless another is configured."""
    from dask import config
    from dask.system import CPU_COUNT

    at_once = config.get("num_workers", None) or CPU_COUNT
    if config.get("scheduler", None) in ("synchronous", "single-threaded", "sync"):
        at_once = 1
    free = available_memory()
    return Resources(None if free is None else free // at_once, at_once)


def available_memory() -> int | None:
    """Bytes that this process can still take, None where the system does not tell."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return _physical_memory()
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    group, used = (Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current"))
    if group.exists() and used.exists() and group.read_text().strip().isdigit():
        free = min(free, max(int(group.read_text()) - int(used.read_text()), 0))
    return free


def _physical_memory() -> int | None:
    """Bytes of the machine, where Python can ask for them."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def fit_workspace(method: Method, n_cases: int, n_members: int, n_locations: int) -> int:
    """Bytes that a fit of some locations takes beside its input and output, about.

    Copies of the cases of a block of locations, float64 whatever the input, held-out forecasts
    where methods are weighed, and matrices of one location at a time.
    """
    from xrecal.arrays.ckme.solvers import KEPT
    from xrecal.arrays.rows import WORKSPACE

    each = 8 * 4 * n_cases * n_members
    if isinstance(method, LinearPool):
        from xrecal.methods.components import N_HELD_OUT

        each += 2 * 8 * len(method.components) * n_cases * N_HELD_OUT
    matrices = _matrices(method, n_cases)
    # Of several kernels the solvers are kept until the best is known.
    kept = min(KEPT, 2 * matrices) if method.covariates else 0
    return max(each, min(n_locations * each, WORKSPACE)) * 2 + matrices + kept


def apply_workspace(
    method: Method, n_cases: int, n_forecasts: int, n_members: int, n_locations: int
) -> int:
    """Bytes that a product of some locations takes beside its input and output, about.

    Weights of a block of locations, and members where forecasts have their own; copies of cases
    and forecasts; matrices of one location at a time.
    """
    from xrecal.arrays.rows import WORKSPACE

    slots = method.slots(n_cases)[0].size * (1 if method.shares_members else 2)
    weights = min(8 * slots * n_forecasts, max(4 * WORKSPACE, 8 * slots))
    weights = max(weights, min(n_locations * weights, WORKSPACE))
    copies = 8 * 3 * max(n_cases, n_forecasts) * n_members
    copies = max(copies, min(n_locations * copies, WORKSPACE))
    return 3 * weights + copies + _matrices(method, n_cases)


def _matrices(method: Method, n_cases: int) -> int:
    """Bytes of the matrices of one location, of all pairs of cases or of cases and landmarks."""
    if not method.keeps_cases:
        return 0
    parts = method.mixed if isinstance(method, LinearPool) else (method,)
    of_matrices = [part for part in parts if isinstance(part, (CKME, VectorCKME))]
    widest = max((part.columns(n_cases) for part in of_matrices), default=0)
    return MATRICES * 8 * n_cases * widest
