"""The GPU against the CPU of the same machine and the naive form: python -m benchmarks.gpu.

Times on the device are between events, after a run that does not count: kernels are compiled and
the memory pool is filled by then. Beside each stand the bytes that must move and the operations
that must be done, and the seconds that these take at the rates of a large copy and a large product
of float64 matrices, measured in the same run: nothing can be faster.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.record import FOLDER, store
from tests.device import naive
from xrecal import arrays
from xrecal.arrays import Forecasts, Settings
from xrecal.arrays.device.ensembles import among, arrange
from xrecal.chunks.blockwise import one_blas_thread

RESULTS = FOLDER / "gpu.csv"
HEADS = "work           n      m locations    device s  CPU core s  CPU all s    naive s    floor s"
NAIVE_BYTES = 2**31  # of the largest array of the naive form
FOLDS, RIDGES = 5, 13


class Row(NamedTuple):
    """Seconds of one piece of work, and what it cannot do without."""

    device: str
    work: str
    n: int
    m: int
    locations: int
    device_s: float
    cpu_core_s: float
    cpu_all_s: float
    naive_s: float
    bytes: float
    flops: float
    floor_s: float


class Sizes(NamedTuple):
    """Sizes of the pieces of work."""

    ablation: tuple[int, ...] = (100, 200, 500, 1000, 2000, 4000, 8000)
    ablation_n: int = 300
    locations: int = 1000
    distance_n: int = 1000
    fit_n: int = 500
    members: int = 50
    large_n: int = 10_000
    on_cpu: int = max(8, os.cpu_count() or 1)
    """Locations timed on the CPU, of which the others take as many times more"""
    ceiling: int = 8192
    """Rows of the matrices that measure the rates"""
    repeats: int = 5


QUICK = Sizes((8, 16), 10, 3, 12, 40, 4, 60, 2, 64, 1)


class Clock:
    """Shortest time of several runs, between events of a device or by the wall clock."""

    def __init__(self, xp: Any, repeats: int) -> None:
        self.xp, self.repeats = xp, repeats

    def __call__(self, work: Callable[[], object], repeats: int | None = None) -> float:
        """Seconds; a first run does not count."""
        work()
        return min(self._once(work) for _ in range(repeats or self.repeats))

    def _once(self, work: Callable[[], object]) -> float:
        if self.xp is np:
            start = perf_counter()
            work()
            return perf_counter() - start
        start, stop = self.xp.cuda.Event(), self.xp.cuda.Event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        return 1e-3 * float(self.xp.cuda.get_elapsed_time(start, stop))


class Rates(NamedTuple):
    """Bytes and operations a second that the device reaches."""

    bytes: float
    flops: float

    def floor(self, moved: float, operations: float) -> float:
        """Seconds that nothing can undercut."""
        return max(moved / self.bytes, operations / self.flops)


def rates(xp: Any, clock: Clock, size: int) -> Rates:
    """Those of a copy and a product of two matrices."""
    one = xp.ones((size, size), dtype=xp.float64)
    copy = clock(lambda: one.copy())
    product = clock(lambda: xp.matmul(one, one))
    return Rates(2 * 8 * size**2 / copy, 2 * size**3 / product)


def make_cases(n_locations: int, n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Members (L, n, m) and observations (L, n): a season, a bias, spread that varies."""
    rng = np.random.default_rng(seed)
    mean = 10 * np.sin(2 * np.pi * np.arange(n) / 365.25) + rng.normal(size=(n_locations, n))
    spread = rng.gamma(2.0, 0.5, (n_locations, n))
    members = mean[..., np.newaxis] + spread[..., np.newaxis] * rng.normal(size=(n_locations, n, m))
    return members, mean + 1 + 1.5 * spread * rng.normal(size=(n_locations, n))


class Bench:
    """Pieces of work on a device and on the CPU."""

    def __init__(self, xp: Any, device: str, sizes: Sizes) -> None:
        self.xp, self.device, self.sizes = xp, device, sizes
        self.clock, self.wall = Clock(xp, sizes.repeats), Clock(np, 1)
        self.rates = rates(xp, self.clock, sizes.ceiling)

    def rows(self) -> Iterator[Row]:
        """All of them, the longest last."""
        sizes = self.sizes
        for m in sizes.ablation:
            yield self.distances(1, sizes.ablation_n, m)
        yield self.distances(sizes.locations // 10 or 1, sizes.distance_n, sizes.members)
        yield from self.fit_and_apply(sizes.locations, sizes.fit_n)
        yield from self.fit_and_apply(1, sizes.large_n)

    def distances(self, n_locations: int, n: int, m: int) -> Row:
        """The matrix of distances of each location."""
        x = make_cases(n_locations, n, m)[0]
        ours = self.xp.asarray(x)
        device = self.clock(lambda: among(arrange(ours, None)))
        slow = np.nan
        if 8 * n_locations * n * m * m <= NAIVE_BYTES:
            sorted_members = arrange(ours, None)
            slow = self.clock(lambda: naive.among(sorted_members), 1)
        few = min(n_locations, self.sizes.on_cpu)
        core = self.wall(lambda: [arrays.squared_energy_distance(one) for one in x[:few]])
        every = self._on_all_cores(arrays.squared_energy_distance, list(x[:few]))
        pairs = n_locations * n * (n - 1) / 2
        # Members and their masses are read once, distances written; 5 operations a step of a merge.
        moved = 8.0 * n_locations * (2 * n * m + n * n)
        return self._row(
            "distances", n, m, n_locations, few, (device, core, every, slow),
            (moved, 5 * 2 * m * pairs),
        )  # fmt: skip

    def fit_and_apply(self, n_locations: int, n: int) -> list[Row]:
        """A fit with all that is chosen by cross-validation, and forecasts with rebuild."""
        m, few = self.sizes.members, min(n_locations, self.sizes.on_cpu)
        members, observed = make_cases(n_locations, n, m)
        settings, new = Settings(solver="exact"), slice(min(n, 100))
        ours = Forecasts(self.xp.asarray(members)), self.xp.asarray(observed)
        fitted = arrays.fit_ckme(*ours, settings)
        host = fitted._make(np.asarray(as_numpy(part)) for part in fitted)
        rank = float(n)
        runs = self.sizes.repeats if n_locations > 1 else 1

        def fit_on_host(at: int) -> None:
            arrays.fit_ckme(Forecasts(members[at : at + 1]), observed[at : at + 1], settings)

        def apply_on_host(at: int) -> None:
            one = slice(at, at + 1)
            known = fitted._make(part[one] for part in host)
            case = Forecasts(members[one])
            arrays.ckme_weights(Forecasts(members[one, new]), case, observed[one], known)

        def apply_on_device() -> None:
            forecasts = Forecasts(ours[0].loc[:, new])
            arrays.ckme_weights(forecasts, *ours, fitted)

        fit = self.clock(lambda: arrays.fit_ckme(*ours, settings), runs)
        apply = self.clock(apply_on_device, runs)
        places = list(range(few))
        found = []
        for work, device, on_host, cost in (
            ("fit", fit, fit_on_host, cost_of_fit),
            ("100 forecasts", apply, apply_on_host, cost_of_forecasts),
        ):
            core = self.wall(lambda on_host=on_host: [on_host(at) for at in places])
            every = self._on_all_cores(on_host, places)
            moved, operations = (n_locations * part for part in cost(n, m, rank))
            times = device, core, every, np.nan
            found.append(self._row(work, n, m, n_locations, few, times, (moved, operations)))
        return found

    def _on_all_cores(self, work: Callable[[Any], object], items: list[Any]) -> float:
        """Seconds of one item, where every core has one at a time; NaN for too few items."""
        cores = os.cpu_count() or 1
        if len(items) < cores:
            return float("nan")
        with one_blas_thread(), ThreadPoolExecutor(cores) as pool:
            return self.wall(lambda: list(pool.map(work, items)))

    def _row(
        self,
        work: str,
        n: int,
        m: int,
        n_locations: int,
        few: int,
        times: tuple[float, float, float, float],
        cost: tuple[float, float],
    ) -> Row:
        device, core, every, slow = times
        share = n_locations / few
        floor = self.rates.floor(*cost)
        return Row(
            self.device, work, n, m, n_locations, device, share * core, share * every, slow,
            *cost, floor,
        )  # fmt: skip


def cost_of_fit(n: int, m: int, rank: float) -> tuple[float, float]:
    """Bytes and operations of the fit of one location, at least.

    Distances of the landmarks; their factor; then, for each ridge, products of its folds, their
    solutions, and signed weights of all held-out cases.
    """
    held = min(n, 500)
    distances = 5 * 2 * m * rank * n
    solves = RIDGES * (FOLDS * (2 / 3 * rank**3 + rank**2 * n / FOLDS) + 2 * held * rank * n)
    moved = 8 * (2 * n * m + rank * n + RIDGES * held * n)
    return moved, distances + 2 * n * rank**2 + solves


def cost_of_forecasts(n: int, m: int, rank: float) -> tuple[float, float]:
    """Bytes and operations of 100 forecasts at one location, at least."""
    distances = 5 * 2 * m * (rank * n + 100 * rank)
    return 8.0 * (2 * n * m + rank * n + 100 * n), distances + 2 * n * rank**2 + 200 * n * rank


def as_numpy(array: Any) -> np.ndarray:
    """An array on the host."""
    from xrecal.arrays.dispatch import to_host

    found: np.ndarray = to_host(array)
    return found


def device_name() -> str | None:
    """Name of the CUDA device; None without one."""
    try:
        import cupy

        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except Exception:  # no CuPy, no driver or no device
        return None


def show(row: Row) -> None:
    """Print as a line of a table."""
    seconds = "".join(
        f"{s:12.3g}" for s in (row.device_s, row.cpu_core_s, row.cpu_all_s, row.naive_s)
    )
    line = f"{row.work:13}{row.n:6}{row.m:6}{row.locations:8} {seconds}{row.floor_s:12.3g}"
    print(line, flush=True)


def main(quick: bool = False) -> int:
    """Print the table and store it; without a device say so, and store nothing."""
    name = device_name()
    if name is None:
        print("not measured: no CUDA device that CuPy can use")
        return 0
    import cupy

    print(name)
    print(HEADS)
    rows = []
    for row in Bench(cupy, name, QUICK if quick else Sizes()).rows():
        rows.append(row)
        show(row)
        if not quick:  # what there is, as the last rows take longest
            store(RESULTS, Row._fields, rows)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing stored")
    sys.exit(main(parser.parse_args().quick))
