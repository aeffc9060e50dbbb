"""Look up values by month, day of the year or season at the valid times of forecasts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from .dates import are_dates
from .forms import Form
from .metadata import VALID_TIME, standard_name_of
from .roles import CALIBRATION
from .valid_time import known_valid_times

PARTS = {"month": "month=range(1, 13)", "dayofyear": "dayofyear=range(1, 367)",
         "season": "season=['DJF', 'MAM', 'JJA', 'SON']"}  # fmt: skip
"""Dimensions that count parts of the year, as in xarray; and the code that labels them."""


def at_valid_dates(
    values: xr.DataArray, form: Form, dim: Hashable | None, *, name: str
) -> xr.DataArray:
    """Return, for each forecast, the values for the part of the year that contains its valid time.

    Parameters
    ----------
    values : DataArray
        Values along ``month`` (1-12), ``dayofyear`` (1-366) or ``season`` (DJF, MAM, JJA, SON). The
        function looks up values along each of these dimensions that the forecast lacks. The result
        keeps all other dimensions.
    form : Form
        Forecasts.
    dim : hashable, optional
        Dimension of the cases of forecasts; by default the dimension with dates.
    name : str
        Name of the values in messages.

    Returns
    -------
    DataArray
        Values with the dimensions of the forecasts' dates in place of ``month``, ``dayofyear`` or
        ``season``. The result is lazy if the values or the forecasts are lazy.

    Raises
    ------
    ValueError
        If forecasts have no dates, or values have no label for one of the dates.
    """
    for part in (d for d in PARTS if d in values.dims and d not in form.dims):
        dates = _valid_dates(form, dim, part, name)
        values = take_cases(values, part, _positions(values, dates, part, name), form)
    return values


def take_cases(
    values: xr.DataArray, dim: Hashable, positions: xr.DataArray, form: Form
) -> xr.DataArray:
    """Return, for each forecast, the value at its position along ``dim``, without labels.

    The result has the chunks of the forecasts, so that repeated values do not fill the memory.
    """
    along = [c for c, coordinate in values.coords.items() if dim in coordinate.dims]
    values = values.drop_vars(along)
    chunks: dict[Hashable, Any] = {}
    for part in form.parts.values():
        cut = part.variable.chunksizes  # coordinates may have other chunks
        chunks |= {d: cut[d] for d in positions.dims if d in cut}
    if not chunks:
        return values.isel({dim: positions})
    return values.chunk().isel({dim: positions}).chunk(chunks)


def _positions(values: xr.DataArray, dates: xr.DataArray, part: str, name: str) -> xr.DataArray:
    """Return the position of each date in the index of ``part``, such as "dayofyear"."""
    if part not in values.indexes:
        raise ValueError(
            f"{name} has no labels along {part!r}, so xrecal cannot match them; add them: "
            f"{name}.assign_coords({PARTS[part]})"
        )
    index = values.indexes[part]
    if not index.is_unique:
        raise ValueError(f"labels along {part!r} of {name} must be unique; drop the duplicates")
    wanted = getattr(dates.dt, part).to_numpy() if dates.size else np.zeros(dates.shape, int)
    positions = index.get_indexer(wanted.reshape(-1)) if dates.size else wanted
    if (positions < 0).any():
        missing = np.unique(wanted.reshape(-1)[positions < 0])
        raise ValueError(
            f"{name} has no value for {part} {', '.join(map(str, missing[:6]))}"
            f"{', ...' if missing.size > 6 else ''}, in which forecasts are valid; it has "
            f"{', '.join(map(str, index[:12]))}. Add the missing values"
        )
    return xr.DataArray(positions.reshape(dates.shape), dims=dates.dims)


def _valid_dates(form: Form, dim: Hashable | None, part: str, name: str) -> xr.DataArray:
    """Return the dates at which forecasts are valid: valid times, or else labels of the cases."""
    roles = form.roles
    coords = {n: c for n, c in roles.obj.coords.items() if _has_dates(c)}
    named = {n: c for n, c in coords.items() if n == VALID_TIME or standard_name_of(c) == "time"}
    valid = named.get(VALID_TIME, next(iter(named.values()), None))
    if valid is not None:
        return _known(valid)
    dated = _case_dates(coords, form, dim)
    if len(dated) != 1:
        which = f"several, {[d.name for d in dated]}" if dated else "none"
        raise ValueError(
            f"{name} differs by {part}, so xrecal needs the dates of the forecasts, but these "
            f"have {which}; add forecast.assign_coords(valid_time=...), datetime64 or cftime. To "
            f"use all values for each forecast: {name}.rename({part}='level')"
        )
    start = dated[0].name
    lead = [*roles.leads_beside(start), *roles.single_leads]
    if lead and not _is_zero(roles.obj.coords.get(lead[0])):
        valid = known_valid_times(roles, start)
        if valid is not None and _has_dates(valid):
            return _known(valid.rename(VALID_TIME))
        raise ValueError(
            f"{name} differs by {part}, but forecasts have a lead time, {lead[0]!r}, and "
            f"{dated[0].name!r} may be their dates of issue; add their valid dates: "
            f"forecast.assign_coords(valid_time=...)"
        )
    return _known(dated[0])


def _case_dates(
    coords: Mapping[Hashable, xr.DataArray], form: Form, dim: Hashable | None
) -> list[xr.DataArray]:
    """Return coordinates with the dates of the cases, or with the date of a single forecast."""
    along = form.dims if dim is None else (dim,)
    dated = [coords[d] for d in along if d in form.dims and d in coords]
    usual = [c for c in dated if CALIBRATION.has(c.name)]
    if not dated:
        single = [n for n in coords if n == dim] + [n for n in coords if CALIBRATION.has(n)]
        return [coords[n] for n in single if not coords[n].dims][:1]
    return usual if len(usual) == 1 else dated


def _has_dates(coordinate: xr.DataArray) -> bool:
    """Return whether labels are dates; empty or lazy arrays of objects count as dates."""
    lazy = coordinate.dtype == object and (coordinate.chunks is not None or not coordinate.size)
    return lazy or are_dates(coordinate)


def _is_zero(lead: xr.DataArray | None) -> bool:
    if lead is None or lead.dtype.kind not in "iufm":
        return False
    return not bool(lead.astype(np.float64).any())


def _known(dates: xr.DataArray) -> xr.DataArray:
    """Return dates; raise ValueError if some dates are missing."""
    if bool(dates.isnull().any()):
        label = str(dates.name)
        raise ValueError(f"some dates in {label!r} are missing; drop those cases or fill them in")
    return dates
