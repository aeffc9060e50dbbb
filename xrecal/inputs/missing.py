"""Find missing values of forecasts and observations: declared values, and absurdly large values.

A value is missing if it is NaN or equals the ``_FillValue`` or ``missing_value`` of its variable.
An absurdly large value is missing, too: its absolute value is above 900, and more than a million
times the largest absolute value among other values. No value is absurd if all other values are 0.
The call decides which values are the other values. In a call with a model, they are all values that
the model has seen. In a fit, they are the members and observations of the same place. In any other
call, they are all values if the values are in memory, and the values of the same case if the values
are lazy. So results do not depend on chunks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.distributions.missing import LEAST, absurd_among, largest_of
from xrecal.chunks.blockwise import is_lazy, on_device, require_one_chunk
from xrecal.chunks.run import Named, run
from xrecal.chunks.warnings import warn_of_missing, warn_once
from xrecal.typing import FloatArray

DECLARING = ("_FillValue", "missing_value")
"""Attributes, or entries of the encoding, that declare missing values."""

PACKED = ("scale_factor", "add_offset")
"""If the encoding has one of these keys, the declared missing values are packed numbers of the
file, so no array in memory contains them."""

CUSTOMARY = (
    99.0, 99.9, 99.99, 999.0, 999.9, 999.99, 9999.0, 9999.9, 99999.0, 999999.0, 32767.0, 32768.0,
    2147483647.0, 2147483648.0, 1e10, 1e15, 1e19, 1e20, 1e30, 1e36, 9.969209968386869e36,
)  # fmt: skip
"""Numbers, of either sign, that often mark missing values."""

OTHERS = "all others"
"""Words that warnings use for the values with which a large value is compared."""

MEMBERS = "xrecal_member"
"""Dimension of the members in a task, the computation for one chunk."""


def require_readable(array: xr.DataArray, *, name: str) -> None:
    """Raise TypeError or ValueError for an array with which xrecal cannot compute.

    Names must be text, because xarray takes numbers for positions. Dimensions must have known
    lengths. Labels must have the byte order of this machine, and values the type float32 or
    float64.
    """
    for label in (n for n in (*array.dims, *array.coords) if not isinstance(n, str)):
        raise TypeError(
            f"{name} has a dimension or coordinate named {label!r}, which is not text; use "
            f"{name}.rename({{{label!r}: 'some_name'}})"
        )
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name} has dtype {array.dtype}; recalibration needs float32 or float64: "
            f"{name}.astype('float64')"
        )
    for dim in (d for d, n in array.sizes.items() if n != n):
        raise ValueError(
            f"Dask does not know the length of {name} along {dim!r}; use "
            f"{name}.copy(data={name}.data.compute_chunk_sizes())"
        )
    for dim, dtype in ((d, index.dtype) for d, index in array.indexes.items()):
        if isinstance(dtype, np.dtype) and not dtype.isnative:
            native = f"{name}[{dim!r}].astype({dtype.newbyteorder('=').name!r})"
            raise TypeError(
                f"labels along {dim!r} of {name} have dtype {dtype}, the byte order of another "
                f"machine; use {name}.assign_coords({dim}={native})"
            )


def read_values(array: xr.DataArray, *, name: str) -> xr.DataArray:
    """Return a readable array, with NaN for values that its variable declares as missing.

    Raises
    ------
    TypeError or ValueError
        If the array is not readable; see :func:`require_readable`.
    """
    require_readable(array, name=name)
    return without_declared(array)


def without_declared(array: xr.DataArray) -> xr.DataArray:
    """Return an array with NaN for values that its variable declares as missing."""
    declared = _declared(array)
    if not declared.size or array.dtype.kind != "f":
        return array
    if is_lazy(array):
        known: xr.DataArray = xr.apply_ufunc(
            _without_values,
            array,
            kwargs={"declared": declared},
            dask="parallelized",
            output_dtypes=[array.dtype],
            keep_attrs="override",
        )
        return known
    if not isinstance(array.data, np.ndarray) or not _equal(array.data, declared).any():
        return array
    return array.copy(data=_without_values(array.data, declared))


def _declared(array: xr.DataArray) -> FloatArray:
    """Return the numbers that a variable declares as missing."""
    encoding = {} if any(key in array.encoding for key in PACKED) else array.encoding
    given = [where[key] for where in (array.attrs, encoding) for key in DECLARING if key in where]
    numbers = [each for each in map(np.ravel, given) if each.dtype.kind in "iuf"]
    known = np.concatenate([np.empty(0), *numbers])
    return np.asarray(known[~np.isnan(known)], np.float64)


def _equal(values: FloatArray, declared: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark values that equal a declared value, also after rounding to single precision."""
    with np.errstate(over="ignore"):
        single, rounded = values.astype(np.float32), declared.astype(np.float32)
    same = np.isin(single, rounded) & np.isfinite(single)
    return np.asarray(same | np.isin(values, declared))


def _without_values(values: FloatArray, declared: FloatArray) -> FloatArray:
    return _without(values, _equal(values, declared))


def known_values(
    loc: xr.DataArray, observed: xr.DataArray | None, member_dim: Any, *, name: str = "forecast"
) -> tuple[xr.DataArray, ...]:
    """Return members, and observations if given, with NaN for absurdly large values.

    The function compares values in memory with all other values, and warns with the number of
    absurd values. It compares lazy values with other values of the same case. It does not change
    arrays on a GPU.
    """
    given = (loc,) if observed is None else (loc, observed)
    if any(map(on_device, given)):
        return given
    in_memory = [isinstance(a.variable._data, np.ndarray) for a in given]
    here = tuple(a for a, there in zip(given, in_memory, strict=True) if there)
    known = iter(_known_in_memory(here, name) if here else ())
    if not any(map(is_lazy, given)) or not all({*a.dims} <= {*loc.dims} for a in given):
        # Members shared by many cases come from a recalibrated forecast.
        return tuple(next(known) if there else a for a, there in zip(given, in_memory, strict=True))
    require_one_chunk(loc, (member_dim,), name=name)
    members = loc.drop_vars(member_dim, errors="ignore").rename({member_dim: MEMBERS})
    cut = {d: sizes for d, sizes in members.variable.chunksizes.items() if d != MEMBERS}
    others = [a.chunk({d: n for d, n in cut.items() if d in a.dims}) if cut else a for a in given]
    inside: dict[Hashable, int] = {MEMBERS: loc.sizes[member_dim]}
    sizes = [inside, {}][: len(given)]
    arrays = zip((members, *others[1:]), sizes, strict=True)
    cleaned = run(
        _known_of_cases,
        {"given": {i: (array, tuple(own)) for i, (array, own) in enumerate(arrays)}},
        {i: (own, a.dtype) for i, (own, a) in enumerate(zip(sizes, given, strict=True))},
        what="the search for missing values",
    )
    own = cleaned[0].rename({MEMBERS: member_dim}).transpose(*loc.dims)
    result = [next(known) if in_memory[0] else loc.copy(data=own.data)]
    for i, (a, there) in enumerate(zip(given[1:], in_memory[1:], strict=True), 1):
        values = cleaned[i]
        ordered = values.transpose(*[d for d in loc.dims if d in values.dims])
        named = ordered.assign_attrs(a.attrs).rename(a.name)
        result.append(next(known) if there else named)
    return tuple(result)


def _known_in_memory(given: tuple[xr.DataArray, ...], name: str) -> tuple[xr.DataArray, ...]:
    """Return members, and observations if given, with NaN for absurd values; warn about these."""
    arrays = [a.to_numpy() for a in given]
    found = absurd_among(*(a.reshape(1, -1) for a in arrays))
    masks = [mask.reshape(a.shape) for mask, a in zip(found, arrays, strict=True)]
    names = (name, "observations")
    if not any(mask.any() for mask in masks):
        warn_of_customary(dict(zip(names, arrays, strict=False)))
        return given
    absurd = [a[mask] for a, mask in zip(arrays, masks, strict=True)]
    warn_of_absurd(absurd[0], *absurd[1:], name=name, beside=OTHERS)
    cleaned = [_without(a, mask) for a, mask in zip(arrays, masks, strict=True)]
    warn_of_customary(dict(zip(names, cleaned, strict=False)))
    return tuple(a.copy(data=values) for a, values in zip(given, cleaned, strict=True))


def _known_of_cases(given: Named) -> Named:
    """Return m members (L, m) and the observation (L,) of L cases, with NaN for absurd values."""
    from xrecal.arrays.distributions.missing import absurd_among

    if max(largest_of(a[np.newaxis])[0] for a in given.values()) <= LEAST:
        return given
    masks = absurd_among(*(a.reshape(len(a), -1) for a in given.values()))
    return {
        i: _without(a, mask.reshape(a.shape))
        for (i, a), mask in zip(given.items(), masks, strict=True)
    }


def _without(values: FloatArray, mask: npt.NDArray[np.bool_]) -> FloatArray:
    return np.where(mask, values.dtype.type(np.nan), values)


def warn_of_absurd(members: FloatArray, *observed: FloatArray, name: str, beside: str) -> None:
    """Warn about values in memory that count as missing; do nothing without such values."""
    values = np.concatenate([members, *observed])
    if values.size:
        counted = [
            f"{members.size} members of {name}",
            *(f"{a.size} observations" for a in observed),
        ]
        warn_of_missing(values, " and ".join(counted), beside, name)


def warn_of_customary(arrays: Mapping[str, npt.NDArray[Any]], missing: npt.ArrayLike = ()) -> None:
    """Warn about numbers in memory that often mark missing values and are far from other values.

    Such numbers do not count as missing, because no variable declares them: a flow can be
    9999 m³/s. The function does not warn about values in ``missing``, which count as missing.
    """
    for name, values in arrays.items():
        found = {v: n for v, n in customary(values).items() if v not in np.asarray(missing)}
        if found:
            told = ", ".join(f"{value:.7g} ({count} times)" for value, count in found.items())
            numbers = " & ".join(f"({name} != {value:.7g})" for value in found)
            numbers = numbers if len(found) > 1 else numbers[1:-1]
            warn_once(
                f"{name} holds {told}, far from all other values; such numbers often mark missing "
                f"values. If so, use {name}.where({numbers})"
            )


def customary(values: npt.NDArray[Any]) -> dict[float, int]:
    """Count each number that often marks missing values and is far from all other values.

    Far means a distance of more than half the range of the other values. A number does not count
    if it is at least as frequent as all other values together.
    """
    if values.dtype.kind != "f" or not values.size:
        return {}
    wanted = np.array([sign * v for v in CUSTOMARY for sign in (-1, 1)]).astype(values.dtype)
    low, high = (float(f.reduce(values, axis=None)) for f in (np.fmin, np.fmax))
    if not np.isin(np.array([low, high], values.dtype), wanted).any():
        return {}
    customary = np.isin(values, wanted)
    others = values[~customary & np.isfinite(values)]
    if not others.size:
        return {}
    least, most = float(others.min()), float(others.max())
    half = (most - least) / 2
    each, counts = np.unique(values[customary], return_counts=True)
    return {
        float(value): int(count)
        for value, count in zip(each, counts, strict=True)
        if (value < least - half or value > most + half) and count < others.size
    }
