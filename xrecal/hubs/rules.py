"""Check tables by the rules of hubs, and list the rows that break a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from xrecal.chunks.texts import Lines, quoted
from xrecal.methods.call_errors import explained

from .tables import (
    DIMENSIONS,
    END,
    HORIZON,
    ID,
    LOCATION,
    ORIGINS,
    POINTS,
    TARGET,
    TYPE,
    VALUE,
    Table,
    open_table,
    origin_of,
    parsed,
    tasks_of,
)

SHOWN = 20
"""Largest number of rows that a message lists for one rule."""

CLOSE = 1e-6
"""Largest difference from 1 that a sum of probabilities may have."""


@explained("xrecal.hubs.check")
def check(table: Table) -> None:
    """Check the rows of a forecast by the rules of hubs.

    Parameters
    ----------
    table : DataFrame or path
        Rows of forecasts, or the path of a file (.csv, .csv.gz or .parquet).

    Raises
    ------
    ValueError
        If the table breaks a rule. The message has a line for each row that breaks a rule, at most
        20 lines for each rule. Rows are counted from 0, without the header.

    Notes
    -----
    These are the rules. The columns ``reference_date`` (or ``origin_date``, ``forecast_date``),
    ``horizon``, ``output_type``, ``output_type_id`` and ``value`` are present. Dates are valid
    dates, horizons are whole numbers or missing, and values are numbers. Each row occurs once. Rows
    with the same target, reference date and horizon have the same target end date, which is later
    for longer horizons. All forecasts of
    a target have the same levels, categories or thresholds. Quantiles do not decrease with the
    level. Probabilities are between 0 and 1. Probabilities of categories sum to one. Probabilities
    of values up to a threshold do not decrease with the threshold.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({
    ...     "reference_date": "2024-01-06", "horizon": 1, "output_type": "quantile",
    ...     "output_type_id": [0.25, 0.5, 0.75], "value": [10.0, 9.0, 14.0],
    ... })
    >>> xrecal.hubs.check(rows)
    Traceback (most recent call last):
        ...
    ValueError: the table breaks the rules of hubs:
    row 1: value 9 at 0.5 is less than value 10 at 0.25 in row 0
    """
    given = open_table(table)
    rows = require_readable(given)
    raise_faults([*_labels_not_alike(rows), *_no_distributions(rows)])


def require_readable(given: pd.DataFrame) -> pd.DataFrame:
    """Convert cells to dates, numbers and labels; raise ValueError for invalid or repeated rows."""
    needed = [HORIZON, TYPE, ID, VALUE]
    lacking = [name for name in needed if name not in given]
    if origin_of(given) is None:
        lacking.insert(0, f"{', '.join(ORIGINS[:-1])} or {ORIGINS[-1]}")
    if lacking:
        older = "; the page on hubs shows how to rename columns of older tables"
        hint = older if {"type", "quantile"} <= set(given) else ""
        raise_faults([f"the table has no column {one}; it has {[*given]}{hint}" for one in lacking])
    rows = parsed(given)
    raise_faults([*_unreadable(given, rows), *_repeated(rows)])
    return rows


def raise_faults(faults: list[str]) -> None:
    """Raise ValueError with a list of the faults, if there are any."""
    if faults:
        raise ValueError(
            Lines("\n".join(["the table breaks the rules of hubs:", *map(quoted, faults)]))
        )


def lines(wrong: pd.Series, text: Callable[[int], str]) -> Iterator[str]:
    """Yield a line of text for each wrong row, for at most ``SHOWN`` rows."""
    found = wrong.index[wrong.to_numpy(bool)]
    for row in found[:SHOWN]:
        yield f"row {row}: {text(row)}"
    if len(found) > SHOWN:
        yield f"and {len(found) - SHOWN} more rows like row {found[SHOWN - 1]}"


def at(wrong: pd.Series, given: pd.Series, what: str) -> Iterator[str]:
    """Yield a line of text for each wrong cell of a column."""
    cells = given.astype(object)  # types of Python, not of NumPy
    yield from lines(wrong, lambda row: f"{given.name} {cells[row]!r} {what}")


def _unreadable(given: pd.DataFrame, rows: pd.DataFrame) -> Iterator[str]:
    """Yield lines for cells that are missing, or whose type does not fit their column."""
    origin = origin_of(given)
    for name in dict.fromkeys([origin, END]):
        if name is not None and name in given:
            needed = given[name].notna() | (name == origin)
            yield from at(
                rows[name].isna() & needed, given[name], "is not a date such as 2024-01-06"
            )
    horizons = rows[HORIZON]
    fraction = horizons.isna() | (horizons % 1 != 0)
    yield from at(fraction & given[HORIZON].notna(), given[HORIZON], "is not a whole number")
    yield from at(~np.isfinite(rows[VALUE]), given[VALUE], "is not a finite number")
    if LOCATION in given:
        yield from at(given[LOCATION].isna(), given[LOCATION], "is missing")
    known = [*DIMENSIONS, *POINTS]
    yield from at(~given[TYPE].isin(known), given[TYPE], f"is not one of {', '.join(known)}")
    levels = pd.to_numeric(rows[ID].where(given[TYPE] == "quantile"), errors="coerce")
    outside = (given[TYPE] == "quantile") & ~((levels > 0) & (levels < 1))
    yield from at(outside, given[ID], "is not a level between 0 and 1")
    missing = given[TYPE].isin([*DIMENSIONS]) & ~outside & rows[ID].isna()
    yield from at(missing, given[ID], "is missing")


def _repeated(rows: pd.DataFrame) -> Iterator[str]:
    """Yield lines for repeated rows, and for target end dates that contradict each other."""
    labels = [*tasks_of(rows), ID]
    groups = rows.groupby(labels, dropna=False, sort=False).ngroup()
    first = pd.Series(np.arange(len(rows)), rows.index).groupby(groups).transform("first")
    yield from lines(groups.duplicated(), lambda row: f"has the labels of row {first[row]}")
    if END in rows:
        keys = [name for name in (origin_of(rows), HORIZON, TARGET) if name in rows]
        ends = rows.groupby(keys, dropna=False, sort=False)[END].transform("first")
        yield from lines(
            rows[END].notna() & (rows[END] != ends),
            lambda row: (
                f"{END} is {rows[END][row]:%Y-%m-%d}, but {ends[row]:%Y-%m-%d} in an earlier "
                "row of the same date and horizon"
            ),
        )
        yield from _ends_of_other_horizons(rows)


def _ends_of_other_horizons(rows: pd.DataFrame) -> Iterator[str]:
    """Yield lines for target end dates that do not become later with the horizon."""
    keys = [name for name in (origin_of(rows), TARGET) if name in rows]
    ends = rows[(rows[HORIZON] % 1 == 0) & rows[END].notna()].drop_duplicates([*keys, HORIZON])
    ends = ends.sort_values([*keys, HORIZON], kind="stable")
    before = ends.groupby(keys, dropna=False, sort=False)[END].shift()
    yield from lines(
        ends[END] <= before,
        lambda row: (
            f"{END} is {rows[END][row]:%Y-%m-%d} at horizon {rows[HORIZON][row]:g}, not later than "
            "at a shorter horizon"
        ),
    )


def _labels_not_alike(rows: pd.DataFrame) -> Iterator[str]:
    """Yield lines for forecasts that lack a level, category or threshold of other forecasts."""
    chosen = rows[rows[TYPE].isin(["quantile", "pmf", "cdf"])]
    by = [name for name in (TARGET, TYPE) if name in rows]
    for _, block in chosen.groupby(by, dropna=False, sort=False):
        tasks = block.groupby(tasks_of(block), dropna=False, sort=False).ngroup()
        codes, labels = pd.factorize(block[ID])
        lacks = np.ones((tasks.max() + 1, len(labels)), bool)
        lacks[tasks, codes] = False
        first = tasks[~tasks.duplicated()]
        lacking = {row: labels[lacks[task]] for row, task in first.items() if lacks[task].any()}

        def text(row: int, lacking: dict[int, Any] = lacking) -> str:
            which = ", ".join(map(str, lacking[row]))
            return f"its forecast has no {ID} {which}, which other forecasts of its target have"

        yield from lines(pd.Series(True, [*lacking]), text)


def _no_distributions(rows: pd.DataFrame) -> Iterator[str]:
    """Yield lines for quantiles that decrease with the level, and for invalid probabilities."""
    tasks = rows.groupby(tasks_of(rows), dropna=False, sort=False).ngroup()
    for kind in ("quantile", "cdf"):
        block = rows[rows[TYPE] == kind]
        numbers = pd.to_numeric(block[ID], errors="coerce")
        if numbers.isna().any():  # thresholds that are dates or words, in their order
            numbers = pd.Series(pd.factorize(block[ID])[0], block.index)
        order = np.lexsort([numbers, tasks[block.index]])
        ordered = block.iloc[order]
        before = pd.Series(ordered.index, ordered.index).shift(fill_value=-1)
        same = tasks[ordered.index].diff() == 0
        falls = (same & (ordered[VALUE].diff() < 0)).sort_index()

        def text(row: int, before: pd.Series = before) -> str:
            last = before[row]
            return (
                f"value {rows[VALUE][row]:g} at {rows[ID][row]} is less than value "
                f"{rows[VALUE][last]:g} at {rows[ID][last]} in row {last}"
            )

        yield from lines(falls, text)
    probable = rows[TYPE].isin(["pmf", "cdf"])
    outside = probable & ~rows[VALUE].between(0, 1)
    yield from at(outside, rows[VALUE], "is not a probability between 0 and 1")
    sums = rows[VALUE].groupby(tasks).transform("sum")
    wrong = (rows[TYPE] == "pmf") & ~tasks.duplicated() & ((sums - 1).abs() > CLOSE)
    yield from lines(wrong, lambda row: f"probabilities of its forecast sum to {sums[row]:g}")
