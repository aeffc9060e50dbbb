"""The commands ``fit``, ``apply``, ``update`` and ``monitor``, which write a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click
import xarray as xr

import xrecal

from . import values
from .options import (
    COVARIATES,
    LEARNING,
    OBSERVED,
    QUANTILES,
    READING,
    ROLES,
    WATCHING,
    WRITING,
    command,
    count,
    option,
    resume_or_overwrite,
)
from .session import ALARMED, Result, Session
from .typed_methods import MethodType, TypedMethod
from .words import quoted

NUMBERS = (
    "cases",
    "members",
    "forecasts",
    "splits",
    "locations",
    "tasks",
    "locations_per_task",
    "input_bytes",
    "output_bytes",
    "workspace_bytes",
    "task_bytes",
)
"""Fields of the plan of a variable that are part of the JSON result."""

WORDS = ("variable", "observed_variable", "dim", "member_dim")
"""Options that select parts of the inputs; the result records their values."""
LEARNED = ("min_samples", "pool", "features", "choose")
"""Options of a fit; the result records their values."""


@command(
    click.argument("hindcast"),
    click.argument("observations", metavar="OBS"),
    click.argument("model"),
    option(
        "--method",
        'Method to fit: a name such as emos, or a Python expression such as "EMOS()".',
        type=MethodType(),
        default="ckme",
        show_default=True,
    ),
    COVARIATES,
    *LEARNING,
    *ROLES,
    *WRITING,
    *READING,
    check=resume_or_overwrite,
)
def fit(
    session: Session,
    hindcast: str,
    observations: str,
    model: str,
    method: TypedMethod,
    settings: list[tuple[str, str]],
    **given: Any,
) -> Result:
    """Fit a method to HINDCAST and its observations OBS, and write MODEL (.zarr or .nc)."""
    chosen = method.method(settings)
    run = run_of(session, given, model)
    past, observed = pair(run, hindcast, observations, given, "hindcast")
    named = {name: given[name] for name in ("dim", "member_dim", "condition_on", *LEARNED)}
    named["covariates"] = known(run, given)
    fitted = doors(past).fit(observed, chosen, **named)
    request = {
        "method": fitted.method,  # has the covariates too; spelling does not matter
        "chunks": sizes_of(run),
        **{name: given[name] for name in (*WORDS, *LEARNED)},
    }
    plan = quietly(xrecal.plan, past, observed, chosen, **named, probe=False)
    result = write_or_plan(run, "fit", fitted, request, plan, given)
    if given["dry_run"]:
        return result
    variables = xrecal.open_recalibrator(model).variables.items()
    counts = {str(name): _counts(fitted) for name, fitted in variables}
    lines = [
        f"  {quoted(name)}: {one['n_matched']} of {one['n_forecasts']} cases matched; "
        + ", ".join(f"{what}: {n}" for what, n in one["status"].items())
        for name, one in counts.items()
    ]
    return Result({**result.data, "variables": counts}, "\n".join([result.text, *lines]))


def _one_product(given: dict[str, Any]) -> None:
    """Raise UsageError unless exactly one product is given."""
    if sum(given[name] is not None for name in PRODUCTS) != 1:
        raise click.UsageError(
            "give exactly one of --quantiles 0.1,0.5,0.9, --members 50, --exceedance 0,5 and "
            "--categories 1/3,2/3; repeat the command for another product"
        )
    resume_or_overwrite(given)


PRODUCTS = ("quantiles", "members", "exceedance", "categories")


@command(
    click.argument("model"),
    click.argument("forecast"),
    click.argument("output", metavar="OUT"),
    option("--quantiles", "Write these quantiles, such as 0.1,0.5,0.9.", **QUANTILES),
    option(
        "--members",
        "Write N equally likely members: quantiles of the levels (i - 1/2)/N, in random order.",
        "N",
        type=count(1),
    ),
    option(
        "--exceedance",
        "Write the probabilities of exceeding these values, such as 0,5.",
        "V,...",
        callback=values.numbers,
    ),
    option(
        "--categories",
        "Write probabilities of the categories between these quantiles of the climatology, such "
        "as 1/3,2/3 for terciles.",
        **QUANTILES,
    ),
    COVARIATES,
    option(
        "--missing-covariates",
        "What to do with forecasts that lack a covariate of the model: 'refuse' them, or issue "
        "them 'without', from the median of the covariate.",
        type=click.Choice(["refuse", "without"]),
        default="refuse",
        show_default=True,
    ),
    *WRITING,
    *READING,
    check=_one_product,
)
def apply(session: Session, model: str, forecast: str, output: str, **given: Any) -> Result:
    """Recalibrate FORECAST with MODEL and write OUT (.zarr, .nc or .grib2)."""
    run = run_of(session, given, output)
    fitted = run.open_model(model)
    new = run.open(forecast, model=fitted, variable=given["variable"])
    product = {name: given[name] for name in PRODUCTS}
    named = "variable", "missing_covariates"
    request = {**{k: given[k] for k in named}, **product, "chunks": sizes_of(run)}
    (asked,) = (one for one in product.values() if one is not None)
    n = asked if isinstance(asked, int) else len(asked) + (asked is product["categories"])
    predictors = {
        "covariates": known(run, given),
        "missing_covariates": given["missing_covariates"],
    }
    issued = run.issue(fitted, new, **predictors, **product)
    plan = quietly(fitted.plan, new, values=n, **predictors, probe=False)
    return write_or_plan(run, "apply", issued, request, plan, given)


@command(
    click.argument("model"),
    click.argument("hindcast"),
    click.argument("observations", metavar="OBS"),
    click.argument("output", metavar="OUT"),
    OBSERVED,
    COVARIATES,
    *WRITING,
    *READING,
    check=resume_or_overwrite,
)
def update(
    session: Session, model: str, hindcast: str, observations: str, output: str, **given: Any
) -> Result:
    """Add the cases of HINDCAST and its observations OBS to MODEL, and write the result to OUT.

    The update keeps the settings that cross-validation has chosen. It ignores observations that
    MODEL knows, adds observations that MODEL lacks, and replaces observations that were revised.
    The command prints the numbers of new and revised observations.
    """
    run = run_of(session, given, output)
    fitted = run.open_model(model)
    more = run.open(hindcast, "hindcast", model=fitted, variable=given["variable"])
    observed = run.open_observations(observations, more, given["observed_variable"])
    counts = run.news(fitted, more, observed)
    text = ", ".join(
        f"{quoted(name)}: {one['learned']} observations learned, {one['revised']} revised"
        for name, one in counts.items()
    )
    request = {"variable": given["variable"], "chunks": sizes_of(run)}
    updated = fitted.update(more, observed, covariates=known(run, given))
    if given["dry_run"]:
        run.preview(updated, request, command="update")
        return planned(run, "update", text, variables=counts)
    n, skipped, _ = run.write(updated, request, command="update")
    data = {"blocks": n, "blocks_skipped": skipped, "variables": counts}
    return written(run, f"wrote {quoted(run.output)}: {text}", **data)


@command(
    click.argument("forecast"),
    click.argument("observations", metavar="OBS"),
    click.argument("output", metavar="OUT"),
    *WATCHING,
    *ROLES,
    *WRITING,
    *READING,
    check=resume_or_overwrite,
)
def monitor(
    session: Session, forecast: str, observations: str, output: str, **given: Any
) -> Result:
    """Write the evidence against the calibration of FORECAST (any form of forecast) to OUT."""
    run = run_of(session, given, output)
    watch = {name: given[name] for name in ("alpha", "run_length", "restart")}
    request = {"chunks": given["chunks"], **{name: given[name] for name in WORDS}, **watch}
    opened, observed = pair(run, forecast, observations, given, "forecast")
    parts = {}
    for name, one in run.by_variable(opened, given["member_dim"]).items():
        one_of = {"member_dim": given["member_dim"], **watch}
        seen = doors(one).monitor({name: of_variable(observed, name)}, given["dim"], **one_of)
        parts[name] = seen.rename({v: f"{name}_{v}" for v in seen})
    whole = xr.merge(parts.values(), combine_attrs="override", join="exact", compat="no_conflicts")
    if given["dry_run"]:
        run.preview(whole, request, command="monitor")
        return planned(run, "monitor", ", ".join(map(quoted, parts)))
    run.write(whole, request, command="monitor")
    with run.open_result() as seen:
        dim = next(iter(seen["restarts"].dims))
        alarms = sum(int(seen[f"{name}_alarm"].isel({dim: -1}).sum()) for name in parts)
        changes = sum(int(seen[f"{name}_change"].sum()) for name in parts)
    text = f"wrote {quoted(run.output)}: {alarms} alarms, {changes} changes"
    return written(run, text, alarms=alarms, changes=changes)._replace(code=ALARMED * bool(alarms))


def run_of(session: Session, given: Mapping[str, Any], output: str | None = None) -> xrecal.Run:
    """Make the run for the options of a command."""
    options = {name: given[name] for name in ("resume", "overwrite") if name in given}
    return xrecal.Run(output, chunks=given["chunks"], compute=session.compute, **options)


def pair(
    run: xrecal.Run,
    forecasts: str,
    observations: str,
    given: Mapping[str, Any],
    name: str,
    **more: Any,
) -> tuple[xr.Dataset, Any]:
    """Open forecasts and their observations, with the options that select them."""
    named = {key: given[key] for key in ("dim", "member_dim", "variable")}
    opened = run.open(forecasts, name, pool=given.get("pool"), **named, **more)
    member_dim = given["member_dim"]
    observed = given["observed_variable"]
    return opened, run.open_observations(observations, opened, observed, member_dim=member_dim)


def known(run: xrecal.Run, given: Mapping[str, Any]) -> dict[str, xr.DataArray | xr.Dataset] | None:
    """Open the covariates of ``--covariates``; return None without this option."""
    path = given["covariates"]
    return None if path is None else run.open_covariates(path)


def doors(dataset: xr.Dataset) -> Any:
    """Make a new ``dataset.recal``, because the object that xarray stores keeps the file open."""
    return xr.Dataset.recal(dataset)  # type: ignore[attr-defined]


def of_variable(observed: Any, name: str) -> xr.DataArray:
    """Return the observations of a forecast variable; a DataArray applies to all variables."""
    found: xr.DataArray = observed if isinstance(observed, xr.DataArray) else observed[name]
    return found


def sizes_of(run: xrecal.Run) -> dict[str, int]:
    """Return the sizes of the blocks of a run; the keys are names of dimensions as text."""
    return {str(d): n for d, n in (run.blocks or {}).items()}


def quietly(function: Callable[..., xrecal.Plan], *args: Any, **given: Any) -> xrecal.Plan:
    """Make a plan without warnings, because the work itself issues the same warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **given)


def write_or_plan(
    run: xrecal.Run,
    name: str,
    result: Any,
    request: Mapping[str, Any],
    plan: xrecal.Plan,
    given: Mapping[str, Any],
) -> Result:
    """Write a result or, in a dry run, only describe the plan."""
    if given["dry_run"]:
        n, finished, _ = run.preview(result, request, command=name)
        text = f"{_blocks(n)}{f', {finished} of them finished' if finished else ''}"
        data = {"blocks": n, "blocks_finished": finished, **numbers_of(plan)}
        return planned(run, name, f"{text}\n{table_of(plan)}", **data)
    checked = None if given["force"] else plan
    n, skipped, was_complete = run.write(result, request, command=name, plan=checked)
    text = f"wrote {quoted(run.output)}: {_blocks(n)}"
    text += f", {skipped} of an earlier run" if skipped else ""
    text = f"{quoted(run.output)} is complete already" if was_complete else text
    return written(run, text, blocks=n, blocks_skipped=skipped)


def _blocks(n: int) -> str:
    return f"{n} block{'s' * (n != 1)}"


def planned(run: xrecal.Run, name: str, text: str, **data: Any) -> Result:
    """Return the result of a dry run."""
    whole = {"status": "planned", "output": str(run.output), **data}
    return Result(whole, f"{name} -> {quoted(run.output)}: {text}")


def written(run: xrecal.Run, text: str, **data: Any) -> Result:
    """Return the result of a run that has written its output."""
    return Result({"status": "complete", "output": str(run.output), **data}, text)


def _counts(fitted: Any) -> dict[str, Any]:
    """Return the numbers of cases, and the number of locations with each status."""
    status, attrs = fitted.state["status"].to_numpy(), fitted.state["status"].attrs
    counts = {"ok": int((status == 0).sum())}
    meanings = zip(attrs["flag_masks"], attrs["flag_meanings"].split(), strict=True)
    counts |= {text: int(((status & bit) > 0).sum()) for bit, text in meanings}
    return {
        "n_matched": fitted.n_matched,
        "n_forecasts": fitted.n_forecasts,
        "locations": status.size,
        "status": {text: count for text, count in counts.items() if count},
    }


def numbers_of(plan: xrecal.Plan) -> dict[str, Any]:
    """Return a plan as data for JSON."""
    return {
        "task_bytes": plan.task_bytes,
        "memory_bytes": plan.resources.memory,
        "fits": plan.fits,
        "variables": {
            str(part.variable): {
                **{name: getattr(part, name) for name in NUMBERS},
                "chunks": {str(d): size for d, size in _sizes(part, part.chunks).items()},
            }
            for part in plan.variables
        },
    }


def table_of(plan: xrecal.Plan) -> str:
    """Return a plan as text."""

    def typed(part: Any, chunks: Any) -> str:
        sizes = ",".join(f"{d}={size}" for d, size in _sizes(part, chunks).items())
        if part.work == "shared fit":  # blocks have all pooled places
            return f"a hindcast in a Zarr store with chunks {sizes}"
        return f"--chunks {sizes}" if sizes else "nothing to cut"

    # Notes about lazy models do not apply to models in files.
    return replace(plan, notes=()).table(typed)


def _sizes(part: Any, chunks: Mapping[Any, int]) -> dict[Any, int]:
    """Return the sizes of blocks along all dimensions that can be divided."""
    return {d: n if chunks[d] == -1 else chunks[d] for d, n in part.sizes.items()}
