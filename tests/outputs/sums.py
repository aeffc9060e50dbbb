"""Outputs in a few numbers, which are stored, and as sums of all their bytes."""

import hashlib
import re
import warnings
from collections.abc import Iterator
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .groups import BY_ROUNDING, groups

STORED = Path(__file__).parent.with_suffix(".json")
N_SHOWN = 5
"""Numbers that are stored of each variable."""

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


def summary(output: Any) -> list[Any]:
    """What is stored of an output: dimensions, type, number of NaN, sum, and some of its values.

    The name of its exception alone if it is refused; no values if they are no numbers.
    """
    if isinstance(output, Exception):
        return [type(output).__name__]
    if output is None or isinstance(output, str):
        return ["text", output]
    values = output.to_numpy()
    kind, sizes = values.dtype.kind, " ".join(f"{d}={n}" for d, n in output.sizes.items())
    if kind not in "fiub" or not values.size:
        return [sizes, kind]
    flat = values.ravel().astype(np.float64)
    picked = flat[np.linspace(0, flat.size - 1, min(N_SHOWN, flat.size)).astype(int)]
    total = rounded(flat[np.isfinite(flat)].sum())
    return [sizes, str(values.dtype), int(np.isnan(flat).sum()), total, *map(rounded, picked)]


def found(group: str) -> dict[str, list[Any]]:
    """What would be stored of a group."""
    told = {n: summary(output) for n, output in made_by(group) if not UNSTORED.match(n)}
    return {name: parts[:2] for name, parts in told.items()} if group in BY_ROUNDING else told


def rounded(value: float) -> float | str:
    """Ten digits; as text if it is not finite, which JSON does not know."""
    return float(f"{value:.10g}") if np.isfinite(value) else str(value)


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
