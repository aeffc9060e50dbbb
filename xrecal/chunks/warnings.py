"""Warnings that are given once a call, however many parts of it have the same to say."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_GIVEN: ContextVar[set[str] | None] = ContextVar("given", default=None)
"""Warnings that the user's call has given already; None outside of a call."""


@contextmanager
def one_call() -> Iterator[None]:
    """A call of the user, with all calls inside it."""
    if _GIVEN.get() is not None:
        yield
        return
    token = _GIVEN.set(set())
    try:
        yield
    finally:
        _GIVEN.reset(token)


def warn_once(text: str) -> None:
    """Warn, unless the same call has given this warning already."""
    given = _GIVEN.get()
    if given is None or text not in given:
        warnings.warn(text, stacklevel=users_stacklevel())
    if given is not None:
        given.add(text)


def users_stacklevel() -> int:
    """Level at which the caller's warning points to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("xrecal."):
        frame, level = frame.f_back, level + 1
    return level
