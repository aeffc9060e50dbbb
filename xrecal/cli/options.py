"""Options of commands; their default values are those of the Python functions."""

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
"""Decorator that adds an argument or an option to a command."""


class Commands(click.Group):
    """Group of commands whose error messages escape special characters of the typed text."""

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
    or without workers, 5 computing or writing failed. After a signal: 129 hang-up, 130 Ctrl-C, 143
    termination; repeat the command with --resume to continue. From cycle and monitor only: 10 done,
    but there are alarms. From cycle only: 11 nothing new.
    """


def option(
    name: str, help_text: str, metavar: str | None = None, like: Any = None, **more: Any
) -> Parameter:
    """Make an option of a command.

    Parameters
    ----------
    name : str
        Name on the command line.
    help_text : str
        Text that ``--help`` shows.
    metavar : str, optional
        Placeholder of the value in the help. An option without placeholder and type is a flag.
    like : callable, optional
        Function that has a parameter of the same name. The option takes the default of this
        parameter.
    **more
        Further keywords of ``click.option``.
    """
    if like is not None:
        default = inspect.signature(like).parameters[name[2:].replace("-", "_")].default
        more |= {"default": default, "show_default": True}
    if metavar is None and "type" not in more:
        more["is_flag"] = True
    return click.option(name, metavar=metavar, help=help_text, **more)


def count(least: int) -> click.IntRange:
    """Return the type of an option whose value is an integer of at least ``least``."""
    return click.IntRange(min=least)


COMPUTING = (
    option("--scheduler", "Compute on the Dask cluster whose scheduler is at ADDRESS.", "ADDRESS"),
    option(
        "--timeout",
        "Longest wait for the scheduler, and for a worker.",
        "SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        default=60,
        show_default=True,
    ),
    option("--quiet", "Show no progress bar. By default, a bar appears, but only on a terminal."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)
"""Options that all commands have."""

VARIABLE = option("--variable", "Forecast variable to use; by default all of them.", "NAME")
OBSERVED = option("--observed-variable", "Variable with the observations for --variable.", "NAME")
DRY_RUN = option("--dry-run", "Print the plan of the work without doing it.")

READING = (
    VARIABLE,
    option(
        "--chunks",
        "Sizes of the blocks of locations. The command computes one block at a time.",
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
"""Options that name the observations and the dimensions of forecasts."""

LEARNING = (
    click.option(
        "--option",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=values.pairs,
        help="Setting of the method, such as gap=5D or bounds=[0,null]; you may repeat --option.",
    ),
    option(
        "--condition-on",
        "Covariate of the method: season, a coordinate of the forecasts, or a variable of "
        "--covariates; you may repeat this option.",
        "NAME",
        multiple=True,
        callback=values.one_or_several,
    ),
    option(
        "--pool",
        "Let each fit learn from the cases of all positions along these dimensions, or from the "
        "cases in a window of N positions.",
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
        "Places that choose settings together: all places of one kind (together), each place "
        "alone (each), or all places along these dimensions.",
        "together|each|DIM,...",
        like=xrecal.compare,
        callback=values.choose,
    ),
    option(
        "--min-samples",
        "Smallest number of cases of a fit; locations with fewer cases get no fit.",
        "N",
        like=xrecal.compare,
        type=int,
    ),
)
"""Options of commands that fit a method."""

WRITING = (
    option("--resume", "Continue an interrupted run; if there is none, begin a new run."),
    option("--overwrite", "Replace an existing result."),
    option("--force", "Run even if a task may need more memory than is available."),
    DRY_RUN,
)
"""Options of commands that write a result."""

QUANTILES: dict[str, Any] = {"metavar": "Q,...", "callback": values.quantile_levels}
"""Keywords of :func:`option` for options whose values are quantile levels."""

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
    """Return a decorator that makes a command of a function.

    The function gets a session and the values of the ``parameters``. Before the function runs,
    ``check`` raises UsageError if values exclude each other.
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
