import datetime

import numpy as np
import pytest

from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import BLOCKS, check_folds, check_gap, fold_groups, in_days

YEARS = CaseAxis(year=np.repeat(np.arange(2000, 2006), 8))
NO_DATES = CaseAxis()


@pytest.mark.parametrize(
    ("folds", "axis", "by_year"),
    [
        ("auto", YEARS, True),
        ("auto", CaseAxis(year=np.repeat(np.arange(2000, 2005), 8)), True),  # five are enough
        ("auto", CaseAxis(year=np.repeat(np.arange(2000, 2004), 8)), False),
        ("auto", NO_DATES, False),
        ("year", CaseAxis(year=np.repeat([2000, 2007], 8)), True),
        ("block", YEARS, False),
    ],
)
def test_folds_are_years_or_blocks(folds, axis, by_year):
    n = 48 if axis.year is None else axis.year.size
    groups, blocks = fold_groups(folds, axis, n)
    assert blocks == (0 if by_year else BLOCKS)
    np.testing.assert_array_equal(groups, axis.year if by_year else np.arange(n))


def test_random_folds_are_one_fixed_shuffle():
    groups, blocks = fold_groups("random", YEARS, 48)
    again, _ = fold_groups("random", NO_DATES, 48)
    assert blocks == BLOCKS
    np.testing.assert_array_equal(groups, again)
    np.testing.assert_array_equal(np.sort(groups), np.arange(48))
    assert np.abs(np.diff(groups)).mean() > 5  # neighbours are torn apart


@pytest.mark.parametrize("folds", ["block", "auto", "random"])
def test_pooled_cases_of_one_step_share_their_group(folds):
    step = np.repeat(np.arange(12), 4)
    groups, blocks = fold_groups(folds, CaseAxis(step=step), 48)
    assert blocks == BLOCKS
    assert np.unique(groups).size == 12
    for i in range(12):
        assert np.unique(groups[step == i]).size == 1
    if folds != "random":
        np.testing.assert_array_equal(groups, step)


def test_year_folds_need_dates_of_two_years():
    check_folds("CKME", "year", YEARS)
    one_year = CaseAxis(year=np.full(48, 2003))
    with pytest.raises(
        ValueError, match=r"CKME: folds='year' needs dates along the calibration dimension"
    ):
        check_folds("CKME", "year", NO_DATES)
    with pytest.raises(
        ValueError, match="needs two years, but all cases are from 2003; use folds='block'"
    ):
        check_folds("CKME", "year", one_year)
    for folds in ("auto", "block", "random"):
        check_folds("CKME", folds, NO_DATES)
        check_folds("CKME", folds, one_year)


@pytest.mark.parametrize("gap", [0, 3, np.int64(2)])
def test_gaps_are_numbers_of_cases(gap):
    check_gap("CKME", gap)


@pytest.mark.parametrize("gap", [-1, 1.0, None, "1", True])
def test_anything_else_is_no_gap(gap):
    with pytest.raises(ValueError, match="CKME: gap must be a number of cases, 0 or more, got "):
        check_gap("CKME", gap)


@pytest.mark.parametrize(
    ("length", "days"),
    [
        (None, None),
        ("cv", "cv"),
        (90, 90.0),
        (np.float32(0.5), 0.5),
        (datetime.timedelta(days=2, hours=12), 2.5),
        (np.timedelta64(36, "h"), 1.5),
        (np.timedelta64(3, "W"), 21.0),
    ],
    ids=str,
)
def test_half_lives_in_days(length, days):
    found = in_days("CKME", length)
    assert found == days
    assert found is None or isinstance(found, (str, float))


@pytest.mark.parametrize(
    "length",
    [0, -1.0, np.nan, np.inf, True, "month", datetime.timedelta(0), np.timedelta64("NaT", "D")],
    ids=str,
)
def test_invalid_half_lives(length):
    with pytest.raises(
        ValueError, match="CKME: half_life must be a positive timedelta or number of days, 'cv'"
    ):
        in_days("CKME", length)
