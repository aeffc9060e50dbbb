"""Values of a hindcast and of new forecasts that are missing beside others, or all that was seen.

:mod:`xrecal.inputs.missing` has the rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.missing import LEAST, MILLION, absurd_among, beyond, largest_of
from xrecal.chunks.blockwise import like, on_device
from xrecal.inputs.forms import VECTOR, Form
from xrecal.inputs.missing import warn_of_absurd, warn_of_customary
from xrecal.inputs.places import like_places
from xrecal.typing import FloatArray

from .fitted import FittedVariable

SEEN = "the largest that the model has seen"
"""Words for the values with which new ones are compared."""


def without_absurd(
    parts: Mapping[str, FloatArray],
    observed: Sequence[FloatArray],
    largest: FloatArray | None = None,
) -> tuple[dict[str, FloatArray], list[FloatArray], npt.NDArray[np.bool_]]:
    """Members (L, n, m) and observations (L, n), NaN where they are missing beside others.

    And whether locations (L,) have such values. They are compared with the ``largest`` (L,) that a
    model has seen, or with one another. Each array of vectors is judged alone, as their variables
    may have different units. Arrays of a GPU are left as they are.
    """
    own = [name for name in parts if name == "loc" or name.startswith(VECTOR)]
    arrays = [*(parts[name] for name in own), *observed]
    filled = namespace(arrays[0]).zeros(len(arrays[0]), dtype=bool)
    if namespace(arrays[0]) is not np:
        return dict(parts), list(observed), filled
    if own != ["loc"]:
        masks = tuple(absurd_among(a)[0] for a in arrays)
    elif largest is None:
        masks = absurd_among(*arrays)
    else:
        masks = tuple(beyond(a, largest.reshape(-1, *[1] * (a.ndim - 1))) for a in arrays)
    for place, mask in enumerate(masks):
        if mask.any():
            arrays[place] = np.where(mask, arrays[place].dtype.type(np.nan), arrays[place])
            filled |= mask.reshape(len(mask), -1).any(-1)
    cleaned = {**parts, **dict(zip(own, arrays, strict=False))}
    return cleaned, arrays[len(own) :], filled


def without_unseen(
    parts: Mapping[str, FloatArray], state: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Parts (L, T, m) of new forecasts, NaN where missing beside all that the fit has seen.

    Each forecast is judged alone, so that it does not matter which are asked for together. Arrays
    of a GPU are left as they are.
    """
    cleaned = dict(parts)
    for name, part in parts.items():
        if name not in ("loc", "scale") and not name.startswith(VECTOR):
            continue
        if namespace(part) is np and largest_of(part[np.newaxis])[0] > LEAST:
            own = name if name.startswith(VECTOR) else "loc"
            seen = [state[n] for n in (own, *(["observations"] * (own == "loc"))) if n in state]
            mask = beyond(part, largest_of(*seen)[:, np.newaxis, np.newaxis])
            cleaned[name] = np.where(mask, part.dtype.type(np.nan), part)
    return cleaned


def largest_seen(fitted: FittedVariable) -> xr.DataArray:
    """Largest absolute value of the members and observations of a fit at each of its locations.

    Zero on a GPU, where nothing is searched.
    """
    names = (fitted.members, "observations")
    seen = [fitted.state[name] for name in names if name in fitted.state]
    sizes = {d: fitted.state.sizes[d] for d in fitted.locations}
    shape, dims = tuple(sizes.values()), list(sizes)
    if on_device(seen[0]):
        return like(xr.DataArray(np.zeros(shape), dims=dims), seen[0])
    if all(isinstance(array.variable._data, np.ndarray) for array in seen):
        flat = [
            a.variable.transpose(*dims, ...).to_numpy().reshape(math.prod(shape), -1) for a in seen
        ]
        return xr.DataArray(largest_of(*flat).reshape(shape), dims=dims)
    largest: list[xr.DataArray] = []
    for array in seen:
        others = [n for n, c in array.coords.items() if not {*c.dims} <= {*fitted.locations}]
        bare = array.drop_vars(others)
        over = [d for d in array.dims if d not in fitted.locations]
        largest += [abs(bare.max(over)), abs(bare.min(over))]
    whole = largest[0].fillna(0.0)
    for each in largest[1:]:
        whole = whole.where(whole >= each.fillna(0.0), each)
    return whole


def warn_of_unseen(forecasts: Iterable[tuple[Form, FittedVariable]]) -> None:
    """Warn of members in memory that are missing beside all that the fit has seen, or may be."""
    for form, fitted in forecasts:
        if isinstance(form.loc.data, np.ndarray):
            name = "forecast" if form.name is None else f"forecast[{form.name!r}]"
            known = without_unseen_values(form.loc, fitted)
            if known.chunks is None:
                found = form.loc.data[np.isnan(known.data) & ~np.isnan(form.loc.data)]
                warn_of_absurd(found, name=name, beside=SEEN)
                warn_of_customary({name: known.data})


def warn_of_unseen_values(observed: xr.DataArray, known: xr.DataArray) -> None:
    """Warn of observations in memory that are missing beside all that was seen, or may be."""
    given = (
        np.broadcast_to(observed.to_numpy(), known.shape) if observed.dims == known.dims else None
    )
    if given is not None:
        found = given[np.isnan(known.data) & ~np.isnan(given)]
        warn_of_absurd(found[:0], found, name="forecast", beside=SEEN)
    warn_of_customary({"observations": known.data})


def without_unseen_values(values: xr.DataArray, fitted: FittedVariable) -> xr.DataArray:
    """Members or observations, NaN where missing beside all that a fit has seen at their place.

    Values in memory of which none is that large are returned as they are.
    """
    in_memory = isinstance(values.data, np.ndarray)
    if in_memory and largest_of(values.data[np.newaxis])[0] <= LEAST:
        return values
    if on_device(values):
        return values
    seen = largest_seen(fitted)
    seen = like_places(seen, values, seen.dims, names=("values", "the model"), select=True)
    seen = seen.drop_vars(list(seen.coords))  # whose spelling may be another
    sizes = abs(values)
    absurd = (seen > 0) & (sizes > LEAST) & (sizes < np.inf) & (sizes > MILLION * seen)
    return values.where(~absurd).transpose(*values.dims, ...)
