import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from xrecal.arrays import shuffled_members

MASK = 2**64 - 1


def splitmix64(state, position):
    """From the definition, with Python's integers."""
    z = (state + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def reference(members, seed, location, case):
    """Shuffle of one forecast (n,)."""
    key = splitmix64(splitmix64(splitmix64(seed & MASK, 0), location), case)
    found = list(members)
    for last in range(len(found) - 1, 0, -1):
        chosen = ((splitmix64(key, last) >> 11) * (last + 1)) >> 53
        found[last], found[chosen] = found[chosen], found[last]
    return found


def grid(n_locations, n_cases):
    return np.indices((n_locations, n_cases))


@given(
    st.integers(-(2**70), 2**70),
    st.integers(0, 2**63 - 1),
    st.integers(0, 10**6),
    st.integers(1, 9),
)
def test_equals_the_slow_reference(seed, location, case, n):
    members = np.arange(n, dtype=float).reshape(1, 1, n)
    found = shuffled_members(members, seed, np.array([[location]]), np.array([[case]]))
    np.testing.assert_array_equal(found[0, 0], reference(range(n), seed, location, case))


def test_every_order_is_equally_likely():
    members = np.broadcast_to(np.arange(3.0), (100, 60, 3))
    found = shuffled_members(members, 1, *grid(100, 60)).reshape(-1, 3)
    counts = [(found == order).all(-1).sum() for order in itertools.permutations(range(3))]
    assert sum(counts) == 6000
    assert stats.chisquare(counts).pvalue > 0.01


def test_errors():
    members, (locations, cases) = np.zeros((2, 3, 4)), grid(2, 3)
    with pytest.raises(ValueError, match=r"locations must be integers of shape \(2, 3\), got"):
        shuffled_members(members, 0, locations * 1.0, cases)
    with pytest.raises(ValueError, match=r"cases must be integers .* of shape \(2, 1\)"):
        shuffled_members(members, 0, locations, cases[:, :1])
