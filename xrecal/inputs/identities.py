"""Ways to identify the places along a dimension: labels, names, latitude and longitude."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from xrecal.typing import FloatArray, IntArray

from .dims import Labelled, text_of
from .leads import MONTHS, seconds_of, unit_of_leads
from .metadata import LATITUDE, LONGITUDE

Kind: TypeAlias = Literal["text", "number", "length", "month", "latitude", "longitude", "place"]

PLACE_NAMES = (
    "station", "station_id", "station_name", "location", "location_id", "site", "site_id", "name",
    "id",
)  # fmt: skip
"""Names of coordinates that identify a place; the CF attribute ``cf_role`` marks others."""

NUMBERS = ("number", "length", "month")
"""Kinds of labels that are numbers: plain numbers, lengths of time, and whole months."""

PLACES = ("latitude", "longitude", "place")
"""Kinds of labels that give positions of places."""

ROUNDING = 360 * float(np.finfo(np.float32).eps)
"""Tolerance in degrees for coordinates in single precision."""


@dataclass(frozen=True)
class Identity:
    """One way to identify the places along a dimension of an object."""

    name: str
    """Name of the coordinate or coordinates."""
    kind: Kind
    keys: pd.Index | FloatArray
    """Labels (n,) of n places, or k numbers of each place (n, k), such as latitude and longitude.
    Numbers that differ by rounding alone count as equal."""
    raw: pd.Index | None = None
    """Original lengths of time or months, for comparison with numbers without a unit."""
    own: bool = False
    """True for the labels along the dimension, False for another coordinate."""
    counts: bool = False
    """True for the labels 0, 1, 2, ... or 1, 2, 3, ..., which may only count the places."""

    @property
    def drop(self) -> list[str]:
        """Names of the coordinates that identify the places."""
        return self.name.split(" and ")

    def nearest(self, wanted: Identity, at: IntArray) -> bool:
        """Return whether the places nearest to ``wanted`` places are at the positions ``at``."""
        if self.kind not in PLACES:
            return False
        from scipy.spatial import cKDTree

        here, there = (np.nan_to_num(np.asarray(one.keys)) for one in (self, wanted))
        return bool(np.array_equal(cKDTree(here).query(there)[1], at))

    def positions(self, wanted: Identity) -> IntArray | None:
        """Return the position of each wanted place in this object; None unless all are found."""
        found = self.found(wanted)
        return None if found is None or (found < 0).any() else found

    def found(self, wanted: Identity) -> IntArray | None:
        """Return positions like :meth:`positions`, but -1 for places that are missing here.

        The result is None if the two identities cannot be compared.
        """
        bare = self.kind != wanted.kind and "number" in (self.kind, wanted.kind)
        if bare and self.name == wanted.name and {self.kind, wanted.kind} <= {*NUMBERS}:
            here, there = (one.keys if one.raw is None else one.raw for one in (self, wanted))
            return replace(self, kind="number", keys=here).found(
                replace(wanted, kind="number", keys=there)
            )
        if self.kind != wanted.kind or (self.kind in NUMBERS and self.name != wanted.name):
            return None
        if not isinstance(self.keys, pd.Index):
            return _nearest(self.keys, np.asarray(wanted.keys))
        labels = pd.Index(wanted.keys)
        if not (self.keys.is_unique and labels.is_unique):
            return None
        return np.asarray(self.keys.get_indexer(labels))


def is_angle(name: Hashable, label: xr.DataArray) -> bool:
    """Return whether a coordinate is a latitude or longitude, by its name or CF attributes."""
    return angle_of(name, label) is not None


def angle_of(name: Hashable, label: xr.DataArray) -> Literal["latitude", "longitude"] | None:
    """Return "latitude" or "longitude" by name or CF attributes; None for any other coordinate."""
    if LATITUDE.fits(name, label):
        return "latitude"
    return "longitude" if LONGITUDE.fits(name, label) else None


def names_place(name: Hashable, label: xr.DataArray) -> bool:
    """Return whether a coordinate names places, by its name or the CF attribute ``cf_role``."""
    return "cf_role" in label.attrs or str(name).lower() in PLACE_NAMES


def identities(obj: Labelled, dim: Hashable) -> list[Identity]:
    """Return ways to identify the places along a dimension, the most reliable way first.

    Dask coordinates are read only if labels do not identify the places.
    """
    own = replace(_labels(str(dim), obj[dim]), own=True) if dim in obj.indexes else None
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


def rearranged(given: Labelled, wanted: Labelled, dim: Hashable) -> IntArray | None:
    """Return the position in ``given`` of each place of ``wanted``, by numbers that both have.

    Station numbers, heights or distances identify the places along ``dim`` if both objects have the
    same numbers, each once. The result is None without such numbers, if ``given`` has a
    single place, or if two kinds of numbers give different positions.
    """
    numbers = [
        {n: c for n, c in o.coords.items() if c.dims == (dim,) and c.dtype.kind in "iuf"}
        for o in (wanted, given)
    ]
    found = {
        tuple(at)
        for name in numbers[0]
        if name != dim and name in numbers[1]
        for mine, theirs in [[_labels(str(name), each[name]) for each in numbers]]
        if not (mine.counts and theirs.counts) and (at := theirs.positions(mine)) is not None
    }
    return np.array(found.pop()) if len(found) == 1 and given.sizes[dim] > 1 else None


def naming(obj: xr.DataArray, dim: Hashable) -> dict[Hashable, xr.DataArray]:
    """Return the coordinates over ``dim`` alone that identify the places along ``dim``."""
    return {
        n: c
        for n, c in obj.coords.items()
        if c.dims == (dim,)
        if n == dim or names_place(n, c) or is_angle(n, c) or c.dtype.kind in "USOT"
    }


def comparable(mine: list[Identity], theirs: list[Identity]) -> list[tuple[Identity, Identity]]:
    """Return the pairs of identities that can be compared.

    Labels 0, 1, 2, ... may be mere row numbers, so they do not identify places. If both objects
    have other labels along the dimension, and these labels differ, only labels are compared. The
    reason: places with different labels are different places, even at one point.
    """
    pairs = [(a, b) for a in mine for b in theirs if b.found(a) is not None]
    labels = [(a, b) for a, b in pairs if a.own and b.own and not (a.counts or b.counts)]
    unlike = any(b.positions(a) is None for a, b in labels)
    return labels if unlike else pairs


def known_places(given: Labelled, wanted: xr.DataArray, dim: Hashable) -> IntArray | None:
    """Return the position in ``given`` of each place of ``wanted``, -1 where ``given`` lacks it.

    The result is None if nothing identifies the places.
    """
    pairs = comparable(identities(wanted, dim), identities(given, dim))
    found = [at for a, b in pairs if (at := b.found(a)) is not None]
    return max(found, key=lambda at: int((at >= 0).sum())) if found else None


def _labels(name: str, coordinate: xr.DataArray) -> Identity:
    """Return the text or numbers of a coordinate with one dimension, as an identity of places."""
    (dim,) = coordinate.dims
    index = coordinate.to_index() if dim == name else pd.Index(coordinate.to_numpy())
    if index.dtype.kind in "OSUT" and index.nlevels == 1 and not isinstance(index, xr.CFTimeIndex):
        return Identity(name, "text", pd.Index([text_of(label).strip("\0 ") for label in index]))
    seconds = seconds_of(coordinate)
    if seconds is not None and np.isfinite(seconds).all():
        micro = np.round(seconds * 1e6).astype(np.int64)
        return Identity(name, "length", pd.Index(micro), index)
    unit = unit_of_leads(coordinate)
    if unit in MONTHS and index.dtype.kind in "iuf":
        return Identity(name, "month", index * MONTHS[unit], index)
    first = index[0] if index.size and index.dtype.kind in "iu" else None
    counts = first in (0, 1) and np.array_equal(index, np.arange(first, first + index.size))
    return Identity(name, "number", index, counts=counts)


def _where(along: dict[Hashable, xr.DataArray], dim: Hashable) -> Identity | None:
    """Return the latitudes, longitudes or both along a dimension as an identity of places, or None.

    If the coordinates have a second dimension, the mean of the points along the second dimension
    identifies a position along ``dim``.
    """
    angles = {
        kind: c
        for n, c in along.items()
        if c.dtype.kind in "iuf" and c.ndim <= 2 and (kind := angle_of(n, c)) is not None
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
    """Return the position in ``given`` (p, k) of each row of ``wanted`` (n, k), -1 if missing.

    Rows are equal up to rounding. The result is None if values are missing, or if ``given`` has no
    rows or two equal rows.
    """
    from scipy.spatial import cKDTree

    if not (np.isfinite(given).all() and np.isfinite(wanted).all() and len(given)):
        return None
    tree, near = cKDTree(given), np.deg2rad(2 * ROUNDING)
    if tree.query_pairs(near):
        return None  # two places at one point
    apart, found = tree.query(wanted)
    return np.where(apart > near, -1, found)
