"""Fit and score all methods on all sets, in a few processes; print and store the tables."""

import time

from benchmarks.record import one_process_a_core

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
        with one_process_a_core() as workers:
            # The last sources take longest: first they leave no process alone with one at the end.
            order = list(reversed(SOURCES))
            every = workers.map(run_source, order)
            parts = (
                workers.map(agreements, AGREEMENT),
                workers.map(places.run_source, places.SOURCES),
            )
            found = dict(zip(order, every, strict=True))
            rows = [row for source in SOURCES for row in found[source]]
            agreed, many = ([row for rows in part for row in rows] for part in parts)
    if not quick:
        table.store(rows)
        print("\n".join(report(agreed)))
    for lines in (table.by_set, table.by_source, table.rejected):
        print("\n".join(lines(rows)))
    print(f"{time.perf_counter() - start:.0f} s")
    print("\n".join(table.verdicts(rows)))
    if not quick:
        places.report(many)
