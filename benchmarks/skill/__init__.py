"""CRPS and calibration of every method on real forecasts that it has not seen, by source."""

from .run import main

__all__ = ["main"]
