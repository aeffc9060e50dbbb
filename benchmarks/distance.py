"""Distance matrix against a naive merge and a loop over SciPy: python -m benchmarks.distance."""

import time

import numpy as np
from numba import njit
from scipy.stats import energy_distance
from threadpoolctl import threadpool_limits

from xrecal.arrays import squared_energy_distance
from xrecal.arrays.distance import LANES

MERGE_BUDGET, SCIPY_BUDGET = 5, 100


def make_ensembles(n, m):
    """Sinusoidal ensemble mean, gamma-distributed spread."""
    rng = np.random.default_rng(0)
    mean = np.sin(2 * np.pi * np.arange(n) / 365.25)
    spread = rng.gamma(2.0, 0.5, n)
    return mean[:, np.newaxis] + spread[:, np.newaxis] * rng.normal(size=(n, m))


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


@njit
def touch_points(points, blocks):
    """The least that a scan can do: one multiply-add a point for each ensemble of a block."""
    sums, slope, level = np.zeros(LANES), np.ones(LANES), np.ones(LANES)
    for _ in range(blocks):
        for z in points:
            for lane in range(LANES):
                sums[lane] += level[lane] + z * slope[lane]
    return sums


def scipy_loop(x, pairs):
    return [energy_distance(x[i], x[j]) ** 2 for i, j in pairs]


def seconds(function, *arguments, repeats):
    """Shortest of several runs, after one that compiles."""
    function(*arguments)
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def main(quick=False):
    n, m, repeats, n_sampled = (20, 5, 1, 5) if quick else (1000, 50, 5, 2000)
    x = make_ensembles(n, m)
    ordered = np.sort(x, axis=1)
    np.testing.assert_allclose(squared_energy_distance(x), naive_merge(ordered), atol=1e-12)
    n_pairs = n * (n - 1) // 2
    i, j = np.triu_indices(n, 1)
    chosen = np.random.default_rng(1).choice(n_pairs, n_sampled, replace=False)
    sampled = list(zip(i[chosen], j[chosen], strict=True))
    with threadpool_limits(1):
        ours = seconds(squared_energy_distance, x, repeats=repeats)
        merge = seconds(naive_merge, ordered, repeats=repeats)
        scipy = seconds(scipy_loop, x, sampled, repeats=min(repeats, 3)) * n_pairs / n_sampled
        floor = seconds(touch_points, ordered.ravel(), -(-n // LANES), repeats=repeats)
    print(f"Distance matrix, n = {n}, m = {m}: {n_pairs} distinct pairs, one core")
    print(f"{'':34}{'seconds':>10}{'ns a pair':>11}{'ratio':>9}")
    for name, value in {
        "xrecal": ours,
        "naive merge in Numba": merge,
        f"SciPy, scaled from {n_sampled} pairs": scipy,
        "floor: one multiply-add a point": floor,
    }.items():
        print(f"{name:34}{value:10.4f}{value / n_pairs * 1e9:11.1f}{value / ours:9.2f}")
    print(f"points touched: {n * n * m / 1e6:.3g} million, {ours / (n * n * m) * 1e9:.3f} ns each")
    holds = merge >= MERGE_BUDGET * ours and scipy >= SCIPY_BUDGET * ours
    print(
        f"budget {'holds' if holds else 'MISSED'}: {merge / ours:.1f} x the naive merge "
        f"(>= {MERGE_BUDGET}), {scipy / ours:.0f} x SciPy (>= {SCIPY_BUDGET})"
    )


if __name__ == "__main__":
    main()
