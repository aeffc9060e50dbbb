"""Budget: the distance matrix against a naive merge and against loops over SciPy."""

from collections.abc import Iterator

import numpy as np
from numba import njit
from scipy.stats import energy_distance

from xrecal.arrays import squared_energy_distance

from .data import make_ensembles
from .tables import Line, seconds
from .timing import in_turn


@njit
def naive_merge(x):
    """``2 int (F - G)^2`` by one two-pointer merge for each pair of sorted ensembles."""
    n, m = x.shape
    squared = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            a, b, last, total = 0, 0, 0.0, 0.0
            while a < m or b < m:
                from_x = b == m or (a < m and x[i, a] <= x[j, b])
                z = x[i, a] if from_x else x[j, b]
                if a + b > 0:
                    total += (z - last) * ((a - b) / m) ** 2
                last = z
                if from_x:
                    a += 1
                else:
                    b += 1
            squared[i, j] = squared[j, i] = 2 * total
    return squared


def some_pairs(n: int, count: int) -> list[tuple[int, int]]:
    """So many of all pairs, at random."""
    i, j = np.triu_indices(n, 1)
    chosen = np.random.default_rng(1).choice(i.size, min(count, i.size), replace=False)
    return list(zip(i[chosen].tolist(), j[chosen].tolist(), strict=True))


def loop(distance, x, pairs) -> list[float]:
    """Squared energy distances of pairs, one call each."""
    return [distance(x[i], x[j]) for i, j in pairs]


def scipy_distance(u, v) -> float:
    """SciPy gives the root."""
    return energy_distance(u, v) ** 2


def budgets(quick: bool) -> Iterator[Line]:
    n, m, repeats, sampled = (20, 5, 1, 5) if quick else (1000, 50, 5, 1000)
    x = make_ensembles(n, m)
    ordered, pairs = np.sort(x, axis=1), some_pairs(n, sampled)
    np.testing.assert_allclose(squared_energy_distance(x), naive_merge(ordered), atol=1e-10)
    ours, merge, scipy = in_turn(
        {
            "ours": lambda: squared_energy_distance(x),
            "merge": lambda: naive_merge(ordered),
            "scipy": lambda: loop(scipy_distance, x, pairs),
        },
        repeats,
    )
    n_pairs = n * (n - 1) // 2
    scipy *= n_pairs / len(pairs)
    each = f"{ours / n_pairs * 1e9:.0f} ns a pair"
    work = f"distance matrix n={n} m={m}: "
    absolute = f"{seconds(ours)} ({each}) v {seconds(merge)}"
    yield Line(work + "naive merge / ours", merge / ours, "x", absolute, 5, at_least=True)
    absolute = f"{seconds(ours)} v {seconds(scipy)}, scaled from {len(pairs)} pairs"
    yield Line(work + "SciPy loop / ours", scipy / ours, "x", absolute, 100, at_least=True)
