"""Warnings that are told once a call, however many parts of it find the same."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TOLD: ContextVar[set[str] | None] = ContextVar("told", default=None)
"""What the user's call has told already; None outside of one."""


@contextmanager
def one_call() -> Iterator[None]:
    """A call of the user, with all calls inside it."""
    if _TOLD.get() is not None:
        yield
        return
    token = _TOLD.set(set())
    try:
        yield
    finally:
        _TOLD.reset(token)


def warn_once(text: str) -> None:
    """Warn of something, unless the same call has done so."""
    told = _TOLD.get()
    if told is None or text not in told:
        warnings.warn(text, stacklevel=users_stacklevel())
    if told is not None:
        told.add(text)


def users_stacklevel() -> int:
    """Level at which the caller's warning points to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("xrecal."):
        frame, level = frame.f_back, level + 1
    return level
