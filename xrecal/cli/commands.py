"""The program: a group of commands, defined in other files."""

from __future__ import annotations

from . import comparing, daily, scoring, writing
from .options import group as xrecal

__all__ = ["comparing", "daily", "scoring", "writing", "xrecal"]
