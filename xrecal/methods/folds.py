"""Settings of time that several methods have: folds, gaps, half-lives."""

from __future__ import annotations

import datetime
from typing import Literal, TypeAlias

import numpy as np

from xrecal.inputs.dims import CaseAxis
from xrecal.typing import IntArray

from .base import is_positive, is_whole

BLOCKS = 5
YEARS_FOR_YEAR_FOLDS = 5

HalfLife: TypeAlias = Literal["cv"] | float | datetime.timedelta | np.timedelta64 | None
"""A length of time, in days if a number."""


def fold_groups(folds: str, axis: CaseAxis, n_cases: int) -> tuple[IntArray, int]:
    """What folds are made of (n,), and the number of blocks; 0: each group is a fold."""
    by_year = folds == "year" or (
        folds == "auto"
        and axis.year is not None
        and np.unique(axis.year).size >= YEARS_FOR_YEAR_FOLDS
    )
    if by_year and axis.year is not None:
        return axis.year, 0
    step = axis.steps(n_cases)
    if folds == "random":  # one shuffle for all locations, so chunks cannot matter
        return np.random.default_rng(0).permutation(step[-1:].sum() + 1)[step], BLOCKS
    return step, BLOCKS


def check_folds(method: str, folds: str, axis: CaseAxis) -> None:
    """Raise ValueError if year folds are asked for and cannot be made."""
    if folds != "year":
        return
    if axis.year is None:
        raise ValueError(
            f"{method}: folds='year' needs dates along the calibration dimension (datetime64, "
            "cftime, or years from 1000 to 9999); use folds='block'"
        )
    if np.unique(axis.year).size < 2:
        raise ValueError(
            f"{method}: folds='year' needs two years, but all cases are from {axis.year[0]}; "
            "use folds='block'"
        )


def check_gap(method: str, gap: object) -> None:
    """Raise ValueError unless a gap is a number of cases."""
    if not is_whole(gap) or gap < 0:  # type: ignore[operator]
        raise ValueError(f"{method}: gap must be a number of cases, 0 or more, got {gap!r}")


def in_days(method: str, length: HalfLife) -> float | Literal["cv"] | None:
    """A half-life in days; raises ValueError unless it is positive."""
    if length is None or (isinstance(length, str) and length == "cv"):
        return length
    days: object = length
    if isinstance(length, datetime.timedelta):
        days = length / datetime.timedelta(days=1)
    elif isinstance(length, np.timedelta64):
        days = float(length / np.timedelta64(1, "D"))
    if not is_positive(days):
        raise ValueError(
            f"{method}: half_life must be a positive timedelta or number of days, 'cv' or None, "
            f"got {length!r}"
        )
    return float(days)  # type: ignore[arg-type]
