"""Budgets: what forecasts cost at one location once the model is fitted."""

from collections.abc import Iterator

import numpy as np

from .data import PAPER, make_hindcast
from .tables import Line, seconds
from .timing import in_turn, time_of

LEVELS = np.linspace(0.1, 0.9, 9)


def budgets(quick: bool) -> Iterator[Line]:
    n, m, few, many, repeats = (60, 5, 3, 13, 1) if quick else (1000, 50, 100, 1100, 3)
    hindcast, observations = make_hindcast(n, m, 1)
    new, _ = make_hindcast(many, m, 1, new=True)
    models = []
    fit = min(
        time_of(lambda: models.append(hindcast.recal.fit(observations, PAPER)))
        for _ in range(repeats + 1)  # the first one compiles
    )
    model = models[-1]
    first, more, quantiles, more_quantiles = in_turn(
        {
            "weights": lambda: model.apply(new.isel(time=slice(few))),
            "more": lambda: model.apply(new),
            "quantiles": lambda: model.quantile(new.isel(time=slice(few)), LEVELS),
            "more quantiles": lambda: model.quantile(new, LEVELS),
        },
        repeats + 2,
    )
    work = f"n={n} m={m}: {few} forecasts with rebuild / fit"
    absolute = f"{seconds(first)} v {seconds(fit)}"
    yield Line(work, first / fit, "x", absolute, 0.5)
    each = (more - first) / (many - few)
    absolute = f"{seconds(each)} v {seconds(fit)}, from {few} v {many}"
    yield Line("  each further one / fit", each / fit, "x", absolute, 0.005)
    each = (more_quantiles - quantiles) / (many - few)
    absolute = f"{seconds(quantiles)}, {seconds(each)} each further one"
    yield Line(
        f"  {few} forecasts as {LEVELS.size} quantiles / fit", quantiles / fit, "x", absolute
    )
