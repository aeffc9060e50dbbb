"""Commands and their options: each option is declared once, with the default of the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import click

import xrecal

from . import values
from .session import Result, Session, run
from .words import quoted

Parameter: TypeAlias = Callable[[Any], Any]
"""Decorator that adds an argument or an option."""


class Commands(click.Group):
    """Commands whose error messages quote foreign texts of a wrong command line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if type(error) is not click.UsageError:  # subclasses quote the typed text already
                raise
            raise click.UsageError(quoted(error.message), error.ctx) from error


@click.group("xrecal", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="xrecal")
def group() -> None:
    """Recalibrate ensemble forecasts in netCDF files and Zarr stores.

    Exit codes: 0 done, 2 wrong command line, 3 inputs or request refused, 4 scheduler not reachable
    or without workers, 5 computing failed, 129 hung up, 130 interrupted, 143 ended. After 129, 130
    and 143, --resume continues. cycle and monitor: 10 done with alarms, 11 nothing new.
    """


def option(
    name: str, help_text: str, metavar: str | None = None, like: Any = None, **more: Any
) -> Parameter:
    """An option of a command.

    Parameters
    ----------
    name : str
        Name on the command line.
    help_text : str
        Sentence for ``--help``.
    metavar : str, optional
        Placeholder of the value. An option without it, and without a type, is a flag.
    like : callable, optional
        Function with a parameter of this name; the option has its default.
    **more
        As for ``click.option``.
    """
    if like is not None:
        default = inspect.signature(like).parameters[name[2:].replace("-", "_")].default
        more |= {"default": default, "show_default": True}
    if metavar is None and "type" not in more:
        more["is_flag"] = True
    return click.option(name, metavar=metavar, help=help_text, **more)


def count(least: int) -> click.IntRange:
    """Type of an option whose value is an integer."""
    return click.IntRange(min=least)


COMPUTING = (
    option("--scheduler", "Address of the scheduler of a Dask cluster to compute on.", "ADDRESS"),
    option(
        "--timeout",
        "Longest wait for the scheduler, and for a worker.",
        "SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        default=60,
        show_default=True,
    ),
    option("--quiet", "Show no progress bar. Only a terminal shows one."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)
"""Options of all commands."""

VARIABLE = option("--variable", "Forecast variable; by default all.", "NAME")
OBSERVED = option("--observed-variable", "Name of the observations of --variable.", "NAME")
DRY_RUN = option("--dry-run", "Print the plan of the work, and stop.")

READING = (
    VARIABLE,
    option(
        "--chunks",
        "Sizes of the blocks of locations. One block is computed at a time.",
        "DIM=N,...",
        callback=values.chunks,
    ),
)
"""Options of commands that read forecasts."""

COVARIATES = option(
    "--covariates",
    "File or store whose variables are covariates. A fit conditions on all of them, "
    "unless --condition-on selects some.",
    "FILE",
)

ROLES = (
    OBSERVED,
    option("--dim", "The dimension of cases, such as time.", "DIM"),
    option("--member-dim", "The dimension of members.", "DIM"),
)
"""Options for dimensions and observations of a hindcast."""

LEARNING = (
    click.option(
        "--option",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=values.pairs,
        help="Setting of the method, such as gap=5D or bounds=[0,null]; may be repeated.",
    ),
    option(
        "--condition-on",
        "Covariate: season, a coordinate of the forecasts or one of --covariates; may be repeated.",
        "NAME",
        multiple=True,
        callback=values.one_or_several,
    ),
    option(
        "--pool",
        "Learn from the cases of all positions along these dimensions, or of a window of N.",
        "DIM,... | DIM=N,...",
        callback=values.pool,
    ),
    option(
        "--features",
        "Coordinates by which a shared fit compares places, such as slope,coast.",
        "NAME,...",
        callback=values.names,
    ),
    option(
        "--choose",
        "Places that choose settings together: all, each alone, or those along these dimensions.",
        "together|each|DIM,...",
        like=xrecal.compare,
        callback=values.choose,
    ),
    option(
        "--min-samples",
        "Locations with fewer cases get no fit.",
        "N",
        like=xrecal.compare,
        type=int,
    ),
)
"""Options of commands that fit."""

WRITING = (
    option("--resume", "Continue an interrupted run; begin if there is none."),
    option("--overwrite", "Replace an existing result."),
    option("--force", "Run even if a task may need more memory than there is."),
    DRY_RUN,
)
"""Options of commands that write a result."""

QUANTILES: dict[str, Any] = {"metavar": "Q,...", "callback": values.quantile_levels}
"""Keywords of click for options that take quantile levels."""

WATCHING = (
    option(
        "--alpha",
        "Probability that calibrated forecasts raise an alarm.",
        "P",
        like=xrecal.Cycle,
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
    ),
    option(
        "--run-length",
        "Mean number of cases between false detections of a change.",
        "N",
        like=xrecal.Cycle,
        type=count(1),
    ),
    option(
        "--restart",
        "Time when the evidence restarts: each year, never, or after N cases.",
        "year|never|N",
        like=xrecal.Cycle,
        callback=values.restart,
    ),
)
"""Options of commands that monitor the calibration."""


def command(
    *parameters: Parameter, check: Callable[[dict[str, Any]], None] | None = None
) -> Callable[[Callable[..., Result]], click.Command]:
    """Decorator that turns a function of a session and parameters into a command.

    ``check`` raises UsageError for values that exclude each other, before anything else.
    """

    def decorate(function: Callable[..., Result]) -> click.Command:
        @wraps(function)
        def called(
            scheduler: str | None, timeout: float, quiet: bool, as_json: bool, **given: Any
        ) -> None:
            if check is not None:
                check(given)

            def work(session: Session) -> Result:
                return function(session, **given)

            where: dict[str, Any] = {"scheduler": scheduler, "timeout": timeout}
            run(function.__name__, work, **where, quiet=quiet, as_json=as_json)

        for parameter in reversed((*parameters, *COMPUTING)):
            called = parameter(called)
        made: click.Command = group.command(function.__name__)(called)
        return made

    return decorate


def resume_or_overwrite(given: dict[str, Any]) -> None:
    """Raise UsageError if --resume and --overwrite are both given."""
    if given["resume"] and given["overwrite"]:
        raise click.UsageError("--resume continues and --overwrite starts again; give one of them")
