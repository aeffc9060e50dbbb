"""The group of all commands of ``xrecal``; other modules define the commands."""

from __future__ import annotations

from . import comparing, daily, scoring, writing
from .options import group as xrecal

__all__ = ["comparing", "daily", "scoring", "writing", "xrecal"]
