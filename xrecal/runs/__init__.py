"""Runs on files: block by block, locked, resumable; and the daily cycle."""

from .cycle import Cycle
from .run import Run

__all__ = ["Cycle", "Run"]
