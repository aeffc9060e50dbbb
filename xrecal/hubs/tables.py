"""Read and write tables of hubs, and convert their columns."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from xrecal.inputs.libraries import require_library

Table: TypeAlias = pd.DataFrame | str | PathLike[str]

ORIGINS = ("reference_date", "origin_date", "forecast_date")
"""Names that the column with the start of a forecast may have."""

TARGET, HORIZON, END, LOCATION = "target", "horizon", "target_end_date", "location"
TYPE, ID, VALUE = "output_type", "output_type_id", "value"

DIMENSIONS = {"quantile": "quantile", "sample": "member", "pmf": "category", "cdf": "threshold"}
"""Dimension that counts the quantiles, samples, ... of each output type in an array."""

POINTS = ("mean", "median")
"""Output types whose rows need no ``output_type_id``."""

_TEXT = (LOCATION, TARGET, "model_id", TYPE, ID)


def open_table(table: Table) -> pd.DataFrame:
    """Return the rows of a DataFrame or file, numbered from 0."""
    if isinstance(table, pd.DataFrame):
        return table.reset_index(drop=True)
    if _is_parquet(table):
        return pd.read_parquet(table)
    return pd.read_csv(table, dtype=dict.fromkeys(_TEXT, str), keep_default_na=True)


def save_table(rows: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write rows to a file, with dates that have no time of day."""
    days = {name: rows[name].dt.date for name in rows.select_dtypes("datetime")}
    if _is_parquet(path):
        rows.assign(**days).to_parquet(path, index=False)
    else:
        rows.assign(**days).to_csv(path, index=False)


def _is_parquet(path: str | PathLike[str]) -> bool:
    """Return True for the name of a Parquet file, False for the name of a CSV file."""
    suffixes = Path(path).suffixes
    if ".parquet" in suffixes[-1:]:
        require_library("parquet")
        return True
    if ".csv" in suffixes[-2:]:
        return False
    raise ValueError(f"tables of hubs are files .csv, .csv.gz or .parquet, got {str(path)!r}")


def origin_of(rows: pd.DataFrame) -> str | None:
    """Return the name of the column with the start of a forecast, or None."""
    return next((name for name in ORIGINS if name in rows), None)


def tasks_of(rows: pd.DataFrame) -> list[str]:
    """Return the columns that identify a forecast in a table, including the output type."""
    return [str(name) for name in rows if name not in (ID, VALUE, END)]


def as_dates(column: pd.Series) -> pd.Series:
    """Convert a column to dates; cells that are not dates, such as numbers, become NaT."""
    if pd.api.types.is_numeric_dtype(column):
        return pd.Series(np.datetime64("NaT", "ns"), column.index)
    dates = pd.to_datetime(column, errors="coerce", format="ISO8601")
    return dates.astype("datetime64[ns]")


def parsed(given: pd.DataFrame) -> pd.DataFrame:
    """Convert cells to dates, numbers and labels; other cells become missing."""
    rows = given.copy()
    for name in (origin_of(given), END):
        if name in rows:
            rows[name] = as_dates(given[name])
    for name in (HORIZON, VALUE):
        rows[name] = pd.to_numeric(given[name], errors="coerce").astype(float)
    rows[ID] = _labels(given)
    return rows


def _labels(given: pd.DataFrame) -> pd.Series:
    """Return labels of output types; levels of quantiles become numbers.

    Samples and thresholds become numbers if all labels of their output type are numbers.
    """
    labels = given[ID].astype(object)
    labels = labels.where(labels.isna(), labels.astype(str))
    for kind in ("quantile", "sample", "cdf"):
        chosen = given[TYPE] == kind
        numbers = pd.to_numeric(labels[chosen], errors="coerce").round(10)
        if kind == "quantile" or numbers.notna().all():
            labels[chosen] = numbers.astype(object)
    return labels
