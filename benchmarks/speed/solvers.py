"""Exact against low rank on the real forecasts of ``benchmarks.skill`` that have most cases."""

import warnings
from collections.abc import Iterator

import xarray as xr

import xrecal
from benchmarks.skill.sets import Set
from benchmarks.skill.sources import single_sets

from .data import STATIONS
from .tables import Missing, Row
from .timing import in_turn

SETS = {
    **STATIONS,
    "glofas": ("GloFAS G0518 5 d", "GloFAS G0554 5 d", "GloFAS G0565 5 d"),
}
"""By source, those with a thousand cases or more; of the leads of a river one."""

SUPPORTS = ("observations", "auto")


def compare(quick: bool) -> Iterator[Row | Missing]:
    """Seconds, CRPS of later years and landmarks of both solvers; quick: of a part of one set."""
    n_found = 0
    for one in long_sets():
        n_found += 1
        if n_found == 1:
            few = {case_dim(one.hindcast): slice(0, None, 20)}
            part = one._replace(hindcast=one.hindcast[few], forecast=one.forecast[few])
            found = [compared(part, support) for support in SUPPORTS]  # compiles
            if quick:
                yield from found
                return
        for support in SUPPORTS:
            yield compared(one, support)
    if n_found == 0:
        yield Missing("exact against low rank", "no real data beside the checkout; set XRECAL_DATA")


def long_sets() -> Iterator[Set]:
    """The sets whose data are there."""
    for source, names in SETS.items():
        try:
            yield from (one for one in single_sets(source) if one.name in names)
        except SystemExit:
            continue


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
