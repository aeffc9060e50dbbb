"""Apply: new forecasts through a fitted model, to weights, quantiles or scores in each chunk."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from .attributes import describing, history_line
from .diagnostics import score_variables
from .dims import LEVEL, MEMBER, case_axis
from .ensembles import task_parts
from .forms import Form, Labelled, read_forms
from .labels import require_equal_labels
from .methods import Method
from .pairing import Observations, pair_cases
from .parallel import require_one_chunk, run_blockwise
from .recalibrator import CASE, CASE_MEMBER, FittedVariable, Recalibrator
from .tasks import (
    NEW_MEMBER,
    PredictTask,
    Reduction,
    crps_of,
    normal_parameters,
    quantiles_of,
    weights_of,
)
from .units import check_units


def apply(model: Recalibrator, forecast: Labelled) -> xr.Dataset:
    """Recalibrated distributions; see :meth:`Recalibrator.apply`."""
    variables: dict[Hashable, xr.DataArray] = {}
    for name, (form, fitted) in _match_variables(model, forecast).items():
        base = "forecast" if name is None else name
        attrs = _attributes(form, fitted)
        if model.method.output == "normal":
            loc, scale = _run(model.method, form, fitted, normal_parameters, [(), ()])
            variables[f"{base}_loc"] = loc.assign_attrs(attrs)
            units = {k: v for k, v in attrs.items() if k == "units"}
            variables[f"{base}_scale"] = scale.assign_attrs(
                units | {"long_name": "standard deviation of the recalibrated forecast"}
            )
            continue
        member = _result_member_dim(form)
        (weights,) = _run(model.method, form, fitted, weights_of, [(CASE,)])
        members = fitted.state["observations"]
        members = members.drop_vars(
            [  # may differ between hindcast and forecast: the latter's count
                name
                for name, coordinate in members.coords.items()
                if name not in members.indexes and (name in weights.coords or not coordinate.dims)
            ]
        ).rename({CASE: member})
        dims = [d for d in weights.dims if d in members.dims]
        variables[base] = members.transpose(*dims).assign_attrs(
            attrs | {"ancillary_variables": f"{base}_weight"}
        )
        variables[f"{base}_weight"] = weights.assign_attrs(
            long_name="probability of each member", role="member_weight"
        )
    attrs = forecast.attrs
    if isinstance(forecast, xr.DataArray):  # the others describe the variable
        attrs = {name: value for name, value in attrs.items() if name == "history"}
    history = history_line(attrs, f"recalibrated by {model.method}")
    return xr.Dataset(variables, attrs=history)


def quantile(
    model: Recalibrator, forecast: Labelled, q: float | Sequence[float] | np.ndarray
) -> Labelled:
    """Quantiles of recalibrated forecasts; see :meth:`Recalibrator.quantile`."""
    from .arrays.weighted import check_levels

    levels = check_levels(q)

    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        (values,) = _run(
            model.method,
            form,
            fitted,
            partial(quantiles_of, levels=levels),
            [("quantile",)],
            {"quantile": levels.size},
        )
        values = values.assign_coords(quantile=levels).assign_attrs(_attributes(form, fitted))
        return values.isel(quantile=0) if np.ndim(q) == 0 else values

    note = f"quantiles after recalibration by {model.method}"
    result = _map_variables(model, forecast, one)
    return result.assign_attrs(history_line(result.attrs, note))


def crps(
    model: Recalibrator,
    forecast: Labelled,
    observations: Observations,
    dim: Hashable | Sequence[Hashable] | None = None,
) -> Labelled:
    """CRPS of recalibrated forecasts; see :meth:`Recalibrator.crps`."""
    matched = _match_variables(model, forecast)

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        fitted = matched[form.name][1]
        along = fitted.dim if fitted.dim in form.dims else None
        pairs = pair_cases(form, observed, along, name="forecast", require_dim=False)
        (scores,) = _run(model.method, form, fitted, crps_of, [()], extra=pairs.observations)
        return scores

    return score_variables(forecast, observations, one, dim, _member_dim(model, forecast))


def _attributes(form: Form, fitted: FittedVariable) -> dict[str, Any]:
    """Attributes of the forecast, with the units of the observations that the fit has learned."""
    units = {k: v for k, v in fitted.attrs.items() if k == "units"}
    return describing({**fitted.attrs, **form.loc.attrs, **units})


def _map_variables(
    model: Recalibrator,
    forecast: Labelled,
    function: Callable[[Form, FittedVariable], xr.DataArray],
) -> Labelled:
    """Result of a function on each fitted variable, of the type of the forecast."""
    results = {
        name: function(form, fitted)
        for name, (form, fitted) in _match_variables(model, forecast).items()
    }
    if isinstance(forecast, xr.DataArray):
        return next(iter(results.values())).rename(forecast.name)
    return xr.Dataset(results, attrs=forecast.attrs)


def _match_variables(
    model: Recalibrator, forecast: Labelled
) -> dict[Hashable, tuple[Form, FittedVariable]]:
    """Forecast variables with their fits, checked against each other."""
    if not isinstance(forecast, (xr.DataArray, xr.Dataset)):
        raise TypeError(
            f"forecast must be an xarray DataArray or Dataset, got {type(forecast).__name__}"
        )
    fitted = dict(model.variables)
    forms = read_forms(forecast, _member_dim(model, forecast), name="forecast")
    if isinstance(forecast, xr.DataArray) and len(fitted) == 1:
        matched = {forecast.name: (next(iter(forms.values())), next(iter(fitted.values())))}
    else:
        missing = [name for name in forms if name not in fitted]
        if missing and not (len(forms) == len(fitted) == 1):
            raise ValueError(
                f"the model has no variable {missing[0]!r}; it was fitted on {list(fitted)}"
            )
        matched = {
            name: (form, fitted[name] if name in fitted else next(iter(fitted.values())))
            for name, form in forms.items()
        }
    for form, variable in matched.values():
        _check_forecast(form, variable)
    return matched


def _member_dim(model: Recalibrator, forecast: Labelled) -> Hashable | None:
    """Dimension of the hindcast's members, where the forecast has it and no rule finds it."""
    dims = [d for fitted in model.variables.values() if (d := fitted.member_dim) in forecast.dims]
    named = (*MEMBER.names, *LEVEL.names, "component")
    if isinstance(forecast, xr.Dataset):  # whose variables may differ in it
        dims = [d for d in dims if d not in named]
    return dims[0] if dims else None


def _check_forecast(form: Form, fitted: FittedVariable) -> None:
    if (form.kind == "normal") != (fitted.kind == "normal"):
        raise ValueError(
            f"the model was fitted on forecasts of the form {fitted.kind!r} and cannot take "
            f"{form.kind!r}: normal distributions and ensembles have different distances"
        )
    units = form.loc.attrs.get("units")
    check_units("hindcast", fitted.attrs.get("units"), "forecast", units)
    missing = [d for d in fitted.locations if d not in form.dims]
    extra = [d for d in form.dims if d not in (*fitted.locations, fitted.dim)]
    if missing or extra:
        raise ValueError(
            f"forecast has dimensions {list(form.dims)} besides its members, but the model was "
            f"fitted over {[fitted.dim, *fitted.locations]}"
            + (f"; it lacks {missing}: apply the model to all and select then" if missing else "")
            + (f"; unknown are {extra}, select or rename" if extra else "")
        )
    for part in form.parts.values():
        require_one_chunk(part, (form.member_dim,), name="forecast")
        for location in (d for d in fitted.locations if d in part.dims):
            require_equal_labels(fitted.state, part, location, names=("model.state", "forecast"))


def _run(
    method: Method,
    form: Form,
    fitted: FittedVariable,
    reduction: Reduction,
    out: list[tuple[Hashable, ...]],
    sizes: Mapping[Hashable, int] | None = None,
    extra: xr.DataArray | None = None,
) -> tuple[xr.DataArray, ...]:
    """Predict and reduce in each chunk; ``out`` has the new dimensions of each result.

    The cases of the forecast come last among the dimensions looped over, so that a task sees for
    each of its locations the state once and all forecasts.
    """
    has_cases = fitted.dim in form.dims
    loops = [*fitted.locations, *([fitted.dim] if has_cases else [])]
    new = task_parts(form, loops, {form.member_dim: NEW_MEMBER})
    others = {}
    if method.needs_season:
        dated = [part for part in form.parts.values() if fitted.dim in part.dims]
        others["season"] = _season(dated[0] if dated else form.loc, fitted.dim, method)
    if extra is not None:
        others["extra"] = extra.transpose(*[d for d in loops if d in extra.dims])
    state = {str(name): v.drop_vars(list(v.coords)) for name, v in fitted.state.items()}
    results = run_blockwise(
        PredictTask(
            method, fitted.axis, reduction, tuple(new), tuple(others), tuple(state), has_cases
        ),
        *state.values(),  # first, as they have all locations: these then lead, and cases follow
        *new.values(),
        *others.values(),
        core=[tuple(d for d in (CASE, CASE_MEMBER) if d in v.dims) for v in state.values()]
        + [(NEW_MEMBER,)] * len(new)
        + [()] * len(others),
        out=out,
        dtypes=[form.loc.dtype] * len(out),
        sizes={CASE: fitted.state.sizes[CASE], **(sizes or {})},
    )
    return tuple(_in_user_order(result, form, fitted) for result in results)


def _season(forecast: xr.DataArray, dim: Hashable, method: Method) -> xr.DataArray:
    """Dates of the forecasts as fractions of the year."""
    season = case_axis(forecast, dim).season
    if season is None:
        raise ValueError(
            f"{method} needs the dates of the forecasts: a datetime64 or cftime coordinate "
            f"along {dim!r}, or a scalar one for a single forecast"
        )
    if dim in forecast.dims:
        return xr.DataArray(season, dims=[dim])
    return xr.DataArray(season[0])


def _result_member_dim(form: Form) -> Hashable:
    """The user's member dimension; past observations are neither quantiles nor components."""
    return form.member_dim if form.kind in ("ensemble", "weighted") else "member"


def _in_user_order(result: xr.DataArray, form: Form, fitted: FittedVariable) -> xr.DataArray:
    """Dimensions as in the forecast, the new one in place of the members; their coordinates."""
    new = [d for d in result.dims if d not in form.dims]
    if new == [CASE]:
        member = _result_member_dim(form)
        result = result.rename({CASE: member})
        label = f"calibration_{fitted.dim}"
        if label in fitted.state.coords:
            labels = fitted.state.coords[label]
            result = result.assign_coords({label: (member, labels.data, labels.attrs)})
        new = [member]
    return result.transpose(*form.order(tuple(new)))
