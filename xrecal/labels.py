"""Labels of two objects along one dimension: matched for cases, equal for locations."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable
from typing import Any, TypeVar, cast

import numpy as np
import xarray as xr

Labels = TypeVar("Labels", bound=xr.DataArray | xr.Dataset)


def match_labels(
    forecasts: xr.DataArray, observations: xr.DataArray, dim: Hashable, *, name: str
) -> tuple[xr.DataArray, int]:
    """Observations at the labels of the forecasts, NaN where there is none, and how many match.

    Raises
    ------
    ValueError
        If labels are missing on one side, not unique, or none is common.
    """
    labelled = [obj for obj in (forecasts, observations) if dim in obj.indexes]
    size, observed_size = forecasts.sizes[dim], observations.sizes[dim]
    if not labelled:
        if size != observed_size:
            raise ValueError(
                f"{name} has {size} cases along {dim!r}, observations have {observed_size}, and "
                "neither has labels to match them by; add a coordinate to both"
            )
        return observations, size
    if len(labelled) == 1:
        bare = "observations" if dim in forecasts.indexes else name
        raise ValueError(f"{bare} have no labels along {dim!r} to match by; add the coordinate")
    wanted, known = forecasts.indexes[dim], observations.indexes[dim]
    require_unique(wanted, dim, name)
    require_unique(known, dim, "observations")
    matched = int((known.get_indexer(wanted) >= 0).sum())  # np.isin compares objects pair by pair
    if matched == 0:
        types = [f", {type(index[0]).__name__}" if index.size else "" for index in (wanted, known)]
        if types[0] == types[1]:  # else told, since dates of two calendars print alike
            types = ["", ""]
        raise ValueError(
            f"no label along {dim!r} is common to {name} (first: {_first(wanted)}{types[0]}) and "
            f"observations (first: {_first(known)}{types[1]})"
        )
    if matched < size / 2:
        warnings.warn(
            f"only {matched} of {size} forecasts along {dim!r} have an observation",
            stacklevel=users_stacklevel(),
        )
    if wanted.equals(known):
        return observations, matched
    found = observations.reindex_like(forecasts[dim])
    if (
        len(observations.variable.chunksizes.get(dim, ())) == 1
    ):  # which Dask cuts as it fills the gaps
        found = found.chunk({dim: -1})
    return found, matched


def at_scalars(
    other: Labels,
    forecasts: xr.DataArray | xr.Dataset,
    *,
    names: tuple[str, str],
    but: Hashable = None,
) -> Labels:
    """What belongs to forecasts that were selected at single labels, such as ``.sel(lead=5)``.

    Parameters
    ----------
    other : DataArray or Dataset
        Perhaps along dimensions that are scalar coordinates of the forecasts.
    forecasts : DataArray or Dataset
        Forecasts, perhaps at a single lead, place or date.
    names : tuple of str
        What the user calls the forecasts and `other`, for messages.
    but : hashable, optional
        Dimension of `other` that stays.

    Returns
    -------
    DataArray or Dataset
        `other` at these labels. A date that it lacks is NaN.

    Raises
    ------
    ValueError
        If it lacks another label, or has one twice.
    """
    for d in other.dims:
        scalar = d != but and d in other.indexes and d in forecasts.coords
        if not scalar or forecasts[d].ndim:
            continue
        label, index = forecasts[d].to_numpy()[()], other.indexes[d]
        require_unique(index, d, names[1])
        dates = index.dtype.kind == "M" or isinstance(index, xr.CFTimeIndex)
        if label not in index and not dates:
            raise ValueError(
                f"{names[0]} is at {d}={label}, which {names[1]} lack; they have {_first(index)}"
                + (", ..." if index.size > 3 else "")
            )
        other = cast("Labels", other.reindex({d: [label]}).isel({d: 0}))
    return other


def require_unique(index: Any, dim: Hashable, owner: str) -> None:
    """Raise ValueError if a label along a dimension stands there twice."""
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        raise ValueError(
            f"labels along {dim!r} of {owner} must be unique, but {twice} stands there more "
            f"than once; use {owner}.drop_duplicates({dim!r})"
        )


def _first(index: object) -> str:
    return ", ".join(str(label) for label in list(index)[:3]) or "none"  # type: ignore[call-overload]


def users_stacklevel() -> int:
    """Level at which the caller's warning points to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("xrecal."):
        frame, level = frame.f_back, level + 1
    return level


def require_equal_labels(
    a: xr.DataArray | xr.Dataset,
    b: xr.DataArray | xr.Dataset,
    dim: Hashable,
    *,
    names: tuple[str, str],
) -> None:
    """Raise ValueError unless both have the same size and, if both have them, labels along dim."""
    if a.sizes[dim] != b.sizes[dim]:
        raise ValueError(
            f"{names[0]} and {names[1]} differ along {dim!r}: {a.sizes[dim]} against "
            f"{b.sizes[dim]} labels; select the same ones"
        )
    if dim not in a.indexes or dim not in b.indexes or a.indexes[dim].equals(b.indexes[dim]):
        return
    if a.indexes[dim].sort_values().equals(b.indexes[dim].sort_values()):
        raise ValueError(
            f"{names[0]} and {names[1]} have the same labels along {dim!r} in another order; use "
            f"{names[1]}.reindex({{{dim!r}: {names[0]}[{dim!r}]}})"
        )
    labels, others = a.indexes[dim], b.indexes[dim]
    differ = np.flatnonzero(np.asarray(labels != others))[0]
    remedy = "bring both to the same locations"
    numbers = labels.dtype.kind in "iuf" and others.dtype.kind in "iuf"
    if numbers and np.allclose(labels, others, rtol=1e-6, atol=1e-6, equal_nan=True):
        remedy = (
            "they agree up to rounding, so if they mean the same use "
            f"{names[1]}.assign_coords({{{dim!r}: {names[0]}[{dim!r}]}})"
        )
    raise ValueError(
        f"labels along {dim!r} differ, first at position {differ}: {labels[differ]} in "
        f"{names[0]}, {others[differ]} in {names[1]}; {remedy}"
    )
