"""Run the parts, print their tables and the limits, and store them."""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence

from benchmarks.record import FOLDER, one_process_a_core
from benchmarks.speed.tables import Report

from .issuing import Found, Limit
from .real import rising_prices, sets, units
from .synthetic import drift, hub, rain_tails, record, seasonal_rain, winters

RESULTS = FOLDER / "issued.csv"
PARTS: dict[str, Callable[[bool], Found]] = {
    "sets": sets,
    "units": units,
    "record": record,
    "rain_tails": rain_tails,
    "seasonal_rain": seasonal_rain,
    "winters": winters,
    "hub": hub,
    "drift": drift,
    "prices": rising_prices,
}


def measure(name: str, quick: bool = False) -> tuple[Found, float]:
    """What a part measures, and its seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Of unlike forecasts, short seasons and near neighbours: what is measured here.
        warnings.filterwarnings("ignore", category=UserWarning)
        found = PARTS[name](quick)
    return found, time.perf_counter() - start


def tell(report: Report, found: Iterable[tuple[Found, float]]) -> list[Limit]:
    """Report tables as they come, and after them the limits."""
    limits = []
    for (title, rows, more), seconds in found:
        report.start(title)
        for row in rows:
            report.add(row)
        print(f"{seconds:.0f} s", flush=True)
        limits += more
    report.start("limits")
    for limit in limits:
        report.add(limit.row)
    return limits


def main(names: Sequence[str] = (), quick: bool = False) -> None:
    """Run parts, all unless named; only all of them are stored."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    report = Report()
    if quick:
        limits = tell(report, (measure(name, quick=True) for name in names or PARTS))
    else:
        with one_process_a_core() as workers:
            limits = tell(report, workers.map(measure, names or PARTS))
    if not (names or quick):
        report.store(RESULTS)
    missed = [limit.name for limit in limits if not limit.holds]
    told = f"budget {'MISSED' if missed else 'holds'}: {len(limits) - len(missed)} of {len(limits)}"
    print(f"{told} limits hold{'; missed: ' if missed else ''}{', '.join(missed)}")
