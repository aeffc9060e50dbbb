"""``.recal`` and ``.recal.plot``: methods of forecasts, one typed line each."""

from .recal import DataArrayRecal, DatasetRecal

__all__ = ["DataArrayRecal", "DatasetRecal"]
