"""Warnings that are told once a call, however many parts of it find the same."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .labels import users_stacklevel

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
