"""Update: more cases for a fitted model, which keeps what its fit has chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import run_blockwise, work_on
from xrecal.inputs.covariates import Given
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.pairing import Observations, Pairs, in_order, pair_cases, pair_variables
from xrecal.methods import VectorCKME
from xrecal.methods.base import Updatable, method_on_device
from xrecal.typing import IntArray

from .fit_hindcast import axis_of, require_whole_cases
from .fitted import CASE, Fitted, FittedVariable
from .joining import ADDED, ADDED_MEMBER, join_states
from .mismatch_warnings import warn_of_other_place
from .select_fits import check_forecast, explicit_member_dim, matching_covariates
from .state import COVARIATE, cases_of, is_part, task_arguments

F = TypeVar("F", bound=Fitted)

DATES = ("year", "season", "days", "month_day", "day")
"""What is known of the date of each case; steps begin anew."""


def update(
    model: F,
    hindcast: Labelled,
    observations: Observations,
    covariates: Given = None,
) -> F:
    """A model with more cases; see :meth:`Recalibrator.update`."""
    for fitted in model.variables.values():
        _require_updatable(fitted)
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
    variables = {
        name: _update_variable(*paired[name], fitted, covariates)
        for name, fitted in model.variables.items()
    }
    return replace(model, variables=variables)


def _require_updatable(fitted: FittedVariable) -> None:
    name = type(fitted.method).__name__
    anew = "fit anew with all cases: hindcast.recal.fit(observations, model.method)"
    if isinstance(fitted.method, VectorCKME):
        raise ValueError(
            "variables that were fitted jointly or on a circle cannot be updated; fit anew with "
            "all cases: hindcast.recal.fit(observations, model.method, jointly=..., period=...)"
        )
    if not isinstance(fitted.method, Updatable):
        raise ValueError(f"{name} keeps nothing that more cases could join; {anew}")
    if fitted.pool is not None:
        raise ValueError(f"the model is {fitted.pool}, and a pooled one cannot be updated; {anew}")


def _update_variable(
    form: Form, observed: xr.DataArray, fitted: FittedVariable, covariates: Given
) -> FittedVariable:
    check_forecast(form, fitted, name="hindcast")
    pairs = in_order(pair_cases(form, observed, fitted.dim, name="hindcast"))
    require_whole_cases(pairs)
    given = matching_covariates(pairs.form, fitted, covariates, of_more_cases=True)
    n_kept, n_added = fitted.state.sizes[CASE], pairs.observations.sizes[fitted.dim]
    labels, order = _join_labels(pairs, fitted, n_kept + n_added)
    added = axis_of(pairs)
    axis = _join_axes(fitted.axis, added).take(order)
    fitted.method.check(axis, n_kept + n_added)  # raises where dates are needed and missing
    state = join_states(fitted, _added_state(pairs, fitted, added, given), order)
    return replace(
        fitted,
        axis=axis,
        n_matched=fitted.n_matched + pairs.n_matched,
        n_forecasts=fitted.n_forecasts + n_added,
        n_added=fitted.n_added + n_added,
        leads=None if fitted.leads is None else fitted.leads.plus(pairs.leads),
        state=state.assign_coords(labels),
    )


def _join_labels(
    pairs: Pairs, fitted: FittedVariable, n: int
) -> tuple[dict[str, tuple[str, Any, dict[str, Any]]], IntArray]:
    """Labels of all cases, ascending, and the order that makes them so."""
    dim, name = fitted.dim, f"calibration_{fitted.dim}"
    new = [part.indexes[dim] for part in pairs.form.parts.values() if dim in part.indexes]
    if bool(new) != (name in fitted.state.coords):
        bare, other = ("the model", "hindcast") if new else ("hindcast", "the model")
        raise ValueError(
            f"{bare} has no labels along {dim!r}, but {other} has; cases are told apart by them, "
            "so fit and update with labels or both without"
        )
    if not new:
        return {}, np.arange(n)
    coordinate = fitted.state.coords[name]
    kept = coordinate.to_index()
    types = type(kept[0]), type(new[0][0])
    if types[0] != types[1]:
        raise ValueError(
            f"labels along {dim!r} are of the type {types[1].__name__} in hindcast, but "
            f"{types[0].__name__} in the model; use the same calendar and type"
        )
    already = new[0].isin(kept)
    if already.any():
        raise ValueError(
            f"{int(already.sum())} of {already.size} labels along {dim!r} of hindcast are in the "
            f"model already, first {new[0][already][0]}; leave them out"
        )
    joined = kept.append(new[0])
    order = np.asarray(joined.argsort())
    return {name: (CASE, joined[order], coordinate.attrs)}, order


def _join_axes(kept: CaseAxis, added: CaseAxis) -> CaseAxis:
    """Dates of both, where both are dated."""
    dates = {name: (getattr(kept, name), getattr(added, name)) for name in DATES}
    known = {name: pair for name, pair in dates.items() if not any(a is None for a in pair)}
    return CaseAxis(**{name: np.concatenate(pair) for name, pair in known.items()})


def _added_state(
    pairs: Pairs, fitted: FittedVariable, axis: CaseAxis, covariates: Mapping[str, xr.DataArray]
) -> dict[str, xr.DataArray]:
    """Arrays of the state for the added cases, over ``ADDED``, and new counts and statuses."""
    parts, others = task_arguments(pairs, covariates, (ADDED, ADDED_MEMBER))
    chosen, own = _chosen_and_own(fitted.state)
    core = {
        name: tuple(d for d in v.dims if d not in fitted.locations) for name, v in chosen.items()
    }
    kept = tuple(parts) if fitted.method.keeps_cases else ()
    results = run_blockwise(
        _UpdateTask(fitted, {k: len(dims) for k, dims in core.items()}, tuple(parts), own, axis),
        *chosen.values(),  # first, as they have all locations in their order
        *(part.drop_vars(list(part.coords)) for part in parts.values()),
        *others.values(),
        core=[
            *core.values(),
            *[(ADDED, ADDED_MEMBER)] * len(parts),
            *[(ADDED,)] * len(others),
        ],
        out=[*[(ADDED, ADDED_MEMBER)] * len(kept), (ADDED,), (), (), *[(ADDED,)] * len(own)],
        dtypes=[
            *(parts[name].dtype for name in kept),
            others["observations"].dtype,
            np.int32,
            np.int16,
            *(fitted.state[name].dtype for name in own),
        ],
        sizes={},
        what=work_on("the update", pairs.form.name),
    )
    names = [*kept, "observations", "n_cases", "status", *own]
    added = dict(zip(names, results, strict=True))
    return added | {COVARIATE + name: others[name] for name in covariates}


def _chosen_and_own(state: xr.Dataset) -> tuple[dict[str, xr.DataArray], list[str]]:
    """Arrays that the fit chose, and names of parameters that each case has its own of."""
    chosen, own = {}, []
    for label, value in state.items():
        name = str(label)
        if CASE not in value.dims:
            chosen[name] = value.drop_vars(list(value.coords))
        elif name != "observations" and not is_part(name) and not name.startswith(COVARIATE):
            own.append(name)
    return chosen, own


class _UpdateTask:
    """State and new cases of a chunk of locations in, the new part of the state out."""

    def __init__(
        self,
        fitted: FittedVariable,
        chosen: Mapping[str, int],
        parts: tuple[str, ...],
        own: Sequence[str],
        axis: CaseAxis,
    ) -> None:
        self.method, self.periods = fitted.method, fitted.periods
        self.n_kept = fitted.state.sizes[CASE]
        self.chosen, self.parts, self.own, self.axis = chosen, parts, own, axis

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return method_on_device(self.method)

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        from xrecal.arrays.distributions.forms import sort_members

        chosen, args = args[: len(self.chosen)], args[len(self.chosen) :]
        parts = dict(zip(self.parts, args, strict=False))
        lead, cases, flags = cases_of(parts, args[len(parts) :], self.periods, self.axis)
        fitted = {}
        for (name, n_core), a in zip(self.chosen.items(), chosen, strict=True):
            core = a.shape[a.ndim - n_core :]
            fitted[name] = np.broadcast_to(a, (*lead, *core)).reshape(-1, *core)
        assert isinstance(self.method, Updatable)
        assert cases.forecasts is not None
        own = self.method.update_locations(cases, fitted, self.n_kept)
        used = np.isfinite(cases.observations).sum(-1)
        kept = sort_members(cases.forecasts)._asdict() if self.method.keeps_cases else {}
        results = (
            *(kept[name].astype(parts[name].dtype, copy=False) for name in parts if kept),
            cases.observations,
            (fitted["n_cases"] + used).astype(np.int32),
            (fitted["status"] | flags).astype(np.int16),
            *(own[name] for name in self.own),
        )
        return tuple(a.reshape((*lead, *a.shape[1:])) for a in results)
