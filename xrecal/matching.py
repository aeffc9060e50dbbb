"""Forecasts and the fits they belong to, checked against each other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from .covariates import Given, period_of
from .dims import LEVEL, MEMBER
from .forms import Form, Labelled, read_forms, require_distances
from .jointly import with_vector
from .labels import require_equal_labels, require_unique
from .leads import matched_leads, unit_of_leads
from .methods import VectorCKME
from .methods.base import SEASON
from .parallel import require_one_chunk
from .recalibrator import FittedVariable, Recalibrator
from .units import check_units
from .valid_time import along_lead, known_valid_times, valid_times


def match_variables(
    model: Recalibrator, forecast: Labelled
) -> dict[Hashable, tuple[Form, FittedVariable]]:
    """Forecast variables with their fits, checked against each other.

    Where each lead has a fit, those of the forecast's leads; a lead that is a scalar coordinate
    becomes a dimension of length one, which :func:`as_given` takes off results.
    """
    if not isinstance(forecast, (xr.DataArray, xr.Dataset)):
        raise TypeError(
            f"forecast must be an xarray DataArray or Dataset, got {type(forecast).__name__}"
        )
    fitted = dict(model.variables)
    forms = read_forms(forecast, explicit_member_dim(model, forecast), name="forecast")
    partners = {name for variable in fitted.values() for name in variable.jointly} - set(fitted)
    if isinstance(forecast, xr.DataArray) and len(fitted) == 1:
        matched = {forecast.name: (next(iter(forms.values())), next(iter(fitted.values())))}
    else:
        wanted = {name: form for name, form in forms.items() if name not in partners}
        missing = [name for name in wanted if name not in fitted]
        if missing and not (len(wanted) == len(fitted) == 1):
            raise ValueError(
                f"the model has no variable {missing[0]!r}; it was fitted on {list(fitted)}"
            )
        matched = {
            name: (form, fitted[name] if name in fitted else next(iter(fitted.values())))
            for name, form in wanted.items()
        }
    found = {}
    for name, (form, variable) in matched.items():
        form = _with_lead(form, variable)
        variable = _at_leads(form, variable)
        check_forecast(form, variable)
        found[name] = _with_partners(form, variable, forms), variable
    return found


def _with_partners(form: Form, fitted: FittedVariable, forms: Mapping[Hashable, Form]) -> Form:
    """The forecast, with the members of all variables that it is recalibrated jointly with."""
    if not isinstance(fitted.method, VectorCKME):
        return form
    if not fitted.jointly:
        return replace(form, vector=(form.loc,))
    missing = [name for name in fitted.jointly if name not in forms]
    if missing:
        raise ValueError(
            f"the model recalibrates {' and '.join(map(repr, fitted.jointly))} jointly, but the "
            f"forecast lacks {missing[0]!r}; pass a Dataset with all of them"
        )
    return with_vector(
        {name: _with_lead(forms[name], fitted) for name in fitted.jointly}, form.name
    )


def lead_of(fitted: FittedVariable) -> Hashable | None:
    """Dimension of the leads; None if the hindcast had none."""
    return None if fitted.leads is None else fitted.leads.dim


def single_lead(fitted: FittedVariable, forecast: Labelled) -> Hashable | None:
    """Dimension of the leads where it is a scalar coordinate of the forecast."""
    lead = lead_of(fitted)
    return lead if lead in forecast.coords and forecast[lead].ndim == 0 else None


def as_given(result: xr.DataArray, fitted: FittedVariable, forecast: Labelled) -> xr.DataArray:
    """Result with the dimensions of the forecast: without that of a single lead."""
    lead = single_lead(fitted, forecast)
    return result.isel({lead: 0}) if lead in result.dims else result


def _with_lead(form: Form, fitted: FittedVariable) -> Form:
    """A forecast of a single lead along it, where leads have fits of their own or share one."""
    lead = single_lead(fitted, form.loc)
    if lead is None or lead not in (*fitted.state.indexes, *shared_dims(fitted)):
        return form
    return form.with_parts(
        {
            name: along_lead(part, fitted.dim, lead) if lead in part.coords else part
            for name, part in form.parts.items()
        }
    )


def _at_leads(form: Form, fitted: FittedVariable) -> FittedVariable:
    """The fits of the leads of a forecast, in its order.

    Raises
    ------
    ValueError
        If a lead has no fit or stands there twice, or leads have another unit.
    """
    lead = lead_of(fitted)
    known = fitted.state.indexes.get(lead)
    labelled = [part for part in form.parts.values() if lead in part.indexes]
    if fitted.leads is None or known is None or not known.is_unique or not labelled:
        return fitted
    part = labelled[0]
    _require_unit_of_leads(part, fitted, name="forecast")
    _require_known_leads(part, fitted, name="forecast")
    given = part.indexes[lead]
    if given.equals(known):
        return fitted
    require_unique(given, lead, "forecast")
    places = known.get_indexer(given)
    state = _cut_alike(fitted.state.isel({lead: places}), part, lead)
    counts = np.array(fitted.leads.n_matched)[places]
    return replace(
        fitted,
        state=state.assign_coords({lead: part[lead].variable}),
        leads=matched_leads(part, lead, counts, dated=fitted.leads.dated),
        places={lead: (places, known.size)},
    )


def _cut_alike(state: xr.Dataset, part: xr.DataArray, dim: Hashable) -> xr.Dataset:
    """A lazy state in the blocks of a forecast, as those of what was selected have any size."""
    cut = {d: sizes for d, sizes in part.variable.chunksizes.items() if d == dim}
    if not cut:
        return state
    lazy = {name: array.variable for name, array in state.items() if array.chunks is not None}
    return state.assign({name: v.chunk(cut) for name, v in lazy.items() if dim in v.dims})


def explicit_member_dim(model: Recalibrator, forecast: Labelled) -> Hashable | None:
    """Dimension of the hindcast's members, where the forecast has it and no rule finds it."""
    dims = [d for fitted in model.variables.values() if (d := fitted.member_dim) in forecast.dims]
    named = (*MEMBER.names, *LEVEL.names, "component")
    if isinstance(forecast, xr.Dataset):  # whose variables may differ in it
        dims = [d for d in dims if d not in named]
    return dims[0] if dims else None


def check_forecast(form: Form, fitted: FittedVariable, name: str = "forecast") -> None:
    """Raise ValueError unless a forecast is of the kind, unit and locations of the fit."""
    require_distances(form, name="forecast")
    if (form.kind == "normal") != (fitted.kind == "normal"):
        raise ValueError(
            f"the model was fitted on forecasts of the form {fitted.kind!r} and cannot take "
            f"{form.kind!r}: normal distributions and ensembles have different distances"
        )
    units = form.loc.attrs.get("units")
    check_units("hindcast", fitted.attrs.get("units"), name, units)
    missing = [d for d in fitted.locations if d not in form.dims]
    extra = [d for d in form.dims if d not in (*fitted.locations, *shared_dims(fitted))]
    if missing or extra:
        raise ValueError(
            f"{name} has dimensions {list(form.dims)} besides its members, but the model was "
            f"fitted over {[*shared_dims(fitted), *fitted.locations]}"
            + (f"; it lacks {missing}: {_told_missing(missing, fitted, name)}" if missing else "")
            + (f"; unknown are {extra}, select or rename" if extra else "")
        )
    for part in form.parts.values():
        require_one_chunk(part, (form.member_dim,), name=name)
        _require_unit_of_leads(part, fitted, name=name)
        _require_known_leads(part, fitted, name=name)
        for location in (d for d in fitted.locations if d in part.dims):
            require_equal_labels(fitted.state, part, location, names=("model.state", name))


def _told_missing(missing: list[Hashable], fitted: FittedVariable, name: str) -> str:
    """What to do about dimensions that forecasts lack."""
    told = "apply the model to all and select then"
    lead = lead_of(fitted)
    if name != "forecast" or missing != [lead] or lead not in fitted.state.indexes:
        return told
    return f"{told}, or say which one it has: forecast.assign_coords({lead}=...)"


def _require_known_leads(part: xr.DataArray, fitted: FittedVariable, *, name: str) -> None:
    """Raise ValueError for leads without a fit."""
    lead = lead_of(fitted)
    if lead not in part.indexes or lead not in fitted.state.indexes:
        return
    given, known = part.indexes[lead], fitted.state.indexes[lead]
    unknown = given[~given.isin(known)]
    if unknown.size:
        more = ", ..." if unknown.size > 6 else ""
        raise ValueError(
            f"{name} has {unknown.size} of {given.size} leads along {lead!r} that the model was "
            f"not fitted on, {', '.join(map(str, unknown[:6]))}{more}; it was fitted on {known[0]} "
            f"to {known[-1]}: select those, {name}.sel({lead}=model.state[{lead!r}]), or fit on all"
        )


def _require_unit_of_leads(part: xr.DataArray, fitted: FittedVariable, *, name: str) -> None:
    """Raise ValueError for leads in another unit than those of the fit that they are compared with.

    Where leads share a fit they are, if it conditions on them.
    """
    lead = lead_of(fitted)
    known = f"calibration_{lead}" if lead in fitted.periods else lead
    if lead not in part.indexes or known not in fitted.state.coords:
        return
    both = part[lead], fitted.state[known]
    units = [unit_of_leads(leads) for leads in both]
    if None in units or units[0] == units[1]:
        return
    kinds = [
        "lengths of time" if leads.dtype.kind == "m" else f"numbers of {leads.attrs['units']}"
        for leads in both
    ]
    raise ValueError(
        f"leads along {lead!r} are {kinds[0]} in {name}, but {kinds[1]} in the model; give "
        f"{name} leads of the type and unit of model.state[{known!r}]"
    )


def shared_dims(fitted: FittedVariable) -> tuple[Hashable, ...]:
    """Dimensions along which all forecasts have the same fit."""
    return (*(fitted.pool.forecast_dims if fitted.pool else ()), fitted.dim)


def check_season(form: Form, fitted: FittedVariable, given: Given, *, name: str) -> None:
    """Raise ValueError unless the season is that of the valid time in forecast and fit alike."""
    leads = fitted.leads
    by_hand = given is not None and SEASON in given
    if SEASON not in fitted.periods or by_hand or leads is None or leads.dim not in form.dims:
        return
    whole = form.broadcast().loc.isel({form.member_dim: 0}, drop=True)
    if leads.dated:
        valid_times(whole, fitted.dim, leads.dim, name=name)  # which says what is missing
    elif known_valid_times(whole, fitted.dim) is not None:
        raise ValueError(
            f"{name} tells the valid time of each lead, but the hindcast of the model did not, so "
            "that the model knows the season of starts alone; fit again with a hindcast that does: "
            f'hindcast.{leads.dim}.attrs["units"] = "days"'
        )


def check_periods(
    covariates: Mapping[str, xr.DataArray], fitted: FittedVariable, *, names: tuple[str, str]
) -> None:
    """Raise ValueError unless circular covariates have the periods of the fit."""
    for name, value in covariates.items():
        period = period_of(value)
        if period != fitted.periods[name]:
            raise ValueError(
                f"the covariate {name!r} has the period {period} in {names[0]}, but "
                f"{fitted.periods[name]} in {names[1]}; set the same attribute 'period' in both"
            )
