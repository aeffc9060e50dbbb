"""Processes that begin quickly, forked from one that has imported libraries and nothing else."""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

FORKS = multiprocessing.get_context("forkserver")
"""Importing takes longer than what most tests do in another process."""
FORKS.set_forkserver_preload(["dask.array", "netCDF4", "numba", "xarray", "zarr"])


class Done(NamedTuple):
    code: int
    out: str
    err: str


def python(code, *args, **environment):
    """What a process does that runs some lines of Python."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("out", "err")]
        environment = {**os.environ, **environment}
        process = FORKS.Process(target=_run, args=(code, args, environment, streams))
        process.start()
        process.join()
        return Done(process.exitcode, *(path.read_text() for path in streams))


def _run(code, args, environment, streams):
    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *map(str, args)]
    exec(code, {"__name__": "__main__"})
