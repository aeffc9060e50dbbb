"""Doors have the types of their functions: calls that are right, and wrong ones with their errors.

Nothing runs this; ``make types`` checks it, and an error that is not there is an error, too.
"""

from typing import Any, assert_type

import xarray as xr
from matplotlib.axes import Axes

from xrecal.accessor.recal import DataArrayRecal, DatasetRecal


def calls(one: DataArrayRecal, many: DatasetRecal, seen: Any) -> None:
    assert_type(one.members(5, seed=1, member_dim=("any", "name")), xr.DataArray | xr.Dataset)
    assert_type(many.members(5, member_dim=None), xr.DataArray | xr.Dataset)
    assert_type(many.plot.pit(seen), Axes)
    one.members()  # type: ignore[call-arg]
    many.members(5, 1)  # type: ignore[call-arg]
    many.members("5")  # type: ignore[arg-type]
    many.members(5, seed=None)  # type: ignore[arg-type]
    many.members(5, member_dim=[])  # type: ignore[arg-type]
    one.crps(seen, fair="yes")  # type: ignore[arg-type]
    many.crps(seen, "time", fare=True)  # type: ignore[call-arg]
