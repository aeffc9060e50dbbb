"""Experts whose weights go on learning, on real streams: python -m benchmarks.streams."""

from .run import main

__all__ = ["main"]
