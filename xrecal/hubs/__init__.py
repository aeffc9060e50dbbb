"""Convert tables of forecast hubs, which have a row for each number, to arrays and back.

============  ==========================================
read          rows of forecasts -> DataArray
observations  rows of target data -> DataArray
write         forecast -> rows, in memory or in a file
check         raise an error for rows that break rules
============  ==========================================

Columns of the tables follow the hubverse convention, https://docs.hubverse.io.
"""

from .reading import observations, read
from .rules import check
from .writing import write

__all__ = ["check", "observations", "read", "write"]
