"""Data for examples: synthetic hindcasts, and real hindcasts, which xrecal downloads once."""

from .synthetic import lorenz96, sinus
from .tutorial import open_tutorial

__all__ = ["lorenz96", "open_tutorial", "sinus"]
