"""Values of options, read from typed text."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

import click
import numpy as np


def restart(_: click.Context, parameter: click.Parameter, text: str) -> str | int | None:
    """Read the time when the evidence restarts: year, never (None) or a number of cases."""
    if text in ("year", "never"):
        return None if text == "never" else text
    if text.isdigit() and int(text):
        return int(text)
    raise click.BadParameter(
        f"{text!r} is not valid; type year, never or a number of cases", param=parameter
    )


def date(_: click.Context, parameter: click.Parameter, text: str | None) -> np.datetime64 | None:
    """Read a date in UTC. Without a text, return the current time for --now, otherwise None."""
    if text is None:
        clock = datetime.now(UTC).replace(tzinfo=None)
        return np.datetime64(clock, "us") if parameter.name == "now" else None
    date: np.datetime64 | None = None
    with suppress(ValueError):
        date = np.datetime64(text.removesuffix("Z"), "us")
    if date is None or np.isnat(date):
        raise click.BadParameter(
            f"{text!r} is not a date such as 2026-11-23 or 2026-11-23T06:00", param=parameter
        )
    return date


def pairs(
    _: click.Context, parameter: click.Parameter, given: Iterable[str]
) -> list[tuple[str, str]]:
    """Read settings of a method as pairs of name and text."""
    pairs = []
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE", param=parameter)
        pairs.append((key.strip().replace("-", "_"), value.strip()))
    return pairs


def one_or_several(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> str | tuple[str, ...] | None:
    """Return a single name as text, several names as a tuple, and None if there is no name."""
    return given[0] if len(given) == 1 else given or None


def names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Read names between commas; without a text, return an empty tuple."""
    return () if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def span(_: click.Context, __: click.Parameter, text: str | None) -> int | str | None:
    """Return a number of cases as an integer; return a length of time, or None, unchanged."""
    return int(text) if text is not None and text.strip().isdigit() else text


def pool(
    _: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | dict[str, int] | None:
    """Read the dimensions to pool, or the width of the window along each dimension."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    dims = tuple(dim.strip() for dim, _equals, _width in pairs)
    widths = {dim.strip(): width.strip() for dim, equals, width in pairs if equals}
    plain = all(dims) and all(width.isdigit() for width in widths.values())
    if not plain or (widths and len(widths) < len(dims)) or len(set(dims)) < len(dims):
        raise click.BadParameter(
            f"{text!r} is not of the form DIM,... or DIM=N,..., as in --pool lat,lon or "
            "--pool lat=3,lon=3",
            param=parameter,
        )
    return {dim: int(width) for dim, width in widths.items()} or dims


def choose(_: click.Context, parameter: click.Parameter, text: str) -> str | tuple[str, ...]:
    """Read the places that choose settings together: together, each, or names of dimensions."""
    dims = tuple(dim.strip() for dim in text.split(","))
    if not all(dims):
        raise click.BadParameter(
            f"{text!r} is not together, each or DIM,..., as in --choose lat,lon", param=parameter
        )
    return dims[0] if dims in (("together",), ("each",)) else dims


def chunks(_: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, int]:
    """Read the sizes of blocks by dimension."""
    sizes = {}
    for part in [] if text is None else text.split(","):
        dim, _equals, size = part.partition("=")
        if not (dim.strip() and size.strip().isdigit() and int(size)):
            raise click.BadParameter(
                f"{part!r} is not of the form DIM=N, as in --chunks lat=10,lon=10", param=parameter
            )
        sizes[dim.strip()] = int(size)
    return sizes


def numbers(_: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    """Read increasing numbers; without a text, return None."""
    if text is None:
        return None
    found = _floats(text)
    if not found:
        raise click.BadParameter(
            f"{text!r} must be increasing numbers, as in {parameter.opts[0]} 0,5", param=parameter
        )
    return found


def quantile_levels(
    _: click.Context, parameter: click.Parameter, text: str | None
) -> list[float] | None:
    """Read increasing levels in [0, 1]; without a text, return None."""
    if text is None:
        return None
    levels = _floats(text)
    if not levels or levels[0] < 0 or levels[-1] > 1:
        example = "1/3,2/3" if parameter.name == "categories" else "0.1,0.5,0.9"
        raise click.BadParameter(
            f"{text!r} must be ascending numbers from 0 to 1, as in {parameter.opts[0]} {example}",
            param=parameter,
        )
    return levels


def _floats(text: str) -> list[float]:
    """Read increasing numbers or fractions such as 1/3; return an empty list if this fails."""
    try:
        found = [float(Fraction(part.strip())) for part in text.split(",")]
    except (ValueError, ZeroDivisionError):
        return []
    return found if all(a < b for a, b in pairwise(found)) else []
