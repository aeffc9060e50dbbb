"""Data to try things on: toy systems with hindcasts, and real ones fetched once."""

from .synthetic import lorenz96, sinus
from .tutorial import open_tutorial

__all__ = ["lorenz96", "open_tutorial", "sinus"]
