"""The fits of the leads and places that a forecast is of, where it is of a part of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import xarray as xr

from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.labels import require_unique
from xrecal.inputs.leads import matched_leads, unit_of_leads
from xrecal.inputs.valid_time import along_lead

from .fitted import FittedVariable


def lead_of(fitted: FittedVariable) -> Hashable | None:
    """Dimension of the leads; None if the hindcast had none."""
    return None if fitted.leads is None else fitted.leads.dim


def shared_dims(fitted: FittedVariable) -> tuple[Hashable, ...]:
    """Dimensions along which all forecasts have the same fit."""
    return (*(fitted.pool.forecast_dims if fitted.pool else ()), fitted.dim)


def single_dims(fitted: FittedVariable, forecast: Labelled) -> list[Hashable]:
    """Dimensions of leads and places that are scalar coordinates of the forecast."""
    dims = dict.fromkeys([lead_of(fitted), *fitted.locations])
    return [d for d in dims if d in forecast.coords and forecast[d].ndim == 0]


def as_given(result: xr.DataArray, fitted: FittedVariable, forecast: Labelled) -> xr.DataArray:
    """Result with the dimensions of the forecast: without that of a single lead or place."""
    single = [d for d in single_dims(fitted, forecast) if d in result.dims]
    return result.isel(dict.fromkeys(single, 0))


def along_single(form: Form, fitted: FittedVariable) -> Form:
    """A forecast of a single lead or place along it, where each has a fit or they share one."""
    for d in single_dims(fitted, form.loc):
        if d in (*fitted.state.indexes, *shared_dims(fitted)):
            lead = d == lead_of(fitted)
            parts = {
                name: (along_lead(part, fitted.dim, d) if lead else part.expand_dims(d))
                if d in part.coords
                else part
                for name, part in form.parts.items()
            }
            form = form.with_parts(parts)
    return form


def at_places(form: Form, fitted: FittedVariable) -> FittedVariable:
    """The fits of the leads and places of a forecast, in its order.

    Raises
    ------
    ValueError
        If a lead has no fit, or a label stands there twice, or leads have another unit.
    """
    lead = lead_of(fitted)
    for d in dict.fromkeys([*([lead] if lead is not None else []), *fitted.locations]):
        labelled = [part for part in form.parts.values() if d in part.indexes]
        known = fitted.state.indexes.get(d)
        if known is None or not known.is_unique or not labelled:
            continue
        part = labelled[0]
        if d == lead:
            require_unit_of_leads(part, fitted, name="forecast")
            require_known_leads(part, fitted, name="forecast")
        given = part.indexes[d]
        if given.equals(known) or not given.isin(known).all():
            continue
        require_unique(given, d, "forecast")
        fitted = _taken(fitted, part, d)
    return fitted


def _taken(fitted: FittedVariable, part: xr.DataArray, dim: Hashable) -> FittedVariable:
    """The fits at the labels of a forecast along one dimension."""
    known = fitted.state.indexes[dim]
    places = known.get_indexer(part.indexes[dim])
    state = _cut_alike(fitted.state.isel({dim: places}), part, dim)
    leads = fitted.leads
    if leads is not None and dim == leads.dim:
        leads = matched_leads(part, dim, np.array(leads.n_matched)[places], dated=leads.dated)
    return replace(
        fitted,
        state=state.assign_coords({dim: part[dim].variable}),
        leads=leads,
        places={**(fitted.places or {}), dim: (places, known.size)},
    )


def _cut_alike(state: xr.Dataset, part: xr.DataArray, dim: Hashable) -> xr.Dataset:
    """A lazy state in the blocks of a forecast, as those of what was selected have any size."""
    cut = {d: sizes for d, sizes in part.variable.chunksizes.items() if d == dim}
    if not cut:
        return state
    lazy = {name: array.variable for name, array in state.items() if array.chunks is not None}
    return state.assign({name: v.chunk(cut) for name, v in lazy.items() if dim in v.dims})


def require_known_leads(part: xr.DataArray, fitted: FittedVariable, *, name: str) -> None:
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


def require_unit_of_leads(part: xr.DataArray, fitted: FittedVariable, *, name: str) -> None:
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
