"""A day of a network under one online pool: python -m benchmarks.shared online [PLACES DATES].

Each new day is learned by ``model.update`` and the next one is issued, in chunks of stations on two
workers. Weights are warmed up on few cases, which spares most of the time of the fit and changes no
cost of a day. The slow experts are not fitted again on these days.
"""

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import dask
import numpy as np
import xarray as xr

import xrecal
from xrecal.methods import online_state

from .network import draw_dates, draw_network

WHOLE = 1000, 300
"""Stations and dates of the budget."""
BUDGET = 15.0
"""Seconds that all stations may take to learn a day, and to issue one."""
MEMBERS, DAYS, WORKERS, SEED = 20, 4, 2, 25
CHUNK = 50
"""Stations in a task."""
Q = (0.1, 0.5, 0.9)


def main(size: tuple[int, int] = WHOLE) -> None:
    """Print what a day takes; only a run of the whole size is judged."""
    forecasts, observed = stream(*size)
    n = size[1]
    with (
        warnings.catch_warnings(),
        patch.object(online_state, "WARM_UP", 10),
        ProcessPoolExecutor(WORKERS, get_context("fork")) as workers,  # which know the patch
        dask.config.set(scheduler="processes", pool=workers, chunksize=1),
    ):
        warnings.simplefilter("ignore")  # that so few dates tell no season
        model, fit = timed(
            lambda: forecasts[:n].recal.fit(observed, xrecal.OnlinePool(), pool="station")
        )
        learned, issued = [], []
        for day in range(n, n + DAYS):
            new = forecasts[day : day + 1]
            issued.append(timed(lambda m=model, f=new: m.quantile(f, Q))[1])
            model, seconds = timed(lambda m=model, f=new: m.update(f, observed))
            learned.append(seconds)
    print(f"{size[0]} stations, {n} dates, {MEMBERS} members: fit {fit:.0f} s on {WORKERS} workers")
    for what, seconds in (("learning", learned), ("issuing", issued)):
        day = float(np.median(seconds[1:]))  # the first one compiles
        holds = "holds" if day <= BUDGET else "MISSED"
        verdict = f"budget {holds}: " if size == WHOLE else ""
        print(f"{verdict}{what} a day of {size[0]} stations {day:.1f} s (<= {BUDGET:g})")


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """A lazy result, computed, and the seconds that this took."""
    start = time.perf_counter()
    done = make().compute()
    return done, time.perf_counter() - start


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
