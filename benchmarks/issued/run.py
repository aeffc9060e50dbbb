"""Run the parts, print their tables and the limits, and store them."""

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.speed.tables import Report

from .issuing import Limit
from .real import rising_prices, sets, units
from .synthetic import rain_tails, record, seasonal_rain, winters

RESULTS = Path(__file__).parents[1] / "results" / "issued.csv"
PARTS: dict[str, Callable[[Report, bool], list[Limit]]] = {
    "sets": sets,
    "units": units,
    "record": record,
    "rain_tails": rain_tails,
    "seasonal_rain": seasonal_rain,
    "winters": winters,
    "prices": rising_prices,
}


def run(report: Report, names: Sequence[str], quick: bool = False) -> list[Limit]:
    """Limits of the parts; their tables go to the report."""
    limits = []
    for name in names:
        start = time.perf_counter()
        with warnings.catch_warnings():
            # Of unlike forecasts, short seasons and near neighbours: what is measured here.
            warnings.filterwarnings("ignore", category=UserWarning)
            limits += PARTS[name](report, quick)
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
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
    limits = run(report, names or list(PARTS), quick)
    if not (names or quick):
        report.store(RESULTS)
    missed = [limit.name for limit in limits if not limit.holds]
    told = f"budget {'MISSED' if missed else 'holds'}: {len(limits) - len(missed)} of {len(limits)}"
    print(f"{told} limits hold{'; missed: ' if missed else ''}{', '.join(missed)}")
