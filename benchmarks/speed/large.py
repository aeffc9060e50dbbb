"""Budget: the fit of one large location, in a fresh process.

``python -m benchmarks.speed.large N M`` prints seconds of the fit, of one Cholesky factorisation
of an N × N matrix where that fits the memory, bytes at the peak of the fit, and how many landmarks
it took.
"""

import sys
from collections.abc import Iterator

import numpy as np

from .data import make_data
from .fit import fit
from .processes import PeakMemory, fresh_process
from .tables import Line, megabytes, seconds
from .timing import in_turn, time_of

GIB = 2**30

MATRIX_UP_TO = 10_000
"""Cases up to which a matrix of all pairs is made for comparison."""


def cholesky_input(n: int) -> np.ndarray:
    """A positive definite matrix that costs nothing to make."""
    matrix = np.full((n, n), 0.5)
    matrix[np.diag_indices(n)] = n
    return matrix


def measure(n: int, m: int) -> None:
    for solver in ("exact", "lowrank"):
        fit(make_data(40, m), solver)
    data = make_data(n, m)
    with PeakMemory() as peak:
        found = []
        first = time_of(lambda: found.append(fit(data)))
    rank = int((found[0].landmark >= 0).sum())
    if n > MATRIX_UP_TO:
        print(first, np.nan, peak.bytes, rank)
        return
    matrix = cholesky_input(n)
    again, cholesky = in_turn(
        {"fit": lambda: fit(data), "cholesky": lambda: np.linalg.cholesky(matrix)}, 1, warm=False
    )
    print(min(first, again), cholesky, peak.bytes, rank)


def budgets(quick: bool) -> Iterator[Line]:
    n, m = (100, 5) if quick else (10_000, 50)
    ours, cholesky, peak, rank = fresh_process("-m", "benchmarks.speed.large", n, m)
    absolute = f"{seconds(ours)} v {seconds(cholesky)}; {rank:.0f} landmarks"
    yield Line(f"fit n={n} m={m}: ours / numpy cholesky of n²", ours / cholesky, "x", absolute, 1)
    yield Line(f"fit n={n} m={m}: peak memory", peak / GIB, "GiB", megabytes(peak), 2)
    if not quick:
        ours, _, peak, rank = fresh_process("-m", "benchmarks.speed.large", 10 * n, m)
        yield Line(f"  fit n={10 * n} m={m}", ours, "s", f"{megabytes(peak)}; {rank:.0f} landmarks")


if __name__ == "__main__":
    measure(*map(int, sys.argv[1:]))
