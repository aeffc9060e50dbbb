import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from xrecal.arrays.device.isotonic import isotonic


def test_levels_are_those_of_scipy(library, rng):
    values, weights = rng.normal(size=(7, 60)), rng.gamma(1.0, size=(7, 60))
    found = library.host(isotonic(library(values), library(weights)))
    for row, value, weight in zip(found, values, weights, strict=True):
        expected = isotonic_regression(value, weights=weight).x
        np.testing.assert_allclose(row, expected, rtol=1e-10, atol=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_ties_and_runs_pool_as_in_scipy(values, seed):
    weights = np.random.default_rng(seed).integers(1, 4, size=len(values)).astype(float)
    found = isotonic(np.array(values, float)[np.newaxis], weights[np.newaxis])[0]
    expected = isotonic_regression(np.array(values, float), weights=weights).x
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_values_without_weight_take_the_level_of_the_next(library):
    values, weights = np.array([[5.0, 1.0, -9.0, 2.0, 7.0]]), np.array([[0.0, 1.0, 0.0, 1.0, 0.0]])
    found = library.host(isotonic(library(values), library(weights)))
    assert found.tolist() == [[1.0, 1.0, 2.0, 2.0, np.inf]]


@pytest.mark.parametrize("n", [1, 2, 33])
def test_what_ascends_stays(library, n):
    values = np.linspace(0.0, 1.0, n)[np.newaxis]
    found = library.host(isotonic(library(values), library(np.ones((1, n)))))
    np.testing.assert_allclose(found, values, atol=1e-15)
