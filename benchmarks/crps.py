"""Weighted CRPS on a shared support against properscoring: python -m benchmarks.crps."""

import numpy as np
import properscoring
from threadpoolctl import threadpool_limits

from xrecal.arrays import crps

from .distance import seconds

BUDGET = 5


def main(quick=False):
    n_forecasts, n, repeats = (5, 20, 1) if quick else (500, 1000, 7)
    rng = np.random.default_rng(0)
    members, observations = rng.normal(size=n), rng.normal(size=n_forecasts)
    weights = np.maximum(rng.normal(size=(n_forecasts, n)), 0)
    weights /= weights.sum(1, keepdims=True)
    repeated = np.tile(members, (n_forecasts, 1))

    def reference():
        return properscoring.crps_ensemble(observations, repeated, weights=weights)

    np.testing.assert_allclose(crps(observations, members, weights), reference(), atol=1e-12)
    with threadpool_limits(1):
        ours = seconds(crps, observations, members, weights, repeats=repeats)
        theirs = seconds(reference, repeats=repeats)
    print(f"Weighted CRPS, {n_forecasts} forecasts on a shared support of {n}, one core")
    print(f"{'':34}{'ms':>10}{'ns a weight':>13}{'ratio':>9}")
    for name, value in {"xrecal": ours, "properscoring": theirs}.items():
        weight = value / weights.size * 1e9
        print(f"{name:34}{value * 1e3:10.3f}{weight:13.2f}{value / ours:9.2f}")
    verdict = "holds" if theirs >= BUDGET * ours else "MISSED"
    print(f"budget {verdict}: {theirs / ours:.1f} x properscoring (>= {BUDGET})")


if __name__ == "__main__":
    main()
