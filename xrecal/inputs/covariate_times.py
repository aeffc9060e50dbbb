"""Look up covariates with dates of their own at the starts or the valid times of forecasts."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from .dates import calendar_of
from .dims import Names, require_unique
from .forms import Form
from .metadata import VALID_TIME
from .roles import Roles
from .valid_time import Times, read_times, time_dim
from .valid_time_lookup import first_of, taken_at

KNOWN = "known"
"""Attribute of a covariate with dates of its own: "start" for an observation, which xrecal looks up
at starts, and "valid" for a forecast, which xrecal looks up at valid times."""

START, VALID = "start", "valid"


def at_times(
    value: xr.DataArray, form: Form, dim: Hashable, *, names: Names, known: str | None = None
) -> xr.DataArray:
    """Return a covariate at the starts or the valid times of forecasts over starts and leads.

    Parameters
    ----------
    value : DataArray
        The covariate. A covariate without dates of its own is returned unchanged.
    form : Form
        Forecasts.
    dim : hashable
        Dimension of the starts.
    names : tuple of str
        Names of the forecasts and of the covariate in messages.
    known : {"start", "valid"}, optional
        Date at which to look up the covariate: the start or the valid time. The attribute ``known``
        of the covariate takes precedence.

    Raises
    ------
    ValueError
        If neither ``known`` nor the attribute gives the date at which to look up the covariate, if
        the covariate has no value at a valid time, or if a value was not known at the start.
    """
    known = value.attrs.get(KNOWN, known)
    if known not in (None, START, VALID):
        raise ValueError(f"{names[1]} has known={known!r}; it must be {START!r} or {VALID!r}")
    roles = form.roles
    times = read_times(roles, dim, name=names[0]) if roles.has_times_beside(dim) else None
    if times is None:
        return value
    own = None if times.lead in value.dims else time_dim(Roles(value), roles.obj, dim)
    starts = own == dim and (known != VALID or roles.is_start(dim))
    if own is None or starts:
        _refuse_later(value, times, dim, names=names, known=known)
        return value
    if own not in value.indexes:
        raise ValueError(f"{names[1]} has no labels along {own!r} to match by; add the coordinate")
    if known is None:
        raise ValueError(
            f"{names[1]} is along {own!r}, but {names[0]} is over starts along {dim!r} and leads. "
            f"If the covariate is a forecast, look it up at the valid time: use "
            f".assign_attrs(known={VALID!r}). If it is an observation, look it up at the start: "
            f"use .assign_attrs(known={START!r}), or the last observation known at the start: "
            f"observations.recal.known_at({names[0]}, delay=...)"
        )
    require_unique(value.indexes[own], own, names[1])
    if known == VALID:
        return _at_valid_times(value, times, own, names=names)
    return value.drop_vars([dim], errors="ignore").rename({own: dim})


def _at_valid_times(
    value: xr.DataArray, times: Times, own: Hashable, *, names: Names
) -> xr.DataArray:
    """Return the value of a covariate, which has dates along ``own``, at each valid time."""
    valid = times.valid()
    wanted = valid.to_numpy()
    at = np.asarray(value.indexes[own].get_indexer(wanted.ravel())).reshape(wanted.shape)
    if (at < 0).any():
        raise ValueError(
            f"{names[1]} has no value along {own!r} for {int((at < 0).sum())} of {at.size} valid "
            f"times of {names[0]}, first {first_of(wanted[at < 0][:1])}; give a value for each, "
            "NaN where it is unknown"
        )
    taken = taken_at(value, times.roles.obj, own, at, valid.dims)
    labels = {d: times.roles.obj[d] for d in valid.dims if d in times.roles.obj.indexes}
    beside = {n: c for n, c in value.coords.items() if own not in c.dims and n not in labels}
    taken = taken.assign_coords({**beside, **labels})
    return taken.isel({times.lead: 0}, drop=True) if times.single else taken


def _refuse_later(
    value: xr.DataArray, times: Times, dim: Hashable, *, names: Names, known: str | None
) -> None:
    """Raise ValueError if a coordinate of a covariate has dates after the starts of forecasts.

    The function accepts such dates from a covariate with ``known="valid"``. If ``known`` is
    missing, the covariate may be a forecast: the function then accepts such dates in a coordinate
    ``valid_time``, and in any coordinate whose name is also that of a coordinate of the forecasts.
    """
    beside = times.roles.obj.coords
    for name, dates in Roles(value).times.items():
        of_forecast = known != START and (name == VALID_TIME or name in beside)
        if known == VALID or of_forecast or name in value.dims or dates.chunks is not None:
            continue
        starts = beside.get(dim)
        if starts is None or calendar_of(starts.to_numpy()) != calendar_of(dates.to_numpy()):
            continue
        if dim in dates.dims and dim in value.indexes:
            dates = dates.isel({dim: value.indexes[dim].isin(np.ravel(starts.to_numpy()))})
            starts = dates[dim]
        dates, starts = xr.broadcast(dates.drop_vars(list(dates.coords)), starts)
        later = (dates > starts).to_numpy()
        if later.any():
            first, start = (first_of(a.to_numpy()[later][:1]) for a in (dates, starts))
            raise ValueError(
                f"{names[1]} is known only at {first} by its coordinate {name!r}, after the start "
                f"{start}, in {int(later.sum())} of {later.size} cases; use the last value known "
                f"at the start: observations.recal.known_at({names[0]}, delay=...), or "
                f".assign_attrs(known={VALID!r}) if the covariate is a forecast"
            )
