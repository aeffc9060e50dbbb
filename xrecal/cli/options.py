"""Options of the commands, read and checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from functools import wraps
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import click
import numpy as np

from xrecal.methods import (
    CKME,
    EMOS,
    IDR,
    Climatology,
    ConformalPrediction,
    LinearPool,
    Method,
    OnlinePool,
    PITRecalibration,
    Raw,
)
from xrecal.methods.base import nearest

from .session import Result, Session, run

METHODS: dict[str, type] = {
    "ckme": CKME,
    "linear-pool": LinearPool,
    "online-pool": OnlinePool,
    "emos": EMOS,
    "idr": IDR,
    "pit": PITRecalibration,
    "conformal": ConformalPrediction,
    "climatology": Climatology,
    "raw": Raw,
}

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
        click.option("--quiet", is_flag=True, help="No progress bar."),
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
            callback=_chunks,
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
            callback=_pairs,
            help="Setting of the method, such as gap=5D or bounds=[0,null]; may be repeated.",
        ),
    ):
        function = option(function)
    return function


def writing(function: F) -> F:
    """Options of commands that write a result."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Print what would be done, and stop."),
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
            callback=_restart,
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
            callback=_date,
            help="The time in UTC, that of the clock if left out.",
        ),
        click.option(
            "--model-at", metavar="DATE", callback=_date, help="Go back to the model of this date."
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
            callback=quantile_levels,
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


def _restart(_: click.Context, parameter: click.Parameter, text: str) -> str | int | None:
    """When a monitor begins anew."""
    if text in ("year", "never"):
        return None if text == "never" else text
    if text.isdigit() and int(text):
        return int(text)
    raise click.BadParameter(
        f"{text!r} is none of year, never and a number of cases", param=parameter
    )


def _date(_: click.Context, parameter: click.Parameter, text: str | None) -> np.datetime64 | None:
    """A date as it is typed, without a time zone; of --now that of the clock."""
    if text is None:
        clock = datetime.now(UTC).replace(tzinfo=None)
        return np.datetime64(clock, "us") if parameter.name == "now" else None
    date: np.datetime64 | None = None
    with suppress(ValueError):
        date = np.datetime64(text.removesuffix("Z"), "us")
    if date is None or np.isnat(date):
        raise click.BadParameter(
            f"{text!r} is no date such as 2026-11-23 or 2026-11-23T06:00", param=parameter
        )
    return date


def method_of(name: str, settings: Iterable[tuple[str, str]]) -> Method:
    """A method with settings as they are typed.

    Raises
    ------
    ValueError
        If the method has no such setting, or it cannot have that value.
    """
    cls = METHODS[name]
    known = [f.name for f in fields(cls) if f.name not in ("condition_on", "methods")]
    given = {}
    for key, text in settings:
        if key not in known:
            meant = nearest(key, known)
            hint = f"; did you mean {meant!r}?" if meant else ""
            hint = "; use --condition-on" if key == "condition_on" else hint
            what = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"--option: the method {name} has no setting {key!r}, {what}{hint}")
        given[key] = _value(text)
    method: Method = cls(**given)
    return method


def _value(text: str) -> Any:
    """Numbers, true, false, null and lists of them as JSON has them; anything else is text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None if text.lower() == "none" else text
    return tuple(value) if isinstance(value, list) else value


def _pairs(
    _: click.Context, parameter: click.Parameter, given: Iterable[str]
) -> list[tuple[str, str]]:
    """Settings of a method as they are typed, by name."""
    pairs = []
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE", param=parameter)
        pairs.append((key.strip().replace("-", "_"), value.strip()))
    return pairs


def _chunks(_: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, int]:
    """Sizes of blocks by dimension."""
    sizes = {}
    for part in [] if text is None else text.split(","):
        dim, _equals, size = part.partition("=")
        if not (dim.strip() and size.strip().isdigit() and int(size)):
            raise click.BadParameter(
                f"{part!r} is not of the form DIM=N, as in --chunks lat=10,lon=10", param=parameter
            )
        sizes[dim.strip()] = int(size)
    return sizes


def quantile_levels(
    _: click.Context, parameter: click.Parameter, text: str | None
) -> list[float] | None:
    """Levels as they are typed, ascending and different, in [0, 1]."""
    if text is None:
        return None
    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError:
        levels = []
    ascending = all(a < b for a, b in pairwise(levels))
    if not levels or not ascending or levels[0] < 0 or levels[-1] > 1:
        raise click.BadParameter(
            f"{text!r} must be ascending numbers from 0 to 1, as in --quantiles 0.1,0.5,0.9",
            param=parameter,
        )
    return levels
