import numpy as np
import pytest

from xrecal.arrays.device.bounds import find_bounds
from xrecal.arrays.distributions.forms import find_bounds as expected_bounds


@pytest.mark.parametrize("bounds", ["auto", None, (0.0, None), (None, 3.0), (-9.0, 9.0)])
def test_bounds_are_those_of_the_host(library, rng, bounds):
    rain = np.maximum(rng.normal(size=(5, 60)), 0.0)
    rain[1, 5:9], rain[2] = np.nan, rng.normal(size=60)
    rain[3], rain[4] = -rain[3], rain[4].round(0)
    for found, expected in zip(
        find_bounds(library(rain), bounds), expected_bounds(rain, bounds), strict=True
    ):
        np.testing.assert_array_equal(library.host(found), expected)


def test_nothing_known_has_no_bounds(library):
    low, high, violated = find_bounds(library(np.full((1, 5), np.nan)), "auto")
    assert library.host(low)[0] == -np.inf
    assert library.host(high)[0] == np.inf
    assert not library.host(violated)[0]
