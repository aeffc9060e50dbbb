"""How long before its valid time a forecast is issued, as labels tell it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from .dates import date_axis
from .forms import Form
from .leads import read_leads
from .roles import LEAD, candidates, single_leads
from .valid_time import known_valid_times

AHEAD = "days_ahead"
"""The covariate that says when a forecast verifies; no distribution depends on it."""


def days_ahead(form: Form, dim: Hashable) -> xr.DataArray:
    """Days from start to valid time of each forecast, over its cases and leads.

    By a coordinate ``valid_time``, by starts and leads, or by leads alone, also a single one; 0
    where nothing tells.
    """
    whole = form.broadcast().loc.isel({form.member_dim: 0}, drop=True)
    leads = [d for d in candidates(whole, LEAD, dim) if d != dim]
    ahead = _by_valid_time(whole, dim)
    if ahead is None and leads:
        ahead = _by_lead(whole, leads[0])
    elif ahead is None and (single := single_leads(whole)):
        ahead = _by_lead(whole.expand_dims(single[0]), single[0])
        ahead = None if ahead is None else ahead.isel({single[0]: 0}, drop=True)
    if ahead is None or not bool(np.isfinite(ahead).all()):
        ahead = xr.DataArray(0.0)
    if dim in whole.dims and dim not in ahead.dims:
        labels = whole[dim].variable if dim in whole.indexes else whole.sizes[dim]
        ahead = ahead.expand_dims({dim: labels})
    return ahead


def _by_valid_time(whole: xr.DataArray, dim: Hashable) -> xr.DataArray | None:
    """Days over starts and leads, or starts alone; None where these are no dates."""
    valid = known_valid_times(whole, dim)
    dates = None if valid is None else date_axis(valid.to_numpy().ravel())
    starts = None if dim not in whole.coords else date_axis(np.ravel(whole[dim].to_numpy()))
    if valid is None or dates is None or starts is None:
        return None
    assert dates.days is not None
    assert starts.days is not None
    begun = xr.DataArray(starts.days, dims=[dim]) if dim in valid.dims else starts.days[0]
    return valid.copy(data=dates.days.reshape(valid.shape)) - begun


def _by_lead(whole: xr.DataArray, lead: Hashable) -> xr.DataArray | None:
    """Days over leads alone; None where nothing tells them."""
    if lead not in whole.indexes:
        return None
    try:
        leads = read_leads(whole, lead, name="forecast")
    except ValueError:  # of a unit that is not known: they tell nothing
        return None
    if leads.kind != "span":
        return None
    return xr.DataArray(leads.values / np.timedelta64(1, "D"), {lead: whole[lead]}, [lead])
