import numpy as np
import pytest

from xrecal.arrays import squared_energy_distance
from xrecal.arrays.device import kernel as batched
from xrecal.arrays.kernels import kernel


@pytest.fixture
def squared(rng):
    return squared_energy_distance(rng.normal(size=(30, 4)))


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_similarity_is_that_of_the_host(library, squared, kind):
    found = library.host(batched.similarity(library(squared), 0.7, kind))
    np.testing.assert_allclose(found, kernel.similarity(squared, 0.7, kind), rtol=1e-14)


def test_similarity_needs_a_positive_bandwidth_and_a_known_kernel(library, squared):
    with pytest.raises(ValueError, match="bandwidth must be positive, got 0"):
        batched.similarity(library(squared), 0.0)
    with pytest.raises(ValueError, match="kernel must be one of 'gaussian', 'laplace', got 'box'"):
        batched.similarity(library(squared), 1.0, "box")


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("n", [2, 3, 30, 420])
def test_median_bandwidth_is_that_of_the_host(library, rng, kind, n):
    members = rng.normal(size=(n, 4))
    members[n // 2 :: 3] = 0.0  # dry days
    squared = squared_energy_distance(members)
    found = batched.median_bandwidth(library(squared), kind)
    assert found == pytest.approx(kernel.median_bandwidth(squared, kind), rel=1e-15)


def test_median_leaves_out_missing_forecasts(library, squared):
    gappy = squared.copy()
    gappy[3], gappy[:, 3] = np.nan, np.nan
    kept = np.delete(np.delete(squared, 3, 0), 3, 1)
    assert batched.median_bandwidth(library(gappy)) == kernel.median_bandwidth(kept)


def test_median_looks_at_all_where_those_that_differ_are_rare(library):
    squared = np.zeros((1, 500, 500))
    squared[0, 499, 498] = squared[0, 498, 499] = 3.0
    assert library.host(batched.positive_medians(library(squared))) == 3.0


def test_identical_forecasts_have_no_median(library):
    with pytest.raises(ValueError, match="the 4 forecasts are identical"):
        batched.median_bandwidth(library(np.zeros((4, 4))))
    assert np.isinf(library.host(batched.positive_medians(library(np.zeros((2, 4, 4)))))).all()
    assert np.isinf(library.host(batched.positive_medians(library(np.zeros((2, 1, 1)))))).all()


def test_median_needs_a_square_matrix(library):
    with pytest.raises(ValueError, match=r"must be square, \(n, n\), got \(2, 3\)"):
        batched.median_bandwidth(library(np.zeros((2, 3))))
