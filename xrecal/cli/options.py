"""Options of the commands, read and checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import click

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
