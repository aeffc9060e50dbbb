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
    """Read the time at which a monitor restarts."""
    if text in ("year", "never"):
        return None if text == "never" else text
    if text.isdigit() and int(text):
        return int(text)
    raise click.BadParameter(
        f"{text!r} is not valid; type year, never or a number of cases", param=parameter
    )


def date(_: click.Context, parameter: click.Parameter, text: str | None) -> np.datetime64 | None:
    """A typed date without a time zone; for --now, the current one by default."""
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
    """Typed settings of a method, by name."""
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
    """Convert names for a parameter: None, one name, or several."""
    return given[0] if len(given) == 1 else given or None


def names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names between commas; none for empty text."""
    return () if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def span(_: click.Context, __: click.Parameter, text: str | None) -> int | str | None:
    """A number of cases, or a length of time; None for empty text."""
    return int(text) if text is not None and text.strip().isdigit() else text


def pool(
    _: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | dict[str, int] | None:
    """Dimensions of a pool, or widths of its window along each."""
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
    """Places that choose settings together: all, each alone, or along given dimensions."""
    dims = tuple(dim.strip() for dim in text.split(","))
    if not all(dims):
        raise click.BadParameter(
            f"{text!r} is not together, each or DIM,..., as in --choose lat,lon", param=parameter
        )
    return dims[0] if dims in (("together",), ("each",)) else dims


def chunks(_: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, int]:
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


def numbers(_: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    """Increasing numbers."""
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
    """Increasing levels in [0, 1]."""
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
    """Numbers and fractions such as 1/3; empty unless all are valid, finite, and increasing."""
    try:
        found = [float(Fraction(part.strip())) for part in text.split(",")]
    except (ValueError, ZeroDivisionError):
        return []
    return found if all(a < b for a, b in pairwise(found)) else []
