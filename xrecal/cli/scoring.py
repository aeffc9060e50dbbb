"""The command ``score``, which prints scores and tests of forecasts, and may draw a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import numpy as np
import xarray as xr

import xrecal
from xrecal import diagnostics

from . import values
from .options import READING, ROLES, command, option
from .session import Result, Session
from .words import number, quoted, require_local_figure, shown_units
from .writing import of_variable, pair, run_of

LIMITS = {"novelty": ("n_novel", "novel", 0.5), "beyond": ("n_beyond", "beyond", 0.05)}
"""For each variable that describes forecasts (novelty, or probability beyond the record): names in
JSON and in text of the number of values above a limit; and this limit."""


TABLE = dict(sorted(diagnostics.SCORES.items()))
OF_EVENTS = [name for name, score in TABLE.items() if score.thresholds]
"""Names of the scores that need thresholds."""
SCORES = [name for name in TABLE if name != "crps" and name not in OF_EVENTS]
"""Names of the other scores, without the CRPS, which is always printed."""

NOT_KNOWN = "not known: too few cases, no case with the event, or no case without it"


def _require_thresholds(given: dict[str, Any]) -> None:
    """Raise UsageError if an option has no effect, or needs another option."""
    lacking = [name for name in given["scores"] if name in OF_EVENTS]
    if lacking and given["threshold"] is None:
        raise click.UsageError(f"--score {lacking[0]} needs --threshold, such as 0,5")
    if given["threshold"] is not None and not (lacking or given["report"]):
        raise click.UsageError(f"--threshold belongs to --report or --score {', '.join(OF_EVENTS)}")
    if given["raw"] is not None and given["report"] is None:
        raise click.UsageError("--raw is drawn on the page of --report; give --report, too")


@command(
    click.argument("forecast"),
    click.argument("observations", metavar="OBS"),
    click.option(
        "--score",
        "scores",
        type=click.Choice([*SCORES, *OF_EVENTS]),
        multiple=True,
        help="Score to print besides the CRPS; you may repeat this option.",
    ),
    option(
        "--threshold",
        "Thresholds of events, or limits between categories.",
        "V,...",
        callback=values.numbers,
    ),
    option("--summary", "Also print bias, spread, coverage and tests of calibration."),
    option("--report", "Draw scores, tests and diagrams on PAGE (.pdf or .png).", "PAGE"),
    option(
        "--raw",
        "Forecasts before recalibration; the page of --report compares FORECAST with them.",
        "FILE",
    ),
    *ROLES,
    *READING,
    check=_require_thresholds,
)
def score(session: Session, forecast: str, observations: str, **given: Any) -> Result:
    """Print the mean CRPS of FORECAST (any form of forecast) and, with options, other scores.

    Each score is the result of the Python function with the same name, over all cases and
    locations. The command computes roc, economic_value, anomaly_correlation and
    generalised_discrimination at each location, and then averages each score over the locations.
    --summary tests the calibration at each location.
    """
    run = run_of(session, given)
    opened, observed = pair(run, forecast, observations, given, "forecast", beside=True)
    parts = run.by_variable(opened, given["member_dim"])
    if given["report"] is not None and len(parts) > 1:
        raise ValueError(f"a report shows one variable; name it: --variable {next(iter(parts))}")
    lazy = {name: _lazy(one, of_variable(observed, name), given) for name, one in parts.items()}
    counts = {name: _counts_above(opened, name) for name in parts}
    computed, counts = session.compute([lazy, counts])
    by_variable: dict[str, dict[str, Any]] = {}
    lines = []
    for name, found in computed.items():
        by_variable[name], text = _told(name, found)
        for role, count in counts[name].items():
            key, word, _ = LIMITS[role]
            by_variable[name][key] = count.item()
            text[0] += f", {count.item()} {word}"
        lines += text
    data: dict[str, Any] = {"status": "complete", "scores": by_variable}
    if given["report"] is not None:
        ((name, one),) = parts.items()
        data["report"] = _write_report(run, one, of_variable(observed, name), given)
        lines.append(f"wrote {quoted(given['report'])}")
    return Result(data, "\n".join(lines))


def _lazy(forecast: xr.Dataset, observed: xr.DataArray, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return lazy results of a variable: CRPS, number of cases, other scores and the summary."""
    member_dim = {"member_dim": given["member_dim"]}
    crps = _only(diagnostics.crps(forecast, observed, **member_dim))
    found: dict[str, Any] = {
        "crps": crps.mean(dtype=np.float64, keep_attrs=True),
        "n_cases": crps.notnull().sum(),
        "scores": {name: _score(name, forecast, observed, given) for name in given["scores"]},
    }
    if given["summary"]:
        found["summary"] = diagnostics.summary(forecast, observed, given["dim"], **member_dim)
    return found


def _score(
    name: str, forecast: xr.Dataset, observed: xr.DataArray, given: Mapping[str, Any]
) -> xr.DataArray:
    """Return a score over all dimensions of the forecast."""
    of = TABLE[name]
    whole = [one.chunk(-1) if of.whole else one for one in (forecast, observed)]
    options = {} if of.thresholds is None else {of.thresholds: given["threshold"]}
    dim = given["dim"] if of.each else ...
    found = of.function(*whole, dim=dim, member_dim=given["member_dim"], **options)
    if not of.each:
        return _only(found if of.variable is None else found[of.variable])
    each: xr.DataArray = found[of.variable]
    return each.mean([d for d in each.dims if d in forecast.dims], keep_attrs=True)


def _only(scores: xr.DataArray | xr.Dataset) -> xr.DataArray:
    """Return scores as a DataArray; a Dataset of scores must have one variable."""
    if isinstance(scores, xr.DataArray):
        return scores
    (values,) = scores.data_vars.values()
    return values


def _told(name: str, found: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the results of a variable, as data and as lines of text."""
    mean, n_cases = found["crps"].item(), found["n_cases"].item()
    units = shown_units(found["crps"].attrs)
    data: dict[str, Any] = {"crps": number(mean), "units": units, "n_cases": n_cases}
    lines = [f"{quoted(name)}: CRPS {mean:.4g} {units}".rstrip() + f", {n_cases} cases"]
    for label, score in found["scores"].items():
        data[label] = _plain(score)
        of = shown_units(score.attrs)
        for where, value in _labelled(score):
            shown = f"{value:.4g} {of}".rstrip() if np.isfinite(value) else NOT_KNOWN
            lines.append(" ".join(part for part in (f"  {label}", where, shown) if part))
    if "summary" in found:
        summary = found["summary"]
        data["summary"] = _plain_summary(summary)
        lines.append(repr(summary))
    return data, lines


def _plain(values: xr.DataArray) -> Any:
    """Return a single number, or a dict from labels to numbers for each dimension."""
    if not values.ndim:
        return number(values.item())
    dim = values.dims[0]
    labels = values[dim].to_numpy().tolist()
    return {f"{label:g}": _plain(values[i]) for i, label in enumerate(labels)}


def _labelled(values: xr.DataArray) -> list[tuple[str, float]]:
    """Return each number with the text of its labels."""
    if not values.ndim:
        return [("", values.item())]
    dim = values.dims[0]
    labels = values[dim].to_numpy().tolist()
    return [
        (f"{dim} {label:g} {more}".rstrip(), value)
        for i, label in enumerate(labels)
        for more, value in _labelled(values[i])
    ]


def _plain_summary(summary: xr.Dataset) -> dict[str, Any]:
    """Return the numbers of one location, or their median and range over several locations."""
    found: dict[str, Any] = {}
    for name, of_all in summary.data_vars.items():
        for label, part in _parts(str(name), of_all):
            numbers = part.to_numpy().astype(np.float64).ravel()
            if numbers.size == 1:
                found[label] = number(numbers[0])
                continue
            known = numbers[~np.isnan(numbers)]
            if name == "n_cases":
                found["n_without_cases"] = int((known == 0).sum())
                known = known[known > 0]
            names = ("median", "lowest", "highest")
            ends = (np.median(known), known.min(), known.max()) if known.size else ()
            found[label] = dict(zip(names, map(float, ends), strict=False))
    return found


def _parts(name: str, values: xr.DataArray) -> list[tuple[str, xr.DataArray]]:
    """Return a variable of the summary, split by the levels of intervals if it has levels."""
    if "level" not in values.dims:
        return [(name, values)]
    levels = values["level"].to_numpy().tolist()
    return [(f"{name}_{level:g}", values.sel(level=level)) for level in levels]


def _counts_above(forecasts: xr.Dataset, name: str) -> dict[str, xr.DataArray]:
    """Count the values above the limit, for each variable in ``LIMITS`` that the forecasts have."""
    beside = str(forecasts[name].attrs.get("ancillary_variables", "")) if name in forecasts else ""
    roles = {
        forecasts[one].attrs.get("role"): forecasts[one]
        for one in beside.split()
        if one in forecasts
    }
    limits = {role: limit for role, (_, _, limit) in LIMITS.items() if role in roles}
    return {role: (roles[role] > limit).sum() for role, limit in limits.items()}


def _write_report(
    run: xrecal.Run, forecast: xr.Dataset, observed: xr.DataArray, given: Mapping[str, Any]
) -> str:
    """Draw the page and write it; return its path."""
    path = given["report"]
    require_local_figure("the report", path)
    threshold = given["threshold"]
    if threshold is not None and len(threshold) == 1:
        threshold = threshold[0]
    member_dim = given["member_dim"]
    xrecal.plot.report(
        forecast,
        observed,
        given["dim"],
        path,
        raw=None if given["raw"] is None else _raw(run, given["raw"], forecast),
        threshold=threshold,
        member_dim=member_dim if member_dim in forecast.dims else None,
    )
    return str(path)


def _raw(run: xrecal.Run, path: str, forecast: xr.Dataset) -> xr.Dataset:
    """Return the raw forecast of the same variable as ``forecast``, or the only raw variable."""
    by_name = run.by_variable(run.open(path, "raw"))
    (wanted,) = run.by_variable(forecast)
    if wanted not in by_name and len(by_name) > 1:
        raise ValueError(f"--raw has {[*by_name]}, but no {wanted!r}; give a file of that variable")
    return by_name.get(wanted, next(iter(by_name.values())))
