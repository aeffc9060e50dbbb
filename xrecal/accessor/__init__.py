"""Define ``.recal`` and ``.recal.plot``, which hold the methods of forecasts."""

from .recal import DataArrayRecal, DatasetRecal

__all__ = ["DataArrayRecal", "DatasetRecal"]
