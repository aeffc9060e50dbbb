"""Array functions of whole series: forecasts and observations of all cases of a location."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.distributions.missing import forecasts_from
from xrecal.chunks.blockwise import require_one_chunk, run_blockwise
from xrecal.fit.state import NEW_MEMBER
from xrecal.inputs.forms import Form, numbers_of, task_parts

from .evidence import Evidence, task_name


def over_series(
    evidence: Evidence,
    function: Callable[..., tuple[npt.NDArray[Any], ...]],
    *extras: xr.DataArray,
    dims: Sequence[Hashable],
    per_case: Sequence[bool],
    dtypes: Sequence[Any],
    what: str,
) -> tuple[xr.DataArray, ...]:
    """Results of a function of the series of each location.

    The function gets forecasts (L, n, m), observations (L, n), numbers of the locations (L,) and
    ``extras`` (L, n). A result is one number a location, or a case where ``per_case`` says so.
    """
    form = evidence.form
    for part in form.parts.values():
        require_one_chunk(part, [*dims, form.member_dim], name="forecast")
    require_one_chunk(evidence.observations, dims, name="observations")
    loops = [d for d in form.dims if d not in dims]
    cases = {d: f"case_{i}" for i, d in enumerate(dims)}
    parts, core = _parts_and_core(form, loops, cases)
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    others = [_cases_last(a, sizes, loops, cases) for a in (evidence.observations, *extras)]
    numbers = _location_numbers(form, dims)
    core = [*core, *[tuple(cases.values())] * len(others), *[()] * len(numbers)]
    last = [(c[-1:] == (NEW_MEMBER,), len(c)) for c in core]
    shape = tuple(sizes[d] for d in dims)
    results = run_blockwise(
        _SeriesTask(function, tuple(parts), last, shape, dtypes),
        *parts.values(),
        *others,
        *numbers,
        core=core,
        out=[tuple(cases.values()) if own else () for own in per_case],
        dtypes=dtypes,
        sizes={name: sizes[d] for d, name in cases.items()},
        what=task_name(what, evidence),
    )
    labels = evidence.observations.indexes
    indexes = {d: labels[d] for d in dims if d in labels}
    back = {name: d for d, name in cases.items()}
    return tuple(
        r.transpose(*[d for d in loops if d in r.dims], *cases.values())
        .rename(back)
        .assign_coords(indexes)
        if own
        else r.transpose(*[d for d in loops if d in r.dims])
        for r, own in zip(results, per_case, strict=True)
    )


def _parts_and_core(
    form: Form, loops: list[Hashable], cases: Mapping[Hashable, str]
) -> tuple[dict[str, xr.DataArray], list[tuple[Hashable, ...]]]:
    """Parts with cases and members last, and these dimensions of each.

    Members of a weighted forecast that all cases share come without cases.
    """
    core = (*cases.values(), NEW_MEMBER)
    renamed = {**cases, form.member_dim: NEW_MEMBER}
    if form.kind != "weighted" or set(cases) & set(form.loc.dims):
        parts = task_parts(form, loops, renamed)
        return parts, [core] * len(parts)
    alone = Form(form.name, form.kind, form.member_dim, form.loc)
    loc = task_parts(alone, loops, {form.member_dim: NEW_MEMBER})["loc"]
    own = Form(form.name, form.kind, form.member_dim, form.parts["weights"])
    weights = task_parts(own, loops, renamed)["loc"]
    return {"loc": loc, "weights": weights}, [(NEW_MEMBER,), core]


def _location_numbers(form: Form, dims: Sequence[Hashable]) -> list[xr.DataArray]:
    """Arrays that sum up to the number of the location."""
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
    """Values with all dimensions of the cases, last and renamed."""
    lacking = {d: sizes[d] for d in cases if d not in values.dims}
    bare = values.drop_vars([c for c in values.coords if c not in loops])
    whole = bare.expand_dims(lacking)
    return whole.transpose(*[d for d in loops if d in whole.dims], *cases).rename(cases)


class _SeriesTask:
    """Parts of forecasts, observations, extras, and arrays whose sum numbers the locations in.

    ``core`` says of each argument whether its last axis is that of the members, and how many of
    its last axes are not locations; ``shape`` is that of the cases.
    """

    def __init__(
        self,
        function: Callable[..., tuple[npt.NDArray[Any], ...]],
        names: tuple[str, ...],
        core: list[tuple[bool, int]],
        shape: tuple[int, ...],
        dtypes: Sequence[Any],
    ) -> None:
        self.function, self.names, self.core = function, names, core
        self.shape, self.dtypes = shape, dtypes

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Results (...) or (..., *cases) of some locations."""
        lead = np.broadcast_shapes(
            *(a.shape[: a.ndim - n] for a, (_, n) in zip(args, self.core, strict=True))
        )
        rows = [_rows(a, lead, *core) for a, core in zip(args, self.core, strict=True) if core[1]]
        forecasts = forecasts_from(dict(zip(self.names, rows, strict=False)))
        observed, *extras = rows[len(self.names) :]
        numbers = np.broadcast_to(sum(args[len(rows) :]), lead).reshape(-1)
        results = self.function(forecasts, observed, numbers, *extras)
        return tuple(
            array.reshape((*lead, *(self.shape if array.ndim > 1 else ()))).astype(
                dtype, copy=False
            )
            for array, dtype in zip(results, self.dtypes, strict=True)
        )


def _rows(
    array: npt.NDArray[Any], lead: tuple[int, ...], has_members: bool, n_core: int
) -> npt.NDArray[Any]:
    """Locations as one axis, cases as one axis, and members, of those that the array has."""
    core = array.shape[array.ndim - n_core :]
    n_case_axes = n_core - has_members
    cases = (math.prod(core[:n_case_axes]),) if n_case_axes else ()
    whole = np.broadcast_to(array, (*lead, *core))
    return whole.reshape(math.prod(lead), *cases, *core[n_case_axes:])
