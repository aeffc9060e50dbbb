"""A grid in two small processes, undisturbed and killed: python -m benchmarks.grid.

A synthetic hindcast is written to Zarr, fitted and recalibrated to quantiles by the command line on
two workers of one thread and 2 GiB each. Then the same again, but the command is killed at half of
the blocks of the fit and of the forecasts, and taken up with --resume. Held are the memory of the
workers, that none was started anew, and that both results agree bit for bit.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import xarray as xr

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-c", "from xrecal.cli import main; main()"]
GIB = 2**30
LIMIT = 2 * GIB
POLL_SECONDS = 0.1
QUANTILES = "0.1,0.5,0.9"


# data ---------------------------------------------------------------------------------------------


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
    season = np.sin(2 * np.pi * 7 * np.arange(cases) / 365.25)[:, np.newaxis, np.newaxis]
    for start in range(0, side, rows):
        block = slice(start, min(start + rows, side))
        rng = np.random.default_rng([7, start])
        shape = cases, block.stop - block.start, n_lon
        signal = 280 + 8 * season + 3 * rng.normal(size=shape)
        spread = rng.gamma(2.0, 0.5, shape)[:, np.newaxis]
        drawn = signal[:, np.newaxis] + 1 + spread * rng.normal(size=(cases, members, *shape[1:]))
        truth = signal + rng.normal(size=shape)
        for name, values in {"hindcast": drawn, "truth": truth}.items():
            dims = list(sizes) if values.ndim == 4 else ["time", "lat", "lon"]
            part = xr.Dataset({"t2m": (dims, values.astype(dtype))})
            region = {d: block if d == "lat" else slice(None) for d in dims}
            part.to_zarr(paths[name], region=region, consolidated=False)
    return paths, n_bytes, side * n_lon


# workers ------------------------------------------------------------------------------------------


class Watch:
    """Memory of the workers of a cluster, looked at all the time."""

    def __init__(self, client):
        import psutil

        self.client = client
        self.first = self.pids()
        self.peaks, self.cpu = {}, {}
        self._processes = {pid: psutil.Process(pid) for pid in self.first}
        self._gone = psutil.NoSuchProcess

    def pids(self):
        """Process of each worker, by name."""
        import os

        return sorted(self.client.run(os.getpid).values())

    def _cpu_seconds(self):
        times = [p.cpu_times() for p in self._processes.values() if p.is_running()]
        return sum(t.user + t.system for t in times)

    @contextmanager
    def during(self, phase):
        """Note CPU time of all workers and the largest memory of each while something runs."""
        peaks = self.peaks.setdefault(phase, dict.fromkeys(self._processes, 0))
        done, before = threading.Event(), self._cpu_seconds()

        def look():
            while not done.wait(POLL_SECONDS):
                for pid, process in self._processes.items():
                    try:
                        peaks[pid] = max(peaks[pid], process.memory_info().rss)
                    except self._gone:
                        return

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.cpu[phase] = self._cpu_seconds() - before

    def highest(self):
        """Largest memory of each worker since it began, as the system has counted it."""
        for pid in self._processes:
            status = Path(f"/proc/{pid}/status")
            lines = status.read_text().splitlines() if status.exists() else []
            known = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")]
            yield max([*known, *(peaks[pid] for peaks in self.peaks.values())])

    @property
    def restarted(self):
        """Whether a worker is not the one it was."""
        return self.pids() != self.first


# commands -----------------------------------------------------------------------------------------


class Runner:
    """The command line on a cluster."""

    def __init__(self, address, watch):
        self.address, self.watch = address, watch

    def _start(self, *args):
        command = [*COMMAND, *map(str, args), "--scheduler", self.address, "--json", "--quiet"]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def run(self, phase, *args):
        """Run to the end; seconds of wall clock, and what the command tells."""
        with self.watch.during(phase):
            start = perf_counter()
            process = self._start(*args)
            out, _ = process.communicate()
            seconds = perf_counter() - start
        if process.returncode != 0:
            raise RuntimeError(f"{phase} exits with {process.returncode}: {out}")
        return seconds, json.loads(out)

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
    from xrecal.cli.blocks import REQUEST

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


def row(phase, seconds, watch):
    """A line of the table: wall clock, CPU of all workers, memory of each."""
    wall = f"{'':9}" if seconds is None else f"{seconds:9.1f}"
    peaks = "  ".join(f"{peak / GIB:5.2f}" for peak in watch.peaks[phase].values())
    return f"{phase:18}{wall}{watch.cpu[phase]:9.1f}     {peaks}"


def measure(folder, options):
    """Largest memory of each worker, whether one was started anew, and all differences."""
    from distributed import Client, LocalCluster

    paths, n_bytes, cells = write_data(
        folder, options.cells, options.cases, options.members, options.dtype, options.rows
    )
    print(
        f"{cells} cells, n = {options.cases}, m = {options.members}, {options.dtype}: "
        f"{n_bytes / 1e9:.2f} GB; {' '.join([options.method, *options.option])}; blocks of "
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

    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        memory_limit=LIMIT,
        dashboard_address=":0",
        local_directory=str(folder / "workers"),
    )
    with cluster, Client(cluster) as client:
        watch = Watch(client)
        runner = Runner(cluster.scheduler_address, watch)
        in_two_ways(runner, "fit", fit(model), fit(again), again)
        in_two_ways(runner, "apply", forecast(model, out), forecast(again, out_again), out_again)
        highest, restarted = list(watch.highest()), watch.restarted
    pairs = {"model": (model, again), "quantiles": (out, out_again)}
    found = {name: difference(*pair) for name, pair in pairs.items()}
    return highest, restarted, [f"{name}: {text}" for name, text in found.items() if text]


def in_two_ways(runner, phase, undisturbed, killed, target):
    """A command from beginning to end; another one killed at half and taken up."""
    _, told = runner.run(f"{phase}, planned", *undisturbed, "--dry-run")
    needs = told["task_bytes"] / GIB
    seconds, told = runner.run(phase, *undisturbed)
    told_blocks = f"  {told['blocks']} blocks; a task was planned to need {needs:.2f} GiB"
    print(row(phase, seconds, runner.watch), told_blocks, flush=True)
    n = runner.kill_at_half(f"{phase}, killed", target, told["blocks"], *killed)
    print(row(f"{phase}, killed", None, runner.watch), f"  {n} finished", flush=True)
    seconds, told = runner.run(f"{phase}, resumed", *killed, "--resume")
    kept = f"  {told['blocks_skipped']} kept"
    print(row(f"{phase}, resumed", seconds, runner.watch), kept, flush=True)


def main(quick=False, arguments=()):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where data go, removed in the end")
    parser.add_argument("--cells", type=int, default=64 if quick else 10_000)
    parser.add_argument("--cases", type=int, default=40 if quick else 500)
    parser.add_argument("--members", type=int, default=4 if quick else 20)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--rows", type=int, default=1 if quick else 2, help="of a block")
    parser.add_argument("--method", default="ckme", help="as the command line has them")
    parser.add_argument("--option", action="append", default=[], help="of the method: KEY=VALUE")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
        highest, restarted, differences = measure(Path(folder), options)
    holds = max(highest) <= LIMIT and not restarted and not differences
    memory = " and ".join(f"{n / GIB:.2f}" for n in highest)
    print(
        f"budget {'holds' if holds else 'MISSED'}: workers took {memory} GiB (<= {LIMIT // GIB}), "
        f"{'one was started anew' if restarted else 'none was started anew'}, killed and resumed "
        f"results {'differ in ' + '; '.join(differences) if differences else 'are bit-equal'}"
    )


if __name__ == "__main__":
    main(arguments=sys.argv[1:])
