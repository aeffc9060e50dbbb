"""CRPS of every method on real forecasts, each trained on the past and scored on what followed."""

from .run import main

__all__ = ["main"]
