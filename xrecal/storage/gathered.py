"""Storage of a MultiIndex in files, in the form that CF calls compression by gathering.

Along a dimension with a MultiIndex, such as stacked latitudes and longitudes, a file has one number
for each combination of labels. The labels are variables of their own. cf_xarray reads and writes
the same form.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
import xarray as xr

COMPRESS = "compress"
"""Attribute with the names of the labels; the label that changes slowest comes first."""


def gathered(dataset: xr.Dataset) -> xr.Dataset:
    """Replace each MultiIndex by numbers and labels.

    Raises
    ------
    ValueError
        If a label is missing, or the name of a label has a space.
    """
    for dim, index in _multi(dataset).items():
        names = [str(name) for name in index.names]
        if any(" " in name for name in names) or any((code < 0).any() for code in index.codes):
            raise ValueError(
                f"the labels {names} along {dim!r} cannot be stored: a label is missing, or a name "
                "has a space; use .reset_index() and .drop_vars(), or rename"
            )
        numbers = np.ravel_multi_index(tuple(index.codes), index.levshape)
        pairs = zip(names, index.levels, strict=True)
        labels = {name: (name, level, dataset[name].attrs) for name, level in pairs}
        dataset = dataset.drop_vars([dim, *names]).assign_coords(
            {dim: (dim, numbers, {COMPRESS: " ".join(names)}), **labels}
        )
    return dataset


def _multi(dataset: xr.Dataset) -> dict[Hashable, pd.MultiIndex]:
    """Return each dimension that has a MultiIndex, with this index."""
    found = {d: dataset.indexes[d] for d in dataset.dims if d in dataset.indexes}
    return {
        d: index.remove_unused_levels()
        for d, index in found.items()
        if isinstance(index, pd.MultiIndex)
    }


def restored(dataset: xr.Dataset) -> xr.Dataset:
    """Undo :func:`gathered`: make a MultiIndex wherever numbers and their labels are present.

    Raises
    ------
    IndexError, ValueError
        If there are fewer labels than the numbers need.
    """
    for dim in dataset.dims:
        names = str(dataset[dim].attrs.get(COMPRESS, "")).split()
        if len(names) < 2 or not all(name in dataset.indexes for name in names):
            continue
        levels = [dataset.indexes[name] for name in names]
        codes = np.unravel_index(dataset[dim].to_numpy(), [level.size for level in levels])
        arrays = [level.take(code) for level, code in zip(levels, codes, strict=True)]
        attrs = {name: dataset[name].attrs for name in names}
        index = pd.MultiIndex.from_arrays(arrays, names=names)
        dataset = dataset.drop_vars([dim, *names]).assign_coords(
            xr.Coordinates.from_pandas_multiindex(index, dim)
        )
        for name in names:
            dataset[name].attrs.update(attrs[name])
    return dataset
