"""``.recal`` and ``.recal.plot``: doors to what can be done with forecasts, a typed line each."""

from .recal import DataArrayRecal, DatasetRecal

__all__ = ["DataArrayRecal", "DatasetRecal"]
