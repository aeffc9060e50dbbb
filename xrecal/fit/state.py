"""Fitted state: the arrays that a fit leaves behind, lazy or computed, and what they mean."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import work_on
from xrecal.chunks.run import Inputs, Named, run
from xrecal.inputs.covariates import period_of
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import task_parts
from xrecal.inputs.pairing import Pairs
from xrecal.methods import Method
from xrecal.methods.base import Parameter, SharedFits

from .cases import COVARIATE, PARTNER, cases_of, kept_parts, parts_to_keep
from .fitted import CASE, CASE_MEMBER, feature_count, parameters_of
from .pooling import DATE, PooledTask, across, pooled_covariate, position_coordinates

NEW_MEMBER = "xrecal_new_member"
"""Dimension of the members of forecasts inside a task, where cases and results have their own."""


def fit_state(
    pairs: Pairs,
    method: Method,
    axis: CaseAxis,
    covariates: Mapping[str, xr.DataArray],
    min_samples: int,
    shared: tuple[xr.DataArray, ...] = (),
) -> xr.Dataset:
    """Lazy or computed state: one call for each chunk of locations.

    ``shared`` are the fields of :class:`xrecal.methods.base.SharedFits` over locations, if places
    share a component.
    """
    pool, dim = pairs.pool, pairs.dim
    given, periods = given_cases(pairs, covariates), periods_of(covariates)
    parts = {name: part for name, (part, _) in given["forecasts"].items()}
    observed = {name: value for name, (value, _) in given["observed"].items()}
    every = parameters_of(method, feature_count(periods))
    parameters = {name: p for name, p in every.items() if not p.of_all_places}
    n_cases = pairs.observations.sizes[dim] * (1 if pool is None else len(pool.taken))
    own: dict[Hashable, int] = {}
    if pool is not None and pool.windows:
        own = dict(zip(pool.dims, pool.sizes, strict=True))
    case: dict[Hashable, int] = {**own, CASE: n_cases}
    members = {**case, CASE_MEMBER: next(iter(parts.values())).sizes[CASE_MEMBER]}
    stored = kept_parts(parts) if method.keeps_cases else {}
    out: dict[str, tuple[dict[Hashable, int], Any]] = {
        **{name: (members, dtype) for name, dtype in stored.items()},
        **{name: (case, value.dtype) for name, value in observed.items()},
        "n_cases": (own, np.int32),
        "status": (own, np.int16),
    }
    for name, p in parameters.items():
        sizes = p.sizes(n_cases).items()
        inside: dict[Hashable, int] = {d: n_cases if d == CASE else n for d, n in sizes}
        out[name] = own | inside, p.dtype
    fit = FitTask(method, axis, periods, min_samples, "scale" in parts)
    results = run(
        fit if pool is None else PooledTask(fit, pool),
        {**given, "shared": {n: (a, ()) for n, a in zip(SharedFits._fields, shared, strict=False)}},
        out,
        what=work_on("the fit", pairs.form.name),
        windows=None if pool is None else pool.windows,
    )
    _, others = task_arguments(pairs, covariates)
    for name in covariates:
        value = others[name] if pool is None else pooled_covariate(others[name], pool)
        results[COVARIATE + name] = value
    # Coordinates of the forecasts may have any name; theirs stay with what is issued.
    taken = [*results, *members, *(d for p in parameters.values() for d in p.dims)]
    state = xr.Dataset({n: v.drop_vars(taken, errors="ignore") for n, v in results.items()})
    return _with_labels(state, pairs, parameters)


def periods_of(covariates: Mapping[str, xr.DataArray]) -> dict[str, float | None]:
    """Periods of covariates, None of those that are not circular."""
    return {name: period_of(value) for name, value in covariates.items()}


def given_cases(pairs: Pairs, covariates: Mapping[str, xr.DataArray]) -> Inputs:
    """Forecasts, observations and covariates of cases, as :class:`FitTask` takes them.

    Where cases are pooled, their core dimensions are the pooled ones and ``DATE``, which
    :class:`xrecal.fit.pooling.PooledTask` makes cases of.
    """
    parts, others = task_arguments(pairs, covariates)
    cases: tuple[Hashable, ...] = (CASE,)
    if pairs.pool is not None:
        cases = (*pairs.pool.dims, DATE)
        others = {name: across(value, pairs.pool) for name, value in others.items()}
    return {
        "forecasts": {name: (part, (*cases, CASE_MEMBER)) for name, part in parts.items()},
        "observed": {n: (value, cases) for n, value in others.items() if n not in covariates},
        "covariates": {name: (others[name], cases) for name in covariates},
    }


def task_arguments(
    pairs: Pairs,
    covariates: Mapping[str, xr.DataArray],
    dims: tuple[str, str] = (CASE, CASE_MEMBER),
) -> tuple[dict[str, xr.DataArray], dict[str, xr.DataArray]]:
    """Parts of the forecasts, then observations and covariates, over the locations and ``dims``.

    ``dims`` are those of cases and members; where cases are pooled, the dates have ``DATE``.
    """
    form, dim, pool = pairs.form, pairs.dim, pairs.pool
    case = dims[0] if pool is None else DATE
    pooled = () if pool is None else pool.dims
    locations = [d for d in form.dims if d != dim]
    parts = task_parts(
        form,
        [d for d in locations if d not in pooled],
        {**{d: d for d in pooled}, dim: case, form.member_dim: dims[1]},
    )
    partners = {f"{PARTNER}{k}": value for k, value in enumerate(pairs.partners)}
    others = {
        name: value.drop_vars(list(value.coords)).rename({dim: case})
        for name, value in {"observations": pairs.observations, **partners, **covariates}.items()
    }
    others = {
        name: value.transpose(*[d for d in locations if d in value.dims], case)
        for name, value in others.items()
    }
    return parts, others


def _with_labels(
    state: xr.Dataset, pairs: Pairs, parameters: Mapping[str, Parameter]
) -> xr.Dataset:
    """Labels of the dimensions of parameters, of the cases, and positions of pooled ones."""
    form, dim, pool = pairs.form, pairs.dim, pairs.pool
    labels = {d: list(p.labels) for p in parameters.values() for d in p.dims if p.labels}
    state = state.assign_coords(labels)
    dated = [part[dim] for part in form.parts.values() if dim in part.indexes]
    if dated:
        index = dated[0].to_index()
        index = index if pool is None else index.repeat(len(pool.taken))
        state = state.assign_coords({f"calibration_{dim}": (CASE, index, dated[0].attrs)})
    if pool is not None:
        n_dates = pairs.observations.sizes[dim]
        state = state.assign_coords(position_coordinates(form, pool, n_dates))
    return state


@dataclass(frozen=True)
class FitTask:
    """One chunk of locations: cases in, arrays of the state out."""

    method: Method
    axis: CaseAxis
    periods: Mapping[str, float | None]
    min_samples: int
    normal: bool = False
    """Whether forecasts are normal distributions."""

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return self.method.on_device and not self.normal

    @property
    def description(self) -> str:
        """The method and the form of the forecasts, for messages."""
        normal = " to normal distributions" if self.normal else ""
        return f" by {type(self.method).__name__}{normal}"

    def __call__(
        self, forecasts: Named, observed: Named, covariates: Named, shared: Named
    ) -> dict[str, Any]:
        """Run the task on one chunk."""
        cases, flags = cases_of(forecasts, observed, covariates, self.axis, self.periods)
        if shared:
            cases = replace(cases, shared=SharedFits(**shared))
        fitted = dict(self.method.fit_locations(cases, self.min_samples))
        fitted["status"] = fitted["status"] | flags
        kept = parts_to_keep(forecasts, cases) if self.method.keeps_cases else {}
        usable = zip(observed, (cases.observations, *cases.partners), strict=True)
        return {**fitted, **kept, **dict(usable)}


def without_labels(state: xr.Dataset) -> dict[str, xr.Variable]:
    """Arrays of a state, of which there may be hundreds, as tasks take them."""
    return {str(name): state.variables[name] for name in state.data_vars}


def state_of(state: xr.Dataset, place: int) -> xr.Dataset:
    """The state of one of several variables, by its place, from that of all of them.

    They differ in their observations.
    """
    observations = ["observations", *(n for n in state if str(n).startswith(PARTNER))]
    own = state[observations[place]].variable
    return state.drop_vars(observations[1:]).assign(observations=own)
