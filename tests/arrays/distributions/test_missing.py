"""Masses of the quantile levels that a forecast has, and values beyond all others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays.distributions.missing import (
    beyond,
    forecasts_from,
    largest_among,
    level_masses,
)


def masses_by_hand(levels):
    order = np.argsort(levels)
    edges = [0.0, *(levels[order][1:] + levels[order][:-1]) / 2, 1.0]
    masses = np.empty(len(levels))
    masses[order] = np.diff(edges)
    return masses


@given(
    levels=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=7, unique=True),
    there=arrays(np.bool_, (4, 7)),
)
def test_masses_are_those_of_the_levels_that_are_there(levels, there):
    levels = np.array(levels)
    there = there[:, : levels.size]
    found = level_masses(levels, np.where(there, 1.0, np.nan))
    for row, known in zip(found, there, strict=True):
        if known.any():
            np.testing.assert_array_equal(row[known], masses_by_hand(levels[known]))
            np.testing.assert_array_equal(row[~known], 0.0)


def test_masses_take_no_memory_where_no_level_is_lacking():
    found = level_masses(np.array([0.1, 0.5, 0.9]), np.zeros((1000, 3), np.float32))
    assert found.strides[0] == 0
    assert found.dtype == np.float32


def test_levels_of_a_row_without_a_forecast_may_be_missing():
    levels = np.array([[np.nan] * 3, [0.1, 0.5, 0.9], [np.nan] * 3])
    quantiles = np.where(np.isnan(levels), np.nan, 1.0)
    np.testing.assert_allclose(level_masses(levels, quantiles)[1], [0.3, 0.4, 0.3])


def test_forecasts_without_levels_are_as_they_are():
    loc = np.zeros((2, 3))
    assert forecasts_from({"loc": loc}).weights is None


@pytest.mark.parametrize(
    ("values", "largest"),
    [
        ([1.0, 2.0, 3.0, 1e9], 3.0),
        ([1.0, 2.0, 3.0, 4.0, 1e20, 1e9], 4.0),
        ([1.0, 2.0, -3.0], 3.0),
        ([0.0, 0.0, 1e20], 1e20),
        ([np.nan, np.nan], 0.0),
    ],
)
def test_the_largest_value_that_is_not_absurd(values, largest):
    assert largest_among(np.array([values]))[0] == largest


def test_nothing_is_beyond_zero_and_nothing_below_a_million():
    values = np.array([1e20, 2e6, 9e5, np.inf, np.nan, -2e6])
    assert not beyond(values, 0.0).any()
    np.testing.assert_array_equal(beyond(values, 1.0), [True, True, False, False, False, True])
