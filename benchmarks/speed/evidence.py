"""Budget: the test of calibration at one location with many cases, and at many locations."""

from collections.abc import Iterator

import numpy as np

from xrecal.arrays import Forecasts, SkceSettings, skce_locations

from .tables import Line, seconds
from .timing import shortest


def budgets(quick: bool) -> Iterator[Line]:
    sizes = [(40, 5), (20, 5)] if quick else [(2000, 50), (200, 20)]
    rng = np.random.default_rng(0)
    for (n, m), n_locations in zip(sizes, (1, 4 if quick else 50), strict=True):
        centre = rng.normal(size=(n_locations, n, 1))
        members = centre + rng.normal(size=(n_locations, n, m))
        observed = centre[..., 0] + rng.normal(size=(n_locations, n))

        def test(members=members, observed=observed):
            return skce_locations(Forecasts(members), observed, SkceSettings("bootstrap"))

        one = shortest(test, 3) / n_locations
        work = f"SKCE test, 1000 resamples, n={n} m={m}"
        if n_locations == 1:
            yield Line(f"{work}: one location", one, "s", seconds(one), 1)
        else:
            told = f"{seconds(one)} a location"
            yield Line(f"{work}: locations a minute", 60 / one, "", told, 3000, at_least=True)
