"""What one task does to test auto-calibration: all cases of some locations in, numbers out."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.fit.case_arrays import NEW_MEMBER
from xrecal.inputs.forms import Form, task_parts
from xrecal.products.products import numbers_of

Test: TypeAlias = Literal["bootstrap", "wild", "montecarlo", "block"]


def case_parts(
    form: Form, loops: list[Hashable], cases: Mapping[Hashable, str], shared: bool
) -> dict[str, xr.DataArray]:
    """Parts with cases and members last; shared members without cases."""
    if not shared:
        return task_parts(form, loops, {**cases, form.member_dim: NEW_MEMBER})
    alone = Form(form.name, form.kind, form.member_dim, form.loc)
    loc = task_parts(alone, loops, {form.member_dim: NEW_MEMBER})["loc"]
    weights = form.parts["weights"]
    own = Form(form.name, form.kind, form.member_dim, weights)
    core = {**cases, form.member_dim: NEW_MEMBER}
    return {"loc": loc, "weights": task_parts(own, loops, core)["loc"]}


def place_numbers(form: Form, dims: tuple[Hashable, ...]) -> list[xr.DataArray]:
    """Arrays that sum up to the number of the location."""
    parts = {
        name: part.isel({d: 0 for d in dims if d in part.dims}, drop=True)
        for name, part in form.parts.items()
    }
    return numbers_of(form.with_parts(parts), None)[1:]


def over_cases_last(
    observations: xr.DataArray, form: Form, loops: list[Hashable], cases: Mapping[Hashable, str]
) -> xr.DataArray:
    """Observations with all dimensions of the cases, last and renamed."""
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    lacking = {d: sizes[d] for d in cases if d not in observations.dims}
    bare = observations.drop_vars([c for c in observations.coords if c not in loops])
    whole = bare.expand_dims(lacking)
    return whole.transpose(*[d for d in loops if d in whole.dims], *cases).rename(cases)


class SkceTask:
    """Parts of forecasts, observations and numbers of locations in; error, p-value, status out.

    ``core`` has for each argument the number of its last axes that are cases, and members.
    """

    def __init__(
        self,
        parts: tuple[str, ...],
        core: list[tuple[int, int]],
        augmented: bool,
        test: Test | None,
        options: Mapping[str, Any],
    ) -> None:
        self.parts, self.core = parts, core
        self.augmented, self.test, self.options = augmented, test, dict(options)

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Run the task on one chunk."""
        from xrecal.arrays import skce_locations
        from xrecal.arrays.distributions.forms import Forecasts

        lead = np.broadcast_shapes(
            *(a.shape[: a.ndim - sum(n)] for a, n in zip(args, self.core, strict=True))
        )
        *parts, observed = (
            _rows(a, lead, *n) for a, n in zip(args, self.core, strict=True) if sum(n)
        )
        numbers = np.zeros(lead, np.int64)
        for place in args[len(parts) + 1 :]:
            numbers = numbers + place
        found = skce_locations(
            Forecasts(**dict(zip(self.parts, parts, strict=True))),
            observed,
            test=self.test,
            location_numbers=numbers.reshape(-1),
            augmented=self.augmented,
            **self.options,
        )
        types = args[0].dtype, args[0].dtype, np.int16
        return tuple(a.reshape(lead).astype(t) for a, t in zip(found, types, strict=True))


def _rows(
    array: npt.NDArray[Any], lead: tuple[int, ...], n_case_axes: int, n_member_axes: int
) -> npt.NDArray[Any]:
    """Locations as one axis, cases as one axis, and members, of those that the array has."""
    core = array.shape[array.ndim - n_case_axes - n_member_axes :]
    cases = (math.prod(core[:n_case_axes]),) if n_case_axes else ()
    whole = np.broadcast_to(array, (*lead, *core))
    return whole.reshape(math.prod(lead), *cases, *core[n_case_axes:])
