"""Measure all parts, print their tables and keep the rows."""

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.record import FOLDER, installed, processor

from . import (
    costs,
    crps,
    distance,
    evidence,
    fit,
    forecasts,
    large,
    memory,
    peers,
    pool,
    solvers,
    startup,
    storage,
    together,
    workers,
)
from .data import TOLERANCE, gram_of, make_ensembles, rank_of
from .tables import Line, Missing, Report, Row

PACKAGES = (
    *("xrecal", "numpy", "scipy", "numba", "xarray", "dask"),
    *("scikit-learn", "properscoring", "dcor", "xsdba"),
)
"""Those whose version matters."""

RESULTS = FOLDER / "bench.csv"

Part = Callable[[bool], Iterable[Line | Row | Missing]]

BUDGETS: dict[str, Part] = {
    "distance": distance.budgets,
    "fit": fit.budgets,
    "large": large.budgets,
    "storage": storage.budgets,
    "forecasts": forecasts.budgets,
    "pool": pool.budgets,
    "together": together.budgets,
    "startup": startup.budgets,
    "workers": workers.budgets,
    "memory": memory.budgets,
    "crps": crps.budgets,
    "evidence": evidence.budgets,
}
"""Parts of the one table of budgets, in the order of the design."""

TABLES: dict[str, tuple[str, Part]] = {
    "cases": ("Cost by the number of cases n, m = 50, seconds", costs.by_cases),
    "members": ("Cost by the number of members m, seconds", costs.by_members),
    "locations": ("Cost by the number of locations, seconds", costs.by_locations),
    "solvers": ("Exact against low rank on real forecasts, season-aware", solvers.compare),
    "peers": ("What else one could take, seconds", peers.compare),
}
"""Parts that are a table of their own, with its title."""

PARTS = (*BUDGETS, *TABLES)


def main(quick: bool = False, parts: Sequence[str] = (), results: Path | None = None) -> Report:
    """Run the parts, all by default, with one thread of BLAS.

    With two, as many as cores here, what calls BLAS most would seem faster than inside Dask's
    tasks, which have one each.
    """
    wanted, report = set(parts or PARTS), Report(judged=not quick)
    with threadpool_limits(1):
        for name, text in header(quick).items():
            report.tell(name, text)
        if wanted & set(BUDGETS):
            report.start("Budgets")
        for name, measure in BUDGETS.items():
            if name in wanted:
                add_all(report, measure, quick)
        for name, (title, measure) in TABLES.items():
            if name in wanted:
                report.start(title)
                add_all(report, measure, quick)
    if results is not None:
        report.store(results)
    if report.lines:
        print(f"\n{report.verdict}")
    return report


def add_all(report: Report, measure: Part, quick: bool) -> None:
    """Add the rows of a part as they come."""
    for found in measure(quick):
        report.add(found)


def header(quick: bool) -> dict[str, str]:
    """What was measured where."""
    n, m = (100, 5) if quick else (1000, 50)
    blas = {
        f"{library['internal_api']} {library['version']}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    rank = rank_of(gram_of(make_ensembles(n, m)))
    return {
        "machine": f"{os.cpu_count()} cores, {processor()}",
        "BLAS": f"one thread in everything timed; {', '.join(sorted(blas))}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {installed(p)}" for p in PACKAGES)]
        ),
        "budget data": f"rank {rank} at tolerance {TOLERANCE:g}, n={n} m={m}",
    }
