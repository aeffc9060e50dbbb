"""Exact against low rank on the real forecasts of ``benchmarks.skill`` that have enough cases."""

import warnings
from collections.abc import Iterator

import xarray as xr

import xrecal
from benchmarks.skill.sets import SOURCES, Set

from .tables import Missing, Row
from .timing import in_turn

FROM = 1000
"""Cases of a location from which sets are taken."""

SUPPORTS = ("observations", "auto")


def compare(quick: bool) -> Iterator[Row | Missing]:
    """Seconds, CRPS of later years and landmarks of both solvers."""
    n_found = 0
    for one in long_sets(quick):
        n_found += 1
        for support in SUPPORTS[:1] if quick else SUPPORTS:
            yield compared(one, support)
    if n_found == 0:
        yield Missing("exact against low rank", "no real data beside the checkout; set XRECAL_DATA")


def long_sets(quick: bool) -> Iterator[Set]:
    """Sets with one location and enough cases; quick: a small part of one."""
    for source in SOURCES.values():
        try:
            sets = list(source())
        except SystemExit:  # these data are not there
            continue
        for one in sets:
            dim = case_dim(one.hindcast)
            if one.pool or one.hindcast.ndim > 2 or one.hindcast.sizes[dim] < FROM:
                continue
            if quick:
                few = {dim: slice(0, None, 20)}
                yield one._replace(hindcast=one.hindcast[few], forecast=one.forecast[few])
                return
            yield one


def case_dim(forecast: xr.DataArray) -> str:
    """Dimension of the cases."""
    return next(str(dim) for dim in forecast.dims if dim in ("time", "init"))


def compared(one: Set, support: str) -> Row:
    """One set with one choice of supports."""
    covariate = "season" if one.season else None
    models: dict[str, xrecal.Recalibrator] = {}

    def fit(solver: str) -> None:
        method = xrecal.CKME(support=support, solver=solver, condition_on=covariate)
        models[solver] = one.hindcast.recal.fit(one.observations, method)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "season learned from")
        exact, low_rank = in_turn(
            {solver: lambda s=solver: fit(s) for solver in ("exact", "lowrank")}, 1, warm=False
        )
    scores = {
        solver: float(model.crps(one.forecast, one.observations).mean())
        for solver, model in models.items()
    }
    landmarks = int((models["lowrank"].state["landmark"] >= 0).sum())
    return Row(
        f"{one.name} n={one.hindcast.sizes[case_dim(one.hindcast)]}, {support}",
        {
            "exact": exact,
            "low rank": low_rank,
            "exact / low": exact / low_rank,
            "CRPS exact": scores["exact"],
            "CRPS low": scores["lowrank"],
            "differs, %": 100 * (scores["lowrank"] / scores["exact"] - 1),
            "landmarks": float(landmarks),
        },
    )
