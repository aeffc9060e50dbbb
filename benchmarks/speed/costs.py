"""How cost grows with cases, members and locations."""

from collections.abc import Iterator

import dask
import numpy as np

from xrecal.arrays import squared_energy_distance

from .data import PAPER, Data, make_data, make_hindcast
from .fit import fit, weights_of
from .forecasts import LEVELS
from .large import MATRIX_UP_TO, cholesky_input
from .tables import Row
from .timing import in_turn, shortest, time_of

EXACT_UP_TO = 2000
"""Cases up to which the exact solver is timed: beyond, eight times as long at each doubling."""

FORECASTS = 100


def by_cases(quick: bool) -> Iterator[Row]:
    m = 5 if quick else 50
    warm_up(m)
    for n in (30, 60) if quick else (250, 500, 1000, 2000, 5000, 10_000, 20_000):
        data = make_data(n, m)
        matrices = {"cholesky of n²": "", "distances": ""}
        if n <= MATRIX_UP_TO:
            matrix = cholesky_input(n)
            matrices["cholesky of n²"] = time_of(lambda a=matrix: np.linalg.cholesky(a))
            matrices["distances"] = time_of(lambda x=data.x: squared_energy_distance(x))
            del matrix
        yield Row(f"n={n} m={m}", {**matrices, **solver_costs(data, exact=n <= EXACT_UP_TO)})


def by_members(quick: bool) -> Iterator[Row]:
    n = 60 if quick else 1000
    warm_up(5)
    for m in (5, 10) if quick else (5, 20, 50, 200, 1000):
        data = make_data(n, m)
        taken = shortest(lambda x=data.x: squared_energy_distance(x), 1)
        yield Row(f"n={n} m={m}", {"distances": taken, **solver_costs(data, exact=True)})


def by_locations(quick: bool) -> Iterator[Row]:
    n, m = (40, 5) if quick else (250, 20)
    for locations in (1, 2):  # compiles
        hindcast, observations = make_hindcast(40, 5, locations)
        hindcast.recal.fit(observations, PAPER).quantile(hindcast, LEVELS)
    for locations in (1, 2) if quick else (1, 4, 16, 64):
        hindcast, observations = make_hindcast(n, m, locations)
        cut = {"location": -(-locations // 4)}
        lazy, lazy_observations = hindcast.chunk(cut), observations.chunk(cut)
        model = hindcast.recal.fit(observations, PAPER)
        with dask.config.set(scheduler="threads", num_workers=2):
            taken, quantiles, threads = in_turn(
                {
                    "fit": lambda a=hindcast, b=observations: a.recal.fit(b, PAPER),
                    "quantiles": lambda a=hindcast, b=model: b.quantile(a, LEVELS),
                    "dask": lambda a=lazy, b=lazy_observations: a.recal.fit(b, PAPER).compute(),
                },
                1,
                warm=False,
            )
        yield Row(
            f"{locations} locations, n={n} m={m}",
            {
                "fit": taken,
                "a location": taken / locations,
                f"{n} quantiles": quantiles,
                "fit, 2 threads": threads,
            },
        )


def solver_costs(data: Data, *, exact: bool) -> dict[str, float | str]:
    """Seconds of a fit and of forecasts with both solvers, and how many landmarks one took."""
    cells: dict[str, float | str] = {}
    new = data.x_new[:FORECASTS]
    for solver, label in (("exact", "exact"), ("lowrank", "low rank")):
        if solver == "exact" and not exact:
            cells |= {f"fit, {label}": "", f"{FORECASTS}, {label}": ""}
            continue
        found = []
        cells[f"fit, {label}"] = time_of(lambda s=solver, f=found: f.append(fit(data, s)))
        fitted = found[0]
        cells[f"{FORECASTS}, {label}"] = time_of(lambda f=fitted: weights_of(data, f, new))
        if solver == "lowrank":
            cells["landmarks"] = float((fitted.landmark >= 0).sum())
    return cells


def warm_up(m: int) -> None:
    """Compile."""
    small = make_data(40, m)
    squared_energy_distance(small.x)
    for solver in ("exact", "lowrank"):
        weights_of(small, fit(small, solver), small.x_new)
