"""Read lengths along the cases, such as gaps, and the date on which years of cases begin."""

from __future__ import annotations

import datetime
import re
from typing import Any, TypeAlias

import numpy as np

from xrecal.arrays.rows import is_whole

from .leads import seconds_in

Span: TypeAlias = int | str | np.timedelta64 | datetime.timedelta
"""A length along the cases: a number of cases, or a length of time, optionally as text."""

_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_DATE = re.compile(r"(\d{1,2})-(\d{1,2})")

_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def length_of(text: str) -> datetime.timedelta | None:
    """Return the length of time of a text such as "5D" or "12 hours"; None for other text."""
    found = _LENGTH.fullmatch(text)
    seconds = None if found is None else seconds_in(found[2])
    if found is None or seconds is None:
        return None
    return datetime.timedelta(seconds=float(found[1]) * seconds)


def _is_fixed(length: np.timedelta64) -> bool:
    """Return whether a length of time is known, and has a unit of fixed length, not months."""
    return not (np.isnat(length) or np.datetime_data(length.dtype)[0] in ("Y", "M", "generic"))


def read_gap(gap: Any, owner: str) -> int | str:
    """Return a gap as settings store it: a number of cases, or a length of time such as "5D"."""
    return read_length(gap, owner, "gap")


def read_length(given: Any, owner: str, name: str, *, least: int = 0) -> int | str:
    """Return a length as settings store it: at least ``least`` cases, or a text such as "5D"."""
    if is_whole(given) and given >= least:
        return int(given)
    length = length_of(given) if isinstance(given, str) else given
    if isinstance(length, np.timedelta64) and _is_fixed(length):
        length = datetime.timedelta(seconds=float(length / np.timedelta64(1, "s")))
    zero = datetime.timedelta()
    if not isinstance(length, datetime.timedelta) or length < zero or (least and not length):
        raise ValueError(
            f"{owner}: {name} must be a number of cases, {least} or more, or a length of time such "
            f"as '5D', got {given!r}"
        )
    return f"{length / datetime.timedelta(days=1):.12g}D" if length else 0


def as_span(length: Span, name: str = "gap") -> int | np.timedelta64 | datetime.timedelta:
    """Convert text to a length of time; raise ValueError if the text is no length of time."""
    span = length_of(length) if isinstance(length, str) else length
    if isinstance(length, str) and span is None:
        raise ValueError(
            f"{name} is {length!r}, which is not a length of time; give a number with a unit of "
            "fixed length, such as '5D', '12h' or '2 weeks', or a number of cases"
        )
    return span  # type: ignore[return-value]  # None, of a window that is not given, passes


def read_year_start(date: Any, owner: str) -> str | None:
    """Return the date on which years begin, as MM-DD, from a date or month; None without a date."""
    if date is None:
        return None
    found = _DATE.fullmatch(date) if isinstance(date, str) else None
    month, day = (int(found[1]), int(found[2])) if found else (date if is_whole(date) else 0, 1)
    if not (1 <= month <= 12 and 1 <= day <= _LONGEST_MONTHS[month - 1]):
        raise ValueError(
            f"{owner}: year_start must be a date such as '07-01' or a month from 1 to 12, got "
            f"{date!r}"
        )
    return f"{month:02d}-{day:02d}"
