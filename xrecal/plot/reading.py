"""Reading of data for a figure: variables in memory, one location or the range over many."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.inputs.forms import Form, Labelled, read_forms
from xrecal.inputs.metadata import check_units

from .style import BAND

Floats = npt.NDArray[np.float64]


class Range(NamedTuple):
    """Middle and ends of a range over locations; the ends are None for one location."""

    middle: Floats
    low: Floats | None = None
    high: Floats | None = None


def in_memory(data: xr.Dataset, names: Sequence[str], *, figure: str, maker: str) -> xr.Dataset:
    """Return the variables ``names`` of a Dataset in memory.

    Raises
    ------
    TypeError, ValueError
        If the data are not a Dataset, or lack one of the variables.
    """
    if not isinstance(data, xr.Dataset):
        raise TypeError(f"{figure} draws the Dataset of {maker}, got {type(data).__name__}")
    missing = [name for name in names if name not in data]
    if missing:
        raise ValueError(
            f"{figure} draws the Dataset of {maker}, which has {missing[0]!r}; found "
            f"{list(data.data_vars)}"
        )
    return data[list(names)].compute()


def only_variable(data: Labelled, *, name: str) -> xr.DataArray:
    """A DataArray, or the only variable of a Dataset."""
    if isinstance(data, xr.DataArray):
        return data
    if not isinstance(data, xr.Dataset):
        raise TypeError(f"{name} must be an xarray DataArray or Dataset, got {type(data).__name__}")
    if len(data.data_vars) != 1:
        raise ValueError(f"{name} has several variables, {list(data.data_vars)}; select one")
    return next(iter(data.data_vars.values()))


def only_form(forecast: Labelled, *, name: str) -> Form:
    """Form of the forecast in a DataArray or in a Dataset with one variable."""
    forms = read_forms(forecast, name=name)
    if len(forms) > 1:
        raise ValueError(
            f"a figure shows one variable, but {name} has {list(forms)}; select one, such as "
            f"{name}[{next(iter(forms))!r}]"
        )
    return next(iter(forms.values()))


def only_ensemble(raw: Labelled) -> Form:
    """Form of the plain ensemble that a figure shows as the raw forecast."""
    form = only_form(raw, name="raw")
    if form.kind != "ensemble":
        raise ValueError(
            f"raw= takes a plain ensemble, whose members are drawn, but {form.name!r} is a "
            f"forecast of the form {form.kind!r}"
        )
    return form


def same_quantity(a: xr.DataArray, b: xr.DataArray, *, names: tuple[str, str]) -> None:
    """Raise ValueError if two arrays have different units."""
    check_units(names[0], a.attrs.get("units"), names[1], b.attrs.get("units"))


def drop_single(array: xr.DataArray, keep: Sequence[Hashable] = ()) -> xr.DataArray:
    """Drop the dimensions of length one, except the dimensions ``keep``."""
    return array.squeeze([d for d, n in array.sizes.items() if n == 1 and d not in keep])


def require_one(
    array: xr.DataArray, keep: Sequence[Hashable], *, figure: str, remedy: str = ""
) -> xr.DataArray:
    """Drop the dimensions of length one, except the dimensions ``keep``.

    Raises
    ------
    ValueError
        If there are several locations or cases; the message shows how to select one.
    """
    single = drop_single(array, keep)
    extra = [d for d in single.dims if d not in keep]
    if extra:
        n = math.prod(single.sizes[d] for d in extra)
        choice = ", ".join(map(first_along, extra))
        along = " and ".join(map(repr, extra))
        raise ValueError(
            f"{figure} shows one location and case, but there are {n} along {along}; select one: "
            f".isel({choice}) or .sel(...){remedy}"
        )
    return single


def first_along(dim: Hashable) -> str:
    """Argument of ``isel`` that selects the first label."""
    return f"{dim}=0"


def over_locations(array: xr.DataArray, along: Sequence[Hashable], *, mean: bool = False) -> Range:
    """Median (or mean) and central range over all dimensions except ``along``.

    The dimensions of the results are ``along``, in this order. At each position along these
    dimensions, locations with a missing value do not count.
    """
    whole = array.transpose(..., *along)
    shape = tuple(whole.sizes[d] for d in along)
    values = whole.to_numpy().astype(np.float64).reshape(-1, *shape)
    if values.shape[0] == 1:
        return Range(values[0])
    return Range(*range_of(values, mean=mean))


def range_of(values: Floats, *, mean: bool = False) -> tuple[Floats, Floats, Floats]:
    """Median (or mean) and central range over the first axis, as in :func:`over_locations`."""
    # NumPy warns about columns without values, so these are filled here and emptied again below.
    known = ~np.isnan(values).all(0)
    filled = np.where(known, values, 0.0)
    middle = np.nanmean(filled, 0) if mean else np.nanmedian(filled, 0)
    low, high = np.nanquantile(filled, [(1 - BAND) / 2, (1 + BAND) / 2], axis=0)
    middle, low, high = (np.where(known, part, np.nan) for part in (middle, low, high))
    return middle, low, high


def corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Leave out points of a line between two equal values: they do not change the line."""
    kept = np.ones(y.size, bool)
    kept[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
    return x[kept], y[kept]
