import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from xrecal.arrays import pit_counts, uniform_test
from xrecal.arrays.status import FEWEST

share = st.integers(0, 20).map(lambda k: k / 20) | st.floats(0, 1)
gappy = st.integers(0, 30).flatmap(
    lambda n: arrays(np.float64, (2, n), elements=share | st.just(np.nan))
)


@given(gappy, st.integers(1, 12))
def test_counts_are_those_of_numpy(pit, bins):
    for row, counts in zip(pit, pit_counts(pit, bins), strict=True):
        known = row[~np.isnan(row)]
        if known.size < FEWEST:
            assert np.isnan(counts).all()
        else:
            expected = np.histogram(known, bins, (0, 1))[0]
            np.testing.assert_array_equal(counts, expected)
            assert counts.sum() == known.size


@given(gappy)
def test_statistic_and_p_value_are_those_of_scipy(pit):
    statistic, p_value = uniform_test(pit)
    for row, distance, p in zip(pit, statistic, p_value, strict=True):
        known = row[~np.isnan(row)]
        if known.size < FEWEST:
            assert np.isnan(distance)
            assert np.isnan(p)
        else:
            expected = stats.kstest(known, "uniform", mode="exact")
            assert (distance, p) == (expected.statistic, expected.pvalue)


def test_level_of_the_test(rng):
    p_value = uniform_test(rng.random((1500, 12)))[1]
    assert abs((p_value < 0.1).mean() - 0.1) < 0.025
    assert (uniform_test(rng.beta(0.5, 0.5, (20, 300)))[1] < 0.02).all()


def test_known_values():
    np.testing.assert_array_equal(pit_counts(np.array([0.0, 0.25, 0.5, 1.0]), 4), [1, 1, 1, 1])
    np.testing.assert_array_equal(pit_counts(np.array([1.0, 1.0 + 1e-7, -1e-7]), 2), [1, 2])
    statistic, p_value = uniform_test(np.array([0.5, 0.5]))
    assert (statistic, p_value) == (0.5, pytest.approx(0.5))  # n! (2d - 1/n)^n at d = 1/2


def test_errors():
    for use in (pit_counts, uniform_test):
        with pytest.raises(ValueError, match=r"pit must lie between 0 and 1, found 1\.5"):
            use(np.array([0.5, 1.5]))
        with pytest.raises(ValueError, match="pit has no axis of cases"):
            use(np.array(0.5))
    with pytest.raises(ValueError, match="bins is 0; give a whole number from 1"):
        pit_counts(np.zeros(3), 0)
