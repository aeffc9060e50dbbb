"""How many cases lie between the issue of a forecast and its verification."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.rows import whole_number
from xrecal.inputs.dims import LEAD
from xrecal.inputs.valid_time import (
    COUNTED_FROM_ONE,
    along_lead,
    are_valid_times,
    known_valid_times,
    lead_dim,
    read_leads,
)


def verification_lag(forecasts: xr.DataArray, dim: Hashable, lag: int | None) -> xr.DataArray:
    """Cases from the issue of each forecast to its verification, over leads where there are some.

    From the labels: the least h such that case t was issued when case t - h had verified, for all
    of them. Leads that are numbers without a unit count cases. Without leads 1: each forecast
    verifies before the next one is issued.

    Parameters
    ----------
    forecasts : DataArray
        Forecasts with their coordinates, cases in the order of time.
    dim : hashable
        Dimension of the cases.
    lag : int, optional
        What the user knows better.

    Returns
    -------
    DataArray
        int64, at least 1, over the lead dimension or without any.

    Raises
    ------
    ValueError
        If the lag is no whole number from 1 on, or leads cannot be read.
    """
    if lag is not None:
        return xr.DataArray(np.int64(whole_number("lag", lag, 1)))
    lead = lead_dim(forecasts, name="forecast")
    if lead is None:
        scalars = [n for n, c in forecasts.coords.items() if c.ndim == 0 and _is_lead(n, c)]
        if len(scalars) != 1 or not forecasts.sizes.get(dim):
            return xr.DataArray(np.int64(1))
        return verification_lag(along_lead(forecasts, dim, scalars[0]), dim, None)[0]
    if lead == dim:
        return xr.DataArray(np.int64(1))
    leads = read_leads(forecasts, lead, name="forecast")
    if lead in COUNTED_FROM_ONE:  # the mean of a month is known when it has ended
        leads = replace(leads, values=leads.values + 1)
    labels = forecasts.indexes[dim].to_numpy() if dim in forecasts.indexes else None
    issued, verified = labels, None
    if labels is not None and are_valid_times(forecasts, dim, lead):
        issued, verified = replace(leads, values=-leads.values).after(labels), labels
    elif labels is not None:
        verified = leads.after(labels)
        known = known_valid_times(forecasts, dim) if verified is None else None
        verified = verified if known is None else known.transpose(dim, lead).to_numpy()
    if issued is not None and verified is not None:
        both = (a if a.ndim == 2 else a[:, np.newaxis] for a in (issued, verified))
        pairs = np.broadcast_arrays(*both)
        lags = [_cases_between(*(a[:, i] for a in pairs)) for i in range(len(leads.values))]
    elif leads.kind == "number":
        lags = np.maximum(np.ceil(leads.values), 1)
    else:
        raise ValueError(
            f"forecast has leads along {lead!r}, but no labels along {dim!r} that say how many "
            "cases verify later; give dates, or the number: lag=..."
        )
    return xr.DataArray(np.asarray(lags, np.int64), {lead: forecasts.indexes[lead]}, [lead])


def _is_lead(name: Hashable, coordinate: xr.DataArray) -> bool:
    standard_name = coordinate.attrs.get("standard_name")
    return name in LEAD.names or standard_name in LEAD.standard_names


def _cases_between(issued: Any, verified: Any) -> int:
    """The least h such that case t - h has verified when case t (n,) is issued, for all t."""
    known = np.searchsorted(verified, issued, side="right")
    return int(max((np.arange(len(issued)) - known).max(initial=0) + 1, 1))
