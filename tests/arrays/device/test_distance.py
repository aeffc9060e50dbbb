import numpy as np
import pytest
from scipy.stats import energy_distance

from xrecal.arrays import squared_energy_distance
from xrecal.arrays.device import ensembles as batched
from xrecal.arrays.device.ensembles import across, among, arrange


@pytest.fixture
def members(rng):
    x = rng.normal(size=(9, 6)) + 273.15
    x[0, 1:], x[1, 3:], x[2] = np.nan, np.nan, x[3]
    return x


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_distances_are_those_of_the_host(rng, members, weighted, other):
    members[4] = np.nan  # none
    y = rng.normal(size=(4, 8)) + 272.0
    mine = {"x_weights": rng.random(members.shape)} if weighted else {}
    theirs = {"y_weights": rng.random(y.shape)} if weighted and other else {}
    args, weights = (members, y) if other else (members,), mine | theirs
    expected = squared_energy_distance(*args, **weights)
    found = batched.squared_energy_distance(*args, **weights)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(found == 0.0, expected == 0.0)


def test_distances_are_the_squares_of_scipy(members, rng):
    y = rng.normal(size=(3, 4)) + 273.0
    found = batched.squared_energy_distance(members, y)
    for i, one in enumerate(members):
        for j, other in enumerate(y):
            squared = energy_distance(one[~np.isnan(one)], other) ** 2
            assert found[i, j] == pytest.approx(squared, rel=1e-9, abs=1e-11)


def test_locations_do_not_see_each_other(rng):
    x, y = rng.normal(size=(3, 5, 4)), rng.normal(size=(3, 2, 6))
    both = arrange(x, None), arrange(y, None)
    whole, pairs = among(both[0]), across(*both)
    for place in range(3):
        np.testing.assert_allclose(whole[place], squared_energy_distance(x[place]), atol=1e-13)
        expected = squared_energy_distance(x[place], y[place])
        np.testing.assert_allclose(pairs[place], expected, atol=1e-13)


def test_nothing_has_no_distances():
    x = np.ones((3, 2))
    for y in (np.ones((0, 2)), np.ones((4, 0))):
        found = batched.squared_energy_distance(x, y)
        np.testing.assert_array_equal(found, squared_energy_distance(x, y))


def test_what_does_not_fit_is_refused():
    x = np.ones((3, 2))
    with pytest.raises(ValueError, match="y_weights is given without y"):
        batched.squared_energy_distance(x, y_weights=x)
    with pytest.raises(ValueError, match=r"x needs shape \(ensemble, member\), got \(2,\)"):
        batched.squared_energy_distance(np.ones(2))
    with pytest.raises(ValueError, match=r"x_weights has shape \(3, 1\), but x has \(3, 2\)"):
        batched.squared_energy_distance(x, x_weights=np.ones((3, 1)))
    with pytest.raises(ValueError, match="x_weights must be finite and >= 0"):
        batched.squared_energy_distance(x, x_weights=np.full((3, 2), -1.0))
    with pytest.raises(ValueError, match="y holds infinite members"):
        batched.squared_energy_distance(x, np.full((1, 2), np.inf))
