"""Functions of arrays and matrices that are stacked over many locations."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

__all__ = ["linear", "take"]

STACKED = 512
"""Largest number of rows of matrices that the library solves together in one call; it solves larger
matrices one by one."""


def take(xp: Any, values: Any, at: Any) -> Any:
    """Select cases (L, k, ...) at positions (L, k), which differ between locations."""
    at = xp.asarray(np.ascontiguousarray(at, np.int64)) if isinstance(at, np.ndarray) else at
    wide = xp.reshape(at, (*at.shape, *[1] * (values.ndim - 2)))
    return xp.take_along_axis(values, xp.broadcast_to(wide, (*at.shape, *values.shape[2:])), axis=1)


def linear(xp: Any, name: str, matrices: Any) -> Any:
    """Apply a function of linear algebra, such as "inv", to stacked matrices (L, n, n).

    Libraries solve small matrices faster together, but large matrices faster one by one. So the
    function solves matrices of more than ``STACKED`` rows one by one. If the library fails for a
    stack of small matrices, the function solves them one by one, too. The result is NaN for a
    matrix that fails.
    """
    function = getattr(xp.linalg, name)

    def each(matrix: Any) -> Any:
        try:
            return function(matrix)
        except np.linalg.LinAlgError:
            missing = xp.full(matrix.shape, float("nan"), dtype=xp.float64)
            return (missing[0, :], missing) if name == "eigh" else missing

    if matrices.shape[-1] <= STACKED:
        with suppress(np.linalg.LinAlgError):
            return function(matrices)
    found = [each(matrices[i, ...]) for i in range(matrices.shape[0])]
    if name == "eigh":
        return tuple(xp.stack(part) for part in zip(*found, strict=True))
    return xp.stack(found)
