"""Number of cases between the issue of a forecast and its verification."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.rows import whole_number
from xrecal.inputs.roles import Roles
from xrecal.inputs.verification import read_verified


def verification_lag(forecasts: xr.DataArray, dim: Hashable, lag: int | None) -> xr.DataArray:
    """Return the number of cases between issue and verification of a forecast, for each lead.

    This number, the lag, follows from the labels. It is the smallest h such that, whenever a case
    is issued, the case h positions before it has verified. A lead without a unit is a number of
    cases. If forecasts have no leads, the lag is 1: each forecast verifies before the next one is
    issued.

    Parameters
    ----------
    forecasts : DataArray
        Forecasts with their coordinates, cases in the order of time.
    dim : hashable
        Dimension of the cases.
    lag : int, optional
        Lag that the user gave. If it is not None, the function returns it for all leads.

    Returns
    -------
    DataArray
        Lags, int64 of at least 1, over the lead dimension if there is one.

    Raises
    ------
    ValueError
        If the lag is not a positive integer, or the leads cannot be converted to numbers of cases.
    """
    if lag is not None:
        return xr.DataArray(np.int64(whole_number("lag", lag, 1)))
    when = read_verified(Roles(forecasts), dim)
    if when is None:
        return xr.DataArray(np.int64(1))
    lead, leads, issued, verified = when
    if issued is not None and verified is not None:
        both = (a if a.ndim == 2 else a[:, np.newaxis] for a in (issued, verified))
        pairs = np.broadcast_arrays(*both)
        lags = [_cases_between(*(a[:, i] for a in pairs)) for i in range(len(leads.values))]
    elif leads.kind == "number":
        lags = np.maximum(np.ceil(leads.values), 1)
    else:
        raise ValueError(
            f"forecast has leads along {lead!r}, but no labels along {dim!r} to compute the number "
            "of cases between issue and verification; give dates, or this number: lag=..."
        )
    if lead not in forecasts.dims:
        return xr.DataArray(np.int64(lags[0]))
    labels = {lead: forecasts.indexes[lead]} if lead in forecasts.indexes else {}
    return xr.DataArray(np.asarray(lags, np.int64), labels, [lead])


def _cases_between(issued: Any, verified: Any) -> int:
    """Return the smallest h for which case t - h has always verified when case t is issued.

    ``issued`` and ``verified`` (n,) are the dates of issue and of verification of the cases.
    """
    known = np.searchsorted(verified, issued, side="right")
    return int(max((np.arange(len(issued)) - known).max(initial=0) + 1, 1))
