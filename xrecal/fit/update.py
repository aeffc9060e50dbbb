"""Update: more cases for a fitted model, which keeps what its fit has chosen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace
from xrecal.chunks.blockwise import require_one_chunk, run_blockwise, work_on
from xrecal.inputs.covariates import Given
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR, Labelled
from xrecal.inputs.leads import MatchedLeads
from xrecal.inputs.pairing import Observations, Pairs, pair_cases, pair_variables, to_learn_from
from xrecal.methods.base import Cases

from .case_order import (
    Order,
    join_axes,
    n_positions,
    order_by_labels,
    positions_of_cases,
    require_positions,
)
from .fit_hindcast import axis_of, require_whole_cases
from .fitted import CASE, Fitted, FittedVariable
from .joining import ADDED, ADDED_MEMBER, ENTERS, at_known, join_states
from .jointly import Paired, as_one, common_cases
from .learning_order import require_updates, warn_of_order
from .mismatch_warnings import warn_of_other_place
from .missing import largest_seen
from .pooling import across, pooled_cases, pooled_covariate
from .relearning import learned_again, relearn
from .select_fits import (
    check_forecast,
    explicit_member_dim,
    in_order_of_fits,
    matching_covariates,
)
from .shared_update import with_shared_cases
from .state import (
    COVARIATE,
    at_locations,
    cases_of,
    is_part,
    kept_parts,
    parts_to_keep,
    task_arguments,
    without_labels,
)

F = TypeVar("F", bound=Fitted)

NONE_YET: Mapping[Hashable, FittedVariable] = {}


def update(
    model: F,
    hindcast: Labelled,
    observations: Observations,
    covariates: Given = None,
) -> F:
    """A model with more cases; see :meth:`Recalibrator.update`."""
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


def _require_updatable(fitted: FittedVariable, model: Fitted) -> None:
    require_updates(fitted.method)
    lacking = [other for other in fitted.jointly if other not in model.variables]
    if lacking:
        raise ValueError(
            f"{' and '.join(map(repr, fitted.jointly))} are recalibrated jointly and updated "
            f"together, but this model lacks {lacking[0]!r}; update the model of both"
        )


def _update_variable(
    name: Hashable,
    model: Fitted,
    paired: Paired,
    covariates: Given,
    updated: Mapping[Hashable, FittedVariable],
) -> FittedVariable:
    """One variable with more cases; ``updated`` are those that have theirs already."""
    fitted = model.variables[name]
    pairs, partners = _pairs_of(name, model, paired)
    pooled = () if fitted.pool is None else fitted.pool.dims
    cases = (fitted.dim, *pooled)
    given = matching_covariates(pairs.form, fitted, covariates, of_more_cases=cases)
    for covariate, value in given.items():
        if not fitted.method.by_sums:
            require_one_chunk(value, (fitted.dim,), name=f"the covariate {covariate!r}")
    warn_of_order(pairs, fitted)
    return with_cases(fitted, pairs, given, partners, updated)


def with_cases(
    fitted: FittedVariable,
    pairs: Pairs,
    given: Mapping[str, xr.DataArray],
    partners: Sequence[FittedVariable] = (),
    updated: Mapping[Hashable, FittedVariable] = NONE_YET,
) -> FittedVariable:
    """A fitted variable with more cases, given in the order of time with their covariates.

    ``partners`` are the others that it is recalibrated with, and ``updated`` all variables that
    have these cases already.
    """
    of_dates, labels = order_by_labels(pairs, fitted)
    dates, order = axis_of(pairs), of_dates.at_positions(n_positions(fitted))
    axis = join_axes(fitted, dates, of_dates)
    added_axis = dates if fitted.pool is None else fitted.pool.axis(dates, of_dates.known.size)
    n = of_dates.order.size
    fitted.method.check(axis, order.order.size)  # raises where dates are needed and missing
    n_added = fitted.n_added + of_dates.n_new
    if fitted.method.by_sums:
        shared = with_shared_cases(fitted, pairs, given, dates, of_dates).assign_coords(labels)
        whole = replace(fitted, axis=axis, state=shared, n_forecasts=n, n_added=n_added)
        n_matched, leads = _matched(whole, pairs, known=of_dates.has_known)
        return replace(whole, n_matched=n_matched, leads=leads)
    kept = replace(fitted, state=fitted.state.drop_vars(learned_again(fitted)))
    added = _added_state(pairs, kept, added_axis, given, order, partners)
    state = join_states(kept, added, order)
    for other in set(fitted.jointly) & set(updated):  # which has the same vectors
        of_other = updated[other].state
        state = state.assign({v: of_other[v].variable for v in state if str(v).startswith(VECTOR)})
    state = state.assign_coords(labels | positions_of_cases(fitted, n))
    whole = replace(fitted, axis=axis, state=state, n_forecasts=n, n_added=n_added)
    n_matched, leads = _matched(whole, pairs, known=of_dates.has_known)
    whole = replace(whole, n_matched=n_matched, leads=leads)
    return replace(whole, state=relearn(whole, fitted.state))


def _pairs_of(name: Hashable, model: Fitted, paired: Paired) -> tuple[Pairs, list[FittedVariable]]:
    """The new cases of a variable in order, and the others that it is recalibrated with."""
    fitted = model.variables[name]
    group = {other: paired[other] for other in fitted.jointly or (name,)}
    group = common_cases(group) if fitted.jointly else group
    found = {}
    for other, (form, observed) in group.items():
        check_forecast(form, model.variables[other], name="hindcast")
        require_positions(form, fitted)
        pairs = to_learn_from(pair_cases(form, observed, fitted.dim, name="hindcast"))
        pairs = in_order_of_fits(pairs, fitted)
        if not fitted.method.by_sums:
            require_whole_cases(pairs, () if fitted.pool is None else fitted.pool.forecast_dims)
        found[other] = replace(pairs, pool=fitted.pool)
    one = found[name] if fitted.method.variables is None else as_one(found)
    others = [other for other in found if other != name]
    partners = tuple(found[other].observations for other in others)
    one = replace(one, observations=found[name].observations, partners=partners)
    return one, [model.variables[other] for other in others]


def _matched(
    whole: FittedVariable, pairs: Pairs, *, known: bool
) -> tuple[int, MatchedLeads | None]:
    """Cases that have an observation, and those at each lead.

    Where some were known before they are counted anew, if observations are in memory; else known
    cases are taken to be new to the observations.
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


def _added_state(
    pairs: Pairs,
    fitted: FittedVariable,
    axis: CaseAxis,
    covariates: Mapping[str, xr.DataArray],
    order: Order,
    partners: Sequence[FittedVariable],
) -> dict[str, xr.DataArray]:
    """Arrays of the state for the added cases, over ``ADDED``, and new counts and statuses."""
    parts, others = _arguments(pairs, covariates)
    chosen, own = _chosen_and_own(fitted.state)
    chosen["largest_seen"] = largest_seen(fitted).variable
    core = {n: tuple(d for d in v.dims if d not in fitted.locations) for n, v in chosen.items()}
    compared = [fitted, *partners] if order.has_known else []
    seen = [at_known(variable.state["observations"], order) for variable in compared]
    kept = kept_parts(parts) if fitted.method.keeps_cases else {}
    n_core = {name: len(dims) for name, dims in core.items()}
    results = run_blockwise(
        _UpdateTask(fitted, order, axis, tuple(parts), own, n_core),
        *chosen.values(),  # first, as they have all locations in their order
        *(part.drop_vars(list(part.coords)) for part in parts.values()),
        *others.values(),
        *seen,
        core=[
            *core.values(),
            *[(ADDED, ADDED_MEMBER)] * len(parts),
            *[(ADDED,)] * (len(others) + len(seen)),
        ],
        out=[
            *[(ADDED, ADDED_MEMBER)] * len(kept),
            (ADDED,),
            (),
            (),
            *[(ADDED,)] * (len(own) + 1),
        ],
        dtypes=[
            *kept.values(),
            others["observations"].dtype,
            np.int32,
            np.int16,
            *(fitted.state[name].dtype for name in own),
            np.bool_,
        ],
        sizes={},
        what=work_on("the update", pairs.form.name),
    )
    names = *kept, "observations", "n_cases", "status", *own, ENTERS
    added = dict(zip(names, results, strict=True))
    return added | {COVARIATE + name: others[name] for name in covariates}


def _arguments(
    pairs: Pairs, covariates: Mapping[str, xr.DataArray]
) -> tuple[dict[str, xr.DataArray], dict[str, xr.DataArray]]:
    """Parts of the forecasts, then observations and covariates, of the added cases of each fit."""
    parts, others = task_arguments(pairs, covariates, (ADDED, ADDED_MEMBER))
    pool = pairs.pool
    if pool is None:
        return parts, others
    return {name: pooled_cases(part, pool, ADDED) for name, part in parts.items()}, {
        name: pooled_covariate(value, pool, ADDED)
        if name in covariates
        else pooled_cases(across(value, pool), pool, ADDED)
        for name, value in others.items()
    }


def added_arguments(pairs: Pairs, fitted: FittedVariable) -> tuple[xr.DataArray, xr.DataArray]:
    """Forecasts (..., added, member) and observations (..., added) as the state keeps them.

    The first part of the forecasts, which is there where they are; cases of pooled ones apart.
    """
    parts, others = _arguments(replace(pairs, pool=fitted.pool), {})
    return next(iter(parts.values())), others["observations"]


def _chosen_and_own(state: xr.Dataset) -> tuple[dict[str, xr.Variable], list[str]]:
    """Arrays that the fit chose, and names of parameters that each case has its own of."""
    chosen: dict[str, xr.Variable] = {}
    own: list[str] = []
    for name, value in without_labels(state).items():
        if CASE not in value.dims:
            chosen[name] = value
        elif name != "observations" and not is_part(name) and not name.startswith(COVARIATE):
            own.append(name)
    return chosen, own


class _UpdateTask:
    """State and new cases of a chunk of locations in, the new part of the state out."""

    def __init__(
        self,
        fitted: FittedVariable,
        order: Order,
        axis: CaseAxis,
        parts: tuple[str, ...],
        own: Sequence[str],
        chosen: Mapping[str, int],
    ) -> None:
        self.method, self.periods = fitted.method, fitted.periods
        self.order, self.axis, self.parts, self.own, self.chosen = order, axis, parts, own, chosen

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return self.method.on_device

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        chosen, args = args[: len(self.chosen)], args[len(self.chosen) :]
        parts, args = dict(zip(self.parts, args, strict=False)), args[len(self.parts) :]
        n_seen = (len(args) - len(self.periods)) // 2 if self.order.has_known else 0
        others, seen = args[: len(args) - n_seen], args[len(args) - n_seen :]
        lead, fitted = at_locations(self.chosen, chosen)
        how, largest = (self.periods, self.axis), fitted.pop("largest_seen")
        _, cases, flags = cases_of(parts, others, *how, largest=largest)
        own = self.method.update_locations(cases, fitted, self.order.slots)
        known = [np.broadcast_to(a, (*lead, a.shape[-1])).reshape(-1, a.shape[-1]) for a in seen]
        enters, gained = self._entering(cases, known)
        kept = parts_to_keep(parts, cases, lead) if self.method.keeps_cases else []
        results = (
            *kept,
            cases.observations,
            (fitted["n_cases"] + gained).astype(np.int32),
            (fitted["status"] | flags).astype(np.int16),
            *(own[name] for name in self.own),
            enters,
        )
        return tuple(a.reshape((*lead, *a.shape[1:])) for a in results)

    def _entering(
        self, cases: Cases, known: Sequence[npt.NDArray[Any]]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Which added cases (L, t) count, and how many (L,) more observations there are then.

        New ones do, and known ones with an observation that differs from what was known, if any.
        """
        new = cases.observations
        there = np.isfinite(new)
        if not known:
            return np.ones_like(there), there.sum(-1)
        given = (new, *cases.partners)
        same = [a.astype(b.dtype, copy=False) == b for a, b in zip(given, known, strict=True)]
        is_known = namespace(new).asarray(self.order.known >= 0)
        enters = ~is_known | (there & ~reduce(and_, same))
        lost = enters & is_known & np.isfinite(known[0])
        return enters, (enters & there).sum(-1) - lost.sum(-1)
