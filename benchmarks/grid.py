"""A grid in two small processes, undisturbed and killed: python -m benchmarks.grid.

A synthetic hindcast is written to Zarr, fitted and recalibrated to quantiles by the command line on
two workers of one thread and 2 GiB each. Then the same again, but the command is killed at half of
the blocks of the fit and of the forecasts, and taken up with --resume. Held are the memory of the
workers, that none was started anew, and that both results agree bit for bit.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import NamedTuple

import numpy as np
import xarray as xr
from distributed import Client, LocalCluster, SchedulerPlugin

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-c", "from xrecal.cli import main; main()"]
GIB = 2**30
LIMIT = 2 * GIB
POLL_SECONDS = 0.1
QUANTILES = "0.1,0.5,0.9"


# data ---------------------------------------------------------------------------------------------


def draw(rng, cases, members, shape):
    """Members (cases, members, *shape) and observations (cases, *shape) of some cells, weekly."""
    season = np.sin(2 * np.pi * 7 * np.arange(cases) / 365.25)[:, np.newaxis, np.newaxis]
    signal = 280 + 8 * season + 3 * rng.normal(size=(cases, *shape))
    spread = rng.gamma(2.0, 0.5, (cases, *shape))[:, np.newaxis]
    drawn = signal[:, np.newaxis] + 1 + spread * rng.normal(size=(cases, members, *shape))
    return drawn, signal + rng.normal(size=(cases, *shape))


def write_data(folder, cells, cases, members, dtype, rows):
    """Hindcast and observations in blocks of rows; returns their paths and bytes."""
    side = max(1, math.isqrt(cells))
    n_lon = -(-cells // side)
    coords = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(cases) * np.timedelta64(7, "D"),
        "lat": np.linspace(-60.0, 60.0, side),
        "lon": np.linspace(0.0, 359.0, n_lon),
    }
    sizes = {"time": cases, "member": members, "lat": side, "lon": n_lon}
    paths, n_bytes = {}, 0
    for name, dims in {"hindcast": list(sizes), "truth": ["time", "lat", "lon"]}.items():
        paths[name] = folder / f"{name}.zarr"
        empty = xr.DataArray(
            np.empty((), dtype), attrs={"units": "K"}, name="t2m"
        ).expand_dims({d: sizes[d] for d in dims})  # fmt: skip
        lazy = empty.assign_coords(coords).chunk({d: rows if d == "lat" else -1 for d in dims})
        lazy.to_zarr(paths[name], mode="w", compute=False, consolidated=False)
        n_bytes += lazy.nbytes
    for start in range(0, side, rows):
        block = slice(start, min(start + rows, side))
        rng = np.random.default_rng([7, start])
        drawn, truth = draw(rng, cases, members, (block.stop - block.start, n_lon))
        for name, values in {"hindcast": drawn, "truth": truth}.items():
            dims = list(sizes) if values.ndim == 4 else ["time", "lat", "lon"]
            part = xr.Dataset({"t2m": (dims, values.astype(dtype))})
            region = {d: block if d == "lat" else slice(None) for d in dims}
            part.to_zarr(paths[name], region=region, consolidated=False)
    return paths, n_bytes, side * n_lon


# workers ------------------------------------------------------------------------------------------


class Finished(SchedulerPlugin):
    """How many tasks workers have finished, and when the first one was."""

    n, first = 0, None

    def transition(self, key, start, finish, *args, **kwargs):
        if start == "processing" and finish == "memory":
            self.n += 1
            self.first = self.first or perf_counter()


@dataclass
class Spent:
    """What a phase has taken."""

    peaks: dict[int, int]
    """Largest memory of each worker, by its process."""
    numbers: dict[str, float] = field(default_factory=dict)


class Watch:
    """What the workers of a cluster of this process take, looked at all the time."""

    def __init__(self, client, cluster):
        import psutil

        self.client = client
        self.first = self.pids()
        self.phases = {}
        self.finished = Finished()
        cluster.scheduler.add_plugin(self.finished)
        self._processes = {pid: psutil.Process(pid) for pid in self.first}
        self._gone = psutil.NoSuchProcess

    def pids(self):
        """Process of each worker, by name."""
        return sorted(self.client.run(os.getpid).values())

    def _counters(self):
        """Counters that only grow.

        Wall clock; CPU seconds of the workers, of commands that have ended, and of this process,
        where the scheduler is; tasks; bytes that workers read, write and send to each other.
        """
        alive = [p for p in self._processes.values() if p.is_running()]
        files = [p.io_counters() for p in alive if hasattr(p, "io_counters")]
        commands = resource.getrusage(resource.RUSAGE_CHILDREN)
        moved = self.client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        return {
            "s wall": perf_counter(),
            "s CPU": sum(sum(p.cpu_times()[:2]) for p in alive),
            "s command": commands.ru_utime + commands.ru_stime,
            "s scheduler": process_time(),
            "tasks": self.finished.n,
            "MB read": sum(of.read_chars for of in files) / 1e6,
            "MB written": sum(of.write_chars for of in files) / 1e6,
            "MB moved": sum(moved.values()) / 1e6,
        }

    @contextmanager
    def during(self, phase):
        """Note what all workers take, and the largest memory of each, while something runs."""
        spent = self.phases[phase] = Spent(dict.fromkeys(self._processes, 0))
        done, before, self.finished.first = threading.Event(), self._counters(), None

        def look():
            while not done.wait(POLL_SECONDS):
                for pid, process in self._processes.items():
                    try:
                        spent.peaks[pid] = max(spent.peaks[pid], process.memory_info().rss)
                    except self._gone:
                        return

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield spent
        finally:
            done.set()
            thread.join()
            after = self._counters()
            spent.numbers = {name: after[name] - before[name] for name in after}
            if self.finished.first:
                waited = self.finished.first - before["s wall"]
                spent.numbers["s to the first task"] = waited

    def highest(self):
        """Largest memory of each worker since it began, as the system has counted it."""
        for pid in self._processes:
            status = Path(f"/proc/{pid}/status")
            lines = status.read_text().splitlines() if status.exists() else []
            known = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")]
            yield max([*known, *(spent.peaks[pid] for spent in self.phases.values())])

    @property
    def restarted(self):
        """Whether a worker is not the one it was."""
        return self.pids() != self.first


@contextmanager
def two_workers(folder):
    """Client and cluster of two processes of one thread."""
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        memory_limit=LIMIT,
        dashboard_address=":0",
        local_directory=str(folder / "workers"),
    )
    with cluster, Client(cluster) as client:
        yield client, cluster


# commands -----------------------------------------------------------------------------------------


class Runner:
    """The command line on a cluster."""

    def __init__(self, address, watch):
        self.address, self.watch = address, watch

    def _start(self, *args):
        command = [*COMMAND, *map(str, args), "--scheduler", self.address, "--json", "--quiet"]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def run(self, phase, *args):
        """Run to the end; what it takes, and what the command tells."""
        with self.watch.during(phase) as spent:
            process = self._start(*args)
            out, _ = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"{phase} exits with {process.returncode}: {out}")
        return spent, json.loads(out)

    def kill_at_half(self, phase, target, n_blocks, *args):
        """Kill once half of the blocks are finished; returns how many are."""
        done = target.with_name(f"{target.name}.partial") / "done"
        with self.watch.during(phase):
            process = self._start(*args)
            while process.poll() is None:
                if done.exists() and 2 * len(list(done.iterdir())) >= n_blocks:
                    process.kill()
                    break
                sleep(POLL_SECONDS / 5)
            process.communicate()
        if process.returncode == 0:
            raise RuntimeError(f"{phase} was over before it could be killed")
        sleep(1.0)  # tasks that the workers are at
        return len(list(done.iterdir()))


def difference(one, other):
    """The first difference of two results, None where they agree bit for bit.

    Attributes agree but for the request, which names the paths and dates of the inputs.
    """
    from xrecal.runs.target import REQUEST

    options = {"engine": "zarr", "decode_cf": False, "consolidated": False, "chunks": None}
    with xr.open_dataset(one, **options) as a, xr.open_dataset(other, **options) as b:
        if {*a.variables} != {*b.variables}:
            return "variables"
        if found := _attributes(a.attrs, b.attrs, REQUEST):
            return found
        for name in a.variables:
            first, second = a.variables[name], b.variables[name]
            if (first.dims, first.dtype) != (second.dims, second.dtype):
                return f"dimensions or type of {name}"
            if found := _attributes(first.attrs, second.attrs):
                return f"{name}: {found}"
            if first.to_numpy().tobytes() != second.to_numpy().tobytes():
                return f"values of {name}"
    return None


def _attributes(a, b, *without):
    """The first attribute that differs; NaN equals itself."""
    for key in sorted({*a, *b} - {*without}):
        if repr(a.get(key)) != repr(b.get(key)):
            return f"attribute {key}: {a.get(key)!r} and {b.get(key)!r}"
    return None


# the benchmark ------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What a grid has taken, and whether all is as it should be."""

    work: str
    phases: dict[str, dict[str, float]]
    """Numbers of each phase, by name."""
    highest: list[int]
    """Largest memory of each worker."""
    restarted: bool
    differences: list[str]

    @property
    def holds(self):
        """Whether the budget does."""
        return max(self.highest) <= LIMIT and not self.restarted and not self.differences


def told(phase, spent):
    """A line of the table: wall clock, CPU of all workers, memory of each."""
    killed = phase.endswith("killed")
    wall = f"{'':9}" if killed else f"{spent.numbers['s wall']:9.1f}"
    peaks = "  ".join(f"{peak / GIB:5.2f}" for peak in spent.peaks.values())
    return f"{phase:18}{wall}{spent.numbers['s CPU']:9.1f}     {peaks}"


def measure(folder, options):
    """Write the data, run the commands in one way or in two, and compare."""
    paths, n_bytes, cells = write_data(
        folder, options.cells, options.cases, options.members, options.dtype, options.rows
    )
    work = " ".join([options.method, *options.option])
    print(
        f"{cells} cells, n = {options.cases}, m = {options.members}, {options.dtype}: "
        f"{n_bytes / 1e9:.2f} GB; {work}; blocks of "
        f"{options.rows} rows of latitude\n{'':21}s wall    s CPU     GiB of each worker",
        flush=True,
    )
    more = [word for text in options.option for word in ("--option", text)]
    more += ["--method", options.method, "--chunks", f"lat={options.rows}"]
    names = "model", "out", "model_again", "out_again"
    model, out, again, out_again = (folder / f"{name}.zarr" for name in names)

    def fit(target):
        return ["fit", paths["hindcast"], paths["truth"], target, *more]

    def forecast(fitted, target):
        return ["apply", fitted, paths["hindcast"], target, "--quantiles", QUANTILES]

    with two_workers(folder) as (client, cluster):
        watch = Watch(client, cluster)
        runner = Runner(cluster.scheduler_address, watch)
        undisturbed(runner, "fit", fit(model))
        if not options.once:
            killed(runner, "fit", fit(again), again)
        undisturbed(runner, "apply", forecast(model, out))
        if not options.once:
            killed(runner, "apply", forecast(again, out_again), out_again)
        highest, restarted = list(watch.highest()), watch.restarted
    pairs = {} if options.once else {"model": (model, again), "quantiles": (out, out_again)}
    found = {name: difference(*pair) for name, pair in pairs.items()}
    phases = {
        phase: {"cells": cells, "GiB": max(spent.peaks.values()) / GIB} | spent.numbers
        for phase, spent in watch.phases.items()
        if not phase.endswith("planned")
    }
    differences = [f"{name}: {text}" for name, text in found.items() if text]
    return Outcome(work, phases, highest, restarted, differences)


def undisturbed(runner, phase, command):
    """Plan a command, and run it from beginning to end."""
    _, plan = runner.run(f"{phase}, planned", *command, "--dry-run")
    spent, done = runner.run(phase, *command)
    needs = plan["task_bytes"] / GIB
    spent.numbers |= {"blocks": done["blocks"], "GiB planned": needs}
    print(
        told(phase, spent), f"  {done['blocks']} blocks; a task was planned to need {needs:.2f} GiB"
    )
    sys.stdout.flush()


def killed(runner, phase, command, target):
    """Kill a command at half of the blocks, and take it up."""
    blocks = runner.watch.phases[phase].numbers["blocks"]
    n = runner.kill_at_half(f"{phase}, killed", target, blocks, *command)
    print(told(f"{phase}, killed", runner.watch.phases[f"{phase}, killed"]), f"  {n} finished")
    spent, done = runner.run(f"{phase}, resumed", *command, "--resume")
    print(told(f"{phase}, resumed", spent), f"  {done['blocks_skipped']} kept", flush=True)


def run(options):
    """Measure in a folder that is removed in the end, and tell whether the budget holds."""
    with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
        found = measure(Path(folder), options)
    memory = " and ".join(f"{n / GIB:.2f}" for n in found.highest)
    agree = f"differ in {'; '.join(found.differences)}" if found.differences else "are bit-equal"
    compared = "" if options.once else f", killed and resumed results {agree}"
    print(
        f"budget {'holds' if found.holds else 'MISSED'}: workers took {memory} GiB "
        f"(<= {LIMIT // GIB}), {'one' if found.restarted else 'none'} was started anew{compared}",
        flush=True,
    )
    return found


def read_options(quick=False, arguments=()):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where data go, removed in the end")
    parser.add_argument("--cells", type=int, default=64 if quick else 10_000)
    parser.add_argument("--cases", type=int, default=40 if quick else 500)
    parser.add_argument("--members", type=int, default=4 if quick else 20)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--rows", type=int, default=1 if quick else 2, help="of a block")
    parser.add_argument("--method", default="ckme", help="as the command line has them")
    parser.add_argument("--option", action="append", default=[], help="of the method: KEY=VALUE")
    parser.add_argument("--once", action="store_true", help="undisturbed alone")
    return parser.parse_args(arguments)


def main(quick=False, arguments=()):
    run(read_options(quick, arguments))


if __name__ == "__main__":
    main(arguments=sys.argv[1:])
