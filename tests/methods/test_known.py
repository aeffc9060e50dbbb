import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from xrecal.inputs.dates import CaseAxis
from xrecal.methods.known import (
    case_that_knows_late,
    has_passed,
    known_cases,
    times_known,
    verification_times,
)


def counted(days, ahead, delay):
    """Cases from the first on whose valid time and delay are not after each start."""
    starts, valid = days + np.minimum(ahead, 0), days + np.maximum(ahead, 0)
    found = []
    for i in range(len(days)):
        n = 0
        while n < i and days[n] < days[i] and valid[: n + 1].max() + delay <= starts[i]:
            n += 1
        found.append(n)
    return found


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=25),
    st.lists(st.integers(0, 6), min_size=25, max_size=25),
    st.sampled_from([1, -1]),
    st.integers(0, 4),
)
def test_those_whose_valid_time_and_delay_are_not_after_the_start(days, ahead, sign, delay):
    """Negative days ahead say that labels are valid times."""
    days, ahead = np.sort(days).astype(float), sign * np.array(ahead[: len(days)], float)
    found = known_cases(CaseAxis(days=days), ahead, f"{delay}D" if delay else 0)
    np.testing.assert_array_equal(found, counted(days, ahead, delay))


def up_to(axis, ahead, delay):
    """Cases that verify up to the time of which a place with the same dates and leads knows."""
    times = times_known(axis, ahead, delay)
    return np.searchsorted(verification_times(axis, ahead), times, side="right")


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=25),
    st.floats(0.25, 6),
    st.sampled_from([1, -1]),
    st.sampled_from([0, "12h", "4D"]),
)
def test_other_places_are_known_as_long_as_the_own_place(days, ahead, sign, delay):
    axis = CaseAxis(days=np.sort(days).astype(float))
    ahead = np.full(len(days), sign * ahead)
    np.testing.assert_array_equal(up_to(axis, ahead, delay), known_cases(axis, ahead, delay))


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("ahead", [0.0, 2.0, -2.0])
@pytest.mark.parametrize("axis", [CaseAxis(days=np.arange(8.0), step=np.arange(8)), CaseAxis()])
def test_delays_in_cases_and_labels_without_leads(axis, ahead, delay):
    ahead = np.full(8, 0.0 if axis.days is None else ahead)
    np.testing.assert_array_equal(up_to(axis, ahead, delay), known_cases(axis, ahead, delay))


def test_without_dates_each_case_verifies_before_the_next():
    none = np.zeros(5)
    np.testing.assert_array_equal(known_cases(CaseAxis(), none, 0), np.arange(5))
    np.testing.assert_array_equal(known_cases(CaseAxis(), none, 2), [0, 0, 0, 1, 2])
    steps = CaseAxis(step=np.array([0, 0, 1, 1, 2]))
    np.testing.assert_array_equal(known_cases(steps, none, 0), [0, 0, 2, 2, 4])
    np.testing.assert_array_equal(known_cases(steps, none, 1), [0, 0, 0, 0, 2])


def test_a_delay_in_cases_comes_after_the_valid_time():
    axis = CaseAxis(days=np.arange(8.0))
    np.testing.assert_array_equal(known_cases(axis, np.full(8, 2.0), 1), [0, 0, 0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(("length", "passed"), [(3, False), (2, True), ("5D", True), ("9D", False)])
def test_lengths_are_counted_in_cases_or_days(length, passed):
    axis = CaseAxis(days=np.array([0.0, 1.0, 4.0, 6.0]))
    assert has_passed(axis, 1, 3, length, 4) is passed


def test_the_first_case_that_knows_each_is_the_first_that_counts_it():
    days = np.array([0.0, 1.0, 2.0, 5.0, 6.0, 7.0])
    ahead = xr.DataArray([[0.0, 3.0]] * 6, dims=["init", "lead"])
    axis = CaseAxis(days=days)
    found = case_that_knows_late(axis, ahead.transpose("lead", "init"), "1D", "init")
    assert found.dims == ("init", "lead")
    for k in range(2):
        counts = known_cases(axis, ahead.values[:, k], "1D")
        first = [next((i for i, c in enumerate(counts) if c > j), 6) for j in range(6)]
        np.testing.assert_array_equal(found[:, k], first)
    np.testing.assert_array_equal(found[:, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(found[:, 1], [3, 3, 4, 6, 6, 6])
