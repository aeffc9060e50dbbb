"""A day of a network under one online pool: python -m benchmarks.shared online [PLACES DATES].

Each new day is learned by ``model.update`` and the next one is issued, in chunks of stations on two
workers, where the model stays from day to day. Weights are warmed up on few cases, which spares
most of the time of the fit and changes no cost of a day. The slow experts are not fitted again on
these days.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import xarray as xr
from distributed import Client, LocalCluster, wait

import xrecal
from xrecal.methods import online_state

from .network import draw_dates, draw_network

WHOLE = 1000, 300
"""Stations and dates of the budget."""
BUDGET = 15.0
"""Seconds that all stations may take to learn a day, and to issue one."""
MEMBERS, DAYS, WORKERS, WARM_UP, SEED = 20, 4, 2, 10, 25
CHUNK = 250
"""Stations in a task."""
Q = (0.1, 0.5, 0.9)


def main(size: tuple[int, int] = WHOLE) -> None:
    """Print what a day takes; only a run of the whole size is judged."""
    forecasts, observed = stream(*size)
    n = size[1]
    with warnings.catch_warnings(), cluster():
        warnings.simplefilter("ignore")  # that so few dates tell no season
        model, fit = on_workers(
            lambda: forecasts[:n].recal.fit(observed, xrecal.OnlinePool(), pool="station")
        )
        learned, issued = [], []
        for day in range(n, n + DAYS):
            new = forecasts[day : day + 1]
            start = time.perf_counter()
            model.quantile(new, Q).compute()
            issued.append(time.perf_counter() - start)
            model, seconds = on_workers(lambda m=model, f=new: m.update(f, observed))
            learned.append(seconds)
    print(f"{size[0]} stations, {n} dates, {MEMBERS} members: fit {fit:.0f} s on {WORKERS} workers")
    for what, seconds in (("learning", learned), ("issuing", issued)):
        day = float(np.median(seconds[1:]))  # the first one compiles
        holds = "holds" if day <= BUDGET else "MISSED"
        verdict = f"budget {holds}: " if size == WHOLE else ""
        print(f"{verdict}{what} a day of {size[0]} stations {day:.1f} s (<= {BUDGET:g})")


@contextmanager
def cluster() -> Iterator[Client]:
    """Processes of one thread, which keep what they find: results of one task stay in one place."""
    local = LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with local, Client(local) as client:
        warm_up_on_few()
        client.run(warm_up_on_few)
        yield client


def warm_up_on_few() -> None:
    """Learn the first weights from few cases, in this process."""
    online_state.WARM_UP = WARM_UP


def on_workers(make: Callable[[], xrecal.Recalibrator]) -> tuple[xrecal.Recalibrator, float]:
    """A lazy model whose arrays the workers have computed and keep, and the seconds it took."""
    start = time.perf_counter()
    model = make().persist()
    wait([one.state for one in model.variables.values()])
    return model, time.perf_counter() - start


def stream(n_places: int, n_dates: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Daily forecasts and observations of the synthetic network, in chunks of stations."""
    network = draw_network(n_places, SEED)
    members, observed = draw_dates(network, 0, n_dates + DAYS, MEMBERS, SEED)
    dates = np.datetime64("2019-01-01", "ns") + np.arange(n_dates + DAYS) * np.timedelta64(1, "D")
    coords = {
        "time": dates,
        "station": np.arange(n_places),
        "lat": ("station", network.lat),
        "lon": ("station", network.lon),
        "height": ("station", network.height),
    }
    dims, attrs = ("time", "station", "member"), {"units": "degC"}
    both = (
        xr.DataArray(members, coords, dims, "t2m", attrs),
        xr.DataArray(observed, coords, dims[:2], attrs=attrs),
    )
    forecasts, truth = (a.chunk(station=CHUNK).assign_coords(a.coords) for a in both)
    return forecasts, truth
