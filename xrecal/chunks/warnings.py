"""Warnings that are issued once per call, even if several parts of the call cause them."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from xrecal.typing import FloatArray

from .texts import quote, quoted

WARNED: ContextVar[set[str] | None] = ContextVar("warned", default=None)
"""Warnings that the user's call has already issued; None outside of a call."""


def warn_once(text: str) -> None:
    """Issue a warning, unless the same call of the user has issued it already."""
    warned = WARNED.get()
    if warned is None or text not in warned:
        warn(text)
    if warned is not None:
        warned.add(text)


def warn(text: str) -> None:
    """Issue a warning at the user's line of code; :func:`quoted` makes its text safe to show."""
    warnings.warn(quoted(text), stacklevel=users_stacklevel())


@contextmanager
def users_call() -> Iterator[None]:
    """Wrap a call of the user: issue each warning once, and make texts of errors safe to show."""
    outer = WARNED.get()
    token = WARNED.set(set() if outer is None else outer)
    try:
        yield
    except Exception as error:
        quote(error)
        raise
    finally:
        WARNED.reset(token)


def users_stacklevel() -> int:
    """Return the stack level at which a warning points to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("xrecal."):
        frame, level = frame.f_back, level + 1
    return level


def warn_of_missing(values: FloatArray, counted: str, beside: str, name: str) -> None:
    """Warn that values far beyond others count as missing, and show what to type."""
    each = np.unique(values.astype(np.float64))
    below = 10.0 ** math.floor(math.log10(np.abs(each).min()))
    shown = ", ".join(f"{value:.6g}" for value in each[:3]) + ", ..." * (each.size > 3)
    warn(
        f"{counted} count as missing values, as they are more than a million times {beside}: "
        f"{shown}. If they are missing, use {name}.where(abs({name}) < {below:g}), and the "
        "same for observations; otherwise correct them",
    )
