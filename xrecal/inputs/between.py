"""Extra variables of weighted ensembles that represent a continuous distribution."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, get_args

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.continuous import Between
from xrecal.arrays.distributions.tails import POINTS

BETWEEN = "between_members"
"""Attribute of weights with the definition of quantiles between members."""

TAIL, TAIL_SHAPE = "tail", "tail_shape"
"""Component of members that represent tails, and role of the variable with the shapes of tails."""

SIDE, SIDES = "side", ("lower", "upper")
"""Dimension of the parameters of each tail, and its labels."""


class Continuous(NamedTuple):
    """Construction of a continuous distribution from members and weights."""

    between: Between
    shape: xr.DataArray | None = None
    """Shapes of tails, if all members of the tails are present."""
    slots: tuple[int, ...] = ()
    """Positions of the members of the tails."""


def read_continuous(
    dataset: xr.Dataset, name: Hashable, weight: Hashable, member_dim: Hashable
) -> Continuous | None:
    """Continuous distribution of a variable of a Dataset; None if its CDF is a step function."""
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
    """Shapes of the tails of a variable, from the variable that its attributes name, if present."""
    for named in str(dataset[name].attrs.get("ancillary_variables", "")).split():
        shape = dataset.get(named)
        if shape is not None and shape.attrs.get("role") == TAIL_SHAPE:
            return shape if shape.sizes.get(SIDE) == len(SIDES) else None
    return None
