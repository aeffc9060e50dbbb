import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist, squareform

from xrecal.arrays import median_bandwidth, similarity, squared_energy_distance
from xrecal.arrays.kernels.kernel import (
    IDENTICAL,
    MEDIAN_CASES,
    positive_median,
    subset,
)

distances = arrays(np.float64, st.integers(1, 9), elements=st.floats(0, 1e6))


def positive_pairs(d):
    pairs = d[np.triu_indices(d.shape[0], 1)]
    return pairs[pairs > IDENTICAL * d.max()]


# similarity --------------------------------------------------------------------------------------


def test_similarity_is_the_formula(rng):
    d = rng.gamma(1, size=(5, 4))
    np.testing.assert_allclose(similarity(d, 0.7), np.exp(-d / 0.7), rtol=1e-15)
    np.testing.assert_allclose(similarity(d, 0.7, "laplace"), np.exp(-np.sqrt(d) / 0.7), rtol=1e-15)


@given(distances, st.floats(1e-3, 1e6), st.sampled_from(["gaussian", "laplace"]))
def test_similarity_falls_with_distance_and_ignores_the_unit(d, bandwidth, kernel):
    found = similarity(np.sort(d), bandwidth, kernel)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) <= 0).all()
    rescaled = similarity(4 * np.sort(d), bandwidth * (2 if kernel == "laplace" else 4), kernel)
    np.testing.assert_array_equal(rescaled, found)
    assert similarity(np.array(0.0), bandwidth, kernel) == 1.0


# bandwidth ---------------------------------------------------------------------------------------


def test_median_over_distinct_pairs(rng):
    d = squared_energy_distance(rng.normal(size=(30, 5)))
    expected = np.median(d[np.triu_indices(30, 1)])
    assert median_bandwidth(d) == pytest.approx(expected)
    assert median_bandwidth(d, "laplace") == pytest.approx(np.sqrt(expected))
    points = rng.normal(size=(31, 1))
    expected = 2 * np.median(pdist(points))
    assert median_bandwidth(2 * squareform(pdist(points))) == pytest.approx(expected)


def test_identical_forecasts_do_not_pull_the_median_down(rng):
    x = np.zeros((40, 5))  # 36 dry days of 40: most distances are 0
    x[:4] = rng.gamma(1, size=(4, 5))
    d = squared_energy_distance(x)
    d[5, 6] = d[6, 5] = 1e-13 * d.max()  # rounding of identical forecasts
    assert np.median(d[np.triu_indices(40, 1)]) == 0.0
    assert median_bandwidth(d) == pytest.approx(np.median(positive_pairs(d)))
    assert median_bandwidth(d) > 1e-3


def test_forecasts_without_members_are_left_out(rng):
    x = rng.normal(size=(20, 4))
    expected = median_bandwidth(squared_energy_distance(x))
    gaps = np.insert(x, [0, 7, 20], np.nan, axis=0)
    assert median_bandwidth(squared_energy_distance(gaps)) == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, MEDIAN_CASES, MEDIAN_CASES + 1, 3 * MEDIAN_CASES])
def test_subset_holds_distinct_cases_and_is_always_the_same(n):
    chosen = subset(n, MEDIAN_CASES)
    assert np.unique(chosen).size == chosen.size == min(n, MEDIAN_CASES)
    assert chosen.min() >= 0
    assert chosen.max() < n
    np.testing.assert_array_equal(chosen, subset(n, MEDIAN_CASES))
    if n > 2 * MEDIAN_CASES:  # spread over all cases, not the first ones
        assert abs(chosen.mean() - n / 2) < 0.1 * n


def test_median_of_many_forecasts_uses_the_subset(rng):
    d = 2 * squareform(pdist(rng.normal(size=(MEDIAN_CASES + 200, 1))))
    chosen = subset(d.shape[0], MEDIAN_CASES)
    expected = np.median(positive_pairs(d[np.ix_(chosen, chosen)]))
    assert median_bandwidth(d) == pytest.approx(expected)
    assert median_bandwidth(d) == pytest.approx(np.median(positive_pairs(d)), rel=0.1)


@given(arrays(np.float64, st.tuples(st.integers(2, 8), st.just(1)), elements=st.integers(0, 3)))
def test_median_is_infinite_only_for_identical_forecasts(x):
    d = squared_energy_distance(x)
    if np.ptp(x) == 0:
        assert positive_median(d) == np.inf
        with pytest.raises(ValueError, match="forecasts are identical"):
            median_bandwidth(d)
    else:
        assert median_bandwidth(d) == pytest.approx(np.median(positive_pairs(d)))
        assert median_bandwidth(9 * d, "laplace") == pytest.approx(3 * median_bandwidth(d) ** 0.5)


def test_errors():
    d = np.zeros((3, 3))
    with pytest.raises(ValueError, match="kernel must be one of 'gaussian', 'laplace', got 'rbf'"):
        similarity(d, 1.0, "rbf")
    with pytest.raises(ValueError, match="kernel must be one of 'gaussian', 'laplace', got 'rbf'"):
        median_bandwidth(d, "rbf")
    for bandwidth in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match=f"bandwidth must be positive, got {bandwidth}"):
            similarity(d, bandwidth)
    with pytest.raises(ValueError, match=r"must be square, \(n, n\), got \(3, 2\)"):
        median_bandwidth(d[:, :2])
    with pytest.raises(ValueError, match=r"the 3 forecasts are identical.*give a bandwidth"):
        median_bandwidth(d)
    with pytest.raises(ValueError, match="the 0 forecasts are identical"):
        median_bandwidth(np.full((2, 2), np.nan))


def test_rare_differences_that_the_subset_misses_still_count():
    forecasts = np.zeros((2000, 3))
    forecasts[[17, 400, 1999]] = [[1.0], [2.0], [4.0]]
    d = squared_energy_distance(forecasts)
    positive = d[np.triu_indices(2000, 1)]
    expected = np.median(positive[positive > 0])
    assert median_bandwidth(d) == pytest.approx(expected)
