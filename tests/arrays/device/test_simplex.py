import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from xrecal.arrays.ckme import simplex
from xrecal.arrays.device import simplex as batched
from xrecal.arrays.device.simplex import isotonic


def signed(rng, n):
    beta = rng.normal(size=(6, n))
    return beta + (1.0 - beta.sum(-1, keepdims=True)) / n


@pytest.mark.parametrize("n", [1, 2, 3, 40, 200])
def test_euclidean_projection_is_that_of_the_host(library, rng, n):
    beta = signed(rng, n) + rng.normal(size=(6, 1)) * 1e3  # a shift changes nothing
    found = library.host(batched.project_simplex(library(beta)))
    np.testing.assert_allclose(found, simplex.project_simplex(beta), atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 40, 200])
@pytest.mark.parametrize("shift", [0.0, -4.0])
def test_energy_projection_is_that_of_the_host(library, rng, n, shift):
    support = rng.gamma(1.0, 2.0, size=n) + shift
    support[: n // 3], support[n // 2 : n // 2 + 3] = shift, 1.5
    beta = signed(rng, n)
    found = library.host(batched.project_energy(library(beta), library(support)))
    np.testing.assert_allclose(found, simplex.project_energy(beta, support), atol=1e-11)


def test_weights_that_do_not_sum_to_one_are_measured_from_zero(library, rng):
    beta, support = rng.normal(size=(5, 20)), rng.normal(size=20)
    found = library.host(batched.project_energy(library(beta), library(support)))
    np.testing.assert_allclose(found, simplex.project_energy(beta, support), atol=1e-11)


@pytest.mark.parametrize("function", ["project_simplex", "project_energy"])
def test_one_row_and_missing_weights(library, function):
    rest = (library(np.array([1.0, 2.0, 3.0])),) if function == "project_energy" else ()
    project = getattr(batched, function)
    beta = np.array([0.75, 0.5, -0.25])
    assert library.host(project(library(beta), *rest)).shape == (3,)
    beta[1] = np.nan
    assert np.isnan(library.host(project(library(beta), *rest))).all()


def test_what_does_not_fit_is_refused(library):
    with pytest.raises(ValueError, match=r"beta needs shape \(N, n\) with n > 0, got \(2, 0\)"):
        batched.project_simplex(library(np.zeros((2, 0))))
    beta = library(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"support has shape \(2,\), but beta has 3 weights"):
        batched.project_energy(beta, library(np.zeros(2)))
    with pytest.raises(ValueError, match="support must be finite"):
        batched.project_energy(beta, library(np.array([0.0, np.nan, 1.0])))


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
