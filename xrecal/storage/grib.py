"""Reading of GRIB files with cfgrib; the Datasets have the names that cfgrib gives.

xrecal reads the headers of all messages once. It neither reads nor writes cfgrib's index files,
because they are pickles of Python, which can run code. cfgrib has no dimension of percentiles, so
xrecal passes percentiles to cfgrib as numbers of members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

SUFFIXES = (".grib", ".grib2", ".grb", ".grb2")

PERCENTILES, PROBABILITIES = (6, 10), (5, 9)
"""Numbers of templates in WMO's table 4.0: first for a point in time, then for an interval."""

TEMPLATE = "productDefinitionTemplateNumber"

_OWN = ("time", "step", "forecastMonth", "percentileValue", "cfVarName", TEMPLATE)
_GROUPED = ("paramId", "typeOfLevel", "stepType", TEMPLATE)
_COORDINATES = ("number", "time", "level:float", "directionNumber", "frequencyNumber")
_SEVERAL = ("dataType", "stepUnits")  # of control and perturbed members, of short and long steps


def is_grib(path: Path) -> bool:
    """Return whether a path has a suffix of GRIB files."""
    return path.suffix.lower() in SUFFIXES


class Field(Mapping[str, Any]):
    """A message of a file: its header is in memory, and all else is read when it is needed."""

    def __init__(self, stream: Any, place: Any, header: dict[str, Any]) -> None:
        self.stream, self.place, self.header = stream, place, header

    def __getitem__(self, key: str) -> Any:
        return self.header[key] if key in self.header else self.message[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.header)

    def __len__(self) -> int:
        return len(self.header)

    @property
    def message(self) -> Any:
        """The whole message, as cfgrib reads it."""
        return self.stream[self.place]


def fields_of(path: Path) -> list[Field]:
    """Read the headers of all messages of a file.

    Raises
    ------
    EOFError
        If there is no message, or the last message is cut off.
    """
    from cfgrib.cfmessage import COMPUTED_KEYS
    from cfgrib.dataset import INDEX_KEYS
    from cfgrib.messages import ComputedKeysAdapter, FileStream

    stream = FileStream(str(path), errors="raise")
    fields = []
    for place, message in stream.items():
        whole = ComputedKeysAdapter(message, COMPUTED_KEYS)
        header = {key: _value(whole, key) for key in {*INDEX_KEYS, *_OWN}}
        if header[TEMPLATE] in PERCENTILES:
            header["number"] = header["percentileValue"]
        fields.append(Field(stream, place, header))
    return fields


def _value(message: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key; if the message lacks the key, return cfgrib's mark "undef"."""
    try:
        return message[key]
    except KeyError:
        return "undef"


def open_grib(path: Path) -> xr.Dataset:
    """Open the variables of a GRIB file; values are read when they are needed.

    Raises
    ------
    ValueError
        If the file holds probabilities of events, several grids, or a variable twice.
    """
    groups: dict[tuple[Any, ...], list[Field]] = {}
    fields = fields_of(path)
    for field in fields:
        groups.setdefault(tuple(field[key] for key in _GROUPED), []).append(field)
    if len({field["md5GridSection"] for field in fields}) > 1:
        raise ValueError(
            "it has fields on several grids; write the fields of each grid to a separate file, "
            "with grib_copy -w"
        )
    parts: dict[str, tuple[xr.Dataset, tuple[Any, ...]]] = {}
    for key, group in groups.items():
        part = _opened(group)
        for name in map(str, part.data_vars):
            if name in parts:
                pairs = zip(_GROUPED, parts[name][1], key, strict=True)
                what, one, other = next(pair for pair in pairs if pair[1] != pair[2])
                raise ValueError(
                    f"it has {name!r} with {what}={one} and {what}={other}; write one of them to a "
                    f"file of its own: grib_copy -w {what}={one} {path.name} new.grib"
                )
            parts[name] = part, key
    return _merged([part for part, _ in parts.values()])


def _opened(fields: list[Field]) -> xr.Dataset:
    """Open one variable with cfgrib; leads of seasonal forecasts are numbers of months."""
    template = fields[0][TEMPLATE]
    if template in PROBABILITIES:
        raise ValueError(
            "it holds probabilities of events, which no command reads, as GRIB does not state "
            "whether they are per cent"
        )
    by_month = all(field["forecastMonth"] != "undef" for field in fields)
    lead = "forecastMonth" if by_month else "step"
    places = {tuple(field[key] for key in (*_COORDINATES, lead)) for field in fields}
    if len(places) < len(fields):
        raise ValueError(
            f"{len(fields)} fields of {fields[0]['cfVarName']!r} have only {len(places)} different "
            "combinations of member, time and level; write fields that belong together to a file "
            "of their own, with grib_copy -w"
        )
    opened = xr.open_dataset(
        dict(enumerate(fields)),  # type: ignore[arg-type]
        engine="cfgrib",
        decode_timedelta=False,
        ignore_keys=_SEVERAL,
        time_dims=("time", lead),
        squeeze=False,
        errors="raise",
    )
    del opened.attrs["history"]  # the time of opening
    if template not in PERCENTILES:
        return opened
    opened = opened.rename(number="percentile")
    described = {"long_name": "percentile", "units": "%"}
    return opened.assign_coords(percentile=("percentile", opened["percentile"].data, described))


def _merged(parts: list[xr.Dataset]) -> xr.Dataset:
    """Merge variables; a level, member or step that all of them share becomes a scalar.

    If a variable lacks steps, starts or members that other variables have, its values there are
    NaN.
    """
    levels = {array.attrs.get("GRIB_typeOfLevel") for part in parts for array in part.values()}
    levels -= {d for part in parts for d, size in part.sizes.items() if size > 1}
    parts = [part.squeeze([d for d in part.dims if d in levels]) for part in parts]
    scalars = [{d: float(part[d]) for d in levels if d in part.coords} for part in parts]
    if any(one != scalars[0] for one in scalars):
        parts = [part.drop_vars(levels, errors="ignore") for part in parts]
    try:
        whole = xr.merge(parts, join="exact", compat="equals", combine_attrs="override")
    except xr.AlignmentError:
        lazy = [part.drop_vars("valid_time", errors="ignore").chunk() for part in parts]
        whole = xr.merge(lazy, join="outer", compat="equals", combine_attrs="override")
    scalar = [d for d in ("number", "step", "forecastMonth") if whole.sizes.get(d) == 1]
    return whole.squeeze(scalar)
