"""Make a table with rows for each position along a dimension, or for each season."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.labels import labels_along
from xrecal.inputs.dates import are_dates, date_candidates
from xrecal.inputs.metadata import shown_units
from xrecal.inputs.roles import Roles
from xrecal.inputs.valid_time import known_valid_times

T = TypeVar("T", xr.DataArray, xr.Dataset)

SEASON = "season"
SEASONS = ("DJF", "MAM", "JJA", "SON")


def season_of_rows(
    by: Hashable, array: xr.DataArray, cases: Hashable, *, name: str, others: Sequence[str] = ()
) -> xr.DataArray | None:
    """Return the season of the valid time of each case if ``by`` is "season", else None.

    Parameters
    ----------
    by : hashable
        A dimension of ``array`` other than ``cases``, or "season".
    array : DataArray
        Forecasts or scores.
    cases : hashable
        Dimension of the cases.
    name : str
        Name of the array in messages.
    others : sequence of str
        Further values that the user may give for ``by``; the message lists them.

    Returns
    -------
    DataArray or None
        Labels DJF, MAM, JJA, SON over the cases, and over leads if there are any; None if ``by`` is
        a dimension.

    Raises
    ------
    ValueError
        If ``by`` is neither a dimension nor "season", or the cases have no dates.
    """
    places = [d for d in array.dims if d != cases]
    if by in places:
        return None
    if by != SEASON:
        known = f"name one of {places} or {SEASON!r}" if places else f"name {SEASON!r}"
        more = f", or split the hindcast by one of {list(others)}" if others else ""
        text = f" is not a dimension of places or leads of {name}; {known}{more}"
        raise ValueError(Advice(Typed("by", by), text))
    valid = known_valid_times(Roles(array), cases)
    candidates = [*([] if valid is None else [valid]), *date_candidates(array, cases)]
    dates = next((one for one in candidates if one.chunks is None and are_dates(one)), None)
    if dates is None:
        text = f" needs dates along {cases!r} (datetime64 or cftime), but {name} has none; add them"
        raise ValueError(Advice(Typed("by", SEASON), text))
    bare = dates.drop_vars(set(dates.coords) - labels_along(dates, dates.dims))
    season: xr.DataArray = bare.dt.season.drop_attrs()
    return season.rename(None)


def each_season(
    values: xr.DataArray, season: xr.DataArray, function: Callable[[xr.DataArray], T]
) -> T:
    """Apply a function to the values of each season that has cases; join results by season."""
    values = values.drop_vars(SEASON, errors="ignore")
    names = [one for one in SEASONS if (season == one).any()]
    parts = [function(values.where(season == one)) for one in names]
    whole = xr.concat(parts, SEASON, coords="minimal", compat="override", join="exact")
    return whole.assign_coords({SEASON: names})


def head_of_rows(labels: xr.DataArray) -> str:
    """Return the heading of the column of labels: the dimension, with its unit."""
    units = shown_units(labels.attrs)
    return f"{labels.name} ({units})" if units else str(labels.name)


def texts_of_rows(labels: xr.DataArray) -> list[str]:
    """Return the labels of rows as text; lengths of time are in days or hours."""
    values = labels.to_numpy()
    if values.dtype.kind == "m":
        days, day = values / np.timedelta64(1, "D"), (values % np.timedelta64(1, "D")).astype(int)
        return [f"{24 * n:g} h" if day.any() else f"{n:g} d" for n in days]
    return [f"{value:g}" if values.dtype.kind == "f" else str(value) for value in values]
