"""Read the times at which forecasts are issued and verify, for methods that learn in order."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed

from .dates import calendar_of
from .leads import Dates, Leads, read_leads
from .metadata import VALID_TIME
from .roles import Roles
from .valid_time import along_lead, are_valid_times, known_valid_times, lead_dim


class Verified(NamedTuple):
    """Leads of forecasts, and the times at which each forecast is issued and verifies."""

    lead: Hashable
    leads: Leads
    issued: Dates | None
    """Starts of n cases at k leads, shape (n,) or (n, k); None if unknown."""
    verified: Dates | None
    """Valid times of the same type as the starts, shape (n,) or (n, k); None if unknown."""


def read_verified(roles: Roles[xr.DataArray], dim: Hashable) -> Verified | None:
    """Read the times at which forecasts with leads are issued and verify; None without leads.

    If all forecasts have one lead, a coordinate ``valid_time`` needs only the dimension of the
    starts.

    Parameters
    ----------
    roles : Roles
        Forecasts with their coordinates; a single lead may be a scalar coordinate.
    dim : hashable
        Dimension of the cases.

    Raises
    ------
    ValueError
        If leads cannot be read.
    """
    forecasts, lead = roles.obj, lead_dim(roles, dim, name="forecast")
    if lead is None:
        scalars = roles.single_leads
        if len(scalars) != 1 or not forecasts.sizes.get(dim):
            return _of_valid_times(forecasts, dim)
        return read_verified(along_lead(roles, dim, scalars[0]), dim)
    labels = forecasts.indexes[dim].to_numpy() if dim in forecasts.indexes else None
    known = None if labels is None else known_valid_times(roles, dim)
    over_both = known is not None and {*known.dims} == {dim, lead}
    given = known.transpose(dim, lead).to_numpy() if known is not None and over_both else None
    if lead not in forecasts.indexes and given is not None:
        return Verified(lead, _without_lengths(forecasts.sizes[lead]), labels, given)
    leads = read_leads(forecasts, lead, name="forecast")
    if leads.unit == "month":  # the mean of a month is known after its end
        leads = replace(leads, values=leads.values + 1)
    if labels is None:
        return Verified(lead, leads, None, None)
    if are_valid_times(roles, dim, lead):
        return Verified(lead, leads, replace(leads, values=-leads.values).after(labels), labels)
    verified = leads.after(labels)
    return Verified(lead, leads, labels, given if verified is None else verified)


def _without_lengths(n: int) -> Leads:
    """Return n leads of length 0, for forecasts with known valid times but unknown leads."""
    return Leads("span", np.zeros(n, "timedelta64[us]"), "")


def _of_valid_times(forecasts: xr.DataArray, dim: Hashable) -> Verified | None:
    """Return starts and valid times of forecasts without leads; None unless the two differ."""
    given = forecasts.coords.get(VALID_TIME)
    if given is None or dim not in forecasts.indexes or dim == VALID_TIME:
        return None
    labels = forecasts.indexes[dim].to_numpy()
    if given.dims != (dim,) or given.chunks is not None:
        return None
    verified = given.to_numpy()
    calendars = {calendar_of(labels), calendar_of(verified)}
    if None in calendars or len(calendars) > 1 or np.array_equal(labels, verified):
        return None
    return Verified(VALID_TIME, _without_lengths(1), labels, verified[:, np.newaxis])


def case_that_knows(forecasts: xr.DataArray, dim: Hashable) -> xr.DataArray:
    """Return, for each forecast, the position of the first case issued after its verification.

    A forecast has verified at a later start if its valid time is at or before this start. Without
    leads, each forecast verifies before the next forecast is issued. A lead without a unit is a
    number of cases.

    Parameters
    ----------
    forecasts : DataArray
        Forecasts with their coordinates, cases in the order of time.
    dim : hashable
        Dimension of the cases.

    Returns
    -------
    DataArray
        int64 over ``dim`` and, if leads are a dimension, over leads. Values are 1 or more. A value
        of n or more means that none of the n cases is issued after the forecast has verified.

    Raises
    ------
    ValueError
        If there are leads, but labels do not give the times at which forecasts verify.
    """
    n = forecasts.sizes[dim]
    after = np.arange(1, n + 1)
    when = read_verified(Roles(forecasts), dim)
    if when is None:
        return xr.DataArray(after, dims=[dim])
    lead, leads, issued, verified = when
    if issued is not None and verified is not None:
        shape = n, len(leads.values)
        both = (
            np.broadcast_to(a if a.ndim == 2 else a[:, None], shape) for a in (issued, verified)
        )
        starts, ends = both
        known = np.empty(shape, np.int64)
        for k in range(shape[1]):
            known[:, k] = np.searchsorted(starts[:, k], ends[:, k], side="left")
    elif leads.kind == "number":
        known = np.arange(n)[:, None] + np.ceil(leads.values).astype(np.int64)
    else:
        raise ValueError(
            Advice(
                f"forecast has leads along {lead!r}, but no labels along {dim!r} that give valid "
                "times; give dates, or the gap: ",
                Typed("gap", ...),
            )
        )
    known = np.maximum(known, after[:, None])
    if lead not in forecasts.dims:
        return xr.DataArray(known[:, 0], dims=[dim])
    return xr.DataArray(known, dims=[dim, lead])
