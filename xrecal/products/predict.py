"""New forecasts through a fitted model, chunk by chunk, to quantiles and whatever else is asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import run_blockwise, work_on
from xrecal.fit.fitted import CASE, Fitted, FittedVariable
from xrecal.fit.select_fits import (
    as_given,
    match_variables,
    matching_covariates,
    shared_dims,
)
from xrecal.fit.state import COVARIATE, NEW_MEMBER
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import level_coordinate, read_levels
from xrecal.inputs.forms import Form, Labelled, task_parts
from xrecal.inputs.metadata import describing, history_line
from xrecal.inputs.pool import HINDCAST_LABELS
from xrecal.methods import VectorCKME

from .reductions import Reduction, quantiles_of, require_defined
from .tasks import PredictTask

Task = TypeVar("Task", bound=PredictTask)

SLOT = "slot"
"""Dimension of the members of a result inside a task, where forecasts have their own."""


def quantile(
    model: Fitted,
    forecast: Labelled,
    q: float | Sequence[float] | np.ndarray,
    covariates: Given = None,
) -> Labelled:
    """Quantiles of recalibrated forecasts; see :meth:`Recalibrator.quantile`."""
    levels = read_levels(q)

    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        (values,) = run_on_forecasts(
            form,
            fitted,
            partial(quantiles_of, levels=levels),
            [("quantile",)],
            {"quantile": levels.size},
            covariates=covariates,
        )
        values = values.assign_coords(quantile=level_coordinate(levels))
        values = values.assign_attrs(issued_attributes(form, fitted))
        return values.isel(quantile=0) if np.ndim(q) == 0 else values

    note = f"quantiles after recalibration by {model.method}"
    result = map_variables(model, forecast, one)
    return result.assign_attrs(history_line(result.attrs, note))


def issued_attributes(form: Form, fitted: FittedVariable) -> dict[str, Any]:
    """Attributes of the forecast, with the units of the observations that the fit has learned."""
    units = {k: v for k, v in fitted.attrs.items() if k == "units"}
    learned = {k: v for k, v in fitted.attrs.items() if k != "history"}  # which is the hindcast's
    return describing({**learned, **form.loc.attrs, **units})


def map_variables(
    model: Fitted,
    forecast: Labelled,
    function: Callable[[Form, FittedVariable], xr.DataArray],
    matched: Mapping[Hashable, tuple[Form, FittedVariable]] | None = None,
) -> Labelled:
    """Result of a function on each fitted variable, of the type of the forecast.

    Variables and fits are matched here unless they are already.
    """
    matched = match_variables(model, forecast) if matched is None else matched
    results = {
        name: as_given(function(form, fitted), fitted, forecast)
        for name, (form, fitted) in matched.items()
    }
    if isinstance(forecast, xr.DataArray):
        return next(iter(results.values())).rename(forecast.name)
    return xr.Dataset(results, attrs=forecast.attrs)


def run_on_forecasts(
    form: Form,
    fitted: FittedVariable,
    reduction: Reduction,
    out: list[tuple[Hashable, ...]],
    sizes: Mapping[Hashable, int] | None = None,
    extras: Sequence[xr.DataArray] = (),
    covariates: Given = None,
) -> tuple[xr.DataArray, ...]:
    """Predict and reduce in each chunk; ``out`` has the new dimensions of each result.

    The reduction gets ``extras``, which may have those besides dimensions of the forecast.

    The cases of the forecast, and positions that were pooled, come last among the dimensions
    looped over, so that a task sees for each fit the state once and all forecasts.
    """
    require_defined(reduction, issued_period(fitted), form.name)
    given = task_arguments(form, fitted, extras, covariates)
    results = run_blockwise(
        given.task(PredictTask, fitted, reduction),
        *given.values,
        core=given.core,
        out=out,
        dtypes=[form.loc.dtype] * len(out),
        sizes={CASE: fitted.state.sizes[CASE], **(sizes or {})},
        what=work_on("the recalibration", form.name),
    )
    return tuple(_in_user_order(result, form, fitted) for result in results)


def issued_period(fitted: FittedVariable) -> float | None:
    """Period of the variable, if it is circular."""
    method = fitted.method
    return method.periods[method.own] if isinstance(method, VectorCKME) else None


class TaskArguments(NamedTuple):
    """What a :class:`xrecal.products.tasks.PredictTask` is called with."""

    values: list[xr.DataArray]
    core: list[tuple[Hashable, ...]]
    """Dimensions of each that are not looped over."""
    names: tuple[tuple[str, ...], dict[str, int], dict[str, int], int]
    """Parts of the forecast; other arrays and state with their core axes; axes that share a fit."""

    def task(self, kind: type[Task], fitted: FittedVariable, reduction: Reduction) -> Task:
        """The task that takes these arguments."""
        return kind(fitted.method, fitted.axis, fitted.periods, reduction, *self.names)


def task_arguments(
    form: Form, fitted: FittedVariable, extras: Sequence[xr.DataArray], covariates: Given
) -> TaskArguments:
    """State, forecasts and other arrays as tasks take them; see :func:`run_on_forecasts`."""
    shared = [d for d in shared_dims(fitted) if d in form.dims]
    loops = [*fitted.locations, *shared]
    new = task_parts(form, loops, {form.member_dim: NEW_MEMBER})
    given = matching_covariates(form, fitted, covariates)
    others = {COVARIATE + name: value for name, value in given.items()}
    others |= {f"extra_{i}": value for i, value in enumerate(extras)}
    own = {name: tuple(d for d in v.dims if d not in loops) for name, v in others.items()}
    others = {
        name: value.drop_vars([c for c in value.coords if c not in value.dims]).transpose(
            *[d for d in loops if d in value.dims], *own[name]
        )
        for name, value in others.items()
    }
    state = {str(name): v.drop_vars(list(v.coords)) for name, v in fitted.state.items()}
    core = {
        name: tuple(d for d in v.dims if d not in fitted.locations) for name, v in state.items()
    }
    return TaskArguments(
        # State first, as it has all locations: these then lead, and cases follow.
        [*state.values(), *new.values(), *others.values()],
        [*core.values(), *[(NEW_MEMBER,)] * len(new), *own.values()],
        (
            tuple(new),
            {name: len(dims) for name, dims in own.items()},
            {name: len(dims) for name, dims in core.items()},
            len(shared),
        ),
    )


def _in_user_order(result: xr.DataArray, form: Form, fitted: FittedVariable) -> xr.DataArray:
    """Dimensions as in the forecast, the new one in place of the members; their coordinates."""
    new = [d for d in result.dims if d not in form.dims]
    if new in ([CASE], [SLOT]):
        member = form.member_dim_of_results
        result = result.rename({new[0]: member})
        result = result.assign_coords(_slot_coordinates(fitted, member))
        new = [member]
    return result.transpose(*form.order(tuple(new)))


def _slot_coordinates(
    fitted: FittedVariable, member: Hashable
) -> dict[str, tuple[Hashable, Any, dict[str, Any]]]:
    """Past case, position and component that each member comes from, where there are several."""
    cases, components = fitted.method.slots(fitted.state.sizes[CASE])
    found: dict[str, tuple[Hashable, Any, dict[str, Any]]] = {}
    for name, labels in fitted.state.coords.items():
        if labels.dims == (CASE,):
            values = taken_labels(labels.to_index().to_numpy(), cases)
            attrs = {k: v for k, v in labels.attrs.items() if k != HINDCAST_LABELS}
            found[str(name)] = (member, values, attrs)
    if components is not None:
        about = {"long_name": "component of the pool that the member comes from"}
        found["component"] = (member, np.asarray(components), about)
    return found


def taken_labels(labels: Any, cases: Any) -> Any:
    """Labels of the cases of all members, missing for those that come from no single case."""
    values = labels[cases]
    if (cases < 0).any():
        dates = values.dtype.kind in "mM"
        values = values.astype(float if values.dtype.kind in "iub" else values.dtype)
        values[cases < 0] = np.array("NaT", values.dtype) if dates else np.nan
    return values
