"""Runs on files: block by block, locked, resumed after an interruption; and the daily cycle."""

from .cycle import Cycle
from .run import Run

__all__ = ["Cycle", "Run"]
