"""Places by their names: the order of two objects along the dimensions that both have.

Labels identify places, and so do coordinates beside them: names (CF ``cf_role``, or text),
latitude and longitude. Position counts only where one object has nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd
import xarray as xr

from xrecal.typing import FloatArray, IntArray

from .dims import require_equal_labels, require_unique, text_of
from .leads import seconds_of
from .metadata import standard_name_of

Labels = TypeVar("Labels", bound=xr.DataArray | xr.Dataset)

Kind: TypeAlias = Literal["text", "number", "length", "latitude", "longitude", "place"]

PLACE_NAMES = (
    "station", "station_id", "station_name", "location", "location_id", "site", "site_id", "name",
    "id",
)  # fmt: skip
"""Names of coordinates that identify a place; one with the CF attribute ``cf_role`` does, too."""

LATITUDES = ("lat", "latitude", "nav_lat", "XLAT")
LONGITUDES = ("lon", "longitude", "nav_lon", "XLONG")

PLACES = ("latitude", "longitude", "place")
"""Kinds that say where places lie."""

ROUNDING = 360 * float(np.finfo(np.float32).eps)
"""Degrees by which coordinates in single precision differ from their values."""


@dataclass(frozen=True)
class Identity:
    """One way in which an object identifies the places along a dimension."""

    name: str
    """Of the coordinate, or of several."""
    kind: Kind
    keys: pd.Index | FloatArray
    """Labels (n,), or numbers (n, k) that are equal up to rounding."""
    raw: pd.Index | None = None
    """Labels as they stand, of lengths of time: comparable to numbers without a unit."""
    counts: bool = False
    """Whether labels are 0, 1, 2, ... or 1, 2, 3, ..., which any order of places has."""

    @property
    def drop(self) -> list[str]:
        """Names of the coordinates."""
        return self.name.split(" and ")

    def nearest(self, wanted: Identity, at: IntArray) -> bool:
        """Return whether the places here that are nearest to others are those at positions."""
        if self.kind not in PLACES:
            return False
        from scipy.spatial import cKDTree

        here, there = (np.nan_to_num(np.asarray(one.keys)) for one in (self, wanted))
        return bool(np.array_equal(cKDTree(here).query(there)[1], at))

    def positions(self, wanted: Identity) -> IntArray | None:
        """Position here of each place that the other identifies; None unless all are here once."""
        found = self.found(wanted)
        return None if found is None or (found < 0).any() else found

    def found(self, wanted: Identity) -> IntArray | None:
        """As :meth:`positions`, -1 for places that are not here; None if they do not compare."""
        if self.name == wanted.name and {self.kind, wanted.kind} == {"number", "length"}:
            here, there = (one.keys if one.raw is None else one.raw for one in (self, wanted))
            return replace(self, kind="number", keys=here).found(
                replace(wanted, kind="number", keys=there)
            )
        numbers = self.kind in ("number", "length")
        if self.kind != wanted.kind or (numbers and self.name != wanted.name):
            return None
        if not isinstance(self.keys, pd.Index):
            return _nearest(self.keys, np.asarray(wanted.keys))
        labels = pd.Index(wanted.keys)
        if not (self.keys.is_unique and labels.is_unique):
            return None
        return np.asarray(self.keys.get_indexer(labels))


def is_angle(name: Hashable, label: xr.DataArray) -> bool:
    """Return whether a coordinate is a latitude or longitude, by its name or CF attributes."""
    return _angle(name, label) is not None


def _angle(name: Hashable, label: xr.DataArray) -> Literal["latitude", "longitude"] | None:
    units, standard = str(label.attrs.get("units", "")), standard_name_of(label)
    if standard == "latitude" or units == "degrees_north" or name in LATITUDES:
        return "latitude"
    if standard == "longitude" or units == "degrees_east" or name in LONGITUDES:
        return "longitude"
    return None


def names_place(name: Hashable, label: xr.DataArray) -> bool:
    """Return whether a coordinate names places, by its name or the CF attribute ``cf_role``."""
    return "cf_role" in label.attrs or name in PLACE_NAMES


def identities(obj: xr.DataArray | xr.Dataset, dim: Hashable) -> list[Identity]:
    """Ways in which an object identifies the places along a dimension, the surest first.

    Coordinates of Dask are read only where labels do not identify the places.
    """
    own = _labels(str(dim), obj[dim]) if dim in obj.indexes else None
    sure = own is not None and not own.counts
    along = {n: c for n, c in obj.coords.items() if dim in c.dims and n != dim}
    along = {n: c for n, c in along.items() if c.chunks is None or not sure}
    beside = {n: c for n, c in along.items() if c.ndim == 1}
    named = sorted(beside.items(), key=lambda item: "cf_role" not in item[1].attrs)
    found: list[Identity | None] = [
        _labels(str(n), c) for n, c in named if names_place(n, c) or c.dtype.kind in "USOT"
    ]
    found += [_where(along, dim)]
    ways = [one for one in found if one is not None]
    if own is None:
        return ways
    return [own, *ways] if sure else [*ways, own]


def naming(obj: xr.DataArray, dim: Hashable) -> dict[Hashable, xr.DataArray]:
    """Coordinates of one dimension that identify the places along it."""
    return {
        n: c
        for n, c in obj.coords.items()
        if c.dims == (dim,)
        if n == dim or names_place(n, c) or is_angle(n, c) or c.dtype.kind in "USOT"
    }


def known_places(
    given: xr.DataArray | xr.Dataset, wanted: xr.DataArray, dim: Hashable
) -> IntArray | None:
    """Position in ``given`` of each place of ``wanted``, -1 for new ones; None without names."""
    pairs = [(a, b) for a in identities(wanted, dim) for b in identities(given, dim)]
    found = [at for a, b in pairs if (at := b.found(a)) is not None]
    return max(found, key=lambda at: int((at >= 0).sum())) if found else None


def _labels(name: str, coordinate: xr.DataArray) -> Identity:
    """Text or numbers of a coordinate of one dimension."""
    (dim,) = coordinate.dims
    index = coordinate.to_index() if dim == name else pd.Index(coordinate.to_numpy())
    if index.dtype.kind in "OSUT" and index.nlevels == 1 and not isinstance(index, xr.CFTimeIndex):
        return Identity(name, "text", pd.Index([text_of(label).strip("\0 ") for label in index]))
    seconds = seconds_of(coordinate)
    if seconds is not None and np.isfinite(seconds).all():
        micro = np.round(seconds * 1e6).astype(np.int64)
        return Identity(name, "length", pd.Index(micro), index)
    first = index[0] if index.size and index.dtype.kind in "iu" else None
    counts = first in (0, 1) and np.array_equal(index, np.arange(first, first + index.size))
    return Identity(name, "number", index, counts=counts)


def _where(along: dict[Hashable, xr.DataArray], dim: Hashable) -> Identity | None:
    """Latitudes, longitudes or both along a dimension; of two dimensions the middle of each row."""
    angles = {
        kind: c
        for n, c in along.items()
        if c.dtype.kind in "iuf" and c.ndim <= 2 and (kind := _angle(n, c)) is not None
    }
    if not angles or len({frozenset(c.dims) for c in angles.values()}) > 1:
        return None
    names = sorted(str(c.name) for c in angles.values())
    radians = {
        kind: np.deg2rad(c.transpose(dim, ...).to_numpy().astype(np.float64))
        for kind, c in angles.items()
    }
    nothing = np.zeros_like(next(iter(radians.values())))
    latitude, longitude = (radians.get(k, nothing) for k in ("latitude", "longitude"))
    points = [
        np.cos(latitude) * np.cos(longitude),
        np.cos(latitude) * np.sin(longitude),
        np.sin(latitude),
    ]
    keys = np.stack([np.nan_to_num(p).reshape(len(p), -1).mean(1) for p in points], axis=1)
    return Identity(" and ".join(names), "place" if len(angles) == 2 else next(iter(angles)), keys)


def _nearest(given: FloatArray, wanted: FloatArray) -> IntArray | None:
    """Row of ``given`` (p, k) that each row of ``wanted`` (n, k) equals up to rounding, else -1.

    None where rows are unknown or equal.
    """
    from scipy.spatial import cKDTree

    if not (np.isfinite(given).all() and np.isfinite(wanted).all() and len(given)):
        return None
    tree, near = cKDTree(given), np.deg2rad(2 * ROUNDING)
    if tree.query_pairs(near):
        return None  # two places at one point
    apart, found = tree.query(wanted)
    return np.where(apart > near, -1, found)


def find_places(
    given: xr.DataArray | xr.Dataset,
    wanted: xr.DataArray | xr.Dataset,
    dim: Hashable,
    *,
    names: tuple[str, str],
) -> IntArray | None:
    """Position in ``given`` of each place of ``wanted`` along a dimension.

    Parameters
    ----------
    given, wanted : DataArray or Dataset
        Both with the dimension; ``given`` may have more places.
    dim : hashable
        Dimension of the places.
    names : tuple of str
        Names of ``given`` and ``wanted`` in messages.

    Returns
    -------
    ndarray of int or None
        None where nothing that both have identifies all places.

    Raises
    ------
    ValueError
        If labels and names of places contradict each other.
    """
    theirs, mine = identities(given, dim), identities(wanted, dim)
    found = [(a, b, at) for a in mine for b in theirs if (at := b.positions(a)) is not None]
    if not found:
        return None
    found.sort(key=lambda one: one[0].counts or one[1].counts)  # whose labels only count: last
    first, _, at = found[0]
    for a, b, other in found[1:]:
        same = a.name == b.name or a.kind in PLACES
        if same and not (a.counts or b.counts) and not np.array_equal(other, at):
            raise ValueError(
                f"{names[0]} and {names[1]} have the places along {dim!r} in one order by "
                f"{first.name}, in another by {a.name}: which of them is right? Drop the other, "
                f"such as {names[0]}.drop_vars({a.drop!r})"
            )
    if first.kind == "number" and first.name == str(dim):
        _refuse_unlike_beside(first, mine, theirs, at, names=names)
    return at


def _refuse_unlike_beside(
    labels: Identity,
    mine: list[Identity],
    theirs: list[Identity],
    at: IntArray,
    *,
    names: tuple[str, str],
) -> None:
    """Raise ValueError where places that labels bring together have other names or coordinates.

    Labels are numbers. A station and the point of a grid nearest to it may be one place.
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
        f"labels along {labels.name!r} are numbers that agree, but the places are others: they are "
        f"known in {known[0]}, in {known[1]}; give both the same names, or drop them to pair by "
        f"the numbers: {names[0]}.drop_vars({beside[1][0].drop!r})"
    )


def lack_names(a: xr.DataArray | xr.Dataset, b: xr.DataArray | xr.Dataset, dim: Hashable) -> bool:
    """Return whether one of two objects has nothing that identifies its places along ``dim``."""
    return not (identities(a, dim) and identities(b, dim))


def like_places(
    other: Labels,
    wanted: xr.DataArray | xr.Dataset,
    dims: Iterable[Hashable],
    *,
    names: tuple[str, str],
    select: bool = False,
) -> Labels:
    """Return an object with its places in the order of another, along dimensions that both have.

    Parameters
    ----------
    other : DataArray or Dataset
        Stays as it is along dimensions where it has the same order, or nothing identifies places.
    wanted : DataArray or Dataset
        The object with the order.
    dims : iterable of hashable
        Dimensions; those that one of both lacks are left out.
    names : tuple of str
        Names of ``wanted`` and ``other`` in messages.
    select : bool
        Leave out places that ``wanted`` lacks; else they are an error.

    Raises
    ------
    ValueError
        If places differ, or what identifies them does, or contradicts itself.
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
        if not labels_agree(wanted, other, dim):  # which only count places
            other = cast("Labels", other.assign_coords({dim: wanted[dim].variable}))
    _require_equal_fields(wanted, other, shared, names=names)
    return other


def labels_agree(a: xr.DataArray | xr.Dataset, b: xr.DataArray | xr.Dataset, dim: Hashable) -> bool:
    """Return whether labels along a dimension are the same, or one of two objects has none."""
    both = dim in a.indexes and dim in b.indexes
    return not both or bool(a.indexes[dim].equals(b.indexes[dim]))


def _have_equal_labels_alone(
    a: xr.DataArray | xr.Dataset, b: xr.DataArray | xr.Dataset, dim: Hashable
) -> bool:
    """Return whether both have the same labels, and one of them no coordinate beside these."""
    if not (dim in a.indexes and dim in b.indexes and labels_agree(a, b, dim)):
        return False
    return any(all(n == dim for n, c in o.coords.items() if dim in c.dims) for o in (a, b))


def _refuse_unlike(
    wanted: xr.DataArray | xr.Dataset,
    other: xr.DataArray | xr.Dataset,
    dim: Hashable,
    *,
    names: tuple[str, str],
) -> None:
    """Raise ValueError unless one object has nothing that identifies places along ``dim``."""
    if dim in wanted.indexes and dim in other.indexes:
        if labels_agree(wanted, other, dim):
            return
        for obj, owner in ((wanted, names[0]), (other, names[1])):
            require_unique(obj.indexes[dim], dim, owner)
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
        f"places along {dim!r} are not the same: they are known in {shown[0]}, in {shown[1]}"
        f"{_first_unlike(same)}; select the same places, {hint}"
    )


def _first_unlike(same: list[tuple[Identity, Identity]]) -> str:
    """Text on the first name that only one of both has."""
    for a, b in same:
        if isinstance(a.keys, pd.Index) and isinstance(b.keys, pd.Index):
            unknown = a.keys[~a.keys.isin(b.keys)]
            return f", first {a.name} {unknown[0]}" if unknown.size else ", where some stand twice"
    return ""


def _require_equal_fields(
    wanted: xr.DataArray | xr.Dataset,
    other: xr.DataArray | xr.Dataset,
    dims: list[Hashable],
    *,
    names: tuple[str, str],
) -> None:
    """Raise ValueError where latitudes or longitudes of two dimensions differ, in their order."""
    for name, mine in wanted.coords.items():
        kind = _angle(name, mine)
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


def at_places(
    other: Labels,
    forecasts: xr.DataArray | xr.Dataset,
    *,
    names: tuple[str, str],
    dims: Iterable[Hashable] | None = None,
) -> Labels:
    """Return the part of an object at the one place of forecasts, by scalar coordinates of these.

    As :func:`xrecal.inputs.dims.at_scalars` where labels identify places; here names, latitude and
    longitude beside them do.

    Raises
    ------
    ValueError
        If the object lacks the place.
    """
    for dim in list(other.dims if dims is None else dims):
        by_label = dim in forecasts.coords and dim in other.indexes
        if dim in other.dims and dim not in forecasts.dims and not by_label:
            at = place_of(other, forecasts, dim, names=names)
            other = other if at is None else cast("Labels", other.isel({dim: at}))
    return other


def place_of(
    given: xr.DataArray | xr.Dataset,
    forecasts: xr.DataArray | xr.Dataset,
    dim: Hashable,
    *,
    names: tuple[str, str],
) -> int | None:
    """Position along a dimension of the one place that scalar coordinates of forecasts name.

    None where they name none. ``names`` are those of ``given`` and ``forecasts``.

    Raises
    ------
    ValueError
        If there is no such place.
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
    same = [a for a in mine for b in theirs if a.kind == b.kind and a.name == b.name]
    if same:
        label = same[0].keys[0] if isinstance(same[0].keys, pd.Index) else "another place"
        raise ValueError(
            f"{names[1]} is at {same[0].name} {label}, which {names[0]} lack along {dim!r}; select "
            f"a place that both have, or use {names[1]}.drop_vars({same[0].drop})"
        )
    return None


def refuse_other_name(other: xr.DataArray, wanted: xr.DataArray, *, names: tuple[str, str]) -> None:
    """Raise ValueError where a dimension of an object has the places of one of another name.

    ``names`` are those of ``wanted`` and ``other``.
    """
    for dim in (d for d in other.dims if d not in wanted.dims):
        theirs = identities(other, dim)
        for d in (d for d in wanted.dims if d not in other.dims and theirs):
            if any(b.positions(a) is not None for a in identities(wanted, d) for b in theirs):
                raise ValueError(
                    f"{names[1]} has along {dim!r} the places that {names[0]} has along {d!r}; "
                    f"give both dimensions one name: {names[1]}.rename({{{dim!r}: {d!r}}})"
                )


def _as_places(
    forecasts: xr.DataArray | xr.Dataset, given: xr.DataArray | xr.Dataset, dim: Hashable
) -> xr.Dataset | None:
    """Scalar coordinates of forecasts that name a place of ``given``, along ``dim`` of length one.

    Only those of a kind that ``given`` has along the dimension: others name something else.
    """
    along = {n: c for n, c in given.coords.items() if dim in c.dims}
    angles = {_angle(n, c) for n, c in along.items()} - {None}
    scalars = {
        n: c
        for n, c in forecasts.coords.items()
        if c.ndim == 0
        if n in along
        or _angle(n, c) in angles
        or (names_place(n, c) and dim not in forecasts.coords)
        if not bool(c.isnull())
    }
    if not scalars:
        return None
    return xr.Dataset(coords={n: ((dim,), [c.to_numpy()[()]], c.attrs) for n, c in scalars.items()})


def along_place(
    forecast: xr.DataArray, given: xr.DataArray | xr.Dataset, dim: Hashable
) -> xr.DataArray:
    """Return a forecast at one place of ``given`` along a dimension of length one."""
    one = _as_places(forecast, given, dim)
    if dim in forecast.coords or one is not None:
        forecast = forecast.expand_dims(dim)
    return forecast if one is None else forecast.assign_coords(one.coords)
