"""Options of the commands, read and checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import click

from . import reading as read
from .scoring import SCORES, SCORES_OF_EVENTS
from .session import Result, Session, run

F = TypeVar("F", bound=Callable[..., Any])

Work: TypeAlias = Callable[[Session], Result]
"""Work of a command, for the session that the shared options open."""


def computing(function: Callable[..., Work]) -> Callable[..., None]:
    """Options that all commands have; the work that the function returns is run as they say."""

    @wraps(function)
    def command(
        scheduler: str | None, timeout: float, quiet: bool, as_json: bool, **given: Any
    ) -> None:
        where: dict[str, Any] = {"scheduler": scheduler, "timeout": timeout}
        run(function.__name__, function(**given), **where, quiet=quiet, as_json=as_json)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        click.option(
            "--quiet", is_flag=True, help="No progress bar, which only a terminal gets anyway."
        ),
        click.option(
            "--timeout",
            metavar="SECONDS",
            type=click.FloatRange(min=0, min_open=True),
            default=60,
            show_default=True,
            help="To wait for the scheduler, and for a worker of it.",
        ),
        click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster to compute on."),
    ):
        command = option(command)
    return command


def shared(function: Callable[..., Work]) -> Callable[..., None]:
    """Options of all commands that read forecasts."""
    command = computing(function)
    for option in (
        click.option(
            "--chunks",
            metavar="DIM=N,...",
            callback=read.chunks,
            help="Size of the blocks of locations that are computed at a time.",
        ),
        click.option("--variable", metavar="NAME", help="Forecast variable; all if left out."),
    ):
        command = option(command)
    return command


def roles(function: F) -> F:
    """Options that tell dimensions and observations of a hindcast apart."""
    for option in (
        click.option("--member-dim", metavar="DIM", help="The dimension of members."),
        click.option("--dim", metavar="DIM", help="The dimension of cases, such as time."),
        click.option("--observed-variable", metavar="NAME", help="What verified --variable."),
    ):
        function = option(function)
    return function


def learning(function: F) -> F:
    """Options of commands that fit."""
    for option in (
        click.option(
            "--min-samples",
            metavar="N",
            type=int,
            default=20,
            show_default=True,
            help="Locations with fewer cases get no fit.",
        ),
        click.option(
            "--pool",
            metavar="DIM,... | DIM=N,...",
            callback=read.pool,
            help="Learn from the cases of all positions along these dimensions, or of N around.",
        ),
        click.option(
            "--condition-on",
            metavar="NAME",
            multiple=True,
            help="season, or a coordinate of the forecasts; may be repeated.",
        ),
        click.option(
            "--option",
            "settings",
            metavar="KEY=VALUE",
            multiple=True,
            callback=read.pairs,
            help="Setting of the method, such as gap=5D or bounds=[0,null]; may be repeated.",
        ),
    ):
        function = option(function)
    return function


def splitting(function: F) -> F:
    """Options of commands that score on cases that fits have not seen."""
    for option in (
        click.option(
            "--forecast",
            metavar="FILE",
            help="Score these forecasts by fits to the whole hindcast, in place of its own cases.",
        ),
        click.option(
            "--refit",
            metavar="N|TIME",
            callback=read.span,
            help="Of --by rolling: time between two fits of a model that is updated in between.",
        ),
        click.option(
            "--every",
            metavar="N|TIME",
            callback=read.span,
            help="Of --by rolling: time between two fits, or with --refit two updates.",
        ),
        click.option(
            "--window",
            metavar="N|TIME",
            callback=read.span,
            help="Of --by rolling: length of the past that a fit learns from; all if left out.",
        ),
        click.option(
            "--gap",
            metavar="N|TIME",
            callback=read.span,
            help="Cases, or time such as 5D, left out next to those that are predicted.",
        ),
        click.option(
            "--by",
            type=click.Choice(["block", "year", "retrospective", "rolling"]),
            default="block",
            show_default=True,
            help="What is predicted together: fifths, years, fifths from those before them, or the "
            "cases up to the next fit (--every) from those before them.",
        ),
    ):
        function = option(function)
    return function


def scoring(function: F) -> F:
    """Options that say what is told of forecasts."""
    for option in (
        click.option(
            "--raw",
            metavar="FILE",
            help="Forecasts before recalibration, drawn beside these on the page of --report.",
        ),
        click.option(
            "--report", metavar="PAGE", help="Write a page of evidence to PAGE (.pdf or .png)."
        ),
        click.option("--summary", is_flag=True, help="Bias, spread, coverage and calibration too."),
        click.option(
            "--threshold",
            metavar="V,...",
            callback=read.numbers,
            help="Values that events exceed, and that lie between categories.",
        ),
        click.option(
            "--score",
            "scores",
            type=click.Choice([*SCORES, *SCORES_OF_EVENTS]),
            multiple=True,
            help="Another score; may be repeated.",
        ),
    ):
        function = option(function)
    return function


dry = click.option("--dry-run", is_flag=True, help="Print what would be done, and stop.")
"""Option of commands that plan their work."""


def writing(function: F) -> F:
    """Options of commands that write a result."""
    for option in (
        dry,
        click.option(
            "--force", is_flag=True, help="Go on though a task may need more memory than there is."
        ),
        click.option("--overwrite", is_flag=True, help="Replace what is there."),
        click.option(
            "--resume", is_flag=True, help="Take up an interrupted run; begin if there is none."
        ),
    ):
        function = option(function)
    return function


def watching(function: F) -> F:
    """Options of commands that watch the calibration."""
    for option in (
        click.option(
            "--restart",
            metavar="year|never|N",
            default="year",
            show_default=True,
            callback=read.restart,
            help="When the evidence begins anew: each year, never, or after N cases.",
        ),
        click.option(
            "--run-length",
            metavar="N",
            type=click.IntRange(min=1),
            default=3650,
            show_default=True,
            help="Cases between false detections of a change, in the mean.",
        ),
        click.option(
            "--alpha",
            metavar="P",
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            default=0.01,
            show_default=True,
            help="Probability that calibrated forecasts raise an alarm.",
        ),
    ):
        function = option(function)
    return function


def cycling(function: F) -> F:
    """Options of the daily cycle."""
    for option in (
        click.option(
            "--now",
            metavar="DATE",
            callback=read.date,
            help="The time in UTC, that of the clock if left out.",
        ),
        click.option(
            "--model-at", metavar="DATE", callback=read.date, help="Go back to the model of then."
        ),
        click.option(
            "--keep",
            metavar="N",
            type=click.IntRange(min=1),
            default=30,
            show_default=True,
            help="Models to keep: more than starts within the longest lead.",
        ),
        click.option("--observed-variable", metavar="NAME", help="What verified --variable."),
        click.option("--variable", metavar="NAME", help="Forecast variable; all if left out."),
        click.option(
            "--members",
            metavar="N",
            type=click.IntRange(min=1),
            help="Issue N equally likely members.",
        ),
        click.option(
            "--quantiles",
            metavar="Q,...",
            callback=read.quantile_levels,
            help="Issue these quantiles, such as 0.1,0.5,0.9.",
        ),
        click.option("--output", metavar="OUT", required=True, help="Folder of the cycle."),
        click.option(
            "--observations",
            metavar="O",
            multiple=True,
            required=True,
            help="File, store or pattern such as 'obs/*.nc'; may be repeated.",
        ),
        click.option(
            "--forecasts",
            metavar="F",
            multiple=True,
            required=True,
            help="Today's forecasts, and those that have not verified yet; as --observations.",
        ),
    ):
        function = option(function)
    return function
