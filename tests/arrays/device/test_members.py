import numpy as np

from xrecal.arrays.device.members import shuffled_members
from xrecal.arrays.distributions import members


def test_orders_are_those_of_the_host(library, rng):
    given = rng.normal(size=(3, 4, 7))
    places, cases = np.arange(12).reshape(3, 4) % 3, np.arange(12).reshape(3, 4)
    found = shuffled_members(library(given), 5, library(places), library(cases))
    expected = members.shuffled_members(given, 5, places, cases)
    np.testing.assert_array_equal(library.host(found), expected)
