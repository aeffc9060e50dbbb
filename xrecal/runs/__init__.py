"""Runs on files, which can continue after an interruption, and the daily cycle."""

from .cycle import Cycle
from .run import Run

__all__ = ["Cycle", "Run"]
