"""Commands for daily work: ``cycle``, ``report`` and ``warm``."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import click

import xrecal

from . import values
from .options import COVARIATES, OBSERVED, QUANTILES, VARIABLE, WATCHING, command, count, option
from .session import ALARMED, NOTHING_NEW, REFUSED, Result, Session
from .warm import compile_all
from .words import quoted, require_local_figure

COUNTED = {
    "issued_anew": "issued again",
    "issued_before": "issued before",
    "in_hindcast": "in the hindcast",
    "too_late": "too late",
    "early": "of the future",
    "empty": "empty",
    "refused": "refused",
}
"""Fields with a number of starts in an outcome, except ``issued``, and the words to print."""


def _one_product(given: dict[str, Any]) -> None:
    """Raise UsageError unless exactly one product is given."""
    if (given["quantiles"] is None) == (given["members"] is None):
        raise click.UsageError("say what to issue: --quantiles 0.1,0.5,0.9 or --members 50")


@command(
    click.argument("model"),
    option(
        "--forecasts",
        "New forecasts, and older unverified forecasts; paths as for --observations.",
        "F",
        multiple=True,
        required=True,
    ),
    option(
        "--observations",
        "Observations: file, store or pattern such as 'obs/*.nc'; you may repeat this option.",
        "O",
        multiple=True,
        required=True,
    ),
    option("--output", "Folder of the cycle; the first run makes it.", "OUT", required=True),
    COVARIATES,
    option("--quantiles", "Issue these quantiles, such as 0.1,0.5,0.9.", **QUANTILES),
    option("--members", "Issue N equally likely members.", "N", type=count(1)),
    VARIABLE,
    OBSERVED,
    option(
        "--keep",
        "Number of models to keep; it must exceed the number of starts within the longest lead.",
        "N",
        like=xrecal.Cycle,
        type=count(1),
    ),
    option("--reissue", "Issue the forecasts in the folder again, if their models are kept."),
    option(
        "--model-at",
        "Go back to the model of this date: remove the models of later starts.",
        "DATE",
        callback=values.date,
    ),
    option(
        "--now",
        "Current time in UTC; by default the time of the clock.",
        "DATE",
        callback=values.date,
    ),
    *WATCHING,
    check=_one_product,
)
def cycle(
    session: Session,
    model: str,
    forecasts: tuple[str, ...],
    observations: tuple[str, ...],
    output: str,
    **given: Any,
) -> Result:
    """Do a day's work: learn verified cases, issue forecasts, score and monitor earlier forecasts.

    MODEL is the first fit; the command does not change it. The command writes forecasts/, models/,
    scores.nc, monitor.nc, status.json and status.txt to the folder of --output. It issues a
    forecast for every start without a forecast in the folder, in order of the starts. The model
    that issues the forecast of a start has learned all cases that had verified at that start. You
    may repeat the command: it skips finished work. docs/cycle.md has examples.
    """
    of_run = {name: given.pop(name) for name in ("now", "model_at", "reissue", "covariates")}
    of_folder = xrecal.Cycle(output, model, compute=session.compute, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.filterwarnings("ignore", "numpy.ndarray size changed")  # of netCDF4, harmless
        done = of_folder.run(forecasts, observations, **of_run)
    code = 0 if done.has_written else NOTHING_NEW
    if done.has_new_change:  # reported only once, so it comes first
        code = ALARMED
    elif done.error is not None:
        code = REFUSED
    elif (done.alarms or done.doubtful) and done.has_written:
        code = ALARMED
    data = asdict(done)
    del data["has_written"], data["has_new_change"]
    if code != REFUSED:
        del data["error"]
        data["status"] = "complete" if done.has_written else "nothing new"
    return Result(data, text_of(data), code)


def text_of(data: dict[str, Any]) -> str:
    """Return the outcome of a run of the cycle as text."""
    late = f" ({len(data['late'])} of them late)" if data["late"] else ""
    counts = [f"{len(data['issued'])} issued{late}"]
    for name, words in COUNTED.items():
        if data[name]:
            n = data[name] if isinstance(data[name], int) else len(data[name])
            counts.append(f"{n} {words}")
    revised = f" and {data['revised']} revisions" if data["revised"] else ""
    lines = [
        f"{quoted(data['output'])}: of {data['starts']} starts {', '.join(counts)}; "
        f"learned {data['learned']} observations{revised}, scored {data['scored']}"
    ]
    if data["removed"]:
        lines.append(f"removed the models {quoted(', '.join(data['removed']))}")
    for name, one in data["scores"].items():
        parts = {"": one, "in all ": one["in_all"]}
        known = {words: means for words, means in parts.items() if means["crps"] is not None}
        shown = "; ".join(words + _scores(m, one["units"]) for words, m in known.items())
        lines += [f"{quoted(name)}: {shown}"] if shown else []
    if data["alarms"] or data["changes"]:
        lines.append(f"alarms: {data['alarms']}, changes of calibration: {data['changes']}")
    return "\n".join([*lines, *map(quoted, data["notes"])])


def _scores(means: dict[str, Any], units: str) -> str:
    """Return mean scores as text."""
    raw = means["crps_raw"]
    return f"CRPS {means['crps']:.4g} {units}, raw {raw:.4g}, {means['n']} cases"


@command(
    click.argument("folder"),
    click.argument("page"),
    option(
        "--days",
        "Number of days to draw, up to the last start that has verified.",
        "N",
        like=xrecal.Cycle.report,
        type=count(1),
    ),
)
def report(session: Session, folder: str, page: str, days: int) -> Result:
    """Draw a page about the last months of the cycle in FOLDER (PAGE: a .pdf or .png).

    The page shows scores and coverage by lead, the evidence of the monitor, and the status as text.
    """
    require_local_figure("the page", page)
    xrecal.Cycle(folder).report(page, days=days)
    return Result({"status": "complete", "report": page}, f"wrote {quoted(page)}")


@command()
def warm(session: Session) -> Result:
    """Compile all functions before their first use, on this machine or on all workers of a cluster.

    The command stores the compiled functions in the folder that the environment variable
    XRECAL_CACHE_DIR names, by default in the user's cache.
    """
    cluster = session.cluster
    made = [compile_all()] if cluster is None else [*cluster.client.run(compile_all).values()]
    lines = [
        "compiled {compiled} of {functions} functions in {seconds} s; all functions are now in "
        "{folder}".format_map(each)
        for each in made
    ]
    return Result(made[0] if len(made) == 1 else {"workers": made}, "\n".join(lines))
