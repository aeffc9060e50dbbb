"""Days from the start of a forecast to its valid time, from its labels."""

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
    where labels do not say.
    """
    whole = form.one_member
    ahead = _by_valid_time(whole, dim)
    leads = [d for d in candidates(whole, LEAD, dim) if d != dim] or single_leads(whole)
    if ahead is None and leads:
        ahead = _by_lead(whole, leads[0])
    if ahead is None or not bool(np.isfinite(ahead).all()):
        ahead = xr.DataArray(0.0)
    if dim in whole.dims and dim not in ahead.dims:
        labels = whole[dim].variable if dim in whole.indexes else whole.sizes[dim]
        ahead = ahead.expand_dims({dim: labels})
    return ahead


def _by_valid_time(whole: xr.DataArray, dim: Hashable) -> xr.DataArray | None:
    """Days over starts and leads, or starts alone; None where these are no dates."""
    valid = known_valid_times(whole, dim)
    if valid is None or dim not in whole.coords:
        return None
    both = [date_axis(np.ravel(dates.to_numpy())) for dates in (valid, whole[dim])]
    days, begun = (None if axis is None else axis.days for axis in both)
    if days is None or begun is None:
        return None
    starts = xr.DataArray(begun, dims=[dim]) if dim in valid.dims else begun[0]
    return valid.copy(data=days.reshape(valid.shape)) - starts


def _by_lead(whole: xr.DataArray, lead: Hashable) -> xr.DataArray | None:
    """Days over leads alone; None where these have no unit of a fixed length."""
    try:
        leads = read_leads(whole, lead, name="forecast")
    except ValueError:  # none, or of a unit that is not known
        return None
    if leads.kind != "span":
        return None
    days = leads.values / np.timedelta64(1, "D")
    return xr.DataArray(
        days if lead in whole.dims else days[0], {lead: whole[lead]}, whole[lead].dims
    )
