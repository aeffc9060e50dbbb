"""What a day costs an online pool, and a year of a thousand stations: python -m benchmarks.daily.

Two years of synthetic daily temperatures, of which each new day is learned and the next forecast is
issued, at one station and at several in one call. Times are of one process and its processor. Then
a third year is replayed at some stations on two processes, with the fits that fall due.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import xarray as xr

import xrecal
from benchmarks.record import FOLDER, store
from xrecal.arrays.online import aggregation
from xrecal.methods.experts import Experts

RESULTS = FOLDER / "daily.csv"
DAYS, MEMBERS, NEW = 730, 20, 20
STATIONS = (1, 8, 24)
UPDATE = 10.0
"""Milliseconds that an update of a position is to take at most."""

YEAR, REPLAYED, MANY, PROCESSES = 365, 24, 1000, 2
"""Days and stations replayed on so many processes, and stations for which it is told."""

PARTS: dict[str, tuple[Any, str]] = {
    "slow experts": (Experts, "slow_quantiles"),
    "fast experts": (Experts, "fast_quantiles"),
    "weights": (aggregation, "learn"),
}
"""Where an update spends its time: what these take, and all else with labels and states."""

COLUMNS = (
    "stations", "days", "members", "fit s", "update ms", *PARTS, "rest", "issue ms", "year s",
)  # fmt: skip


def main(quick=False):
    """Time one station and several, print and store what a day and a year cost."""
    days, stations, year = (60, STATIONS[:1], 5) if quick else (DAYS, STATIONS, YEAR)
    rows = [measured(n, days) for n in stations]
    rows[-1]["year s"] = replayed(stations[-1] if quick else REPLAYED, days, year)
    if not quick:
        store(RESULTS, COLUMNS, ([_cell(row.get(c, "")) for c in COLUMNS] for row in rows))
    print("\n".join(lines(rows, year)))


def _cell(value):
    return f"{value:.4g}" if isinstance(value, float) else value


def stream(stations, days, new=NEW):
    """Forecasts (time, station, member) and what verified, of one law from day to day."""
    rng = np.random.default_rng(1)
    n = days + new + 1
    truth = 10 + 5 * rng.normal(size=(n, stations))
    known = truth + 1 + 2 * rng.normal(size=truth.shape)
    members = known[..., np.newaxis] + 1.2 * rng.normal(size=(*truth.shape, MEMBERS))
    dates = np.datetime64("2020-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    coords = {"time": dates, "station": np.arange(stations)}
    forecasts = xr.DataArray(members, coords, ("time", "station", "member"), "t")
    observed = xr.DataArray(truth, coords, ("time", "station"))
    return forecasts.assign_attrs(units="degC"), observed.assign_attrs(units="degC")


def measured(stations, days):
    """Seconds of a fit, and milliseconds of an update and an issue, of a position."""
    forecasts, observed = stream(stations, days)
    method = xrecal.OnlinePool(refit=2 * (days + NEW))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that two months of a quick run tell no season
        model = forecasts[:days].recal.fit(observed, method)
    fit = time.process_time() - start
    updates, issues, parts = [], [], []
    for day in range(days, days + NEW):
        with timed() as taken:
            start = time.process_time()
            model = model.update(forecasts[day : day + 1], observed)
            updates.append(time.process_time() - start)
        parts.append(list(taken.values()))
        start = time.process_time()
        model.quantile(forecasts[day + 1 : day + 2], (0.1, 0.5, 0.9))
        issues.append(time.process_time() - start)
    warm = slice(NEW // 4, None)
    update, issue, *of_parts = (
        1e3 * float(np.median(seconds[warm])) / stations
        for seconds in (updates, issues, *np.transpose(parts))
    )
    told = dict(zip(PARTS, of_parts, strict=True))
    return {
        "stations": stations, "days": days, "members": MEMBERS, "fit s": fit / stations,
        "update ms": update, **told, "rest": update - sum(of_parts), "issue ms": issue,
    }  # fmt: skip


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Seconds of the processor that each part takes meanwhile."""
    taken = dict.fromkeys(PARTS, 0.0)
    before = {name: getattr(owner, of) for name, (owner, of) in PARTS.items()}

    def told(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                taken[name] += time.process_time() - start

        return run

    for name, (owner, of) in PARTS.items():
        setattr(owner, of, told(name, before[name]))
    try:
        yield taken
    finally:
        for name, (owner, of) in PARTS.items():
            setattr(owner, of, before[name])


def replayed(stations, days, year):
    """Seconds in which some stations are replayed, half of them on each of two processes.

    Each day is learned and the next forecast issued; four fits fall due in a year.
    """
    forecasts, observed = stream(stations, days, year)
    chunks = {"station": -(-stations // PROCESSES)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        issued = forecasts.chunk(chunks).recal.cross_validate(
            observed.chunk(chunks), xrecal.OnlinePool(), by="rolling", every=1, window=days
        )
        start = time.perf_counter()
        issued.compute(scheduler="processes", num_workers=PROCESSES, chunksize=1)
    return time.perf_counter() - start


def lines(rows, year):
    """Lines of what a day costs at so many stations, what a year does, and whether that holds."""
    for row in rows:
        parts = ", ".join(f"{name} {row[name]:.1f}" for name in (*PARTS, "rest"))
        yield (
            f"{row['stations']} stations, {row['days']} days, {row['members']} members: fit "
            f"{row['fit s']:.2f} s; update {row['update ms']:.1f} ms a position ({parts}); issue "
            f"{row['issue ms']:.1f} ms"
        )
    last = rows[-1]
    days = year * last["stations"] * (last["update ms"] + last["issue ms"]) / 1e3 / PROCESSES
    yield (
        f"{year} days of {last['stations']} stations replayed on {PROCESSES} cores: "
        f"{last['year s']:.0f} s, {days:.0f} of them updates and issues by the times above, the "
        f"rest fits; of {MANY} stations {MANY / last['stations'] * last['year s'] / 3600:.1f} hours"
    )
    holds = "holds" if last["update ms"] <= UPDATE else "MISSED"
    yield f"budget {holds}: update of a position {last['update ms']:.1f} ms (<= {UPDATE:g})"


if __name__ == "__main__":
    main()
