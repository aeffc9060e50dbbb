"""Making plans: how work is cut into tasks, and what each of them needs, without its values."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

import xarray as xr

from xrecal.fit.fit_hindcast import DEFAULT, Prepared, checked, prepare
from xrecal.fit.fitted import CASE, FittedVariable
from xrecal.fit.select_fits import match_variables, shared_dims
from xrecal.fit.state import fit_state
from xrecal.inputs.covariates import Given, period_of
from xrecal.inputs.forms import Form, Labelled, read_forms
from xrecal.inputs.pairing import Observations, pair_variables
from xrecal.inputs.pool import PoolOver
from xrecal.methods import Method
from xrecal.products.recalibrated import Recalibrated
from xrecal.products.statistics import mean_of

from .plan_work import Work, task_plan
from .plans import Plan
from .probe import Setup, probe_of
from .resources import apply_workspace, find_resources, fit_workspace

if TYPE_CHECKING:
    from xrecal.fit.fitted import Fitted


def plan(
    hindcast: Labelled,
    observations: Observations | None = None,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    pool: PoolOver = None,
    min_samples: int = 20,
    probe: bool = True,
) -> Plan:
    """What a fit will take: tasks, memory, time and better chunks, told before any work.

    Parameters
    ----------
    hindcast, method, dim, member_dim, condition_on, covariates, pool, min_samples
        As for :func:`xrecal.fit.fit_hindcast.fit`.
    observations : DataArray, Dataset or dict, optional
        As for the fit. Without them there is taken to be one for each forecast.
    probe : bool
        Whether to time the method on synthetic cases, for some seconds in a fresh process. Without
        it there is no estimate of time.

    Returns
    -------
    Plan
        Prints as a table; see also :meth:`Plan.to_dataset` and :func:`xrecal.check_plan`.

    Raises
    ------
    ValueError, TypeError
        As the fit would.

    Notes
    -----
    Never reads or computes values. Bytes of input and output are exact for the largest chunk; the
    workspace is stated for the exact solver, for one task at a time in each thread. Dask holds a
    few chunks of input besides. Times are rough: what a method chooses decides them too.

    Examples
    --------
    >>> plan = xrecal.plan(hindcast, observations, probe=False)
    >>> plan.tasks, plan.fits
    (1, True)
    """
    method = checked(method, condition_on, min_samples, "xrecal.plan")
    if observations is None:
        forms = read_forms(hindcast, member_dim, name="hindcast")
        paired = {name: (form, _one_for_each(form)) for name, form in forms.items()}
    else:
        paired = pair_variables(hindcast, observations, member_dim, name="hindcast")
    resources = find_resources()
    parts, notes = [], []
    for name, (form, observed) in paired.items():
        lazy = any(part.chunks is not None for part in (*form.parts.values(), observed))
        bare = form.with_parts({k: _without_values(v) for k, v in form.parts.items()})
        prepared = prepare(
            bare, _without_values(observed), method, dim, covariates, min_samples, pool
        )
        parts.append(task_plan(_plan_fit(name, prepared, min_samples, probe), resources))
        if not lazy:
            notes.append("NumPy arrays are one task on one thread; the suggested chunks make more")
    return Plan(tuple(parts), resources, tuple(dict.fromkeys(notes)))


def plan_forecast(
    model: Fitted,
    forecast: Labelled,
    *,
    values: int | None = 1,
    covariates: Given = None,
    probe: bool = True,
) -> Plan:
    """What a product of forecasts will take: tasks, memory, time, told before any work.

    Parameters
    ----------
    forecast : DataArray or Dataset
        As for :meth:`apply`. Its values are never read.
    values : int, optional
        Numbers wanted of each forecast, such as quantiles, thresholds or members; None for
        all the weights that :meth:`apply` returns.
    covariates
        As for :meth:`apply`.
    probe : bool
        Whether to time the method on synthetic cases; see :func:`xrecal.plan`.

    Returns
    -------
    Plan
        Prints as a table.

    Raises
    ------
    ValueError
        As for :meth:`apply`.

    Examples
    --------
    >>> model.plan(forecast, probe=False).fits
    True
    """
    resources = find_resources()
    matched = match_variables(model, forecast, read_values=False)
    works = [
        _plan_product(name, form, fitted, values, covariates, probe)
        for name, (form, fitted) in matched.items()
    ]
    parts = [  # a single lead is no dimension to cut along
        task_plan(replace(work, fits=tuple(d for d in work.fits if d in forecast.dims)), resources)
        for work in works
    ]
    notes = []
    if not model.is_computed:
        notes.append("the model is not in memory; unless persisted, each product fits it again")
    if all(part.chunks is None for f, _ in matched.values() for part in f.parts.values()):
        notes.append("NumPy arrays are one task on one thread; the suggested chunks make more")
    return Plan(tuple(parts), resources, tuple(notes))


def _plan_fit(name: Hashable | None, prepared: Prepared, min_samples: int, timed: bool) -> Work:
    pairs, method = prepared.pairs, prepared.method
    assert pairs.dim is not None
    state = fit_state(pairs, method, prepared.axis, prepared.covariates, min_samples)
    n_cases, members = state.sizes[CASE], _size(pairs.form, pairs.form.member_dim)
    periods = {key: period_of(value) for key, value in prepared.covariates.items()}
    found = None
    if timed:
        found = probe_of(
            Setup(
                method=method,
                kind=pairs.form.kind,
                n_cases=n_cases,
                n_members=members,
                axis=prepared.axis,
                periods=tuple(periods.items()),
                min_samples=min_samples,
                dtype=pairs.form.loc.dtype,
            )
        )
    return Work(
        variable=name,
        kind="fit",
        cases=n_cases,
        members=members,
        forecasts=0,
        tasks=state["status"],
        fits=state["status"].dims,
        whole=(pairs.dim, pairs.form.member_dim, *(pairs.pool.dims if pairs.pool else ())),
        given=[*pairs.form.parts.values(), pairs.observations, *prepared.covariates.values()],
        made=[(variable, 1) for variable in state.data_vars.values()],
        workspace=lambda n: fit_workspace(method, n_cases, members, n),
        seconds=None if found is None else found.fit,
        cases_tried=0 if found is None else found.n_tried,
    )


def _plan_product(
    name: Hashable | None,
    form: Form,
    fitted: FittedVariable,
    values: int | None,
    covariates: Given,
    timed: bool,
) -> Work:
    method, state = fitted.method, fitted.state
    bare = form.with_parts({k: _without_values(v) for k, v in form.parts.items()})
    known = replace(fitted, state=state.map(_without_values, keep_attrs=True))
    (tasks,) = Recalibrated(bare, known, covariates).reduce(mean_of, {})
    shared = [d for d in shared_dims(fitted) if d in form.dims]
    n_forecasts = math.prod(_size(form, d) for d in shared)
    n_cases, members = state.sizes[CASE], _size(form, form.member_dim)
    compared = members * max(len(form.vector), 1)
    if values is None:  # weights of all members, and these where they differ between forecasts
        values = method.slots(n_cases)[0].size * (1 if method.shares_members else 2)
    seconds, tried = None, 0
    if timed:
        found = probe_of(
            Setup(
                method=method,
                kind=fitted.kind,
                n_cases=n_cases,
                n_members=members,
                axis=fitted.axis,
                periods=tuple(fitted.periods.items()),
                min_samples=fitted.min_samples,
                dtype=form.loc.dtype,
            )
        )
        cuts, tried = math.prod(len(tasks.chunksizes[d]) for d in shared), found.n_tried
        seconds = cuts * found.rebuild + max(n_forecasts - cuts, 0) * found.each
    longest = math.prod(max(tasks.chunksizes[d], default=0) for d in shared)
    return Work(
        variable=name,
        kind="apply",
        cases=n_cases,
        members=members,
        forecasts=n_forecasts,
        tasks=tasks,
        fits=fitted.locations,
        whole=(form.member_dim,),
        given=[*form.compared.values(), *state.data_vars.values()],
        made=[(tasks, values)],
        workspace=lambda n: apply_workspace(method, n_cases, longest, compared, n),
        seconds=seconds,
        cases_tried=tried,
    )


def _size(form: Form, dim: Hashable) -> int:
    return max(part.sizes.get(dim, 1) for part in form.parts.values())


def _without_values(array: xr.DataArray) -> xr.DataArray:
    """A lazy array of the same labels, type and chunks, one chunk for NumPy."""
    import dask.array

    chunks = array.shape if array.chunks is None else array.chunks
    return array.copy(data=dask.array.zeros(array.shape, dtype=array.dtype, chunks=chunks))


def _one_for_each(form: Form) -> xr.DataArray:
    """Observations without values, one for each forecast, in their units."""
    whole = form.with_parts({k: _without_values(v) for k, v in form.parts.items()}).broadcast().loc
    units = {k: v for k, v in form.loc.attrs.items() if k == "units"}
    observed = whole.isel({form.member_dim: 0}, drop=True)
    return observed.drop_attrs().assign_attrs(units)
