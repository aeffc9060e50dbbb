"""Levels of quantiles: what may be asked for, and the coordinate that tells them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.typing import FloatArray

from .forms import Form

NEAR = 1e-6
"""How far a level may be outside of those given: float32 levels and rounding pass."""


def read_levels(q: float | Sequence[float] | np.ndarray) -> FloatArray:
    """Levels as a float64 array of one axis, in the order asked for.

    Raises
    ------
    ValueError
        If one is outside [0, 1] or there twice.
    TypeError
        If one is no number.
    """
    from xrecal.arrays.distributions.weighted import check_levels

    if np.asarray(q).dtype.kind in "USOT":
        raise TypeError(f"q must hold numbers between 0 and 1, got {q!r:.60}")
    levels = check_levels(q)
    found, counts = np.unique(levels, return_counts=True)
    if (counts > 1).any():
        twice = ", ".join(f"{level:g}" for level in found[counts > 1])
        raise ValueError(f"q holds levels more than once: {twice}; give each level once")
    return levels


def read_inner_levels(q: float | Sequence[float] | np.ndarray) -> FloatArray:
    """Levels between categories; ValueError unless they increase, strictly between 0 and 1."""
    levels = read_levels(q)
    inside = ((levels > 0) & (levels < 1)).all()
    if not levels.size or not inside or not (np.diff(levels) > 0).all():
        raise ValueError(
            f"q must hold increasing levels between 0 and 1, ends excluded, got {levels}"
        )
    return levels


def levels_of(form: Form) -> FloatArray:
    """Levels in [0, 1] of a forecast that is given as quantiles, in their order."""
    top = 100.0 if form.member_dim == "percentile" else 1.0
    return np.asarray(form.loc.coords[form.member_dim].to_numpy() / top, np.float64)


def is_between(levels: FloatArray, given: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether each level is between the lowest and the highest of those given, or one of them."""
    return np.asarray((levels >= given.min() - NEAR) & (levels <= given.max() + NEAR))


def level_coordinate(levels: FloatArray) -> xr.Variable:
    """Coordinate of quantiles, described."""
    return xr.Variable("quantile", levels, {"long_name": "quantile", "units": "1"})
