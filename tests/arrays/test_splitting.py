import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from xrecal.arrays.splitting import splits

DAY = datetime.timedelta(days=1)


def slots(mask):
    return np.flatnonzero(mask).tolist()


def as_slots(found):
    return [(slots(train), slots(test)) for train, test in found]


def check_masks(found, n):
    tested = np.zeros(n, int)
    for train, test in found:
        assert train.dtype == test.dtype == bool
        assert train.shape == test.shape == (n,)
        assert train.any()
        assert test.any()
        assert not (train & test).any()
        tested += test
    assert (tested <= 1).all()
    firsts = [np.flatnonzero(test)[0] for _, test in found]
    assert firsts == sorted(firsts)
    return tested == 1


def reference(n, position, test, gap, *, past, window=None, window_position=None):
    """Cases to train on, one by one."""
    first = min(test)
    return [
        i
        for i in range(n)
        if i not in test
        and (i < first or not past)
        and all(abs(position[i] - position[j]) > gap for j in ([first] if past else test))
        and (window is None or window_position[first] - window_position[i] <= window)
    ]


@given(st.data())
def test_years_are_left_out_with_a_gap_on_both_sides(data):
    """A year of seasons that lie in two calendar years has several pieces."""
    year = np.array(data.draw(st.lists(st.integers(1999, 2003), min_size=2, max_size=60)))
    gap = data.draw(st.integers(0, 4))
    n = year.size
    expected = [
        (reference(n, np.arange(n), slots(year == y), gap, past=False), slots(year == y))
        for y in np.unique(year)
    ]
    assume(len(expected) > 1 and all(train for train, _ in expected))
    found = splits(n, "year", year=year, gap=gap)
    assert as_slots(found) == expected


@given(st.integers(2, 60), st.integers(2, 8), st.integers(0, 6))
def test_blocks_are_contiguous_parts_of_equal_size(n, blocks, gap):
    assume(n >= blocks and n - -(-n // blocks) - 2 * gap > 0)
    found = splits(n, "block", blocks=blocks, gap=gap)
    assert check_masks(found, n).all()
    sizes = [test.sum() for _, test in found]
    assert len(sizes) == blocks
    assert max(sizes) - min(sizes) <= 1
    for train, test in found:
        held = slots(test)
        assert held == list(range(held[0], held[-1] + 1))
        assert slots(train) == reference(n, np.arange(n), held, gap, past=False)


@given(st.integers(2, 60), st.integers(2, 8), st.integers(0, 6))
def test_an_expanding_window_trains_on_all_earlier_cases(n, blocks, gap):
    assume(n >= blocks and n // blocks > gap)
    found = splits(n, "retrospective", blocks=blocks, gap=gap)
    known = check_masks(found, n)
    in_blocks = splits(n, "block", blocks=blocks)
    assert len(found) == blocks - 1
    np.testing.assert_array_equal(known, ~in_blocks[0].test)
    for (train, test), (_, block) in zip(found, in_blocks[1:], strict=True):
        np.testing.assert_array_equal(test, block)
        assert slots(train) == list(range(slots(test)[0] - gap))


@given(st.integers(2, 80), st.integers(1, 40), st.integers(1, 20), st.integers(0, 10))
def test_a_rolling_window_is_moved_and_refitted(n, window, every, gap):
    assume(gap < window < n)
    found = splits(n, "rolling", window=window, every=every, gap=gap)
    expected = [
        (list(range(start - window, start - gap)), list(range(start, min(start + every, n))))
        for start in range(window, n, every)
    ]
    assert as_slots(found) == expected
    known = check_masks(found, n)
    assert slots(known) == list(range(window, n))


@given(st.integers(5, 60), st.integers(1, 20))
def test_without_a_window_all_the_past_counts_after_the_first_part(n, every):
    found = splits(n, "rolling", every=every)
    start = splits(n, "retrospective")[0].test.argmax()
    check_masks(found, n)
    assert slots(found[0].test)[0] == start
    for train, test in found:
        assert slots(train) == list(range(slots(test)[0]))


@given(
    st.lists(st.sampled_from([0, 1, 1, 1, 2, 7]), min_size=6, max_size=50),
    st.integers(0, 3),
    st.integers(2, 12),
    st.integers(1, 20),
)
def test_lengths_of_time_are_measured_between_dates(steps, gap, window, every):
    hours = np.cumsum(steps)
    n, hour, days = hours.size, np.timedelta64(1, "h"), 1e4 + hours / 24  # days are not exact
    late = [i for i in range(n) if hours[i] - hours[0] >= window]
    tests = {}
    for i in late:
        tests.setdefault((hours[i] - hours[late[0]]) // every, []).append(i)
    reach = {"window": window, "window_position": hours}
    expected = [(reference(n, hours, t, gap, past=True, **reach), t) for t in tests.values()]
    spans = {"gap": gap * hour, "window": window * hour, "every": every * hour}
    if not late or not all(train for train, _ in expected):
        message = "no case is left to train on" if late else "the window is never full"
        with pytest.raises(ValueError, match=message):
            splits(n, "rolling", days=days, **spans)
        return
    found = splits(n, "rolling", days=days, **spans)
    assert as_slots(found) == expected
    check_masks(found, n)


@given(st.integers(10, 60), st.integers(0, 3), st.integers(6, 9), st.integers(1, 9))
def test_days_of_daily_cases_are_numbers_of_cases(n, gap, window, every):
    days = 17000.5 + np.arange(n)
    in_days = {"days": days, "gap": gap * DAY}
    rolling = {"window": window, "every": every}
    expected = as_slots(splits(n, "rolling", gap=gap, **rolling))
    for unit in (DAY, np.timedelta64(24, "h"), pd.Timedelta(1, "D")):
        spans = {name: length * unit for name, length in rolling.items()}
        assert as_slots(splits(n, "rolling", **in_days, **spans)) == expected
    mixed = splits(n, "rolling", **in_days, window=window, every=every * DAY)
    assert as_slots(mixed) == expected
    for by in ("block", "retrospective"):
        blocks = {"blocks": 2}
        assert as_slots(splits(n, by, **in_days, **blocks)) == as_slots(
            splits(n, by, gap=gap, **blocks)
        )


def test_cases_of_the_date_of_a_tested_one_are_within_a_gap_of_time():
    days = np.array([0, 1, 1, 2.0])
    for by, train in (("block", [0]), ("retrospective", [0])):
        assert slots(splits(4, by, days=days, blocks=2, gap=0 * DAY)[-1].train) == train
        assert slots(splits(4, by, days=days, blocks=2)[-1].train) == [0, 1]


YEARS = np.repeat([2001, 2002], 10)

WRONG = {
    "by is 'month'; give one of ['year', 'block', 'retrospective', 'rolling']": {"by": "month"},
    "no dates are known; use by='block'": {"by": "year"},
    "by='year' needs two years at least, but all cases are from [2001]; use by='block'": {
        "by": "year",
        "year": np.full(20, 2001),
    },
    "year has shape (3,), but there are 20 cases; give (20,)": {"by": "year", "year": YEARS[:3]},
    "gap is -1; give a whole number of cases, at least 0, or a timedelta": {"gap": -1},
    "gap is 1.5; give a whole number of cases, at least 0": {"gap": 1.5},
    "gap is '3D'; give a whole number of cases": {"gap": "3D"},
    "gap is datetime.timedelta(days=-1); give a length of time that is not negative": {
        "gap": -DAY,
        "days": np.arange(20),
    },
    "gap is a length of time, but the dates of the cases are not known; give a number": {
        "gap": DAY
    },
    "gap is np.timedelta64(1,'M'), which has no fixed length; give it in days": {
        "gap": np.timedelta64(1, "M"),
        "days": np.arange(20),
    },
    "gap is np.timedelta64('NaT','D'); give a length of time": {"gap": np.timedelta64("NaT", "D")},
    "days must be finite and not descend; put the cases in order of time": {
        "gap": DAY,
        "days": -np.arange(20),
    },
    "days has shape (19,), but there are 20 cases": {"gap": DAY, "days": np.arange(19)},
    "window belongs to by='rolling', but by is 'block'; leave it out": {"window": 5},
    "every belongs to by='rolling', but by is 'block'; leave it out": {"every": 5},
    "blocks is 1; give a whole number of at least 2": {"blocks": 1},
    "blocks is 2.5; give a whole number of at least 2": {"blocks": 2.5},
    "blocks is 21, but there are 20 cases; give 20 at most": {"blocks": 21},
    "by='rolling' needs every, the time between two fits": {"by": "rolling", "window": 5},
    "every is 0; give a whole number of cases, at least 1": {"by": "rolling", "every": 0},
    "every is datetime.timedelta(0); give a length of time above zero": {
        "by": "rolling",
        "every": 0 * DAY,
        "days": np.arange(20),
    },
    "window is 0; give a whole number of cases": {"by": "rolling", "window": 0, "every": 5},
    "the window is never full in 20 cases; give a shorter window": {
        "by": "rolling",
        "window": 20,
        "every": 5,
    },
    "for the test of cases 0 to 3 (by='block', gap=8); give a smaller gap or more blocks": {
        "gap": 8,
        "blocks": 3,
        "n": 12,
    },
    "for the test of cases 0 to 9 (by='year', gap=10); give a smaller gap": {
        "by": "year",
        "year": YEARS,
        "gap": 10,
    },
    "for the test of cases 4 to 7 (by='retrospective', gap=4); give a smaller gap or fewer": {
        "by": "retrospective",
        "gap": 4,
    },
    "for the test of cases 4 to 6 (by='rolling', gap=4); give a smaller gap or fewer blocks": {
        "by": "rolling",
        "gap": 4,
        "every": 3,
    },
    "for the test of cases 4 to 6 (by='rolling', gap=4); give a smaller gap or a longer window": {
        "by": "rolling",
        "gap": 4,
        "window": 4,
        "every": 3,
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(message):
    arguments = {"n": 20, "by": "block"} | WRONG[message]
    with pytest.raises(ValueError) as error:  # noqa: PT011  the message is compared below
        splits(arguments.pop("n"), arguments.pop("by"), **arguments)
    assert message in str(error.value)
