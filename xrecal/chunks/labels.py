"""Names of the coordinates that label dimensions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import xarray as xr


def labels_along(array: xr.DataArray, dims: Iterable[Hashable]) -> set[Hashable]:
    """Return the names of the coordinates that label ``dims``: several for a stacked dimension."""
    own = set(dims)
    stacked = (array.xindexes.get_all_coords(d) for d in own if d in array.xindexes)
    return own.union(*stacked)
