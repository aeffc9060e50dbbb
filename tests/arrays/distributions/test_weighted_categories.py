import numpy as np
import pytest

from xrecal import arrays

EDGES = np.array([-1.0, 0.5, 0.5, 2.0])


@pytest.fixture
def members():
    return np.random.default_rng(0).integers(-4, 5, (6, 7)) / 2


def test_shares_of_members_in_each_category(members):
    found = arrays.category_probabilities(arrays.weighted_exceedance(members, EDGES), EDGES)
    ends = np.array([-np.inf, *EDGES, np.inf])
    inside = (members[..., np.newaxis] > ends[:-1]) & (members[..., np.newaxis] <= ends[1:])
    np.testing.assert_allclose(found, inside.mean(1), atol=1e-15)
    assert found.min() == 0
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-15)
    assert (found[:, 2] == 0).all()  # between equal edges


def test_rounding_makes_no_probability_negative():
    found = arrays.category_probabilities(np.array([0.5, 0.5 + 1e-16 * 4]), np.array([0.0, 1.0]))
    assert found.min() == 0


@pytest.mark.parametrize("edges", [[2.0, 1.0, 3.0], [0.0, np.nan, 1.0], [np.nan, 0.0, 1.0]])
def test_edges_that_decrease_or_are_missing_have_no_categories(edges):
    edges = np.array([edges, [0.0, 1.0, np.inf]])
    found = arrays.category_probabilities(np.array([[0.9, 0.5, 0.1], [0.9, 0.5, 0.0]]), edges)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], [0.1, 0.4, 0.5, 0.0])


def test_missing_forecasts_have_no_categories():
    assert np.isnan(arrays.category_probabilities(np.full(2, np.nan), np.array([0.0, 1.0]))).all()
