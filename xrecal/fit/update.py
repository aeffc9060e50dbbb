"""Update: add cases to a fitted model, which keeps the choices of its fit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import require_one_chunk, work_on
from xrecal.chunks.run import run
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import VECTOR, Labelled
from xrecal.inputs.leads import MatchedLeads
from xrecal.inputs.pairing import Observations, Pairs, pair_cases, pair_variables, to_learn_from
from xrecal.methods import Method
from xrecal.methods.covariates import may_break

from .case_order import (
    ADDED,
    ADDED_MEMBER,
    added_cases,
    join_axes,
    order_by_labels,
    positions_of_cases,
    require_positions,
)
from .cases import COVARIATE, is_part, kept_parts
from .common_regrets import with_common_regrets
from .fitted import CASE, CASE_MEMBER, Fitted, FittedVariable
from .jointly import Paired, as_one, common_cases
from .mismatch_warnings import warn_of_other_place
from .more_places import Grown, grows, with_all_places
from .named_members import matched_members
from .news import warn_of_order
from .replaced import warn_of_replaced
from .select_fits import (
    check_forecast,
    explicit_member_dim,
    in_order_of_fits,
    matching_covariates,
    shared_dims,
)
from .shared_in_time import learned_with_law, shared_law
from .shared_update import with_shared_cases
from .state import axis_of, require_whole_cases
from .update_task import KEPT, NAMES, UpdateTask, joined_values, of_kept

F = TypeVar("F", bound=Fitted)


def update(
    model: F,
    hindcast: Labelled,
    observations: Observations,
    covariates: Given = None,
) -> F:
    """Return a model with more cases; see :meth:`Recalibrator.update`."""
    for fitted in model.variables.values():
        _require_updatable(fitted, model)
    member_dim = explicit_member_dim(model, hindcast)
    paired = pair_variables(hindcast, observations, member_dim, name="hindcast")
    if len(paired) == len(model.variables) == 1:
        paired = dict(zip(model.variables, paired.values(), strict=True))
    if set(paired) != set(model.variables):
        raise ValueError(
            f"the model has the variables {list(model.variables)}, but hindcast has "
            f"{list(paired)}; update all of them, or one alone: model[name].update(...)"
        )
    forms = ((paired[name][0], fitted) for name, fitted in model.variables.items())
    warn_of_other_place(forms, name="hindcast")
    variables: dict[Hashable, FittedVariable] = {}
    for name in model.variables:
        variables[name] = _update_variable(name, model, paired, covariates, variables)
    return replace(model, variables=variables)


def require_updates(method: Method) -> None:
    """Raise ValueError for a method that does not support updates."""
    if not method.updates:
        raise ValueError(
            f"{type(method).__name__} does not store its cases, so it cannot add new cases; "
            "fit again to all cases: hindcast.recal.fit(observations, model.method)"
        )


def _require_updatable(fitted: FittedVariable, model: Fitted) -> None:
    require_updates(fitted.method)
    lacking = [other for other in fitted.jointly if other not in model.variables]
    if lacking:
        raise ValueError(
            f"{' and '.join(map(repr, fitted.jointly))} are recalibrated jointly and updated "
            f"together, but this model lacks {lacking[0]!r}; update a model that has all of them"
        )


def _update_variable(
    name: Hashable,
    model: Fitted,
    paired: Paired,
    covariates: Given,
    updated: Mapping[Hashable, FittedVariable],
) -> FittedVariable:
    """Update one variable; ``updated`` has the variables that are already updated."""
    fitted = model.variables[name]
    pairs, partners = _pairs_of(name, model, paired)
    pooled = () if fitted.pool is None else fitted.pool.dims
    cases = (fitted.dim, *pooled)
    given = matching_covariates(pairs.form, fitted, covariates, of_more_cases=cases)
    grown = Grown(fitted, pairs, given)
    if grows(fitted):
        grown = with_all_places(fitted, pairs, given)
        fitted, pairs, given = grown.fitted, grown.pairs, grown.covariates
    each = [d for d in shared_dims(fitted) if d in pairs.form.dims]
    warn_of_replaced(given, fitted, each, name="hindcast")
    for covariate, value in given.items():
        if not fitted.method.by_sums:
            require_one_chunk(value, (fitted.dim,), name=f"the covariate {covariate!r}")
    of_dates, labels = order_by_labels(pairs, fitted)
    dates, order = axis_of(pairs), of_dates.at_positions(fitted.n_positions)
    warn_of_order(pairs, fitted, of_dates, dates)
    axis = join_axes(fitted, dates, of_dates)
    added_axis = dates if fitted.pool is None else fitted.pool.axis(dates, of_dates.known.size)
    n = of_dates.order.size
    fitted.method.check(axis, order.order.size)  # raises if dates are needed and missing
    n_added = fitted.n_added + of_dates.n_new
    if fitted.method.by_sums:
        state = with_shared_cases(grown, dates, axis, of_dates)
        state = state.assign_coords(labels)
    else:
        task = UpdateTask(
            fitted.method, fitted.periods, fitted.min_samples, order, added_axis, axis
        )
        goes_on = any(method.keeps_sums for method in fitted.method.mixed)
        joining = replace(task, learns=not goes_on)
        state = _joined_state(joining, fitted, pairs, given, partners)
        if goes_on:
            state = learned_with_law(task, fitted, state, pairs.form)
        for other in set(fitted.jointly) & set(updated):  # the other variable has the same vectors
            of_other = updated[other].state
            same = {v: of_other[v].variable for v in state if str(v).startswith(VECTOR)}
            state = state.assign(same)
        state = state.assign_coords(labels | positions_of_cases(fitted, n))
    whole = replace(fitted, axis=axis, state=state, n_forecasts=n, n_added=n_added)
    n_matched, leads = _matched(whole, pairs, known=of_dates.has_known)
    return replace(whole, n_matched=n_matched, leads=leads)


def _pairs_of(name: Hashable, model: Fitted, paired: Paired) -> tuple[Pairs, list[FittedVariable]]:
    """Return new cases of a variable in order of time, and the other variables of a joint fit."""
    fitted = model.variables[name]
    group = {other: paired[other] for other in fitted.jointly or (name,)}
    group = common_cases(group) if fitted.jointly else group
    found = {}
    for other, (form, observed) in group.items():
        check_forecast(form, model.variables[other], name="hindcast")
        pairs = to_learn_from(pair_cases(form, observed, fitted.dim, name="hindcast"))
        if not grows(fitted):
            require_positions(form, fitted)
            pairs = in_order_of_fits(pairs, fitted)
        if not fitted.method.by_sums:
            require_whole_cases(pairs, () if fitted.pool is None else fitted.pool.forecast_dims)
        weighed = matched_members(pairs.form, model.variables[other], "hindcast")
        found[other] = replace(pairs, form=weighed, pool=fitted.pool)
    one = found[name] if fitted.method.variables is None else as_one(found)
    others = [other for other in found if other != name]
    partners = tuple(found[other].observations for other in others)
    one = replace(one, observations=found[name].observations, partners=partners)
    return one, [model.variables[other] for other in others]


def _matched(
    whole: FittedVariable, pairs: Pairs, *, known: bool
) -> tuple[int, MatchedLeads | None]:
    """Return the number of cases with an observation, in all and at each lead.

    If the model knows some of the added cases, the function counts all cases again. If cases are
    pooled, or observations are not in memory, the function instead treats these known cases as new.
    """
    n, leads = whole.n_forecasts, None if whole.leads is None else whole.leads.plus(pairs.leads)
    n_matched = min(whole.n_matched + pairs.n_matched, n)
    if leads is not None:
        leads = replace(leads, n_matched=tuple(min(count, n) for count in leads.n_matched))
    observed = whole.state["observations"]
    if not known or whole.pool is not None or not isinstance(observed.data, np.ndarray):
        return n_matched, leads
    there = observed.notnull()
    if leads is None or leads.dim not in there.dims:
        return int(there.any([d for d in there.dims if d != CASE]).sum()), leads
    others = [d for d in there.dims if d not in (CASE, leads.dim)]
    counts = there.any(others).sum(CASE).to_numpy()
    return int(counts.max()), replace(leads, n_matched=tuple(map(int, counts)))


def _joined_state(
    task: UpdateTask,
    fitted: FittedVariable,
    pairs: Pairs,
    covariates: Mapping[str, xr.DataArray],
    partners: Sequence[FittedVariable],
) -> xr.Dataset:
    """Return the state with all cases in order, after the task has learned from all cases."""
    added = added_cases(pairs, covariates)
    state, order, parts = fitted.arrays, task.order, added["forecasts"]
    compared = [fitted, *partners] if order.has_known else []
    given: dict[str, Any] = {
        # The first array must have all locations, in their order.
        "state": {
            n: (of_kept(v), [NAMES.get(d, d) for d in v.dims if d not in fitted.locations])
            for n, v in state.items()
            if n not in shared_law(fitted)
        },
        "forecasts": {
            n: (part.drop_vars(list(part.coords)), (ADDED, ADDED_MEMBER))
            for n, part in parts.items()
        },
        "observed": {n: (value, (ADDED,)) for n, value in added["observed"].items()},
        "covariates": {n: (value, (ADDED,)) for n, value in added["covariates"].items()},
        "partners": {
            i: (of_kept(one.state.variables["observations"]), (KEPT,))
            for i, one in enumerate(compared)
        },
    }
    sizes = {**fitted.state.sizes, CASE: order.order.size}
    members = next((v for n, v in state.items() if is_part(n)), None)
    if members is not None:
        sizes[CASE_MEMBER] = max(sizes[CASE_MEMBER], next(iter(parts.values())).sizes[ADDED_MEMBER])
        if "weights" in kept_parts(parts):
            state.setdefault("weights", xr.ones_like(members))
    changing = {n: v for n, v in state.items() if task.changes(n)}
    common: dict[str, xr.DataArray] = {}
    if fitted.pool is None and task.learns:
        given, common = with_common_regrets(task, given, pairs.form, fitted.locations)
    results = run(
        task,
        given,
        {
            n: ({d: sizes[d] for d in v.dims if d not in fitted.locations}, v.dtype)
            for n, v in changing.items()
        },
        what=work_on("the update", pairs.form.name),
    )
    for name in covariates:
        kept = state[COVARIATE + name]
        guarded = may_break(name) and fitted.periods[name] is None
        new = added["covariates"][name]
        results[COVARIATE + name] = joined_values(kept, new, order, guarded=guarded)
    # Checking the labels of a hundred unchanged arrays would take most of an update.
    results |= common
    changed = {n: result.assign_attrs(state[n].attrs).variable for n, result in results.items()}
    whole = fitted.state.drop_dims([d for d in (CASE, CASE_MEMBER) if d in fitted.state.dims])
    return whole.assign(changed)[list(state)]
