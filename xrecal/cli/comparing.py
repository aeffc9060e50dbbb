"""The command ``compare``, which prints scores of methods."""

from __future__ import annotations

from typing import Any

import click
import xarray as xr

import xrecal

from . import values
from .options import COVARIATES, DRY_RUN, LEARNING, READING, ROLES, command, option
from .session import Result, Session
from .typed_methods import MethodType, TypedMethod
from .words import number, shown_units
from .writing import LEARNED, known, numbers_of, pair, run_of, table_of


def _require_one_method(given: dict[str, Any]) -> None:
    """Raise UsageError if settings of a method are given, but not exactly one method."""
    if given["settings"] and len(given["methods"]) != 1:
        raise click.UsageError("--option belongs to one method; give one --method with it")


SPANS = {
    "--gap": "Cases, or time such as 5D, that fits leave out before and after predicted cases.",
    "--window": "With --by rolling: length of the past that a fit learns from; by default, all.",
    "--every": "With --by rolling: time between two fits or, with --refit, between two updates.",
    "--refit": "With --by rolling: time between two fits; --every sets the updates in between.",
}
"""Options whose value is a number of cases or a length of time, with their help texts."""
SPLITS = ("by", "gap", "window", "every", "refit")
"""Options that set how cross-validation splits a hindcast."""

KINDS = ("block", "year", "retrospective", "rolling")
"""Values of --by that split a hindcast; any other value names the rows of the table."""

NUMBERS = ("pit_p_value", "skce", "skce_p_value")
"""Names of the numbers that JSON has only if there is a single location."""


@command(
    click.argument("hindcast"),
    click.argument("observations", metavar="OBS"),
    click.option(
        "--method",
        "methods",
        type=MethodType(),
        multiple=True,
        help="Method to compare; you may repeat this option. By default EMOS, CKME and LinearPool.",
    ),
    option(
        "--by",
        "Split of the cases: block (hold out a fifth at a time), year (hold out a year at a time), "
        "retrospective (predict each fifth except the first from earlier cases only), or rolling "
        "(predict the cases up to the next fit from earlier cases only; see --every). Or rows of "
        "the table: a dimension of places or leads, or season. Or a split and rows: year,season.",
        "SPLIT|DIM|season,...",
        like=xrecal.compare,
        callback=values.names,
    ),
    *(option(name, text, "N|TIME", callback=values.span) for name, text in SPANS.items()),
    option(
        "--forecast",
        "Fit to the whole hindcast, and score the forecasts of FILE; by default, cross-validate.",
        "FILE",
    ),
    option(
        "--verification",
        "Observations of the forecasts of --forecast; by default, OBS has them.",
        "FILE",
    ),
    DRY_RUN,
    COVARIATES,
    *LEARNING,
    *ROLES,
    *READING,
    check=_require_one_method,
)
def compare(
    session: Session,
    hindcast: str,
    observations: str,
    methods: tuple[TypedMethod, ...],
    settings: list[tuple[str, str]],
    forecast: str | None,
    verification: str | None,
    **given: Any,
) -> Result:
    """Print scores of methods on held-out cases of HINDCAST, or on the forecasts of --forecast."""
    chosen = [method.method(settings) for method in methods] or None
    run = run_of(session, given)
    past, observed = pair(run, hindcast, observations, given, "hindcast")
    options = {
        name: given[name] for name in (*SPLITS, *LEARNED, "condition_on", "dim", "member_dim")
    }
    options["covariates"] = known(run, given)
    if given["dry_run"]:
        return _planned(past, observed, chosen, options, with_new=forecast is not None)
    new = None
    if forecast is not None:
        of = {name: given[name] for name in ("variable", "member_dim")}
        new = run.open(forecast, "forecast", **of)
    if verification is not None:
        within = past if new is None else new
        of = {"member_dim": given["member_dim"]}
        seen = run.open_observations(verification, within, given["observed_variable"], **of)
        options["verification"] = seen
    table = xrecal.compare(past, observed, chosen, forecast=new, **options)
    data: dict[str, Any] = {
        "status": "complete",
        "n_cases": int(table["n_cases"].sum()),
        "units": shown_units(table["crps"].attrs),
        "methods": _by_method(table, of_all=True),
    }
    rows = table.attrs.get("by")
    if rows is not None:
        data["rows"] = {
            str(table[rows][i].to_numpy()): {
                "n_cases": int(table["n_cases"].isel({rows: i}).sum()),
                "methods": _by_method(table.isel({rows: i})),
            }
            for i in range(table.sizes[rows])
        }
    return Result(data, repr(table))


def _by_method(table: xr.Dataset, *, of_all: bool = False) -> dict[str, dict[str, float | None]]:
    """Return scores and tests of each method over all locations of a table.

    ``of_all`` adds the computing times, which exist only for the whole table.
    """
    cases = table["n_cases"]
    others = [d for d in table["crps"].dims if d != "method"]
    whole = "overall_" if others else ""
    means = (table["crps"] * cases).sum(others) / cases.sum()
    numbers = {
        "crps": means,
        **{
            f"skill_{reference}": 1 - means / means.sel({"method": reference}, drop=True)
            for reference in ("climatology", "raw")
        },
    }
    tested = {n: table[f"{whole}{n}"] for n in ("crps_error", "p_climatology", "p_raw")}
    numbers |= {n: one for n, one in tested.items() if one.dims == ("method",)}  # not of rows
    if of_all:
        numbers |= {n: table[n] for n in ("fit_seconds", "apply_seconds")}
    if not others:  # p-values of many locations are not one number
        numbers |= {n: table[n] for n in NUMBERS}
    return {
        str(label): {name: number(one[i].item()) for name, one in numbers.items()}
        for i, label in enumerate(table["method"].to_numpy())
    }


def _planned(
    past: xr.Dataset, observed: Any, methods: Any, options: dict[str, Any], *, with_new: bool
) -> Result:
    """Return the plan of the cross-validation of each method.

    With ``with_new``, return the plan of the fit to the whole hindcast instead.
    """
    options["by"] = next((one for one in options["by"] if one in KINDS), "block")
    if with_new:
        options = {name: value for name, value in options.items() if name not in SPLITS}
    methods = methods or (xrecal.EMOS(), xrecal.CKME(), xrecal.LinearPool())
    plans = {str(one): xrecal.plan(past, observed, one, probe=False, **options) for one in methods}
    text = "\n".join(f"{label}\n{table_of(one)}" for label, one in plans.items())
    numbers = {label: numbers_of(one) for label, one in plans.items()}
    return Result({"status": "planned", "methods": numbers}, text)
