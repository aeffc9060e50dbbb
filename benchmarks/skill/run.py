"""Fit and score all methods on all sets, in a few processes; print and store the tables."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from . import places, table
from .agreement import agreements, report
from .scoring import score_set
from .sources import SOURCES

AGREEMENT = ("innsbruck", "frankfurt", "toulouse", "glofas", "mjo")
"""Sources on which cross-validated skill is held against that of later years."""


def run_source(source, quick=False):
    """Rows of the sets of one source; quick: of the first, on a part of its cases."""
    found = []
    for one in SOURCES[source]():
        if quick:
            one = one._replace(
                hindcast=one.hindcast.isel({one.case_dim: slice(0, None, 5)}),
                forecast=one.forecast.isel({one.case_dim: slice(50)}),
            )
        found += score_set(one, source)
        if quick:
            break
    return found


def main(quick=False):
    """Run all sets."""
    start = time.perf_counter()
    if quick:
        rows = run_source("toulouse", quick=True)
    else:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
            # The last sources take longest: first they leave no process alone with one at the end.
            order = list(reversed(SOURCES))
            found = dict(zip(order, workers.map(run_source, order), strict=True))
            rows = [row for source in SOURCES for row in found[source]]
            agreed = [row for part in workers.map(agreements, AGREEMENT) for row in part]
            many = [row for part in workers.map(places.run_source, places.SOURCES) for row in part]
    if not quick:
        table.store(rows)
        print("\n".join(report(agreed)))
    for lines in (table.by_set, table.by_source, table.rejected):
        print("\n".join(lines(rows)))
    print(f"{time.perf_counter() - start:.0f} s")
    print("\n".join(table.verdicts(rows)))
    if not quick:
        places.report(many)
