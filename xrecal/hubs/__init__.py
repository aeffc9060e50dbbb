"""Tables of forecast hubs, one row per number, and the arrays that xrecal takes.

============  ==========================================
read          rows of forecasts -> DataArray
observations  rows of target data -> DataArray
write         forecast -> rows, in memory or in a file
check         the rules of hubs, each violation by its row
============  ==========================================

Columns follow the hubverse convention, https://docs.hubverse.io.
"""

from .reading import observations, read
from .rules import check
from .writing import write

__all__ = ["check", "observations", "read", "write"]
