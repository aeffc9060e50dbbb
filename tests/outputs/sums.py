"""Outputs of a group in a row of numbers, which is stored, and as sums of all their bytes."""

import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from .groups import BY_ROUNDING, groups

STORED = Path(__file__).parent.with_suffix(".txt")

GOLDEN = (5**0.5 - 1) / 2
"""Step between weights, irrational, so that no weight comes twice."""

STATE = re.compile(r"(?:[^:@]*\.)?(?:model|state|repr)(?=[:@]|$)")
"""Names of outputs that show the layout of a model: its state and how it prints."""
UNSTORED = re.compile(r"(?:[^:@]*\.)?(?:state|repr)(?=[:@]|$)|.*@")
"""Names of outputs that are left to the sums of all bytes: layouts of models, and coordinates."""


def parts_of(name: str, output: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of an output with their coordinates, and its texts and exceptions, named."""
    if isinstance(output, xr.DataArray):
        yield name, output
        yield from coordinates_of(name, output)
    elif isinstance(output, xr.Dataset):
        for v, variable in output.data_vars.items():
            yield f"{name}:{v}", variable.reset_coords(drop=True)
        yield from coordinates_of(name, output)
        attrs = {str(k): str(v) for k, v in output.attrs.items() if not str(k).startswith("xrecal")}
        yield f"{name}@attributes", str(sorted(attrs.items()))
    elif isinstance(output, dict):
        for v, variable in output.items():
            yield from parts_of(f"{name}:{v}", variable)
    elif isinstance(output, list):
        yield from parts_of(name, dict(enumerate(output)))
    elif output is None or isinstance(output, str | Exception):
        yield name, output
    elif isinstance(output, Number):
        yield name, xr.DataArray(output)
    else:
        raise TypeError(f"{name} is a {type(output).__name__}")


def coordinates_of(name: str, output: xr.DataArray | xr.Dataset) -> Iterator[tuple[str, Any]]:
    for c, coord in output.coords.items():
        yield f"{name}@{c}", coord.reset_coords(drop=True)


def made_by(group: str) -> Iterator[tuple[str, Any]]:
    """Parts of the outputs of a group, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, output in groups()[group]():
            yield from parts_of(name, output)


class Row(NamedTuple):
    """The stored numbers of a group."""

    outputs: int
    layout: str
    """A sum of the names of outputs, their sizes and types, and texts."""
    missing: int
    """Number of NaN."""
    crps: float
    """Mean of the first output of this name; NaN where there is none."""
    total: float
    """Sum over outputs of the weighted means of their values, in parts of their mean size; NaN for
    groups that rounding decides."""
    single: bool = False
    """Whether some output is in single precision; not stored."""


def row(group: str) -> Row:
    """What would be stored of a group."""
    named = {name: output for name, output in made_by(group) if not UNSTORED.match(name)}
    layout, n_missing, crps, total, single = hashlib.sha256(), 0, np.nan, 0.0, False
    for name, output in named.items():
        layout.update(f"{name} {_layout(output)}\n".encode())
        if not isinstance(output, xr.DataArray) or output.dtype.kind not in "fiub":
            continue
        values = output.to_numpy().ravel().astype(np.float64)
        single |= output.dtype == np.float32
        n_missing += int(np.isnan(values).sum())
        if name.endswith("crps") and np.isnan(crps):
            crps = float(values[np.isfinite(values)].mean())
        total += _weighted(values)
    if group in BY_ROUNDING:
        n_missing, crps, total = 0, np.nan, np.nan
    return Row(len(named), layout.hexdigest()[:8], n_missing, crps, total, bool(single))


def _layout(output: Any) -> str:
    """The sizes and the type of numbers, a text, or the name of an exception."""
    if isinstance(output, xr.DataArray):
        return f"{dict(output.sizes)} {output.dtype if output.dtype.kind in 'fiub' else 'text'}"
    return type(output).__name__ if isinstance(output, Exception) else str(output)


def _weighted(values: npt.NDArray[np.float64]) -> float:
    """Sum of finite values with weights that differ, in parts of the sum of their sizes."""
    weights = 0.5 + np.arange(values.size) * GOLDEN % 1
    known = np.isfinite(values)
    size = np.abs(values[known]).sum()
    return float(weights[known] @ values[known] / size) if size else 0.0


def written(rows: Mapping[str, Row]) -> str:
    """Rows of groups as the table that is stored."""
    lines = [("group", *Row._fields[:-1])]
    lines += [(name, *map(_cell, one[:-1])) for name, one in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ((name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])) for name, *cells in lines)
    return "".join("  ".join(line) + "\n" for line in table)


def _cell(value: Any) -> str:
    return f"{value:.9f}" if isinstance(value, float) else str(value)


def stored() -> dict[str, Row]:
    """Rows of all groups that are stored."""
    rows = {}
    for line in STORED.read_text().splitlines()[1:]:
        name, outputs, layout, missing, crps, total = line.split()
        rows[name] = Row(int(outputs), layout, int(missing), float(crps), float(total))
    return rows


def digest(output: Any) -> str:
    """A sum of all that an output holds, with attributes but for its history."""
    if isinstance(output, Exception):
        output = f"{type(output).__name__}: {output}"
    if output is None or isinstance(output, str):
        return hashlib.sha256(str(output).encode()).hexdigest()
    values = np.ascontiguousarray(output.to_numpy())
    attrs = {str(k): str(v) for k, v in output.attrs.items() if k != "history"}
    told = f"{output.dims} {output.shape} {values.dtype.kind} {sorted(attrs.items())}"
    if values.dtype.kind in "OUT":
        raw = repr(values.tolist()).encode()
    else:
        told += f" {values.dtype}"
        values = np.where(np.isnan(values), np.nan, values) if values.dtype.kind == "f" else values
        raw = values.astype(output.dtype).tobytes()
    return hashlib.sha256(told.encode() + raw).hexdigest()
