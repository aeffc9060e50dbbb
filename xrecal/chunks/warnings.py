"""Warnings that are given once a call, however many parts of it have the same to say."""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar

WARNED: ContextVar[set[str] | None] = ContextVar("warned", default=None)
"""What the user's call has warned of already; None outside of one."""


def warn_once(text: str) -> None:
    """Warn of something, unless the same call has done so."""
    warned = WARNED.get()
    if warned is None or text not in warned:
        warnings.warn(text, stacklevel=users_stacklevel())
    if warned is not None:
        warned.add(text)


def users_stacklevel() -> int:
    """Level at which the caller's warning points to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("xrecal."):
        frame, level = frame.f_back, level + 1
    return level
