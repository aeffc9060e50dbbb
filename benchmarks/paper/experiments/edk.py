"""Time to compare 300 ensembles, by their size: energy distance against a kernel on all pairs."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.paper.tables import RESULTS, add_row, keys_of
from xrecal.arrays import squared_energy_distance

FILE = "edk.csv"
COLUMNS = ("kernel", "m", "n", "seconds", "trials")
N, TRIALS = 300, 5
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)
LONGEST = 60.0
"""Seconds: larger ensembles are not tried once a call has taken a tenth of it."""


@cache
def _compiled() -> Callable[[np.ndarray, float], np.ndarray]:
    from numba import njit

    @njit(nogil=True)
    def sums(x, bandwidth):  # type: ignore[no-untyped-def]
        n, m = x.shape
        out = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1):
                total = 0.0
                for a in range(m):
                    for b in range(m):
                        total += np.exp(-((x[i, a] - x[j, b]) ** 2) / bandwidth)
                out[i, j] = out[j, i] = total / (m * m)
        return out

    return sums


def naive_squared_distance(x: np.ndarray, bandwidth: float = 1.0) -> np.ndarray:
    """Squared distances (n, n) of the mean embeddings of ensembles (n, m) by a Gaussian kernel."""
    means = _compiled()(np.ascontiguousarray(x, np.float64), bandwidth)
    own = np.diag(means)
    return np.maximum(own[:, np.newaxis] + own - 2 * means, 0.0)


KERNELS = {"energy distance": squared_energy_distance, "all pairs": naive_squared_distance}


def run(
    sizes: tuple[int, ...] = SIZES, n: int = N, trials: int = TRIALS, folder: Path = RESULTS
) -> None:
    """Add the rows that are not there yet: the median time of some calls."""
    path, rng = folder / FILE, np.random.default_rng(0)
    done = keys_of(path, ("kernel", "m"))
    for name, distance in KERNELS.items():
        distance(rng.normal(size=(3, 4)))  # compile
        longest = 0.0
        for m in sizes:
            if (name, str(m)) in done or longest > LONGEST / 10:
                continue
            x = rng.normal(size=(n, 1)) + rng.gamma(2.0, 0.5, (n, 1)) * rng.normal(size=(n, m))
            seconds = []
            for _ in range(trials):
                start = time.perf_counter()
                distance(x)
                seconds.append(time.perf_counter() - start)
                if sum(seconds) > LONGEST / 3:
                    break
            longest = float(np.median(seconds))
            row = {"kernel": name, "m": m, "n": n, "seconds": longest, "trials": len(seconds)}
            add_row(path, row, COLUMNS)
            print(f"{name} m={m}: {longest:.4g} s", flush=True)
