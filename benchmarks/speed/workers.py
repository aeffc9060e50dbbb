"""Budgets: two workers of Dask against one, and Dask against plain NumPy on the same chunk."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import dask
import numpy as np
import xarray as xr
from numba import njit

import xrecal
from xrecal.methods import Method

from .data import make_hindcast
from .forecasts import LEVELS
from .pool import SMALL
from .tables import Line, Missing, seconds
from .timing import in_turn

METHODS = {
    "CKME": xrecal.CKME(support="observations"),
    "LinearPool": xrecal.LinearPool(),
    "small CKME": xrecal.CKME(ridge=0.01, support="observations"),
    "small LinearPool": SMALL,
}
"""The small ones are compiled soon, which each process does for itself."""


TASKS = 16
"""Of a fit: enough for two workers to share."""


class Work(NamedTuple):
    """A fit of some locations."""

    label: str
    method: Method
    hindcast: xr.DataArray
    observations: xr.DataArray

    def __call__(self) -> None:
        cut = {"location": -(-self.hindcast.sizes["location"] // TASKS)}
        hindcast, observations = self.hindcast.chunk(cut), self.observations.chunk(cut)
        hindcast.recal.fit(observations, self.method).compute()

    def of_one_location(self) -> "Work":
        first = {"location": [0]}
        return self._replace(hindcast=self.hindcast[first], observations=self.observations[first])


def make_work(name: str, n: int, m: int, locations: int) -> Work:
    label = f"{name} fit, {locations} locations, n={n} m={m}"
    return Work(label, METHODS[name], *make_hindcast(n, m, locations))


def budgets(quick: bool) -> Iterator[Line | Missing]:
    repeats = 1 if quick else 2
    if quick:
        works = [make_work(name, 80, 5, 2) for name in ("small CKME", "small LinearPool")]
    else:
        works = [make_work("CKME", 700, 50, 64), make_work("LinearPool", 400, 50, 32)]
    yield machine(1_000 if quick else 1_000_000_000)
    yield from on_threads(works, repeats)
    yield from on_processes(works, repeats)
    yield from overhead(quick)


@njit(nogil=True)
def count_down(steps):
    """Arithmetic alone, which shares nothing but the cores."""
    left = np.uint64(steps)
    mixed = np.uint64(1)
    while left > 0:
        mixed ^= mixed << np.uint64(13)
        mixed ^= mixed >> np.uint64(7)
        mixed ^= mixed << np.uint64(17)
        left -= np.uint64(1)
    return mixed


def machine(steps: int) -> Line:
    """What two threads gain at most, given what else the machine does meanwhile."""
    count_down(1)

    def halves(threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(count_down, [steps // 2] * 2))

    one, two = in_turn({str(k): partial(halves, k) for k in (1, 2)}, 1, warm=False)
    absolute = f"{seconds(one)} v {seconds(two)}; other work on the machine lowers it"
    return Line("  plain arithmetic: one / two threads", one / two, "x", absolute)


def on_threads(works: list[Work], repeats: int) -> Iterator[Line]:
    """Fit on one thread of this process and on two."""
    for work in works:
        work()  # compiles
        yield two_against_one(work, "threads", partial(with_threads, work), repeats, (1, 2))


def with_threads(work: Work, count: int) -> None:
    with dask.config.set(scheduler="threads", num_workers=count):
        work()


def on_processes(works: list[Work], repeats: int) -> Iterator[Line | Missing]:
    """Fit on one process and on two, each of one thread."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        yield Missing("two worker processes / one", str(error))
        return
    with ExitStack() as stack:
        clients = []
        for count in (1, 2):
            cluster = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",
                memory_limit=0,
            )
            stack.enter_context(cluster)
            clients.append(stack.enter_context(Client(cluster, set_as_default=False)))
            clients[-1].run(compile_all, [work.of_one_location() for work in works])
        for work in works:
            yield two_against_one(work, "processes", partial(with_client, work), repeats, clients)


def with_client(work: Work, client: Any) -> None:
    with client.as_current():
        work()


def compile_all(works: list[Work]) -> None:
    """In each process, before anything is timed."""
    with dask.config.set(scheduler="synchronous"):
        for work in works:
            work()


def two_against_one(
    work: Work, what: str, run: Callable[[Any], None], repeats: int, resources: Sequence[Any]
) -> Line:
    """Time with the first of two resources over that with the second."""
    one, two = in_turn(
        {str(k): partial(run, resource) for k, resource in enumerate(resources, 1)},
        repeats,
        warm=False,
    )
    name = f"{work.label}: one / two {what}"
    return Line(name, one / two, "x", f"{seconds(one)} v {seconds(two)}", 1.8, at_least=True)


def overhead(quick: bool) -> Iterator[Line]:
    """What Dask adds to one chunk, on one thread: of half a second or more, and of a tenth."""
    n, m = (60, 5) if quick else (300, 20)
    for locations, judged in ((1, True),) if quick else ((32, True), (4, False)):
        yield from overhead_of(*make_hindcast(n, m, locations), 1 if quick else 5, judged)


def overhead_of(
    hindcast: xr.DataArray, observations: xr.DataArray, repeats: int, judged: bool
) -> Iterator[Line]:
    """Fit and quantiles of one chunk."""
    method, lazy, lazy_observations = METHODS["CKME"], hindcast.chunk(), observations.chunk()
    model = hindcast.recal.fit(observations, METHODS["CKME"])
    with dask.config.set(scheduler="threads", num_workers=1):
        numpy, chunk, quantiles, chunk_quantiles = in_turn(
            {
                "fit": lambda: hindcast.recal.fit(observations, method),
                "lazy fit": lambda: lazy.recal.fit(lazy_observations, method).compute(),
                "quantiles": lambda: model.quantile(hindcast, LEVELS),
                "lazy quantiles": lambda: model.quantile(lazy, LEVELS).compute(),
            },
            repeats,
        )
    size = f"n={hindcast.sizes['time']}, {hindcast.sizes['location']} locations"
    for what, ours, dasks in (("fit", numpy, chunk), ("quantiles", quantiles, chunk_quantiles)):
        absolute = f"{seconds(dasks)} v {seconds(ours)} on NumPy"
        work = f"{'' if judged else '  '}Dask overhead on one chunk, {what}: {size}"
        yield Line(work, 100 * (dasks / ours - 1), "%", absolute, 10 if judged else None)
