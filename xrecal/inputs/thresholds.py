"""Read thresholds for forecasts: numbers, or values by location, date or season."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import like, require_free, require_one_chunk

from .forms import Form
from .labels import read_labels
from .metadata import check_units
from .places import at_single, like_places, refuse_other_name
from .seasonal import at_valid_dates

Threshold: TypeAlias = float | Sequence[float] | np.ndarray | xr.DataArray
"""One number, several numbers, or values by place, date or season."""
Edges: TypeAlias = Sequence[float] | np.ndarray | xr.DataArray
"""Increasing thresholds that separate categories."""

THRESHOLD = "threshold"
"""Name of the dimension that several thresholds get."""


class Thresholds(NamedTuple):
    """Thresholds in the form that tasks need."""

    values: xr.DataArray
    """Values over dimensions of the forecast, with ``dim`` last."""
    dim: Hashable
    """Dimension of the thresholds in the result."""
    coords: Mapping[Hashable, Any]
    """Coordinates of the dimension of the thresholds, or of a scalar threshold."""
    several: bool
    """True if the result has the dimension of the thresholds."""

    def label(self, result: xr.DataArray) -> xr.DataArray:
        """Return a result with the coordinates of the thresholds.

        For a scalar threshold the result has no dimension of thresholds.
        """
        if not self.several:
            result = result.isel({self.dim: 0})
        return result.assign_coords(self.coords)


def read_thresholds(
    threshold: Threshold, form: Form, dtype: npt.DTypeLike, dim: Hashable | None = None
) -> Thresholds:
    """Check thresholds against a forecast, and convert them to a floating type.

    ``dim`` is the dimension of the cases; thresholds by season need the dates of the cases.
    """
    units = {k: v for k, v in form.loc.attrs.items() if k == "units"}
    if not isinstance(threshold, xr.DataArray):
        numbers = _numbers(threshold)
        require_free(form.dims, [THRESHOLD])
        label = numbers if numbers.ndim else numbers[()]
        dims = (THRESHOLD,) if numbers.ndim else ()
        coords: dict[Hashable, Any] = {THRESHOLD: (dims, label, units)}
        values = xr.DataArray(np.atleast_1d(numbers).astype(dtype), dims=[THRESHOLD])
        return Thresholds(like(values, form.loc), THRESHOLD, coords, numbers.ndim > 0)
    if threshold.dtype.kind not in "iuf":
        raise TypeError(f"threshold must hold numbers, got {threshold.dtype}")
    check_units("forecast", units.get("units"), "threshold", threshold.attrs.get("units"))
    threshold = read_labels(threshold, name="threshold").obj
    threshold = at_valid_dates(threshold, form, dim, name="threshold")
    whole, names = form.broadcast().loc, ("forecast", "threshold")
    others = [d for d in threshold.dims if d not in (*form.dims, THRESHOLD)]
    threshold = at_single(threshold, whole, names=names, dims=others)
    new = _new_dim(threshold, form)
    for d in (d for d in others if d in threshold.dims and d in whole.coords):
        raise ValueError(
            f"forecast is at {d}={whole[d].to_numpy()[()]}, but threshold has no labels along "
            f"{d!r}; select it: threshold.isel({d}=...), or add the labels"
        )
    refuse_other_name(threshold, whole, names=names)
    threshold = like_places(threshold, whole, form.dims, names=names, select=True)
    kept = [d for d in threshold.dims if d != new and d in threshold.indexes]
    values = threshold.drop_vars([c for c in threshold.coords if c not in kept]).astype(dtype)
    if new is None:
        return Thresholds(values.expand_dims(THRESHOLD, -1), THRESHOLD, {}, False)
    require_one_chunk(threshold, (new,), name="threshold")
    coords = {c: v.variable for c, v in threshold.coords.items() if v.dims == (new,)}
    return Thresholds(values.transpose(..., new), new, coords, True)


def check_edges(edges: Edges) -> None:
    """Raise ValueError unless edges increase; skip this check for a DataArray."""
    if not isinstance(edges, xr.DataArray):
        values = np.asarray(edges, np.float64)
        if values.ndim != 1 or not values.size or not (np.diff(values) > 0).all():
            raise ValueError(f"edges must be increasing numbers, got {edges!r:.60}")


def read_edges(edges: Edges, form: Form, dtype: npt.DTypeLike) -> Thresholds:
    """Return the thresholds between categories.

    The function raises ValueError unless edges have a dimension of their own.
    """
    thresholds = read_thresholds(edges, form, dtype)
    if not thresholds.several:
        raise ValueError(
            "edges need a dimension of their own, along which they increase; they have "
            f"{list(getattr(edges, 'dims', ()))}"
        )
    return thresholds


def _numbers(threshold: object) -> npt.NDArray[np.float64]:
    """Return one number, or several numbers along one axis, as float64."""
    numbers = np.asarray(threshold)
    if numbers.dtype.kind not in "iuf":
        raise TypeError(
            f"threshold must be a number, a list of numbers or a DataArray, got {threshold!r:.60}"
        )
    numbers = numbers.astype(np.float64)
    if numbers.ndim > 1:
        raise ValueError(
            f"threshold has shape {numbers.shape}; name its dimensions with a DataArray"
        )
    return numbers


def _new_dim(threshold: xr.DataArray, form: Form) -> Hashable | None:
    """Return the dimension that a threshold has and the forecast lacks, or None."""
    if form.member_dim in threshold.dims:
        raise ValueError(
            f"threshold has the dimension {form.member_dim!r} of the forecast's members; rename "
            f"it: threshold.rename({form.member_dim}={THRESHOLD!r})"
        )
    new = [d for d in threshold.dims if d not in form.dims]
    if len(new) > 1:
        raise ValueError(
            f"threshold has the dimensions {new} that the forecast lacks; the forecast has "
            f"{list(form.dims)}. Only one is possible: select along the others, or stack them"
        )
    return new[0] if new else None
