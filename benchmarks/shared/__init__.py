"""One fit for the places of a network, against the truth of a synthetic one."""

from .run import main

__all__ = ["main"]
