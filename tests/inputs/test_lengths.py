"""Lengths of time and dates as they are typed."""

import datetime

import numpy as np
import pytest

from xrecal.inputs.lengths import as_span, length_of, read_gap, read_year_start

DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "days"),
    [("5D", 5), ("5 days", 5), ("0.5d", 0.5), ("12h", 0.5), ("36 hours", 1.5), ("2 weeks", 14)],
)
def test_text_with_a_unit_is_a_length(text, days):
    assert length_of(text) == days * DAY
    assert as_span(text) == days * DAY


@pytest.mark.parametrize("text", ["5", "D", "5 months", "1 year", "-5D", "5D 3h", ""])
def test_other_text_is_none(text):
    assert length_of(text) is None
    with pytest.raises(ValueError, match=f"every is '{text}', which is not a length of time; give"):
        as_span(text, "every")


@pytest.mark.parametrize(
    ("gap", "kept"),
    [
        (0, 0),
        (np.int64(3), 3),
        ("5D", "5D"),
        ("5 days", "5D"),
        ("12h", "0.5D"),
        (5 * DAY, "5D"),
        (np.timedelta64(36, "h"), "1.5D"),
        (np.timedelta64(0, "D"), 0),
        ("0D", 0),
    ],
)
def test_gaps_are_numbers_of_cases_or_lengths(gap, kept):
    found = read_gap(gap, "CKME")
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    "gap", [-1, 1.0, None, "1", True, -DAY, np.timedelta64(1, "M"), np.timedelta64("NaT", "D")]
)
def test_anything_else_is_no_gap(gap):
    with pytest.raises(ValueError, match="CKME: gap must be a number of cases, 0 or more, or a "):
        read_gap(gap, "CKME")


@pytest.mark.parametrize(
    ("date", "kept"), [(None, None), ("07-01", "07-01"), ("7-1", "07-01"), (7, "07-01")]
)
def test_years_begin_on_a_date(date, kept):
    assert read_year_start(date, "CKME") == kept


@pytest.mark.parametrize(
    "date", [0, 13, 7.0, True, "07-32", "13-01", "02-30", "July", "2001-07-01"]
)
def test_anything_else_is_no_date(date):
    with pytest.raises(ValueError, match="CKME: year_start must be a date such as '07-01' or a mo"):
        read_year_start(date, "CKME")
