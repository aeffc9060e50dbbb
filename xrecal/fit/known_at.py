"""Covariate: the last observation that is known when a forecast starts."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from xrecal.inputs.dates import calendar_of, date_axis
from xrecal.inputs.dims import require_unique
from xrecal.inputs.forms import Labelled, read_forms
from xrecal.inputs.labels import read_labels
from xrecal.inputs.lengths import Span, read_length
from xrecal.inputs.missing import read_values
from xrecal.inputs.roles import CALIBRATION, Roles
from xrecal.inputs.valid_time import read_times, time_dim
from xrecal.inputs.valid_time_lookup import taken_at
from xrecal.methods.known import last_known
from xrecal.typing import IntArray


def known_at(
    observations: Labelled,
    forecast: Labelled,
    *,
    delay: Span = 0,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
) -> xr.DataArray:
    """Return the last observation that is known at the start of each forecast.

    Parameters
    ----------
    observations : DataArray
        Observations along their dates, of the variable of the forecast or of another variable.
    forecast : DataArray or Dataset
        Forecasts over starts and leads, or of a single start. The function does not read their
        values.
    delay : int, str or timedelta
        Time from the date of an observation until the observation is known: a number of time steps
        of the observations, or a length of time such as "6h". If the label of a daily mean is the
        beginning of the day, give at least "1D".
    dim, member_dim : hashable, optional
        Dimensions of starts and members of the forecast, if xrecal does not recognise them.

    Returns
    -------
    DataArray
        A covariate for ``fit`` and ``apply``, along the starts of the forecast and the places of
        the observations. It is NaN if no observation is known, or if the observation of the last
        known date is missing. It is lazy if observations are lazy.

    Raises
    ------
    ValueError
        If the forecast has no dates of starts, or observations have no dates.
    TypeError
        If observations are not a DataArray.

    Examples
    --------
    >>> known = observations.recal.known_at(forecast, delay="10D")
    >>> known.dims
    ('init', 'location')
    """
    if not isinstance(observations, xr.DataArray):
        raise TypeError(
            f"known_at takes observations as a DataArray, got {type(observations).__name__}; "
            "select a variable"
        )
    late = read_length(delay, "known_at", "delay")
    roles = _roles_of(forecast, member_dim)
    dim = roles.find(CALIBRATION, dim, name="forecast")
    start = roles.single_start if dim is None else dim
    if start is None or not _are_starts(roles, start, dim):
        raise ValueError(
            f"forecast has no starts and leads, but {list(roles.obj.dims)}, so it is unknown when "
            "forecasts start; add the leads, or give the dimension of the starts "
            f'the name "init": forecast.rename({start or "time"}="init")'
        )
    observed = read_values(read_labels(observations, name="observations").obj, name="observations")
    time = time_dim(Roles(observed), roles.obj, start)
    if time is None or time not in observed.indexes:
        raise ValueError(f"observations have no dimension of dates, but {list(observed.dims)}")
    require_unique(observed.indexes[time], time, "observations")
    observed = observed.sortby(time)
    at = _positions(observed[time].to_numpy(), roles.obj[start].to_numpy(), late)
    along = () if dim is None else (dim,)
    known = taken_at(observed, roles.obj, time, at, along).transpose(*along, ...)
    beside = {n: c for n, c in observed.coords.items() if time not in c.dims and n != start}
    return known.assign_coords({**beside, start: roles.obj[start].variable})


def _roles_of(forecast: Labelled, member_dim: Hashable | None) -> Roles[xr.DataArray]:
    """Return the roles of the dimensions; the forecasts may have no members."""
    if isinstance(forecast, xr.DataArray) and member_dim is None:
        roles = read_labels(forecast, name="forecast")
        if not roles.members:
            return roles
    return next(iter(read_forms(forecast, member_dim).values())).roles


def _are_starts(roles: Roles[xr.DataArray], start: Hashable, dim: Hashable | None) -> bool:
    """Return True if a coordinate has starts, by its name or because the forecasts have leads."""
    if start not in roles.obj.coords:
        return False
    return roles.is_start(start) or read_times(roles, dim, name="forecast") is not None


def _positions(dates: np.ndarray, starts: np.ndarray, delay: int | str) -> IntArray:
    """Return, for each start, the position of the last date with a known observation, or -1.

    ``dates`` must be in ascending order.

    Raises
    ------
    ValueError
        If starts are not dates, or have another calendar than the observations.
    """
    kinds = [calendar_of(values) or str(values.dtype) for values in (dates, starts)]
    axes = [date_axis(np.ravel(values)) for values in (dates, starts)]
    if kinds[0] != kinds[1] or axes[0] is None or axes[1] is None or axes[1].days is None:
        raise ValueError(
            f"observations have labels of the kind {kinds[0]}, forecast starts of the kind "
            f"{kinds[1]}; use one calendar for both"
        )
    return last_known(axes[0], axes[1].days, delay).reshape(starts.shape)
