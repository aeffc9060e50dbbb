"""Read tables of hubs as arrays: forecasts, and observations as known on a date."""

from __future__ import annotations

from datetime import date
from itertools import chain

import numpy as np
import pandas as pd
import xarray as xr

from xrecal.chunks.warnings import warn
from xrecal.methods.call_errors import explained

from .rules import at, raise_faults, require_readable
from .tables import (
    DIMENSIONS,
    END,
    HORIZON,
    ID,
    LOCATION,
    TARGET,
    TYPE,
    VALUE,
    Table,
    as_dates,
    open_table,
    origin_of,
    tasks_of,
)

_VALUES = ("observation", "oracle_value", VALUE)
_DATES = (END, "date", "target_date")
AS_OF = "as_of"


@explained("xrecal.hubs.read")
def read(table: Table, target: str | None = None, *, output_type: str = "quantile") -> xr.DataArray:
    """Read the forecasts in a table of a hub as an array.

    Parameters
    ----------
    table : DataFrame or path
        Rows with the columns of the hubverse convention, or the path of a file (.csv, .csv.gz or
        .parquet).
    target : str, optional
        Name of the target to read, needed if the table has several targets.
    output_type : {"quantile", "sample", "pmf", "cdf"}
        Output type to read.

    Returns
    -------
    DataArray
        Array ``value``. Its dimensions are the start (with the name of the column in the table),
        ``location``, ``horizon``, any other column that varies (such as ``model_id``), and the
        dimension of the output type. For quantiles and samples, this dimension is ``quantile`` or
        ``member``, and ``recal.fit`` accepts the array. For probabilities, this dimension is
        ``category`` or ``threshold``, and :func:`xrecal.probabilities` turns the array into a
        forecast. Values without a row are NaN. Columns with a single value become coordinates.

    Raises
    ------
    ValueError
        If columns are missing, if cells are not dates or numbers, if rows occur twice, if
        ``target`` is unknown, or if the table has several targets and ``target`` names none.

    Notes
    -----
    Tables do not state the order of categories. Categories keep the order of their first rows. A
    warning names this order if it is alphabetical, or if forecasts differ in their order. If it is
    not the order from the lowest category to the highest, reorder the array:
    ``forecast.sel(category=[...])``.

    xrecal numbers the samples within each forecast, in the order of their ids. Samples that have
    the same id at several horizons or places keep the same number, if each forecast has the same
    ids.

    Horizons get the unit days or weeks if all target end dates agree with this unit. Otherwise the
    target end dates become a coordinate over start and horizon. If the table has no target end
    dates, set the unit yourself: ``forecast.horizon.attrs["units"]``.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({
    ...     "reference_date": "2024-01-06", "target": "wk inc flu hosp", "horizon": 1,
    ...     "location": "06", "target_end_date": "2024-01-13", "output_type": "quantile",
    ...     "output_type_id": [0.25, 0.5, 0.75], "value": [10.0, 12.0, 14.0],
    ... })
    >>> forecast = xrecal.hubs.read(rows)
    >>> forecast.dims
    ('reference_date', 'location', 'horizon', 'quantile')
    >>> forecast.horizon.attrs["units"]
    'weeks'
    """
    if output_type not in DIMENSIONS:
        raise ValueError(f"output_type must be one of {[*DIMENSIONS]}, got {output_type!r}")
    rows = _selected(require_readable(open_table(table)), target, output_type)
    origin = str(origin_of(rows))
    varying = [n for n in tasks_of(rows) if n not in (origin, LOCATION, HORIZON)]
    single = {n: rows[n].iloc[0] for n in varying if rows[n].nunique() == 1 and n != TYPE}
    others = [n for n in varying if n not in (*single, TYPE)]
    labels = {n: rows[n] for n in (origin, LOCATION, *others, HORIZON) if n in rows}
    dim = DIMENSIONS[output_type]
    labels[dim] = _samples(rows) if output_type == "sample" else rows[ID]
    array = _array(rows[VALUE], labels, VALUE).assign_coords(single)
    if output_type == "pmf":
        _warn_of_order(rows, [str(one) for one in array[dim].to_numpy()])
    if TARGET in single:
        array.attrs["long_name"] = single[TARGET]
    return _with_times(array, rows, origin)


def _selected(rows: pd.DataFrame, target: str | None, output_type: str) -> pd.DataFrame:
    """Return the rows of a target and output type, without columns that are empty in these rows."""
    types = [*rows[TYPE].unique()]
    if output_type not in types:
        raise ValueError(f"the table has no output_type {output_type!r}; it has {types}")
    rows = _of_target(rows[rows[TYPE] == output_type], target)
    rows = rows.drop(columns=[n for n in tasks_of(rows) if rows[n].isna().all()])
    faults = [at(rows[n].isna(), rows[n], "is missing") for n in tasks_of(rows)]
    raise_faults([*chain(*faults)])
    return rows


def _warn_of_order(rows: pd.DataFrame, categories: list[str]) -> None:
    """Warn if the order of categories may not be the order from the lowest to the highest."""
    place = rows[ID].map({name: k for k, name in enumerate(categories)})
    mixed = (place.groupby([rows[n] for n in tasks_of(rows)]).diff() < 0).any()
    if mixed or (len(categories) > 2 and categories == sorted(categories)):
        warn(
            f"the order of the categories is {categories}; if this is not the order from the "
            "lowest to the highest, use forecast.sel(category=[...])"
        )


def _samples(rows: pd.DataFrame) -> pd.Series:
    """Number the samples within each forecast, from 0."""
    codes = pd.Series(pd.factorize(rows[ID], sort=True)[0], rows.index)
    return codes.groupby([rows[n] for n in tasks_of(rows)]).rank("dense").astype(int) - 1


def _array(values: pd.Series, labels: dict[str, pd.Series], name: str) -> xr.DataArray:
    """Return values as an array over labels; the function sorts all labels except categories.

    Missing values are NaN.
    """
    coords, positions = {}, []
    for dim, column in labels.items():
        codes, found = pd.factorize(column, sort=dim != "category")
        texts = any(isinstance(one, str) for one in found)
        array = np.asarray(found, str) if texts else np.asarray(found)
        if dim == HORIZON:
            array = array.astype(np.int64)
        coords[dim] = (dim, array.astype(float) if array.dtype.kind == "O" else array)
        positions.append(codes)
    filled = np.full([one.size for _, one in coords.values()], np.nan)
    filled[tuple(positions)] = values
    return xr.DataArray(filled, coords, [*labels], name)


def _with_times(array: xr.DataArray, rows: pd.DataFrame, origin: str) -> xr.DataArray:
    """Add the unit of horizons, or the target end dates."""
    if HORIZON not in rows or END not in rows or rows[END].isna().all():
        return array
    days = (rows[END] - rows[origin]).dt.days
    for unit, length in {"days": 1, "weeks": 7}.items():
        if (days == rows[HORIZON] * length).all():
            array[HORIZON].attrs["units"] = unit
            return array
    usual = days.groupby(rows[HORIZON]).median().to_numpy()
    ends = array[origin].to_numpy()[:, np.newaxis] + usual.astype("timedelta64[D]")
    known = rows[rows[END].notna()]
    at_row = [array.get_index(dim).get_indexer(known[dim]) for dim in (origin, HORIZON)]
    ends[tuple(at_row)] = known[END]
    return array.assign_coords({END: ((origin, HORIZON), ends, {"standard_name": "time"})})


@explained("xrecal.hubs.observations")
def observations(
    table: Table, target: str | None = None, *, as_of: str | date | np.datetime64 | None = None
) -> xr.DataArray:
    """Read the observations in a table of target data as an array.

    Parameters
    ----------
    table : DataFrame or path
        Rows with a date (``target_end_date``, ``date`` or ``target_date``), ``location`` and a
        value (``observation``, ``oracle_value`` or ``value``). Optional columns are ``target``, and
        ``as_of``, the date of a version of the data. You may also give the path of a file (.csv,
        .csv.gz or .parquet) with these rows.
    target : str, optional
        Name of the target to read, needed if the table has several targets.
    as_of : date, optional
        Date on which the values were known: the function ignores later versions of the data. By
        default, it uses all versions.

    Returns
    -------
    DataArray
        Array ``observation`` over the date (with the name of the column in the table) and
        ``location``. For each date and place, it has the value with the latest ``as_of``. Dates and
        places without a value are NaN.

    Raises
    ------
    ValueError
        If columns are missing, if cells are not dates or numbers, if two rows of one version have
        the same date and place, or if all versions are later than ``as_of``.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({
    ...     "target_end_date": "2024-01-06", "location": "06", "observation": [80.0, 95.0],
    ...     "as_of": ["2024-01-10", "2024-01-17"],
    ... })
    >>> xrecal.hubs.observations(rows).values
    array([[95.]])
    >>> xrecal.hubs.observations(rows, as_of="2024-01-12").values
    array([[80.]])
    """
    rows = open_table(table)
    day = next((name for name in _DATES if name in rows), None)
    column = next((name for name in _VALUES if name in rows), None)
    if day is None or column is None:
        needed = " or ".join(_DATES if day is None else _VALUES)
        raise ValueError(f"the table has no column {needed}; it has {[*rows]}")
    rows = _of_target(rows, target)
    keys = [name for name in (day, LOCATION) if name in rows]
    rows = _settled(_read_cells(rows, day, column), keys, as_of)
    return _array(rows[column], {name: rows[name] for name in keys}, "observation")


def _read_cells(given: pd.DataFrame, day: str, column: str) -> pd.DataFrame:
    """Convert cells to dates and numbers; raise ValueError for other cells."""
    faults: list[str] = []
    rows = given.copy()
    for name in (day, AS_OF, column):
        if name not in given:
            continue
        is_value = name == column
        found = pd.to_numeric(given[name], errors="coerce") if is_value else as_dates(given[name])
        wrong = found.isna() & given[name].notna() if is_value else found.isna()
        kind = "number" if is_value else "date such as 2024-01-06"
        faults += at(wrong, given[name], f"is not a {kind}")
        rows[name] = found.astype(float) if is_value else found
    if LOCATION in given:
        faults += at(given[LOCATION].isna(), given[LOCATION], "is missing")
    raise_faults(faults)
    return rows


def _of_target(rows: pd.DataFrame, target: str | None) -> pd.DataFrame:
    """Return the rows of a target, which must be named if the table has several targets."""
    found = [*rows[TARGET].dropna().unique()] if TARGET in rows else []
    if target is not None and target not in found:
        raise ValueError(f"the table has no target {target!r}; it has {found}")
    if target is None and len(found) > 1:
        raise ValueError(f"the table has several targets, {found}; name one: target={found[0]!r}")
    return rows if target is None else rows[rows[TARGET] == target]


def _settled(
    rows: pd.DataFrame, keys: list[str], as_of: str | date | np.datetime64 | None
) -> pd.DataFrame:
    """Return the latest version of each date and place, among the versions up to a date."""
    versioned = AS_OF in rows
    if as_of is not None and not versioned:
        raise ValueError(f"as_of needs a column as_of; the table has {[*rows]}")
    if as_of is not None:
        first = rows[AS_OF].min()
        rows = rows[rows[AS_OF] <= pd.Timestamp(as_of)]
        if rows.empty:
            raise ValueError(f"nothing was known on {as_of}; the first as_of is {first:%Y-%m-%d}")
    repeated = rows.duplicated([*keys, AS_OF] if versioned else keys)
    if repeated.any():
        row = rows.index[repeated][0]
        raise ValueError(
            f"row {row} has the {' and '.join(keys)} of an earlier row; select the rows of one "
            "series first, such as table[table.age_group == 'all']"
        )
    if versioned:
        rows = rows.sort_values(AS_OF, kind="stable")
    return rows.drop_duplicates(keys, keep="last")
