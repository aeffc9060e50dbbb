"""Functions that NumPy, CuPy and the array API standard name differently, or lack."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from xrecal.typing import IntArray

__all__ = [
    "concat",
    "cumsum",
    "doubled",
    "indices",
    "linear",
    "of_type",
    "put",
    "running_max",
    "take",
    "take_along",
    "transposed",
    "truths",
    "whole",
]


STACKED = 512
"""Rows of matrices up to which they are handed to the library together."""


def concat(xp: Any, arrays: Sequence[Any], axis: int = -1) -> Any:
    """Arrays one after the other."""
    join = xp.concat if hasattr(xp, "concat") else xp.concatenate
    return join(list(arrays), axis=axis)


def cumsum(xp: Any, values: Any) -> Any:
    """Sums of all up to each, along the last axis."""
    if hasattr(xp, "cumsum"):
        return xp.cumsum(values, axis=-1)
    return xp.cumulative_sum(values, axis=-1)


def doubled(xp: Any, values: Any) -> Any:
    """Values as float64; no copy where they are."""
    return of_type(xp, values, xp.float64)


def of_type(xp: Any, values: Any, dtype: Any) -> Any:
    """Values in a type; no copy where they have it."""
    if values.dtype == dtype:
        return values
    return xp.astype(values, dtype) if hasattr(xp, "astype") else values.astype(dtype)


def whole(xp: Any, values: Any) -> Any:
    """Values as int64."""
    return of_type(xp, values, xp.int64)


def truths(xp: Any, shape: tuple[int, ...]) -> Any:
    """An array that is true everywhere; the type has no common name."""
    return xp.zeros(shape, dtype=xp.float64) == 0.0


def indices(xp: Any, chosen: Any) -> Any:
    """Positions from the host, as the library takes them."""
    return xp.asarray(np.ascontiguousarray(chosen, np.int64))


def take(xp: Any, values: Any, chosen: Any, axis: int) -> Any:
    """Entries at positions (k,) from the host along one axis; the array itself if it is all."""
    chosen = np.asarray(chosen)
    size = values.shape[axis]
    if chosen.size == size and np.array_equal(chosen, np.arange(size)):
        return values
    return xp.take(values, indices(xp, chosen), axis=axis)


def take_along(xp: Any, values: Any, at: Any, axis: int = -1) -> Any:
    """Entries at positions that differ from row to row; lengths of one are repeated."""
    return xp.take_along_axis(values, at, axis=axis)


def transposed(xp: Any, values: Any) -> Any:
    """Matrices with their last two axes exchanged."""
    return xp.moveaxis(values, -1, -2)


def running_max(xp: Any, values: Any) -> Any:
    """Largest of all up to each, along the last axis: log2 n steps of twice the reach."""
    reach, n = 1, values.shape[-1]
    while reach < n:
        ahead = xp.maximum(values[..., reach:], values[..., :-reach])
        values = concat(xp, [values[..., :reach], ahead])
        reach *= 2
    return values


def linear(xp: Any, name: str, *matrices: Any) -> Any:
    """A function of linear algebra on stacked matrices (L, n, n), and others (L, n, k).

    Those of more than ``STACKED`` rows come one after another: libraries solve many small ones
    together, but large ones better alone. So do all where one fails, and gives NaN.
    """
    function = getattr(xp.linalg, name)

    def each(*matrix: Any) -> Any:
        try:
            return function(*matrix)
        except np.linalg.LinAlgError:
            missing = xp.full(matrix[-1].shape, float("nan"), dtype=xp.float64)
            return (missing[0, :], missing) if name == "eigh" else missing

    if matrices[0].shape[-1] <= STACKED:
        with suppress(np.linalg.LinAlgError):
            return function(*matrices)
    found = [each(*(matrix[i, ...] for matrix in matrices)) for i in range(matrices[0].shape[0])]
    if name == "eigh":
        return tuple(xp.stack(part) for part in zip(*found, strict=True))
    return xp.stack(found)


def put(xp: Any, array: Any, at: tuple[IntArray, ...], values: Any) -> None:
    """Write values (k, ...) at k different places along the first axes, in place.

    The standard has no assignment to many places, so it writes one by one.
    """
    if hasattr(xp, "concatenate"):
        array[tuple(indices(xp, axis) for axis in at)] = values
        return
    for k, place in enumerate(zip(*(axis.tolist() for axis in at), strict=True)):
        array[(*place, ...)] = values[k, ...]
