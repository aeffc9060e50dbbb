"""What methods issue on the worst day: beyond the record, in other units, of unlike forecasts."""

from .run import main

__all__ = ["main"]
