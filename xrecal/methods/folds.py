"""Folds of cases for a method, and checks of the dates that folds and the season need."""

from __future__ import annotations

import math

import numpy as np

from xrecal.arrays.advice import Advice, Typed
from xrecal.inputs.covariates import SEASON
from xrecal.inputs.dates import CaseAxis, spread_of_season, years_of_cases
from xrecal.typing import IntArray

SHORTEST_SEASON = 240
"""Methods learn the season only if the last case is at least this many days after the first."""

WHOLE_YEAR = 350
"""The cases contain all seasons if the last case is at least this many days after the first
case."""


def period_of_cases(axis: CaseAxis, names: tuple[str, ...], *, method: str) -> str | None:
    """Return a remark if a method learns the season from less than a whole year; else None.

    Raises ValueError if the cases have no dates, or span too few days for the season.
    """
    if SEASON not in names:
        return None
    if axis.season is None or axis.days is None:
        raise ValueError(
            Advice(
                f"{method}: ",
                Typed("condition_on", "season"),
                " needs dates (datetime64 or cftime) along the calibration dimension; add a "
                "coordinate valid_time, or leave ",
                Typed("condition_on"),
                " out",
            )
        )
    span = np.ptp(axis.days)
    if span < SHORTEST_SEASON:
        raise ValueError(
            Advice(
                f"{method}: ",
                Typed("condition_on", "season"),
                f" needs cases from {SHORTEST_SEASON} days or more, but these span {span:.0f} days"
                ": other seasons would be extrapolated; leave ",
                Typed("condition_on"),
                " out",
            )
        )
    if span < WHOLE_YEAR:
        return f"season learned from {span:.0f} days: forecasts for other dates are extrapolated"
    return None


NARROW = 10
"""Standard deviation of calendar dates, in days. By default, a pool uses the season only if the
standard deviation of the calendar dates of the cases is at least this number."""


def season_of_pool(axis: CaseAxis) -> tuple[str | tuple[str, ...], str | None]:
    """Return the default covariates of a pool, and a remark or None.

    The default is the season if the dates of the cases allow it, and otherwise no covariate.
    """
    if axis.days is None:
        return (), "no dates, so the pool leaves the season out"
    span = np.ptp(axis.days)
    if span < SHORTEST_SEASON:
        return (), (
            f"cases span {span:.0f} days, less than {SHORTEST_SEASON}, so the pool leaves the "
            "season out"
        )
    if axis.season is not None and spread_of_season(axis.season) < NARROW:
        return (), None
    return SEASON, period_of_cases(axis, (SEASON,), method="LinearPool")


BLOCKS = 5
"""Number of folds, if folds are blocks of successive cases or random parts of the cases."""

YEARS_FOR_YEAR_FOLDS = 5
"""Smallest number of years with which ``folds="auto"`` makes each year a fold."""


def fold_groups(
    folds: str, axis: CaseAxis, n_cases: int, year_start: str | None = None
) -> tuple[IntArray, int]:
    """Return the group (n,) of each case, and the number of folds.

    Cases of one group, such as cases of one year or of one date, are always in the same fold. If
    each group is a fold, the second result is 0. Groups by year are the years of
    :func:`xrecal.inputs.dates.years_of_cases`.
    """
    year = years_of_cases(axis, year_start)
    enough = year is not None and np.unique(year).size >= YEARS_FOR_YEAR_FOLDS
    if year is not None and (folds == "year" or (folds == "auto" and enough)):
        return year, 0
    step = axis.steps(n_cases)
    if folds == "random":  # one shuffle for all locations: independent of chunks
        return np.random.default_rng(0).permutation(step[-1:].sum() + 1)[step], BLOCKS
    return step, BLOCKS


def check_folds(method: str, folds: str, axis: CaseAxis, year_start: str | None = None) -> None:
    """Raise ValueError if ``folds`` or ``year_start`` needs dates or years that the cases lack."""
    if year_start is not None and axis.month_day is None:
        raise ValueError(
            f"{method}: year_start needs dates along the calibration dimension (datetime64 or "
            "cftime); leave it out"
        )
    if folds != "year":
        return
    year = years_of_cases(axis, year_start)
    if year is None:
        raise ValueError(
            f"{method}: folds='year' needs dates along the calibration dimension (datetime64, "
            "cftime, or years from 1000 to 9999); use folds='block'"
        )
    if np.unique(year).size < 2:
        raise ValueError(
            f"{method}: folds='year' needs two years, but all cases are from {year[0]}"
            f"{note_on_year_start(axis, year)}; use folds='block'"
        )


def note_on_year_start(axis: CaseAxis, year: IntArray) -> str:
    """Return the end of a message about years, if they do not begin on 1 January."""
    if axis.year is None or np.array_equal(axis.year, year):
        return ""
    return (
        ", as years begin in the longest time of the year without cases (year_start='01-01' for "
        "calendar years)"
    )


def check_gap_in_time(method: str, gap: int | str, axis: CaseAxis) -> None:
    """Raise ValueError if the gap is a length of time and the cases have no dates."""
    if isinstance(gap, str) and axis.days is None:
        raise ValueError(
            f"{method}: gap={gap!r} needs dates (datetime64 or cftime) along the calibration "
            "dimension; add a coordinate, or give a number of cases"
        )


WEEK = 7.0
"""Number of days. Two cases at most this far apart are treated as dependent, because the weather
has a memory of about a week."""

MANY_NEAR = 0.05
"""Share of the cases. If at least this share has a neighbour within a week in another fold, a
remark warns the user. Fewer such cases hardly change scores. For example, if folds are years, a few
daily cases at the end of each year have such neighbours."""


def near_other_folds(folds: str, axis: CaseAxis, year_start: str | None) -> str | None:
    """Return a remark if many cases have a neighbour within a week in another fold; else None."""
    from xrecal.arrays.ckme.folds import assign_folds, count_near

    if axis.days is None or folds == "random":  # the user asked for random folds, which leak
        return None
    n_cases = axis.days.size
    groups, blocks = fold_groups(folds, axis, n_cases, year_start)
    fold = assign_folds(groups, np.ones((1, n_cases), np.bool_), blocks, axis.step)[0]
    parts = (fold == f for f in range(fold.max(initial=-1) + 1))
    near = sum(
        count_near(axis.days, np.flatnonzero(part), np.flatnonzero(~part), WEEK) for part in parts
    )
    if near < max(MANY_NEAR * n_cases, 1):
        return None
    return (
        f"{near} of {n_cases} cases have a neighbour within a week in another fold, so "
        "cross-validation may find these cases too easy to predict: give the method "
        f"gap='{WEEK:g}D', or a gap as long as the memory of the weather"
    )


def learned_from_neighbours(near: int, n_cases: int, longest: float) -> Advice:
    """Return a warning that fits predict ``near`` cases after learning from their neighbours.

    The suggested gap covers a week and the longest lead, in days.
    """
    return Advice(
        f"{near} of {n_cases} cases are predicted by fits that have learned from a neighbour "
        "within a week, so they may score too well: use ",
        Typed("gap", ...),
        ", such as ",
        Typed("gap", f"{math.ceil(max(longest, WEEK))}D"),
        ". The gap should cover at least the lead time plus the memory of the weather",
    )


def learned_from_unverified(late: int, n_cases: int, longest: float) -> Advice:
    """Return a warning that fits predict ``late`` cases after learning from unknown observations.

    Such observations are later than the start of the case at the longest lead, in days.
    """
    return Advice(
        f"{late} of {n_cases} cases are predicted by fits that have learned from observations "
        f"after the start of the forecast, as the longest lead has {longest:g} days; so they may "
        "score too well: use ",
        Typed("gap", f"{math.ceil(longest)}D"),
    )
