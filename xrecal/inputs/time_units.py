"""Units of lengths of time, in all their spellings."""

from __future__ import annotations

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "pentad": 432000, "week": 604800}
"""Seconds of the units of a fixed length."""

MONTHS = {"month": 1, "season": 3, "year": 12}
"""Months of the units of the calendar."""

_ALIASES = {
    "second": ("s", "sec", "secs"),
    "minute": ("min", "mins"),
    "hour": ("h", "hr", "hrs"),
    "day": ("d",),
    "week": ("w", "wk", "wks"),
    "month": ("mon", "mons", "mo"),
    "year": ("y", "yr", "yrs"),
}

UNITS = {
    alias: unit
    for unit in (*SECONDS, *MONTHS)
    for alias in (unit, f"{unit}s", *_ALIASES.get(unit, ()))
}
"""Units by spelling; months, seasons and years are those of the calendar."""


def time_unit(units: object) -> str | None:
    """Unit of time that an attribute ``units`` names, whatever its spelling; None for another."""
    return UNITS.get(str(units).strip().lower())
