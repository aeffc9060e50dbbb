"""Match a forecast with its fits, by variable, lead and place, and check the forecast.

A forecast may have only some leads and places of the hindcast, or a single lead or place as a
scalar coordinate. The forecast gets the fits of its leads and places, in the order of the forecast.
Then a check compares the forecast with these fits.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import require_one_chunk
from xrecal.chunks.warnings import warn_once
from xrecal.inputs.circular import PERIOD, check_period
from xrecal.inputs.covariate_forecasts import names_of_given
from xrecal.inputs.covariates import DAY, KNOWN, SEASON, Given, period_of, read_covariates
from xrecal.inputs.dims import require_equal_labels, require_unique
from xrecal.inputs.forms import Form, Labelled, read_forms, require_distances
from xrecal.inputs.identities import known_places
from xrecal.inputs.leads import matched_leads, seconds_of, unit_of_leads
from xrecal.inputs.metadata import check_units
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.places import along_place, find_places, labels_agree, like_places, place_of
from xrecal.inputs.roles import LEVEL, MEMBER, Roles
from xrecal.inputs.valid_time import along_lead, known_valid_times, valid_times
from xrecal.methods.covariates import may_break
from xrecal.typing import IntArray

from .conditioned import names_in
from .fitted import Fitted, FittedVariable
from .jointly import require_members, with_vector
from .mismatch_warnings import (
    warn_of_far_values,
    warn_of_new_labels,
    warn_of_other_place,
    warn_of_unseen,
)
from .more_places import grows, with_new_places
from .named_members import matched_members

MODEL_AND_FORECAST = ("the model", "forecast")
FORECAST_AND_MODEL = MODEL_AND_FORECAST[::-1]


def match_variables(
    model: Fitted, forecast: Labelled, *, read_values: bool = True
) -> dict[Hashable, tuple[Form, FittedVariable]]:
    """Match the variables of a forecast with their fits, and check the variables.

    Each variable gets the fits at the leads and locations of the forecast. A scalar coordinate
    becomes a dimension of length one, which :func:`as_given` removes from results. With
    ``read_values``, the function reads forecasts in memory once, to warn about values far from the
    hindcast.
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
    selected = {}
    for name, (form, variable) in matched.items():
        form = along_single(form, variable)
        variable = fits_of(form, with_new_places(form, variable))
        check_forecast(form, variable)
        form = matched_members(form, variable, "forecast")
        selected[name] = _with_partners(form, variable, forms), variable
    warn_of_other_place(selected.values())
    warn_of_new_labels(selected.values())
    if read_values:
        warn_of_far_values(selected.values())
        warn_of_unseen(selected.values())
    return selected


def _with_partners(form: Form, fitted: FittedVariable, forms: Mapping[Hashable, Form]) -> Form:
    """Return the forecast, with the members of all variables of a joint fit."""
    variables = fitted.method.variables
    if variables is None:
        return form
    if not fitted.jointly:
        require_members(form.name, form, alone=True, name="forecast")
        return replace(form, vector=(form.loc,))
    missing = [name for name in fitted.jointly if name not in forms]
    if missing:
        raise ValueError(
            f"the model recalibrates {' and '.join(map(repr, fitted.jointly))} jointly, but the "
            f"forecast lacks {missing[0]!r}; pass a Dataset with all of them"
        )
    vector = {name: along_single(forms[name], fitted) for name in fitted.jointly}
    for (name, one), units in zip(vector.items(), variables.units, strict=True):
        require_members(name, one, alone=False, name="forecast")
        require_one_chunk(one.loc, (one.member_dim,), name=f"forecast[{name!r}]")
        given = one.loc.attrs.get("units")
        check_units("hindcast", units, f"forecast[{name!r}]", given)
    return with_vector(vector, form.name)


def explicit_member_dim(model: Fitted, forecast: Labelled) -> Hashable | None:
    """Return the member dimension of the hindcast, if the forecast has it; else None.

    For a Dataset the result is also None if xrecal recognises the dimension by its name, because
    the dimensions of variables may differ.
    """
    dims = [d for fitted in model.variables.values() if (d := fitted.member_dim) in forecast.dims]
    named = (*MEMBER.names, *LEVEL.names, "component")
    if isinstance(forecast, xr.Dataset):  # variables may differ in dimensions
        dims = [d for d in dims if d not in named]
    return dims[0] if dims else None


def lead_of(fitted: FittedVariable) -> Hashable | None:
    """Return the dimension of the leads; None if the hindcast had no leads."""
    return None if fitted.leads is None else fitted.leads.dim


def shared_dims(fitted: FittedVariable) -> tuple[Hashable, ...]:
    """Return the dimensions along which all forecasts share a fit."""
    return (*(fitted.pool.forecast_dims if fitted.pool else ()), fitted.dim)


def single_dims(fitted: FittedVariable, forecast: Labelled) -> list[Hashable]:
    """Return the dimensions of leads and places that are scalar coordinates of the forecast."""
    dims = dict.fromkeys([lead_of(fitted), *fitted.locations])
    return [d for d in dims if d is not None and _is_single(fitted, forecast, d)]


def _is_single(fitted: FittedVariable, forecast: Labelled, dim: Hashable) -> bool:
    """Return whether scalar coordinates of a forecast give its lead or place along ``dim``."""
    if dim in forecast.dims:
        return False
    if dim in forecast.coords:
        return True
    fits = fitted.state
    return dim in fits.dims and place_of(fits, forecast, dim, names=MODEL_AND_FORECAST) is not None


def along_single(form: Form, fitted: FittedVariable) -> Form:
    """Add the dimension of a single lead or place to a forecast, if the fit needs it."""
    for d in single_dims(fitted, form.loc):
        if d in (*fitted.state.indexes, *shared_dims(fitted)) or d not in form.loc.coords:
            lead = d == lead_of(fitted)
            parts = {
                name: along_lead(Roles(part), fitted.dim, d).obj
                if lead and d in part.coords
                else along_place(part, fitted.state, d)
                for name, part in form.parts.items()
            }
            form = form.with_parts(parts)
    return form


def as_given(result: xr.DataArray, fitted: FittedVariable, forecast: Labelled) -> xr.DataArray:
    """Remove from a result the dimension of a lead or place that is a scalar in the forecast."""
    single = [d for d in single_dims(fitted, forecast) if d in result.dims]
    return result.isel(dict.fromkeys(single, 0))


def fits_of(form: Form, fitted: FittedVariable) -> FittedVariable:
    """Return the fits at the leads and locations of a forecast, in the order of the forecast.

    Raises
    ------
    ValueError
        If a lead has no fit, a label occurs twice, or leads have another unit.
    """
    lead = lead_of(fitted)
    for d in dict.fromkeys([*([lead] if lead is not None else []), *fitted.locations]):
        part = next((part for part in form.parts.values() if d in part.dims), None)
        if part is None or d not in fitted.state.dims:
            continue
        if d == lead:
            require_unit_of_leads(part, fitted, name="forecast")
            require_known_leads(part, fitted, name="forecast")
        differ = not labels_agree(fitted.state, part, d)
        if differ and part.indexes[d].isin(fitted.state.indexes[d]).all():
            require_unique(part.indexes[d], d, "forecast")
        at = find_places(fitted.state, part, d, names=MODEL_AND_FORECAST)
        if at is not None and (
            not labels_agree(fitted.state, part, d)
            or not np.array_equal(at, np.arange(fitted.state.sizes[d]))
        ):
            fitted = _selected_along(fitted, part, d, at)
    return fitted


def in_order_of_fits(pairs: Pairs, fitted: FittedVariable) -> Pairs:
    """Return cases with their places in the order of the fits.

    Raises
    ------
    ValueError
        If places of the cases and of the fits differ.
    """
    form, observed = pairs.form, pairs.observations
    for d in fitted.locations:
        part = next((part for part in form.parts.values() if d in part.dims), None)
        if part is not None and d in fitted.state.dims and part.sizes[d] != fitted.state.sizes[d]:
            require_equal_labels(fitted.state, part, d, names=("model.state", "hindcast"))
        at = None if part is None else find_places(part, fitted.state, d, names=FORECAST_AND_MODEL)
        if part is not None and at is not None and not np.array_equal(at, np.arange(part.sizes[d])):
            parts = {n: p.isel({d: at}) if d in p.dims else p for n, p in form.parts.items()}
            form = form.with_parts(parts)
            observed = observed.isel({d: at}) if d in observed.dims else observed
    return replace(pairs, form=form, observations=observed)


def _selected_along(
    fitted: FittedVariable, part: xr.DataArray, dim: Hashable, positions: IntArray
) -> FittedVariable:
    """Return the fits at the places of a forecast along one dimension."""
    n = fitted.state.sizes[dim]
    state = _cut_alike(fitted.state.isel({dim: positions}), part, dim)
    agree = labels_agree(state, part, dim)
    leads = fitted.leads
    if leads is not None and dim == leads.dim:
        leads = matched_leads(part, dim, np.array(leads.n_matched)[positions], dated=leads.dated)
    return replace(
        fitted,
        state=state if agree else state.assign_coords({dim: part[dim].variable}),
        leads=leads,
        selected={**(fitted.selected or {}), dim: (positions, n)},
    )


def _cut_alike(state: xr.Dataset, part: xr.DataArray, dim: Hashable) -> xr.Dataset:
    """Cut a lazy state into the chunks of a forecast, because selecting fits changes chunks."""
    cut = {d: sizes for d, sizes in part.variable.chunksizes.items() if d == dim}
    if not cut:
        return state
    lazy = {name: array.variable for name, array in state.items() if array.chunks is not None}
    return state.assign({name: v.chunk(cut) for name, v in lazy.items() if dim in v.dims})


def check_forecast(form: Form, fitted: FittedVariable, name: str = "forecast") -> None:
    """Raise ValueError unless a forecast has the form, the unit and the locations of the fit."""
    require_distances(form, name="forecast")
    if (form.kind == "normal") != (fitted.kind == "normal"):
        raise ValueError(
            f"the model was fitted on forecasts of the form {fitted.kind!r} and cannot take "
            f"{form.kind!r}: normal distributions and ensembles have different distances"
        )
    units = form.loc.attrs.get("units")
    note = check_units("hindcast", fitted.attrs.get("units"), name, units)
    if note is not None and "hindcast" not in (fitted.note or ""):  # new to the user
        warn_once(note)
    if form.period is not None:
        check_period(form.period, fitted.attrs.get(PERIOD), name)
    missing = [d for d in fitted.locations if d not in form.dims]
    extra = [d for d in form.dims if d not in (*fitted.locations, *shared_dims(fitted))]
    if missing or extra:
        raise ValueError(
            f"{name} has dimensions {list(form.dims)} besides its members, but the model was "
            f"fitted over {[*shared_dims(fitted), *fitted.locations]}"
            + (f"; it lacks {missing}: {_remedy(missing, fitted, name)}" if missing else "")
            + (f"; the model has no {extra}: select or rename" if extra else "")
        )
    for part in form.parts.values():
        require_one_chunk(part, (form.member_dim,), name=name)
        require_unit_of_leads(part, fitted, name=name)
        require_known_leads(part, fitted, name=name)
        if name == "forecast" or not grows(fitted):
            own = [d for d in fitted.locations if d in part.dims]
            like_places(part, fitted.state, own, names=("model.state", name))


def _remedy(missing: list[Hashable], fitted: FittedVariable, name: str) -> str:
    """Return a text with a remedy for missing dimensions of a forecast."""
    remedy = "apply the model to all positions, then select"
    lead = lead_of(fitted)
    if name != "forecast" or missing != [lead] or lead not in fitted.state.indexes:
        return remedy
    return f"{remedy}, or give the lead of the forecast: forecast.assign_coords({lead}=...)"


def require_known_leads(part: xr.DataArray, fitted: FittedVariable, *, name: str) -> None:
    """Raise ValueError for leads without a fit."""
    lead = lead_of(fitted)
    if lead not in part.indexes or lead not in fitted.state.indexes:
        return
    given, fitted_leads = part.indexes[lead], fitted.state.indexes[lead]
    found = known_places(fitted.state, part, lead)
    unknown = given[~given.isin(fitted_leads) if found is None else found < 0]
    if unknown.size:
        more = ", ..." if unknown.size > 6 else ""
        units = [f" {o[lead].attrs.get('units', '')}".rstrip() for o in (part, fitted.state)]
        raise ValueError(
            f"{name} has {unknown.size} of {given.size} leads along {lead!r} that the model was "
            f"not fitted on, {', '.join(map(str, unknown[:6]))}{more}{units[0]}; it was fitted on "
            f"{fitted_leads[0]} to {fitted_leads[-1]}{units[1]}: select these leads, "
            f"{name}.sel({lead}=model.state[{lead!r}]), or fit again to all leads"
        )


def require_unit_of_leads(part: xr.DataArray, fitted: FittedVariable, *, name: str) -> None:
    """Raise ValueError for leads in another unit than the leads of the fit.

    The check applies if each lead has its own fit, or if a pooled fit conditions on the lead.
    """
    lead = lead_of(fitted)
    label = f"calibration_{lead}" if lead in fitted.periods else lead
    if lead not in part.indexes or label not in fitted.state.coords:
        return
    both = part[lead], fitted.state[label]
    units = [unit_of_leads(leads) for leads in both]
    lengths = label == lead and all(seconds_of(leads) is not None for leads in both)
    if None in units or units[0] == units[1] or lengths:
        return
    kinds = [
        "lengths of time" if leads.dtype.kind == "m" else f"numbers of {leads.attrs['units']}"
        for leads in both
    ]
    raise ValueError(
        f"leads along {lead!r} are {kinds[0]} in {name}, but {kinds[1]} in the model; use "
        f"the type and unit of model.state[{label!r}] for the leads of {name}"
    )


def matching_covariates(
    form: Form, fitted: FittedVariable, given: Given, *, of_more_cases: tuple[Hashable, ...] = ()
) -> dict[str, xr.DataArray]:
    """Read covariates of a forecast or of added cases, and check them against those of the fit.

    For added cases, ``of_more_cases`` holds names of dimensions: that of the cases, and those of
    pooled positions. For a forecast, it is empty.
    """
    if not fitted.periods and given is None:
        return {}
    name = "hindcast" if of_more_cases else "forecast"
    for covariate, (own, *spread) in names_of_given(given).items():
        if own in fitted.periods and not {*spread} <= {*fitted.periods}:
            raise ValueError(
                f"the covariate {covariate!r} is a forecast with members, but had one value per "
                "case at the fit; give one value per case here too, such as its mean"
            )
    learned = fitted.attrs_of_covariates
    covariates = read_covariates(
        tuple(fitted.periods),
        form,
        fitted.dim,
        given,
        name=name,
        cases=of_more_cases,
        known_as={one: attrs[KNOWN] for one, attrs in learned.items() if KNOWN in attrs},
    )
    mine, theirs = "forecast", "hindcast"
    if of_more_cases:
        mine, theirs = "the new hindcast", "that of the fit"
    for covariate, value in covariates.items():
        units = learned.get(covariate, {}).get("units")
        names = f"the covariate {covariate!r} of the fit", f"covariates[{covariate!r}]"
        check_units(names[0], units, names[1], value.attrs.get("units"))
        period = period_of(value)
        if period != fitted.periods[covariate]:
            raise ValueError(
                f"the covariate {covariate!r} has the period {period} in {mine}, but "
                f"{fitted.periods[covariate]} in {theirs}; set the same attribute 'period' in both"
            )
    if any(name in fitted.periods and name not in (given or ()) for name in (SEASON, DAY)):
        _check_season(form, fitted, name=name)
    return covariates


def with_missing(given: Given, form: Form, fitted: FittedVariable) -> Given:
    """Add NaN for each covariate that a forecast lacks, unless the covariate follows from dates."""
    known = {*names_in(given), *(name for part in form.parts.values() for name in part.coords)}
    lacking = [n for n in fitted.periods if may_break(n) and n not in known]
    attrs = {n: {"period": p} for n, p in fitted.periods.items() if p is not None}
    missing = {n: xr.DataArray(np.nan, attrs=attrs.get(n)) for n in lacking}
    return {**(given or {}), **missing} if missing else given


def _check_season(form: Form, fitted: FittedVariable, *, name: str) -> None:
    """Raise ValueError if only the forecast or only the fit has the season of valid times."""
    leads = fitted.leads
    if leads is None or leads.dim not in form.dims:
        return
    if leads.dated:
        # Raises ValueError if a label is missing.
        valid_times(form.roles, fitted.dim, leads.dim, name=name)
    elif known_valid_times(form.roles, fitted.dim) is not None:
        raise ValueError(
            f"{name} has the valid time of each lead, but the hindcast of the model had no "
            "valid times, so the model knows only the season of starts; fit again with them: "
            f'hindcast.{leads.dim}.attrs["units"] = "days"'
        )
