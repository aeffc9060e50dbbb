"""Pooling: one fit learns from the cases of several locations, if each has too few cases.

:func:`read_pool` reads the argument of the user. :class:`PooledTask` then joins the cases of
locations, for some fits at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.dispatch import namespace
from xrecal.chunks.run import OF_PLACE, Named, Task, run
from xrecal.inputs.forms import Form
from xrecal.inputs.identities import naming
from xrecal.inputs.pool import Pool, PoolOver
from xrecal.typing import IntArray

from .fitted import CASE

DATE = "xrecal_date"
"""Dimension of dates in a task with pooled cases; each case has a date and a position."""


def read_features(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of coordinates that are features of places; raise TypeError for other values."""
    names = (given,) if isinstance(given, str) else tuple(given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"features must be names of coordinates, got {wrong[0]!r}")
    return names


def read_pool(
    given: PoolOver, form: Form, dim: Hashable, features: str | Sequence[str] = ()
) -> Pool | None:
    """Read the ``pool`` argument of ``fit`` and check it against the hindcast; None for no pool.

    Raises
    ------
    ValueError
        If a dimension is not a location dimension, or the width of a window is not valid.
    """
    if given is None:
        return None
    windows = given if isinstance(given, Mapping) else None
    dims = tuple(given) if isinstance(given, (Mapping, tuple, list)) else (given,)
    _check_dims(dims, form, dim)
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    widths = None
    if windows is not None:
        for d, width in windows.items():
            _check_width(d, width, sizes[d])
        widths = tuple(int(windows[d]) for d in dims)
    named = read_features(features)
    return by_labels(Pool(dims, tuple(sizes[d] for d in dims), widths, (), named), form)


def by_labels(pool: Pool, form: Form) -> Pool:
    """Return the pool with its positions (all, or those of the window) sorted by label.

    Labels come from the index along a dimension, or else from other coordinates along it.
    """
    shape = pool.sizes if pool.widths is None else pool.widths
    keys: list[IntArray] = []
    for d, at in zip(pool.dims, np.indices(shape), strict=True):
        for codes in _codes(form, d):
            if pool.widths is None:
                keys.append(codes[at].ravel())
            elif codes[0] > codes[-1]:
                keys.append(-at.ravel())
        keys.append(at.ravel())
    order = np.lexsort(keys[::-1])
    return replace(pool, taken=tuple(order.tolist()))


def _codes(form: Form, dim: Hashable) -> list[IntArray]:
    """Return ranks of the labels in the index of a dimension, or in each of its coordinates."""
    import pandas as pd

    parts = form.parts.values()
    labels = [part.indexes[dim] for part in parts if dim in part.indexes][:1]
    along = {str(n): c for part in parts for n, c in part.coords.items() if c.dims == (dim,)}
    labels = labels or [along[name].to_numpy() for name in sorted(along)]
    return [np.asarray(pd.factorize(values, sort=True)[0]) for values in labels]


def _check_dims(dims: tuple[Hashable, ...], form: Form, dim: Hashable) -> None:
    locations = [d for d in form.dims if d != dim]
    roles = {dim: "calibration dimension", form.member_dim: "member dimension"}
    for d in dims:
        if d in roles:
            raise ValueError(
                f"pool names the {roles[d]} {d!r}; it takes location dimensions, here {locations}"
            )
        if d not in locations:
            raise ValueError(f"pool: hindcast has no location dimension {d!r}; it has {locations}")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(
            f"pool must name one location dimension or several different ones, got {dims!r}"
        )


def _check_width(d: Hashable, width: object, size: int) -> None:
    whole = isinstance(width, (int, np.integer)) and not isinstance(width, bool)
    if not whole or width < 1 or width % 2 == 0:  # type: ignore[operator]
        raise ValueError(
            f"pool: the window along {d!r} must be an odd whole number, with the location in the "
            f"middle, got {width!r}"
        )
    if width > size:  # type: ignore[operator]
        raise ValueError(
            Advice(
                f"pool: the window {width} along {d!r} is larger than its {size} positions; use ",
                Typed("pool", d),
                " for one fit to all positions",
            )
        )


def pooled_covariate(value: xr.DataArray, pool: Pool, case: Hashable = CASE) -> xr.DataArray:
    """Convert a covariate (..., date) to pooled cases (..., case), the form that models store."""
    if not set(pool.dims) & set(value.dims):
        of_dates = pool.repeat(np.arange(value.sizes[DATE]))
        return value.isel({DATE: of_dates}).rename({DATE: case})
    return pooled_cases(across(value, pool), pool, case)


def pooled_cases(value: xr.DataArray, pool: Pool, case: Hashable) -> xr.DataArray:
    """Convert an array (..., pooled dimensions, date, ...) to pooled cases (..., case, ...)."""
    inside = value.dims[value.dims.index(DATE) :]
    sizes = dict(zip(pool.dims, pool.sizes, strict=True)) if pool.own_fits else {}
    sizes |= {case: value.sizes[DATE] * len(pool.taken)}
    return run(
        PooledTask(_SameCases(), pool),
        {"cases": {0: (value, (*pool.dims, *inside))}},
        {0: ({**sizes, **{d: value.sizes[d] for d in inside[1:]}}, value.dtype)},
        windows=pool.windows,
        what="the pooling of cases",
    )[0]


def across(value: xr.DataArray, pool: Pool) -> xr.DataArray:
    """Expand an array to all pooled dimensions, and put the pooled dimensions before the dates."""
    sizes = dict(zip(pool.dims, pool.sizes, strict=True))
    value = value.expand_dims({d: size for d, size in sizes.items() if d not in value.dims})
    others = [d for d in value.dims if d not in (*pool.dims, DATE)]
    return value.transpose(*others, *pool.dims, DATE)


class _SameCases:
    """Task that returns its cases, which :class:`PooledTask` has joined."""

    on_device = True

    def __call__(self, cases: Named) -> Named:
        return cases


def position_coordinates(form: Form, pool: Pool, n_dates: int) -> dict[str, Any]:
    """Return coordinates of the state: labels of pooled cases or, with windows, of locations."""
    coords = {n: c for part in form.parts.values() for n, c in part.coords.items()}
    if pool.own_fits:
        return {
            str(name): c.variable
            for name, c in coords.items()
            if set(c.dims) <= set(pool.dims) and c.dims
        }
    at = dict(zip(pool.dims, np.unravel_index(np.array(pool.taken), pool.sizes), strict=True))
    return {
        f"calibration_{name}": (
            CASE,
            np.tile(c.to_numpy()[at[d]], n_dates),
            c.attrs,
        )
        for d in pool.dims
        for name, c in names_along(form, d).items()
    }


def names_along(form: Form, dim: Hashable) -> dict[Hashable, xr.DataArray]:
    """Return labels and names of the positions along a dimension, from any array of a forecast."""
    parts = reversed([part for part in form.parts.values() if dim in part.dims])
    return {name: c for part in parts for name, c in naming(part, dim).items()}


@dataclass(frozen=True)
class PooledTask:
    """Task that joins the cases of locations and passes them on to another task.

    Inputs are (L, pooled dimensions, date, ...). :attr:`task` gets the cases (B, n k, ...) of B
    fits at a time, for n dates at k positions. So the cases of all windows, which are many times
    larger than the input, are never in memory at once. Results are (L, ...) or, with windows, (L,
    pooled dimensions, ...). In overlapping chunks, ``inside`` marks the positions of the chunk
    itself; results are zero at all other positions.
    """

    task: Task
    pool: Pool

    @property
    def on_device(self) -> bool:
        """True if the task accepts CuPy arrays."""
        return bool(getattr(self.task, "on_device", False))

    @property
    def description(self) -> str:
        """Text for messages about the work of the task."""
        return str(getattr(self.task, "description", ""))

    def __call__(self, inside: npt.NDArray[np.bool_] | None = None, **given: Named) -> Named:
        """Run the task on one chunk."""
        from xrecal.arrays.rows import location_blocks

        first = next(a for group in given.values() for a in group.values())
        sizes = first.shape[1 : 1 + len(self.pool.dims)]
        learned = replace(self.pool, sizes=sizes).positions()
        learned = learned if inside is None else learned[inside]
        n_fits = len(first) * len(learned)
        of_place = own_of_fits(given.pop(OF_PLACE, {}), len(self.pool.own_fits), inside)
        joined: dict[Any, npt.NDArray[Any]] = {}
        for block in location_blocks(n_fits, 4 * bytes_at(given, sizes) * learned.shape[1]):
            fits = np.arange(n_fits)[block]
            own = {OF_PLACE: {name: a[fits] for name, a in of_place.items()}} if of_place else {}
            results = self.task(**of_fits(given, sizes, learned, fits, as_cases), **own)
            for name, result in results.items():
                if name not in joined:
                    xp = namespace(result)
                    joined[name] = xp.empty((n_fits, *result.shape[1:]), dtype=result.dtype)
                joined[name][block] = result
        shape = (len(first), *(sizes if self.pool.own_fits else ()))
        return {name: of_all_positions(a, shape, inside) for name, a in joined.items()}


def own_of_fits(
    arrays: Named, n_dims: int, inside: npt.NDArray[np.bool_] | None
) -> dict[Any, npt.NDArray[Any]]:
    """Reshape arrays (L, positions with own fits, ...) to (fits, ...), in the order of fits."""
    flat = {}
    for name, a in arrays.items():
        rest = a.shape[1 + n_dims :]
        each = a.reshape((len(a), -1, *rest))
        each = each if inside is None or not n_dims else each[:, inside]
        flat[name] = each.reshape((-1, *rest))
    return flat


def bytes_at(given: Mapping[str, Named], sizes: tuple[int, ...]) -> int:
    """Return the bytes of all arrays (L, pooled dimensions, ...) at one position."""
    arrays = [a for group in given.values() for a in group.values()]
    return sum(a.dtype.itemsize * math.prod(a.shape[1 + len(sizes) :]) for a in arrays)


def of_fits(
    given: Mapping[str, Named],
    sizes: tuple[int, ...],
    positions: IntArray,
    fits: IntArray,
    take: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
) -> dict[str, dict[Any, npt.NDArray[Any]]]:
    """Return results of ``take`` for arrays (B, k, n, ...) of n dates at the k positions of B fits.

    Results have the same groups and names as the arrays in ``given``.
    """
    return {
        group: {name: take(_at_positions(a, sizes, positions, fits)) for name, a in of.items()}
        for group, of in given.items()
    }


def _at_positions(
    array: npt.NDArray[Any], sizes: tuple[int, ...], positions: IntArray, fits: IntArray
) -> npt.NDArray[Any]:
    """Return an array (B, k, n, ...) at the k positions of each of B fits; NaN beyond the edges."""
    of_fit = positions[fits % len(positions)]
    xp = namespace(array)
    flat = array.reshape((len(array), math.prod(sizes), *array.shape[1 + len(sizes) :]))
    outer, inner = xp.asarray(fits // len(positions)), xp.asarray(np.maximum(of_fit, 0))
    taken: npt.NDArray[Any] = flat[outer[:, np.newaxis], inner]
    if (of_fit < 0).any():
        taken[xp.asarray(of_fit < 0)] = np.nan
    return taken


def of_all_positions(
    results: npt.NDArray[Any], shape: tuple[int, ...], inside: npt.NDArray[np.bool_] | None
) -> npt.NDArray[Any]:
    """Put results of fits at positions ``inside`` into arrays of all positions; zero elsewhere."""
    xp, rest = namespace(results), results.shape[1:]
    if inside is not None:
        among = xp.zeros((shape[0], inside.size, *rest), dtype=results.dtype)
        among[:, xp.asarray(inside)] = results.reshape((shape[0], int(inside.sum()), *rest))
        results = among
    shaped: npt.NDArray[Any] = results.reshape((*shape, *rest))
    return shaped


def as_cases(at_positions: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reshape arrays (B, k, n, ...) to cases (B, n k, ...), sorted by date, then by position."""
    by_date = np.swapaxes(at_positions, 1, 2)
    return by_date.reshape((len(at_positions), -1, *by_date.shape[3:]))
