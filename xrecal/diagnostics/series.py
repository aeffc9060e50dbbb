"""Apply array functions to all cases of a location together."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.distributions.missing import forecasts_from
from xrecal.chunks.blockwise import require_one_chunk
from xrecal.chunks.labels import labels_along
from xrecal.chunks.run import Named, run
from xrecal.fit.state import NEW_MEMBER
from xrecal.inputs.forms import Form, numbers_of, task_parts

from .evidence import Evidence


def over_series(
    evidence: Evidence,
    function: Callable[..., tuple[npt.NDArray[Any], ...]],
    *extras: xr.DataArray,
    dims: Sequence[Hashable],
    per_case: Sequence[bool],
    dtypes: Sequence[Any],
    what: str,
) -> tuple[xr.DataArray, ...]:
    """Apply a function to all forecasts and observations of each location.

    The function gets forecasts (L, n, m), observations (L, n), a number that identifies each
    location (L,), and ``extras`` (L, n). Each result has one number per location, or one per case
    if its ``per_case`` is True.
    """
    form = evidence.form
    for part in form.parts.values():
        require_one_chunk(part, [*dims, form.member_dim], name="forecast")
    require_one_chunk(evidence.observations, dims, name="observations")
    loops = [d for d in form.dims if d not in dims]
    cases = {d: f"case_{i}" for i, d in enumerate(dims)}
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    others = [_cases_last(a, sizes, loops, cases) for a in (evidence.observations, *extras)]
    shape = tuple(sizes[d] for d in dims)
    each: dict[Hashable, int] = dict(zip(cases.values(), shape, strict=True))
    results = run(
        _SeriesTask(function, shape),
        {
            "forecasts": _parts_and_core(form, loops, cases),
            "values": {i: (a, tuple(cases.values())) for i, a in enumerate(others)},
            "numbers": {i: (a, ()) for i, a in enumerate(_location_numbers(form, dims))},
        },
        {
            i: (each if own else {}, dtype)
            for i, (own, dtype) in enumerate(zip(per_case, dtypes, strict=True))
        },
        what=evidence.work(what),
    ).values()
    labels = evidence.observations.indexes
    indexes = {d: labels[d] for d in dims if d in labels}
    back = {name: d for d, name in cases.items()}
    ordered = (r.transpose(*[d for d in (*loops, *back) if d in r.dims]) for r in results)
    return tuple(
        r.rename(back).assign_coords(indexes) if own else r
        for r, own in zip(ordered, per_case, strict=True)
    )


def _parts_and_core(
    form: Form, loops: list[Hashable], cases: Mapping[Hashable, str]
) -> dict[str, tuple[xr.DataArray, tuple[Hashable, ...]]]:
    """Return each array of a forecast with the names of its last dimensions: cases and members.

    If all cases of a weighted forecast share the members, the members have no dimension of cases.
    """
    core = (*cases.values(), NEW_MEMBER)
    renamed = {**cases, form.member_dim: NEW_MEMBER}
    if form.kind != "weighted" or set(cases) & set(form.loc.dims):
        return {name: (part, core) for name, part in task_parts(form, loops, renamed).items()}
    alone = Form(form.name, form.kind, form.member_dim, form.loc)
    loc = task_parts(alone, loops, {form.member_dim: NEW_MEMBER})["loc"]
    own = Form(form.name, form.kind, form.member_dim, form.parts["weights"])
    weights = task_parts(own, loops, renamed)["loc"]
    return {"loc": (loc, (NEW_MEMBER,)), "weights": (weights, core)}


def _location_numbers(form: Form, dims: Sequence[Hashable]) -> list[xr.DataArray]:
    """Return arrays whose sum is the number that identifies each location."""
    parts = {
        name: part.isel({d: 0 for d in dims if d in part.dims}, drop=True)
        for name, part in form.parts.items()
    }
    return numbers_of(form.with_parts(parts), None)[1:]


def _cases_last(
    values: xr.DataArray,
    sizes: Mapping[Hashable, int],
    loops: list[Hashable],
    cases: Mapping[Hashable, str],
) -> xr.DataArray:
    """Rename the dimensions of the cases, and make them the last dimensions of the values."""
    lacking = {d: sizes[d] for d in cases if d not in values.dims}
    bare = values.drop_vars(set(values.coords) - labels_along(values, loops))
    whole = bare.expand_dims(lacking)
    return whole.transpose(*[d for d in loops if d in whole.dims], *cases).rename(cases)


@dataclass(frozen=True)
class _SeriesTask:
    """Task that applies a function to all cases of some locations.

    The inputs are arrays of forecasts (L, *shape, m) or (L, m), values (L, *shape), and
    ``numbers``: arrays (L,) whose sum is the number that identifies each location.
    """

    function: Callable[..., tuple[npt.NDArray[Any], ...]]
    shape: tuple[int, ...]
    by_place: ClassVar[bool] = True

    def __call__(self, forecasts: Named, values: Named, numbers: Named) -> Named:
        """Return results (L,) or (L, *shape) of some locations."""
        n = math.prod(self.shape)
        parts = {
            name: a.reshape(len(a), n, a.shape[-1]) if a.ndim > 2 else a
            for name, a in forecasts.items()
        }
        observed, *extras = (a.reshape(len(a), n) for a in values.values())
        of_locations = np.broadcast_to(sum(numbers.values()), len(observed))
        results = self.function(forecasts_from(parts), observed, of_locations, *extras)
        return {
            i: array.reshape((len(array), *self.shape)) if array.ndim > 1 else array
            for i, array in enumerate(results)
        }
