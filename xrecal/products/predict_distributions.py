"""Apply: recalibrated distributions of new forecasts, as weights or parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import xarray as xr

from xrecal.fit.fitted import CASE, Fitted, FittedVariable
from xrecal.fit.select_fits import as_given, match_variables
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.metadata import history_line

from .predict import SLOT, issued_attributes, run_on_forecasts
from .reductions import members_and_weights, normal_parameters, weights_of


def apply(model: Fitted, forecast: Labelled, covariates: Given = None) -> xr.Dataset:
    """Recalibrated distributions; see :meth:`Recalibrator.apply`."""
    variables: dict[Hashable, xr.DataArray] = {}
    along: dict[Hashable, Hashable] = {}
    known: dict[tuple[Hashable, ...], xr.DataArray] = {}
    for name, (form, fitted) in match_variables(model, forecast).items():
        base = "forecast" if name is None else name
        attrs = issued_attributes(form, fitted)
        if fitted.method.output == "normal":
            issued = _normal(form, fitted, base, attrs, covariates)
        else:
            issued = _weighted(form, fitted, base, attrs, covariates, known.get(fitted.jointly))
            if fitted.jointly:  # whole vectors have weights
                known[fitted.jointly] = issued[f"{base}_weight"]
        issued = {variable: as_given(v, fitted, forecast) for variable, v in issued.items()}
        _require_same_places(base, issued, along)
        variables |= issued
    attrs = forecast.attrs
    if isinstance(forecast, xr.DataArray):  # the others describe the variable
        attrs = {name: value for name, value in attrs.items() if name == "history"}
    history = history_line(attrs, f"recalibrated by {model.method}")
    return xr.Dataset(variables, attrs=history)


def _require_same_places(
    name: Hashable,
    issued: Mapping[Hashable, xr.DataArray],
    along: dict[Hashable, Hashable],
) -> None:
    """Raise ValueError if labels would be ``along`` several dimensions, which gains new ones."""
    for variable in issued.values():
        for label, coordinate in variable.coords.items():
            if coordinate.ndim != 1:
                continue
            (dim,) = coordinate.dims
            if along.setdefault(label, dim) != dim:
                raise ValueError(
                    f"the members of {name!r} are along {dim!r}, those of another variable along "
                    f"{along[label]!r}, and one Dataset cannot hold {label!r} along both; apply "
                    f"one by one: model[{name!r}].apply(forecast[{name!r}])"
                )


def _normal(
    form: Form, fitted: FittedVariable, base: Hashable, attrs: dict[str, Any], covariates: Given
) -> dict[Hashable, xr.DataArray]:
    """Normal distributions, and where they may be censored."""
    loc, scale = run_on_forecasts(form, fitted, normal_parameters, [(), ()], covariates=covariates)
    units = {k: v for k, v in attrs.items() if k == "units"}
    described = units | {"long_name": "standard deviation of the recalibrated forecast"}
    found: dict[Hashable, xr.DataArray] = {
        f"{base}_loc": loc.assign_attrs(attrs),
        f"{base}_scale": scale.assign_attrs(described),
    }
    for end in ("lower", "upper"):
        if end in fitted.state:
            coords = [c for c in fitted.state.coords if c not in fitted.state[end].dims]
            found[f"{base}_{end}"] = (
                fitted.state[end]
                .astype(form.loc.dtype)
                .drop_vars(coords, errors="ignore")
                .assign_attrs(units | {"long_name": f"{end} bound, where the forecast is censored"})
            )
    return found


def _weighted(
    form: Form,
    fitted: FittedVariable,
    base: Hashable,
    attrs: dict[str, Any],
    covariates: Given,
    weights: xr.DataArray | None,
) -> dict[Hashable, xr.DataArray]:
    """Members and their weights, unless these are known."""
    member = form.member_dim_of_results
    if fitted.method.shares_members:
        if weights is None:
            (weights,) = run_on_forecasts(
                form, fitted, weights_of, [(CASE,)], covariates=covariates
            )
        members = fitted.state["observations"]
        members = members.drop_vars(
            [  # may differ between hindcast and forecast: the latter's count
                name
                for name, coordinate in members.coords.items()
                if name not in members.indexes and (name in weights.coords or not coordinate.dims)
            ]
        ).rename({CASE: member})
        dims = [d for d in weights.dims if d in members.dims]
        members = members.transpose(*dims)
        members.attrs = {}  # of what was observed, not of what is forecast
    else:
        slots: dict[Hashable, int] = {SLOT: fitted.method.slots(fitted.state.sizes[CASE])[0].size}
        members, weights = run_on_forecasts(
            form, fitted, members_and_weights, [(SLOT,)] * 2, slots, covariates=covariates
        )
    return {
        base: members.assign_attrs(attrs | {"ancillary_variables": f"{base}_weight"}),
        f"{base}_weight": weights.assign_attrs(
            long_name="probability of each member", role="member_weight"
        ),
    }
