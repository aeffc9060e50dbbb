"""Budget: weighted CRPS on a shared support against properscoring."""

from collections.abc import Iterator

import numpy as np
import properscoring

from xrecal.arrays import crps

from .tables import Line, seconds
from .timing import in_turn


def budgets(quick: bool) -> Iterator[Line]:
    n_forecasts, n, repeats = (5, 20, 1) if quick else (500, 1000, 7)
    rng = np.random.default_rng(0)
    members, observations = rng.normal(size=n), rng.normal(size=n_forecasts)
    weights = np.maximum(rng.normal(size=(n_forecasts, n)), 0)
    weights /= weights.sum(1, keepdims=True)
    repeated = np.tile(members, (n_forecasts, 1))

    def reference():
        return properscoring.crps_ensemble(observations, repeated, weights=weights)

    np.testing.assert_allclose(crps(observations, members, weights), reference(), atol=1e-12)
    ours, theirs = in_turn(
        {"ours": lambda: crps(observations, members, weights), "properscoring": reference}, repeats
    )
    yield Line(
        f"weighted CRPS, {n_forecasts} forecasts on {n} points: properscoring / ours",
        theirs / ours,
        "x",
        f"{seconds(ours)} v {seconds(theirs)}",
        5,
        at_least=True,
    )
