"""Budget: the fit of a linear pool against that of the season-aware embedding."""

from collections.abc import Iterator

import xarray as xr

import xrecal
from benchmarks.skill.sources import SOURCES

from .data import make_hindcast
from .tables import Line, Missing, seconds
from .timing import in_turn

SMALL = xrecal.LinearPool([xrecal.Climatology(), xrecal.Raw()])
"""One that is compiled soon, for the smallest sizes."""


def budgets(quick: bool) -> Iterator[Line | Missing]:
    n, m, repeats = (80, 5, 1) if quick else (1000, 50, 2)
    pool = SMALL if quick else xrecal.LinearPool()
    compared("", pool, *make_hindcast(80, m, 1), 1, None)  # compiles
    work = f"LinearPool fit / season fit, n={n} m={m}"
    yield compared(work, pool, *make_hindcast(n, m, 1), repeats, 4)
    if quick:
        return
    try:
        one = next(SOURCES["innsbruck"]())
    except SystemExit:
        yield Missing("  LinearPool fit at a station", "its data are not there; set XRECAL_DATA")
        return
    n = one.hindcast.sizes["time"]
    yield compared(f"  {one.name} n={n}", pool, one.hindcast, one.observations, 1, None)


def compared(
    work: str,
    method: xrecal.LinearPool,
    hindcast: xr.DataArray,
    observed: xr.DataArray,
    repeats: int,
    budget: float | None,
) -> Line:
    """Time of the pool over that of the embedding."""
    pool, season = in_turn(
        {
            "pool": lambda: hindcast.recal.fit(observed, method),
            "season": lambda: hindcast.recal.fit(
                observed, xrecal.CKME(support="observations", condition_on="season")
            ),
        },
        repeats,
        warm=False,
    )
    return Line(work, pool / season, "x", f"{seconds(pool)} v {seconds(season)}", budget)
