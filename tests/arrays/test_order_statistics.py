"""Order statistics against sorted values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays.order_statistics import median, select

# Few different values: most are tied.
VALUES = arrays(
    np.float64,
    st.integers(1, 60),
    elements=st.one_of(st.integers(-3, 3), st.floats(-1e300, 1e300, allow_subnormal=False)),
)


@given(VALUES, st.data())
def test_selected_value_splits_the_others(values, data):
    k = data.draw(st.integers(0, values.size - 1))
    among = values.copy()
    found = select(among, k)
    np.testing.assert_array_equal(np.sort(among), np.sort(values))
    assert found == among[k] == np.sort(values)[k]
    assert (among[:k] <= found).all()
    assert (among[k:] >= found).all()


@given(VALUES)
def test_median_is_that_of_numpy(values):
    before = values.copy()
    assert median(values) == np.median(values)
    np.testing.assert_array_equal(values, before)


def test_median_of_nothing_is_nan():
    assert np.isnan(median(np.empty(0)))


@pytest.mark.parametrize("n", [999, 1000])
@pytest.mark.parametrize("order", [np.sort, lambda x: -np.sort(x), np.cos, np.sign])
def test_long_records_in_any_order(n, order):
    values = order(np.random.default_rng(0).normal(size=n))
    assert median(values) == np.median(values)
    assert select(values.copy(), n // 3) == np.sort(values)[n // 3]
