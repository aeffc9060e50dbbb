"""Labelled arrays on a GPU: told from others without reading them, and never moved unasked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from xrecal.arrays.dispatch import is_on_device, namespace

if TYPE_CHECKING:
    pass


def sample(array: xr.DataArray) -> Any:
    """What tells the library of an array: the array, an empty one like Dask's chunks, or nothing.

    Values that are still in a file are left there.
    """
    data = getattr(array.variable, "_data", None)
    return getattr(data, "_meta", data)


def on_device(array: xr.DataArray) -> bool:
    """Whether an array, or each chunk of it, is one of CuPy's."""
    return is_on_device(sample(array))


def like(array: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """What was read from labels or settings, where the values of another array are.

    Not for data: those the user copies.
    """
    if not on_device(other) or on_device(array):
        return array
    xp = namespace(sample(other))
    if array.chunks is None:
        return array.copy(data=xp.asarray(array.to_numpy()))
    return array.copy(data=array.data.map_blocks(xp.asarray))


def require_one_side(function: Callable[..., Any], args: Sequence[xr.DataArray], what: str) -> None:
    """Raise TypeError for device arrays that a task cannot take, or only with copies.

    Tasks that can have an attribute ``on_device`` that is true.
    """
    there = [on_device(arg) for arg in args]
    if not any(there):
        return
    if not getattr(function, "on_device", False):
        told = getattr(function, "told", "")
        raise TypeError(
            f"{what}{told} has no implementation for CuPy arrays; copy to the host first: "
            "data.as_numpy() of a DataArray or Dataset, model.as_numpy() of a model"
        )
    if not all(there):
        host = [arg for arg, here in zip(args, there, strict=True) if not here]
        told = ", ".join(
            f"one over {list(arg.dims)}" if arg.name is None else repr(arg.name) for arg in host[:3]
        )
        raise TypeError(
            f"{what} got arrays of CuPy and of NumPy, of NumPy {told}; bring all "
            "to one side first: data.as_numpy() or model.as_numpy(), or to the device "
            "data.copy(data=cupy.asarray(data.data)), with Dask "
            "data.copy(data=data.data.map_blocks(cupy.asarray))"
        )
