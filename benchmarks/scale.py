"""What large grids cost, and where the scheduler limits them: python -m benchmarks.scale.

Core seconds of a location by cases, members and method; one grid of small cells cut ever finer,
until Dask's scheduler takes more time than the arithmetic; and grids fitted and recalibrated by the
command line on two workers of one thread and 2 GiB each, one of them killed and resumed as well.
`docs/scale.md` computes with what is stored here.
"""

import argparse
import os
import sys
import tempfile
import warnings
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import cloudpickle
import dask.array
import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

import xrecal
from benchmarks.beyond_sample import beyond_sample
from benchmarks.record import FOLDER, processor
from xrecal.fit.kinds import SAMPLE

from . import grid
from .speed.tables import Report, Row

RESULTS = FOLDER / "scale.csv"
METHODS = {
    "EMOS": xrecal.EMOS(),
    "IDR": xrecal.IDR(),
    "CKME": xrecal.CKME(support="observations"),
    "CKME, support chosen": xrecal.CKME(),
    "LinearPool": xrecal.LinearPool(),
}
SIZES = [(n, m) for n in (40, 100, 300, 500, 1000) for m in (10, 50)]
"""Cases and members of a location."""
LEVELS = [float(level) for level in grid.QUANTILES.split(",")]
FIRST = 3 * SAMPLE
"""Locations that hold the samples of some kinds, which choose for all."""
SECONDS, LEAST, MOST = 2.0, 64, 1000
"""Of the fits of further locations, about, and how many these are."""
FEW = 8
"""Locations by which the others are counted."""

GRIDS = {
    "CKME": "--cells 10000 --cases 500 --members 20 --method ckme",
    "LinearPool": "--cells 300 --cases 500 --members 20 --rows 1 --method linear-pool --once",
    "small CKME": "--cells 100000 --cases 40 --members 8 --method ckme --once",
    "small EMOS": "--cells 100000 --cases 40 --members 8 --method emos --once",
}
QUICK_GRIDS = {"CKME": "", "EMOS": "--method emos --once"}
SMALL = 40, 8
"""Cases and members of the cells that are cut ever finer."""
CUTS = 2048, 512, 128, 32, 8
"""Cells of a chunk or block."""


# arithmetic ---------------------------------------------------------------------------------------


def make_cells(n, m, cells):
    """A hindcast (time, member, cell) and what verified, as those of the grids."""
    members, observed = grid.draw(np.random.default_rng([n, m]), n, m, (1, cells))
    time = np.datetime64("2000-01-01", "ns") + np.arange(n) * np.timedelta64(7, "D")
    hindcast = xr.DataArray(
        members[:, :, 0],
        dims=("time", "member", "cell"),
        coords={"time": time, "cell": np.arange(cells)},
        attrs={"units": "K"},
        name="t2m",
    )
    return hindcast, hindcast.isel(member=0, drop=True).copy(data=observed[:, 0])


def core_seconds(function):
    """CPU seconds of this process, which is to work on one thread."""
    before = process_time()
    function()
    return process_time() - before


def arithmetic(sizes, first, most):
    """Core seconds of a location: a fit, a forecast, and forecasts of all cases it has learned.

    A fit is that of a location of a large grid, beyond a sample that chooses for all.
    """
    for name, method in METHODS.items():
        fit = partial(fitted, method=method)
        few = make_cells(*min(sizes), 2)
        fit(*few).quantile(few[0], LEVELS)  # compiles
        for n, m in sizes:
            few = make_cells(n, m, FEW)
            each = core_seconds(lambda few=few, fit=fit: fit(*few)) / FEW
            more = min(int(np.clip(SECONDS / each, LEAST, MOST)), most)
            hindcast, observed = make_cells(n, m, first + more)
            found = beyond_sample(fit, hindcast, observed, "cell", process_time)
            timed = int(np.clip(SECONDS / each, FEW, first + more))
            new = hindcast.isel(cell=slice(timed))
            one, all_of_them = (
                core_seconds(lambda some=some, of=found.model: of.quantile(some, LEVELS)) / timed
                for some in (new.isel(time=[0]), new)
            )
            seconds = {
                "fit": found.each,
                "choices of all": found.choices,
                "a forecast": one,
                "n forecasts": all_of_them,
            }
            yield Row(f"{name}, n={n} m={m}", {"method": name, "n": n, "m": m} | seconds)


def fitted(hindcast, observed, method):
    """A model."""
    return hindcast.recal.fit(observed, method)


# the scheduler ------------------------------------------------------------------------------------


def plus_one(number):
    return number + 1


def nothing(watch, n):
    """Tasks that do nothing, the second time."""
    for _ in range(2):
        with watch.during("nothing") as spent:
            watch.client.gather(watch.client.map(plus_one, range(n), pure=False))
    yield Row(f"{n} tasks that do nothing", spent.numbers)


def values_of_chunk(n, m, cells, block_id=None):
    """Members and observations of a chunk, drawn where they are needed."""
    members, observed = grid.draw(np.random.default_rng(block_id), n, m, (cells, 1))
    return np.concatenate([members[..., 0], observed[..., 0][:, np.newaxis]], axis=1)


def in_python(watch, cells, cuts):
    """Fit and quantiles of small cells, cut ever finer, from Python."""
    n, m = SMALL
    like, _ = make_cells(n, m, cells)
    for cut in [max(cuts), *cuts]:  # the first time things are compiled and loaded
        chunks = (n,), (m + 1,), (cut,) * (cells // cut)
        values = dask.array.map_blocks(
            partial(values_of_chunk, n, m, cut),
            chunks=chunks,
            dtype=float,
            meta=np.empty((0, 0, 0)),
        )
        start = perf_counter()
        hindcast = like.copy(data=values[:, :m])
        observed = like.isel(member=0, drop=True).copy(data=values[:, m])
        quantiles = hindcast.recal.fit(observed, METHODS["EMOS"]).quantile(hindcast, LEVELS)
        built = perf_counter() - start
        n_bytes = len(cloudpickle.dumps(quantiles.__dask_graph__()))
        with watch.during(f"{cut}") as spent:
            quantiles.compute()
        sizes = {"cells a chunk": cut, "chunks": cells // cut}
        graph = {"s to build": built, "kB of the graph": n_bytes / 1e3}
        yield Row(f"{cells} cells, {cut} a chunk", sizes | graph | spent.numbers)


def by_command(watch, address, folder, side, cuts):
    """The fit of small cells, a square of them, by the command, in ever smaller blocks."""
    paths, _, cells = grid.write_data(folder, side**2, *SMALL, "float64", 1)
    runner, target = grid.Runner(address, watch), folder / "model.zarr"
    for cut in [max(cuts), *cuts]:
        blocks = f"lat={max(cut // side, 1)},lon={min(cut, side)}"
        more = ["--method", "emos", "--chunks", blocks, "--overwrite"]
        spent, done = runner.run(f"{cut}", "fit", paths["hindcast"], paths["truth"], target, *more)
        sizes = {"cells a block": cut, "blocks": done["blocks"]}
        yield Row(f"{cells} cells, {cut} a block", sizes | spent.numbers)


def scheduler(report, folder, quick):
    """What tasks cost beside their work."""
    with grid.two_workers(folder) as (client, cluster):
        watch, address = grid.Watch(client, cluster), cluster.scheduler_address
        report.start("Tasks that do nothing")
        add(report, nothing(watch, 10 if quick else 10_000))
        report.start("From Python")
        add(report, islice(in_python(watch, *((8, (4, 2)) if quick else (4096, CUTS))), 1, None))
        report.start("By the command")
        sizes = (4, (8, 4)) if quick else (64, CUTS)
        add(report, islice(by_command(watch, address, folder, *sizes), 1, None))


# the benchmark ------------------------------------------------------------------------------------


def add(report, rows):
    for row in rows:
        report.add(row)


def grids(report, quick, folder, share):
    """Run the grids; what each of them has taken."""
    found = []
    for name, given in (QUICK_GRIDS if quick else GRIDS).items():
        options = grid.read_options(quick, [*given.split(), "--folder", folder])
        options.cells = max(int(share * options.cells), 1)
        outcome = grid.run(options)
        sizes = {"n": options.cases, "m": options.members}
        for phase, numbers in outcome.phases.items():
            report.add(Row(f"{name}: {phase}", {"grid": name, "phase": phase} | sizes | numbers))
        found.append(outcome)
    return found


def main(quick=False, arguments=()):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where data go, removed in the end")
    parser.add_argument("--quick", action="store_true", help="smallest sizes: does it run?")
    parser.add_argument("--share", type=float, default=1.0, help="of the cells of the grids")
    parser.add_argument("--results", type=Path, help="file of the results, if not the one kept")
    options = parser.parse_args(arguments)
    quick = quick or options.quick
    start, report = perf_counter(), Report()
    report.tell("machine", f"{os.cpu_count()} cores, {processor()}")
    report.start("Core seconds a location")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "season learned from")  # forty weeks
        add(
            report, arithmetic([(40, 4)] if quick else SIZES, *((4, 2) if quick else (FIRST, MOST)))
        )
    with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
        scheduler(report, Path(folder), quick)
        report.start("Grids")
        found = grids(report, quick, folder, options.share)
    report.tell("minutes", f"{(perf_counter() - start) / 60:.0f}")
    report.tell("verdict", verdict(found))
    if options.results or not quick:
        report.store(options.results or RESULTS)


def verdict(found):
    """Whether the budget of all grids holds."""
    n = sum(outcome.holds for outcome in found)
    highest = max(max(outcome.highest) for outcome in found) / grid.GIB
    text = f"{n} of {len(found)} grids, in workers of {grid.LIMIT // grid.GIB} GiB, which took"
    if n < len(found):
        return f"budget MISSED: holds for {text} {highest:.2f} at most"
    return (
        f"budget holds: {text} {highest:.2f} at most; none was started anew, killed and resumed "
        "results are bit-equal"
    )


if __name__ == "__main__":
    main(arguments=sys.argv[1:])
