"""Budgets: what a cell of a grid costs where places choose together, and one place alone."""

from collections.abc import Iterator

import xrecal
from xrecal.fit.kinds import SAMPLE

from .data import make_hindcast
from .tables import Line, seconds
from .timing import shortest

CELLS = 10_000
SIZES = {(1000, 50): (25, 120), (300, 25): (7, 25), (30, 10): (0.6, 1.5)}
"""Milliseconds of a CKME and of a pool, by cases and members."""

ALONE = 0.6
"""Seconds of a pool of one place, with most cases."""

FIRST, MORE = 4 * SAMPLE, 128
"""Cells that fill the samples of several kinds, and those beyond that are timed."""


def budgets(quick: bool) -> Iterator[Line]:
    sizes = {(30, 5): (None, None)} if quick else SIZES
    for (n, m), limits in sizes.items():
        for method, limit in zip((xrecal.CKME(), xrecal.LinearPool()), limits, strict=True):
            first, more = (SAMPLE, 4) if quick else (FIRST, MORE)
            yield of_a_cell(method, n, m, first, more, limit)
    n, m = next(iter(sizes))
    hindcast, observed = make_hindcast(n, m, 1)
    taken = shortest(lambda: hindcast.recal.fit(observed, xrecal.LinearPool()), 2)
    work = f"LinearPool fit of one place, n={n} m={m}"
    yield Line(work, taken, "s", seconds(taken), None if quick else ALONE)


def of_a_cell(method, n: int, m: int, first: int, more: int, budget: float | None) -> Line:
    """Milliseconds of a cell: a fit of many, less that of the first, and its share of a grid."""
    hindcast, observed = make_hindcast(n, m, first + more)
    some = slice(first)
    sample = shortest(
        lambda: hindcast.isel(location=some).recal.fit(observed.isel(location=some), method), 1
    )
    whole = shortest(lambda: hindcast.recal.fit(observed, method), 1)
    each = (whole - sample) / more
    taken = each + max(sample - first * each, 0.0) / CELLS
    work = f"{type(method).__name__} fit of a cell of {CELLS}, n={n} m={m}"
    return Line(
        work,
        1e3 * taken,
        "ms",
        f"{seconds(each)} each, {seconds(sample)} the first {first}",
        budget,
    )
