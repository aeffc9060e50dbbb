"""Write forecasts as tables of hubs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from os import PathLike

import numpy as np
import pandas as pd
import xarray as xr

from xrecal.inputs.dims import Labelled
from xrecal.inputs.forms import read_forms
from xrecal.inputs.roles import CALIBRATION, Roles
from xrecal.inputs.valid_time import read_times
from xrecal.methods.call_errors import explained
from xrecal.products.statistics import quantile

from .rules import check
from .tables import DIMENSIONS, END, HORIZON, ID, LOCATION, ORIGINS, TARGET, TYPE, VALUE, save_table

_FIRST = ("model_id", *ORIGINS, TARGET, HORIZON, END, LOCATION)


@explained("xrecal.hubs.write")
def write(
    forecast: Labelled,
    path: str | PathLike[str] | None = None,
    *,
    levels: Sequence[float] | np.ndarray | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> pd.DataFrame:
    """Write a forecast as a table of a hub.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts over starts and leads: ensembles, quantiles, normal distributions, mixtures, or
        probabilities. Probabilities have the dimension ``category`` (as from
        :func:`~xrecal.products.categories.categories`) or ``threshold`` (as from
        :func:`~xrecal.products.probabilities.cdf`). Coordinates with a single value, such as
        ``target`` and ``model_id``, become columns.
    path : str or path, optional
        Path of the file to write (.csv, .csv.gz or .parquet).
    levels : sequence of float, optional
        Levels of quantiles that the hub asks for. By default, quantiles keep their levels, and
        members of an ensemble become samples.
    lower, upper : float, optional
        Bounds of the variable. Values beyond a bound become equal to the bound.

    Returns
    -------
    DataFrame
        Rows of the table. If a quantile is smaller than the quantile of a lower level, xrecal
        raises it to the quantile of the lower level. Missing values have no row. Forecasts without
        leads, such as those of a peak, have an empty horizon.

    Raises
    ------
    ValueError
        If the rows break a rule of :func:`check`, if forecasts of quantiles lack one of ``levels``,
        or if leads have no unit.

    Examples
    --------
    >>> lead = xr.Variable((), 5, {"units": "days"})
    >>> named = forecast.assign_coords(lead=lead, target="state")
    >>> rows = xrecal.hubs.write(named, levels=[0.25, 0.5, 0.75])
    >>> list(rows)
    ['reference_date', 'target', 'horizon', 'target_end_date', 'location', 'output_type',
     'output_type_id', 'value']
    """
    array, output_type = _labelled(forecast, levels)
    dim = DIMENSIONS[output_type]
    if output_type in ("quantile", "sample"):
        array = array.clip(lower, upper)
    if output_type == "quantile":
        array = array.sortby(dim)
        highest = np.fmax.accumulate(array.to_numpy(), axis=array.get_axis_num(dim))
        array = array.copy(data=highest).where(array.notnull())
    rows = _rows(array, dim).dropna(subset=VALUE).reset_index(drop=True)
    rows = rows.rename(columns={dim: ID}).assign(**{TYPE: output_type})
    if HORIZON not in rows:  # of a target such as a peak
        rows[HORIZON] = np.nan
    if output_type == "quantile":
        rows[ID] = rows[ID].round(10)
    first = [name for name in _FIRST if name in rows]
    last = [TYPE, ID, VALUE]
    rows = rows[[*first, *(name for name in rows if name not in (*first, *last)), *last]]
    check(rows)
    if path is not None:
        save_table(rows, path)
    return rows


def _labelled(
    forecast: Labelled, levels: Sequence[float] | np.ndarray | None
) -> tuple[xr.DataArray, str]:
    """Return the array to write, and its output type."""
    if isinstance(forecast, xr.Dataset) and len(forecast.data_vars) == 1:
        (forecast,) = forecast.data_vars.values()
    if isinstance(forecast, xr.DataArray):
        for output_type in ("pmf", "cdf"):
            if DIMENSIONS[output_type] in forecast.dims:
                return forecast, output_type
    forms = read_forms(forecast)
    if len(forms) > 1:
        raise ValueError(f"forecast has several variables, {[*forms]}; write one at a time")
    ((name, form),) = forms.items()
    if form.kind == "quantile":
        assert form.levels is not None
        array = form.loc.assign_coords({form.member_dim: form.levels.to_numpy()})
        return _with_levels(array.rename({form.member_dim: "quantile"}), levels), "quantile"
    if levels is not None:
        quantiles = quantile(forecast, levels)
        return quantiles if isinstance(quantiles, xr.DataArray) else quantiles[name], "quantile"
    if form.kind == "ensemble":
        return form.loc.rename({form.member_dim: "member"}), "sample"
    raise ValueError(
        f"forecast has the form {form.traits.words}, for which a hub has no output type; give "
        "levels=[0.025, ..., 0.975], or draw members: forecast.recal.members(100)"
    )


def _with_levels(array: xr.DataArray, levels: Sequence[float] | np.ndarray | None) -> xr.DataArray:
    """Return the quantiles at ``levels``, which must all be present."""
    if levels is None:
        return array
    found = array["quantile"].to_numpy()
    apart = np.abs(found - np.asarray(levels, float)[:, np.newaxis])
    lacking = [float(q) for q, one in zip(levels, apart.min(1), strict=True) if one > 1e-9]
    if lacking:
        raise ValueError(
            f"forecast has no quantiles at the levels {lacking}; issue them: "
            "model.quantile(forecast, levels)"
        )
    return array.isel(quantile=apart.argmin(1))


def _rows(array: xr.DataArray, dim: str) -> pd.DataFrame:
    """Return rows with columns of labels, target end dates and values."""
    roles = Roles(array.isel({dim: 0}, drop=True))
    start = roles.find(CALIBRATION, name="forecast")
    times = read_times(roles, start, name="forecast")
    kept = [*array.dims, *(name for name, one in array.coords.items() if not one.ndim)]
    names: dict[Hashable, str] = {}
    ends = None
    if times is not None:
        ends = times.valid()
        ends = ends.isel({times.lead: 0}, drop=True) if times.single else ends
        names = {times.lead: HORIZON}
        if times.start is not None and times.start not in ORIGINS:
            names[times.start] = ORIGINS[0]
        if times.lead in array.coords and array[times.lead].dtype.kind == "m":
            raise ValueError(
                f"leads along {times.lead!r} are lengths of time, but horizons of hubs are whole "
                f"numbers; count the leads: forecast.assign_coords({times.lead}=({times.lead!r}, "
                '[0, 1, ...], {"units": "weeks"}))'
            )
    array = array.drop_vars([name for name in array.coords if name not in kept])
    if ends is not None:
        array = array.assign_coords({END: ends.variable})
    names = {old: new for old, new in names.items() if old in array.coords}
    return array.to_dataframe(name=VALUE).reset_index().rename(columns=names)
