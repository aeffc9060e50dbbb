import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from xrecal.arrays.ckme.simplex import push_level


def fitted(values, weights, push=push_level):
    """Isotonic regression by pushing one value after the other."""
    n = len(values)
    level, total, width, length = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    blocks = 0
    for value, weight in zip(values, weights, strict=True):
        blocks = push(value, value * weight, weight, level, total, width, length, blocks)
    return np.repeat(level[:blocks], length[:blocks])


def minimax(values, weights):
    """``max over a <= i of min over b >= i`` of the weighted means from a to b."""
    n = len(values)

    def mean(a, b):
        return np.average(values[a : b + 1], weights=weights[a : b + 1])

    return [max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]


@st.composite
def sequences(draw):
    n = draw(st.integers(1, 9))
    values = draw(st.lists(st.integers(-20, 20).map(lambda v: v / 4), min_size=n, max_size=n))
    weights = draw(st.lists(st.floats(0.1, 9), min_size=n, max_size=n))
    return np.array(values), np.array(weights)


@given(sequences())
def test_equals_the_minimax_formula(case):
    np.testing.assert_allclose(fitted(*case), minimax(*case), atol=1e-13)


@given(sequences())
def test_equals_scipy(case):
    values, weights = case
    expected = isotonic_regression(values, weights=weights).x
    np.testing.assert_allclose(fitted(values, weights), expected, atol=1e-13)


@given(sequences())
def test_python_function_is_the_compiled_one(case):
    np.testing.assert_array_equal(fitted(*case, push=push_level.py_func), fitted(*case))


@given(sequences(), st.floats(0.5, 3), st.integers(-5, 5))
def test_laws(case, factor, shift):
    values, weights = case
    result = fitted(values, weights)
    assert (np.diff(result) >= 0).all()
    np.testing.assert_allclose(weights @ result, weights @ values, atol=1e-11)
    np.testing.assert_allclose(fitted(result, weights), result, atol=1e-14)
    moved = fitted(factor * values + shift, 7 * weights)
    np.testing.assert_allclose(moved, factor * result + shift, atol=1e-12)


def test_equal_ratios_of_counts_are_equal_levels():
    for k in range(1, 60):  # 1/k in one group, and k groups of one with one hit in the first
        assert set(fitted([1.0, *np.zeros(k - 1)], np.ones(k))) == {1 / k}


def test_nan_stays_nan():
    assert np.isnan(fitted([1.0, np.nan, 0.0], np.ones(3))[1])
