"""Conversion of variables to types that all formats store, and back without loss."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import xarray as xr

from xrecal.inputs.dims import text_of

from .settings import decode, encode
from .untrusted import read_json, require_small, to_json

RECORD = "xrecal_variables"
"""Attribute of a file with the original type of each of its variables."""

_KINDS = re.compile(
    r"(float|u?int)\d{1,3}|[<>]?[iuf]\d|bool|object|[<>]?U\d{1,5}"
    r"|(datetime64|timedelta64)\[(s|ms|us|ns)\]|cftime \w{1,30} [01]"
)
"""Allowed original types: names of types of NumPy, and calendars of cftime."""

_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_CFTIME_UNITS = "microseconds since 1970-01-01"
_MEANT_FOR_FILES = {"missing_value", "scale_factor", "add_offset", "coordinates", "dtype"}


def to_plain(dataset: xr.Dataset) -> xr.Dataset:
    """Convert variables to numbers and text; record the original types in the attribute ``RECORD``.

    The result has no encodings of the inputs (packing, fill values), so nothing is rounded.

    Raises
    ------
    TypeError
        If the type of labels or attributes cannot be stored.
    ValueError
        If a name is not text, or contains a slash.
    """
    levels = {
        str(d): [str(name) for name in dataset.indexes[d].names]
        for d in dataset.dims
        if dataset.indexes.get(d, None) is not None and dataset.indexes[d].nlevels > 1
    }
    dataset = dataset.reset_index(list(levels)) if levels else dataset
    for name in {*dataset.dims, *dataset.variables}:
        if not isinstance(name, str) or "/" in name:
            raise ValueError(
                f"the name {name!r} cannot be stored: files take text without a slash; rename it "
                "in the hindcast, fit and save again"
            )
    record: dict[str, Any] = {}
    plain: dict[str, xr.Variable] = {}
    for label, variable in dataset.variables.items():
        name = str(label)
        plain[name], kind = _plain(variable, name)
        record[name] = {
            "dims": list(variable.dims),
            "kind": kind,
            "coordinate": name in dataset.coords,
            "attrs": encode(dict(variable.attrs), f"an attribute of {name!r}"),
        }
    text = to_json({"variables": record, "levels": levels}, "attributes of the variables")
    coords = {name: plain[name] for name in plain if name in dataset.dims}
    rest = {name: plain[name] for name in plain if name not in coords}
    return xr.Dataset(rest, coords, attrs={**dataset.attrs, RECORD: text})


def from_plain(dataset: xr.Dataset) -> xr.Dataset:
    """Undo :func:`to_plain`; lazy variables stay lazy.

    Raises
    ------
    ValueError
        If variables of the record are missing, or have other dimensions or types.
    """
    text = read_json(dataset.attrs[RECORD])
    record = text["variables"]
    missing = [name for name in record if name not in dataset.variables]
    if missing:
        raise ValueError(f"the variables {missing} are missing")
    variables: dict[str, xr.Variable] = {}
    for name, described in record.items():
        variable = dataset.variables[name]
        if list(variable.dims) != described["dims"]:
            raise ValueError(
                f"the variable {name!r} has the dimensions {list(variable.dims)} in place of "
                f"{described['dims']}"
            )
        try:
            variables[name] = _restored(variable, described["kind"], decode(described["attrs"]))
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{name!r} cannot be restored: {error}") from error
    coords = {name: v for name, v in variables.items() if record[name]["coordinate"]}
    attrs = {name: value for name, value in dataset.attrs.items() if name != RECORD}
    whole = xr.Dataset({n: v for n, v in variables.items() if n not in coords}, coords, attrs)
    return whole.set_index(text["levels"]) if text["levels"] else whole


def _plain(variable: xr.Variable, name: str) -> tuple[xr.Variable, str]:
    """Return a variable as numbers or text, and its original type."""
    attrs = {k: v for k, v in variable.attrs.items() if isinstance(k, str) and _is_plain(k, v)}
    dtype, kind, data = variable.dtype, str(variable.dtype), variable.data
    if dtype.kind == "M" and not isinstance(dtype, np.dtype):  # with a time zone
        raise TypeError(f"{name!r} holds {dtype}, which cannot be stored; use numbers, dates, text")
    if dtype.kind in "mM":
        unit = np.datetime_data(dtype)[0]
        since = " since 1970-01-01" if dtype.kind == "M" else ""
        data, attrs["units"] = variable.to_numpy().astype(np.int64), _UNITS[unit] + since
        if since:
            attrs["calendar"] = "proleptic_gregorian"
    elif dtype == np.float16:  # netCDF has no type for half precision
        data = data.astype(np.float32)
    elif dtype.kind == "b":
        data = data.astype(np.int8)
    elif dtype.kind in "UOTS":
        data, kind, more = _plain_objects(variable.to_numpy(), name)
        attrs |= more
    elif dtype.kind not in "iuf":
        raise TypeError(f"{name!r} holds {dtype}, which cannot be stored; use numbers, dates, text")
    return xr.Variable(variable.dims, data, attrs, {"_FillValue": None}), kind


def _plain_objects(values: Any, name: str) -> tuple[Any, str, dict[str, Any]]:
    """Convert bytes to text, and dates of a calendar to numbers; leave text unchanged."""
    kind = "object" if values.dtype.kind in "TS" else str(values.dtype)
    values = values.astype(object)
    for at, value in np.ndenumerate(values):
        if isinstance(value, bytes):
            values[at] = text_of(value)
    if all(isinstance(value, str) for value in values.flat):
        return values, kind, {}
    if not all(hasattr(value, "calendar") for value in values.flat):
        odd = next(v for v in values.flat if not (isinstance(v, str) or hasattr(v, "calendar")))
        raise TypeError(
            f"labels of {name!r} are of the type {type(odd).__name__}, which cannot be stored; use "
            "numbers, dates or text"
        )
    import cftime

    calendar, year_zero = values.flat[0].calendar, values.flat[0].has_year_zero
    numbers = cftime.date2num(values, _CFTIME_UNITS, calendar, has_year_zero=year_zero)
    described = {"units": _CFTIME_UNITS, "calendar": calendar}
    return numbers.astype(np.int64), f"cftime {calendar} {int(year_zero)}", described


def _restored(variable: xr.Variable, kind: str, attrs: dict[str, Any]) -> xr.Variable:
    """Restore the original type and attributes of a variable."""
    if not _KINDS.fullmatch(kind):
        raise ValueError(f"the type {kind!r:.60} is not known")
    if kind[0] in "fiu" and kind != "float16":  # stored as float32
        if variable.dtype.newbyteorder("=") != np.dtype(kind):
            raise ValueError(f"it holds {variable.dtype} in place of {kind}")
        same = variable.copy(deep=False)
        same.attrs, same.encoding = attrs, {}
        return same
    require_small("it", variable)
    data = variable.to_numpy()
    if not kind.startswith("cftime"):
        return xr.Variable(variable.dims, data.astype(kind), attrs)
    import cftime

    _, calendar, year_zero = kind.split()
    dates = cftime.num2date(
        data,
        _CFTIME_UNITS,
        calendar,
        only_use_cftime_datetimes=True,
        has_year_zero=bool(int(year_zero)),
    )
    return xr.Variable(variable.dims, dates, attrs)


def _is_plain(name: str, value: object) -> bool:
    """Return whether all formats store an attribute unchanged, and none uses it for decoding."""
    array = np.asarray(value) if isinstance(value, (list, tuple, np.ndarray)) else None
    listed = array is not None and array.dtype.kind in "iuf" and array.ndim == 1
    single = isinstance(value, (str, int, float, np.number)) and not isinstance(value, bool)
    return (listed or single) and name not in _MEANT_FOR_FILES and not name.startswith("_")
