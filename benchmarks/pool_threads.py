"""Two threads fit pools at many cells: python -m benchmarks.pool_threads.

Locations are a loop in Python around compiled code that releases the GIL. What is held of it shows
in the CPU time that two threads spend in a second: 2 if nothing is. On Linux the time that they
wait for a core is known and left out, so that other processes count little.
"""

import argparse
import resource
import sys
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import dask
import numpy as np
import xarray as xr

BUDGET = 1.9
CELLS_PER_TASK, TASKS = 50, 40  # at most, and at least, so that none waits long for the last


def make_data(cells, n, m):
    """Biased hindcast with a season, n months long, and what verified."""
    rng = np.random.default_rng(3)
    days = np.arange(n) * np.timedelta64(30, "D")
    coords = {"time": np.datetime64("2000-01-01", "ns") + days}
    season = np.sin(2 * np.pi * np.arange(n) * 30 / 365.25)[:, np.newaxis]
    signal = 8 * season + 3 * rng.normal(size=(n, cells))
    members = signal[:, np.newaxis] + 1 + 2 * rng.normal(size=(n, m, cells))
    hindcast = xr.DataArray(members, dims=("time", "member", "cell"), coords=coords)
    observations = xr.DataArray(
        signal + rng.normal(size=(n, cells)), dims=("time", "cell"), coords=coords
    )
    return hindcast, observations


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def seconds_in_queue():
    """Seconds that threads of this process were ready to run, but waited for a core; from Linux."""
    files = Path("/proc/self/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[1]) for file in files) / 1e9


class Spent(NamedTuple):
    """Seconds of a fit on some threads."""

    threads: int
    cpu: float
    wall: float
    queue: float

    @property
    def ratio(self):
        return self.cpu / self.wall

    @property
    def undisturbed(self):
        """The ratio with cores of their own: where threads neither run nor queue, they wait for
        each other. At least that, as who holds the GIL queues too.
        """
        return min(self.threads * self.cpu / (self.threads * self.wall - self.queue), self.threads)


def fit_with(threads, hindcast, observations):
    """What a fit spends on so many threads."""
    import xrecal

    size = max(min(CELLS_PER_TASK, hindcast.sizes["cell"] // TASKS), 1)
    lazy = hindcast.chunk(cell=size).recal.fit(observations, xrecal.LinearPool())
    cpu, queue, wall = cpu_seconds(), seconds_in_queue(), perf_counter()
    with dask.config.set(scheduler="threads", num_workers=threads):
        lazy.compute()
    wall = perf_counter() - wall
    return Spent(threads, cpu_seconds() - cpu, wall, seconds_in_queue() - queue)


def main(quick=False, arguments=()):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=8 if quick else 10_000)
    parser.add_argument("--cases", type=int, default=24 if quick else 60)
    parser.add_argument("--members", type=int, default=4 if quick else 10)
    options = parser.parse_args(arguments)
    cells, n, m = options.cells, options.cases, options.members
    hindcast, observations = make_data(cells, n, m)
    print(f"LinearPool at {cells} cells, n = {n}, m = {m}")
    few = {"cell": slice(2)}
    fit_with(1, hindcast.isel(few), observations.isel(few))  # compiles
    some = {"cell": slice(max(cells // 10, 1))}
    print(
        f"{'threads':10}{'cells':>8}{'s CPU':>10}{'s wall':>10}{'CPU/wall':>10}{'undisturbed':>14}"
    )
    for threads, part in ((1, some), (2, {})):
        spent = fit_with(threads, hindcast.isel(part), observations.isel(part))
        n_cells = hindcast.isel(part).sizes["cell"]
        print(
            f"{threads:<10}{n_cells:8}{spent.cpu:10.1f}{spent.wall:10.1f}{spent.ratio:10.2f}"
            f"{spent.undisturbed:14.2f}",
            flush=True,
        )
    best = max(spent.ratio, spent.undisturbed)
    holds = "holds" if best >= BUDGET or quick else "MISSED"
    print(
        f"budget {holds}: two threads spend {spent.ratio:.2f} s of CPU a second, "
        f"{spent.undisturbed:.2f} of those that other processes leave them (>= {BUDGET}), "
        f"{1000 * spent.cpu / cells:.1f} ms a cell"
    )


if __name__ == "__main__":
    main(arguments=sys.argv[1:])
