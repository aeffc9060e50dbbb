"""Budgets: what a cell of a grid costs where places choose together, and one place alone."""

from collections.abc import Iterator
from time import process_time

import xrecal
from benchmarks.beyond_sample import beyond_sample
from xrecal.fit.kinds import SAMPLE

from .data import make_hindcast
from .tables import Line, seconds
from .timing import shortest

CELLS = 10_000
SIZES = {(1000, 50): (25, 120), (300, 25): (7, 25), (30, 10): (0.6, 1.5)}
"""Milliseconds of a CKME and of a pool, by cases and members."""

ALONE = 0.6
"""Seconds of a pool of one place, with most cases."""

LEAST, TIMED = 4 * SAMPLE, 128_000
"""Fewest cells that are fitted, with samples of several kinds, and cases of all of them."""


def budgets(quick: bool) -> Iterator[Line]:
    sizes = {(30, 5): (None, None)} if quick else SIZES
    for (n, m), limits in sizes.items():
        for method, limit in zip((xrecal.CKME(), xrecal.LinearPool()), limits, strict=True):
            cells = SAMPLE if quick else max(LEAST, TIMED // n)
            yield of_a_cell(method, n, m, cells, limit)
    n, m = next(iter(sizes))
    hindcast, observed = make_hindcast(n, m, 1)
    taken = shortest(lambda: hindcast.recal.fit(observed, xrecal.LinearPool()), 2)
    work = f"LinearPool fit of one place, n={n} m={m}"
    yield Line(work, taken, "s", seconds(taken), None if quick else ALONE)


def of_a_cell(method, n: int, m: int, cells: int, budget: float | None) -> Line:
    """Milliseconds of CPU of a cell: its fit, and its share of the choices of a grid."""
    found = beyond_sample(
        lambda hindcast, observed: hindcast.recal.fit(observed, method),
        *make_hindcast(n, m, cells),
        "location",
        process_time,
    )
    return Line(
        f"{type(method).__name__} fit of a cell of {CELLS}, n={n} m={m}",
        1e3 * (found.each + found.choices / CELLS),
        "ms",
        f"{seconds(found.each)} each, {seconds(found.choices)} the choices",
        budget,
    )
