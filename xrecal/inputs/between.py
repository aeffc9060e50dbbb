"""Read the variables with which a weighted ensemble represents a continuous distribution."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, get_args

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.continuous import Between
from xrecal.arrays.distributions.tails import POINTS

BETWEEN = "between_members"
"""Name of an attribute of the weights. Its value shows how quantiles between two members are
computed."""

TAIL, TAIL_SHAPE = "tail", "tail_shape"
"""Texts that mark the tails. In the coordinate ``component``, the first text marks the members that
represent a tail. In the attribute ``role``, the second text marks the variable with the shapes of
the tails. A shape is that of a generalised Pareto distribution."""

SIDE, SIDES = "side", ("lower", "upper")
"""Dimension that counts the two tails, and its labels."""


class Continuous(NamedTuple):
    """Settings and data that turn members and weights into a continuous distribution."""

    between: Between
    shape: xr.DataArray | None = None
    """Shape of each tail; None unless all members that represent tails are present."""
    slots: tuple[int, ...] = ()
    """Positions of the members that represent tails; empty if ``shape`` is None."""


def read_continuous(
    dataset: xr.Dataset, name: Hashable, weight: Hashable, member_dim: Hashable
) -> Continuous | None:
    """Read how a weighted ensemble becomes continuous; return None if its CDF has steps."""
    named = dataset[weight].attrs.get(BETWEEN)
    between = next((one for one in get_args(Between) if one == named), None)
    if between is None:
        return None
    component, shape = dataset.coords.get("component"), _shape(dataset, name)
    if shape is None or component is None or component.dims != (member_dim,):
        return Continuous(between)
    slots = np.flatnonzero(component.to_numpy() == TAIL)
    if slots.size != len(SIDES) * POINTS or member_dim in shape.dims:
        return Continuous(between)
    return Continuous(between, shape.chunk({SIDE: -1}) if shape.chunks else shape, (*slots,))


def _shape(dataset: xr.Dataset, name: Hashable) -> xr.DataArray | None:
    """Return the shapes of the tails of a variable; None if it has no shapes.

    The attribute ``ancillary_variables`` of the variable names the variable with the shapes.
    """
    for named in str(dataset[name].attrs.get("ancillary_variables", "")).split():
        shape = dataset.get(named)
        if shape is not None and shape.attrs.get("role") == TAIL_SHAPE:
            return shape if shape.sizes.get(SIDE) == len(SIDES) else None
    return None
