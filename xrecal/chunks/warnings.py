"""Warnings that are issued once per call, even if several parts of it have the same one."""

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
"""Warnings already issued in the user's call; None outside of a call."""


def warn_once(text: str) -> None:
    """Issue a warning, unless the same call has issued it."""
    warned = WARNED.get()
    if warned is None or text not in warned:
        warn(text)
    if warned is not None:
        warned.add(text)


def warn(text: str) -> None:
    """Issue a warning at the user's line; names and labels in the text are quoted."""
    warnings.warn(quoted(text), stacklevel=users_stacklevel())


@contextmanager
def users_call() -> Iterator[None]:
    """A call of the user: issues each warning once, and quotes names and labels in its errors."""
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
    """Stack level at which the caller's warning points to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("xrecal."):
        frame, level = frame.f_back, level + 1
    return level


def warn_of_missing(values: FloatArray, counted: str, beside: str, name: str) -> None:
    """Warn about values that count as missing, far beyond others, and say what to type."""
    each = np.unique(values.astype(np.float64))
    below = 10.0 ** math.floor(math.log10(np.abs(each).min()))
    shown = ", ".join(f"{value:.6g}" for value in each[:3]) + ", ..." * (each.size > 3)
    warn(
        f"{counted} count as missing values, as they are a million times {beside} or more: "
        f"{shown}. If they are missing, use {name}.where(abs({name}) < {below:g}), and the "
        "same for observations; otherwise correct them",
    )
