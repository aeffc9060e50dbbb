"""Match the places of two objects along common dimensions, whatever their order.

Labels identify places, and so do other coordinates along the dimension: names (CF ``cf_role``, or
text), latitude and longitude. Places are matched by position only if one object has none of these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import cast

import numpy as np
import pandas as pd
import xarray as xr

from xrecal.typing import IntArray

from .dims import (
    Labelled,
    Labels,
    Names,
    at_scalars,
    require_equal_labels,
    require_unique,
    warn_of_other_labels,
)
from .identities import (
    NUMBERS,
    PLACES,
    ROUNDING,
    Identity,
    angle_of,
    comparable,
    identities,
    names_place,
    rearranged,
)
from .leads import equal_labels, time_unit
from .roles import is_lead, is_length


def find_places(
    given: Labelled, wanted: Labelled, dim: Hashable, *, names: Names
) -> IntArray | None:
    """Return the position in ``given`` of each place of ``wanted`` along a dimension.

    Parameters
    ----------
    given, wanted : DataArray or Dataset
        Objects with the dimension; ``given`` may have more places.
    dim : hashable
        Dimension of the places.
    names : tuple of str
        Names of ``given`` and ``wanted`` in messages.

    Returns
    -------
    ndarray of int or None
        Positions; None if the objects have no common labels or names that identify all places.

    Raises
    ------
    ValueError
        If labels and names of places contradict each other.
    """
    theirs, mine = identities(given, dim), identities(wanted, dim)
    pairs = comparable(mine, theirs)
    found = [(a, b, at) for a, b in pairs if (at := b.positions(a)) is not None]
    if not found:
        return None if mine and theirs else rearranged(given, wanted, dim)
    found.sort(key=lambda one: one[0].counts or one[1].counts)  # labels that only count come last
    first, _, at = found[0]
    for a, b, other in found[1:]:
        same = a.name == b.name or a.kind in PLACES
        if same and not (a.counts or b.counts) and not np.array_equal(other, at):
            raise ValueError(
                f"{names[0]} and {names[1]} have the places along {dim!r} in one order by "
                f"{first.name}, in another by {a.name}: which order is right? Drop the wrong one, "
                f"such as {names[0]}.drop_vars({a.drop!r})"
            )
    if first.kind == "number" and first.name == str(dim):
        _refuse_unlike_beside(first, mine, theirs, at, names=names)
    return at


def _refuse_unlike_beside(
    labels: Identity, mine: list[Identity], theirs: list[Identity], at: IntArray, *, names: Names
) -> None:
    """Raise ValueError if places with equal numeric labels have different names or coordinates.

    A station and the nearest grid point may be one place, so they raise no error.
    """
    beside = [[one for one in ways if one.name != labels.name] for ways in (mine, theirs)]
    if not all(beside):
        return
    pairs = [(a, b) for a in beside[0] for b in beside[1] if a.kind == b.kind]
    if any(b.positions(a) is not None for a, b in pairs):
        return
    near = any(b.nearest(a, at) for a, b in pairs)
    if near or not (labels.counts or any(a.kind in PLACES for a, _ in pairs)):
        return
    known = [f"{name} by {ways[0].name}" for name, ways in zip(names, beside[::-1], strict=True)]
    raise ValueError(
        f"labels along {labels.name!r} are equal numbers, but the places differ: they are "
        f"identified in {known[0]}, in {known[1]}; give both the same names, or pair by the "
        f"numbers alone: {names[0]}.drop_vars({beside[1][0].drop!r})"
    )


def lack_names(a: Labelled, b: Labelled, dim: Hashable) -> bool:
    """Return whether nothing identifies the places along ``dim`` in one of two objects."""
    return not (identities(a, dim) and identities(b, dim)) and rearranged(a, b, dim) is None


def like_places(
    other: Labels, wanted: Labelled, dims: Iterable[Hashable], *, names: Names, select: bool = False
) -> Labels:
    """Return an object with its places in the order of another, along common dimensions.

    Parameters
    ----------
    other : DataArray or Dataset
        Object to rearrange. Its order stays along a dimension if both objects have the same order,
        or if nothing identifies the places.
    wanted : DataArray or Dataset
        The object with the wanted order.
    dims : iterable of hashable
        Dimensions; a dimension that one of the objects lacks is ignored.
    names : tuple of str
        Names of ``wanted`` and ``other`` in messages.
    select : bool
        Whether to drop places that ``wanted`` lacks; otherwise such places raise an error.

    Raises
    ------
    ValueError
        If places differ, or if their labels and names differ or contradict each other.
    """
    shared = [d for d in dims if d in other.dims and d in wanted.dims]
    for dim in shared:
        more = wanted.sizes[dim] != other.sizes[dim]
        if more and not select:
            require_equal_labels(wanted, other, dim, names=names)
        if _have_equal_labels_alone(wanted, other, dim):
            continue
        at = find_places(other, wanted, dim, names=(names[1], names[0]))
        if at is None:
            if more:
                require_equal_labels(wanted, other, dim, names=names)
            _refuse_unlike(wanted, other, dim, names=names)
            continue
        if not np.array_equal(at, np.arange(other.sizes[dim])):
            other = cast("Labels", other.isel({dim: at}))
        if not labels_agree(wanted, other, dim):  # labels that only count places
            other = cast("Labels", other.assign_coords({dim: wanted[dim].variable}))
    _require_equal_fields(wanted, other, shared, names=names)
    return other


def labels_agree(a: Labelled, b: Labelled, dim: Hashable) -> bool:
    """Return whether labels along a dimension are equal, or one of two objects has no labels."""
    if not (dim in a.indexes and dim in b.indexes):
        return True
    return bool(a.indexes[dim].equals(b.indexes[dim])) and not _of_other_units(a, b, dim)


def _of_other_units(a: Labelled, b: Labelled, dim: Hashable) -> bool:
    """Return whether numbers along a dimension have different units, such as days and hours."""
    units = [time_unit(o[dim].attrs.get("units")) for o in (a, b)]
    return None not in units and units[0] != units[1] and bool((a[dim].to_numpy() != 0).any())


def _have_equal_labels_alone(a: Labelled, b: Labelled, dim: Hashable) -> bool:
    """Return whether labels are equal, and one object has no other coordinate along ``dim``."""
    if not (dim in a.indexes and dim in b.indexes and labels_agree(a, b, dim)):
        return False
    return any(all(n == dim for n, c in o.coords.items() if dim in c.dims) for o in (a, b))


def _refuse_unlike(wanted: Labelled, other: Labelled, dim: Hashable, *, names: Names) -> None:
    """Raise ValueError if places differ, unless nothing identifies the places of one object."""
    if dim in wanted.indexes and dim in other.indexes:
        if labels_agree(wanted, other, dim):
            return
        for obj, owner in ((wanted, names[0]), (other, names[1])):
            require_unique(obj.indexes[dim], dim, owner)
        if _of_other_units(wanted, other, dim):
            raise ValueError(
                f"labels along {dim!r} have units {wanted[dim].attrs.get('units')} in {names[0]}, "
                f"{other[dim].attrs.get('units')} in {names[1]}; bring both to one unit, or set "
                f"the right unit: {names[1]}.{dim}.attrs['units'] = ..."
            )
        require_equal_labels(wanted, other, dim, names=names)
    mine, theirs = identities(wanted, dim), identities(other, dim)
    if not (mine and theirs):
        return
    same = [(a, b) for a in mine for b in theirs if a.kind == b.kind and a.name == b.name]
    drop = sorted({n for _, b in same for n in b.drop} - {str(dim)})
    hint = (
        f"or {names[1]}.drop_vars({drop}) to pair by position"
        if drop
        else f"give both the same coordinate along {dim!r}"
    )
    shown = [
        f"{o} by {', '.join(i.name for i in ids)}"
        for o, ids in zip(names, (mine, theirs), strict=True)
    ]
    raise ValueError(
        f"places along {dim!r} are not the same: they are identified in {shown[0]}, in {shown[1]}"
        f"{_first_unlike(same)}; select the same places, {hint}"
    )


def _first_unlike(same: list[tuple[Identity, Identity]]) -> str:
    """Return text, for a message, about the first name that only the first object has."""
    for a, b in same:
        if isinstance(a.keys, pd.Index) and isinstance(b.keys, pd.Index):
            unknown = a.keys[~a.keys.isin(b.keys)]
            return f", first {a.name} {unknown[0]}" if unknown.size else ", some of them twice"
    return ""


def _require_equal_fields(
    wanted: Labelled, other: Labelled, dims: list[Hashable], *, names: Names
) -> None:
    """Raise ValueError if latitudes or longitudes over two dimensions differ at any position."""
    for name, mine in wanted.coords.items():
        kind = angle_of(name, mine)
        if (
            kind is None
            or mine.ndim != 2
            or not {*mine.dims} <= {*dims}
            or name not in other.coords
        ):
            continue
        theirs = other[name]
        labelled = any(d in wanted.indexes and d in other.indexes for d in mine.dims)
        if {*theirs.dims} != {*mine.dims} or labelled:
            continue
        a, b = (c.transpose(*mine.dims).to_numpy().astype(np.float64) for c in (mine, theirs))
        apart = np.abs((a - b + 180.0) % 360.0 - 180.0)
        if not (apart[np.isfinite(apart)] <= 2 * ROUNDING).all():
            raise ValueError(
                f"{name!r} of {names[0]} and {names[1]} differ, by up to {np.nanmax(apart):.3g} "
                f"degrees; bring both to the same places, or drop the coordinate of one: "
                f"{names[1]}.drop_vars({name!r})"
            )


def warn_of_other_places(other: xr.DataArray, wanted: xr.DataArray, *, names: Names) -> None:
    """Warn if thresholds, covariates or scores belong to another place or lead than ``wanted``.

    ``names`` are the names of ``wanted`` and ``other`` in messages.
    """
    scalars = {n: c for n, c in other.coords.items() if not c.ndim and n in wanted.coords}
    right = [
        n
        for n, c in scalars.items()
        if not (n in wanted.dims or names_place(n, c) or is_lead(n, c))
        or (not wanted[n].ndim and equal_labels(c, wanted[n]))
    ]
    warn_of_other_labels(wanted, other.drop_vars(right), names=names)


def at_single(
    other: xr.DataArray, wanted: xr.DataArray, *, names: Names, dims: Iterable[Hashable]
) -> xr.DataArray:
    """Return the part of ``other`` at the single places and leads of ``wanted``, along ``dims``.

    The function warns if ``other`` itself has a single place or lead that differs. ``names`` are
    the names of ``wanted`` and ``other`` in messages.

    Raises
    ------
    ValueError
        If ``other`` lacks such a place or label, or has it twice.
    """
    warn_of_other_places(other, wanted, names=names)
    other = at_places(other, wanted, names=names[::-1], dims=dims)
    return at_scalars(other, wanted, names=names, dims=dims)


def at_places(
    other: Labels, forecasts: Labelled, *, names: Names, dims: Iterable[Hashable] | None = None
) -> Labels:
    """Return the part of an object at the single place that scalar coordinates of forecasts name.

    Names, latitude, longitude or lengths of time along a dimension identify the place; lengths of
    time may have different units. The function does not select by other labels along a
    dimension; :func:`xrecal.inputs.dims.at_scalars` does.

    Raises
    ------
    ValueError
        If the object lacks this place.
    """
    for dim in list(other.dims if dims is None else dims):
        by_label = dim in forecasts.coords and dim in other.indexes and not is_length(other[dim])
        if dim in other.dims and dim not in forecasts.dims and not by_label:
            at = place_of(other, forecasts, dim, names=names)
            other = other if at is None else cast("Labels", other.isel({dim: at}))
    return other


def place_of(given: Labelled, forecasts: Labelled, dim: Hashable, *, names: Names) -> int | None:
    """Return the position along ``dim`` of the place that scalar coordinates of forecasts name.

    The result is None if no coordinate names a place. ``names`` are the names of ``given`` and
    ``forecasts`` in messages.

    Raises
    ------
    ValueError
        If ``given`` lacks this place.
    """
    one = _as_places(forecasts, given, dim)
    if one is None:
        return None
    mine, theirs = identities(one, dim), identities(given, dim)
    for a in mine:
        for b in theirs:
            at = b.positions(a)
            if at is not None:
                return int(at[0])
    same = [
        a
        for a in mine
        for b in theirs
        if a.name == b.name and (a.kind == b.kind or {a.kind, b.kind} <= {*NUMBERS})
    ]
    if same:
        labels = same[0].keys if same[0].raw is None else same[0].raw
        label = labels[0] if isinstance(labels, pd.Index) else "another place"
        raise ValueError(
            f"{names[1]} is at {same[0].name} {label}, which {names[0]} lack along {dim!r}; select "
            f"a place that both have, or use {names[1]}.drop_vars({same[0].drop})"
        )
    return None


def refuse_other_name(other: xr.DataArray, wanted: xr.DataArray, *, names: Names) -> None:
    """Raise ValueError if two dimensions of different names have the same places.

    ``names`` are the names of ``wanted`` and ``other`` in messages.
    """
    for dim in (d for d in other.dims if d not in wanted.dims):
        theirs = identities(other, dim)
        for d in (d for d in wanted.dims if d not in other.dims and theirs):
            if any(b.positions(a) is not None for a in identities(wanted, d) for b in theirs):
                raise ValueError(
                    f"{names[1]} has along {dim!r} the places that {names[0]} has along {d!r}; "
                    f"give both dimensions one name: {names[1]}.rename({{{dim!r}: {d!r}}})"
                )


def _as_places(forecasts: Labelled, given: Labelled, dim: Hashable) -> xr.Dataset | None:
    """Return the scalar coordinates of forecasts that name a place; None without any.

    The result has the dimension ``dim``, of length one. Coordinates, latitudes or longitudes name a
    place if ``given`` has them along ``dim``. Names of places count too, unless forecasts have a
    coordinate ``dim``.
    """
    along = {n: c for n, c in given.coords.items() if dim in c.dims}
    angles = {angle_of(n, c) for n, c in along.items()} - {None}
    scalars = {
        n: c
        for n, c in forecasts.coords.items()
        if c.ndim == 0
        if n in along
        or angle_of(n, c) in angles
        or (names_place(n, c) and dim not in forecasts.coords)
        if not bool(c.isnull())
    }
    if not scalars:
        return None
    return xr.Dataset(coords={n: ((dim,), [c.to_numpy()[()]], c.attrs) for n, c in scalars.items()})


def along_place(forecast: xr.DataArray, given: Labelled, dim: Hashable) -> xr.DataArray:
    """Return a forecast at one place of ``given``, with a dimension ``dim`` of length one."""
    one = _as_places(forecast, given, dim)
    if dim in forecast.coords or one is not None:
        forecast = forecast.expand_dims(dim)
    return forecast if one is None else forecast.assign_coords(one.coords)
