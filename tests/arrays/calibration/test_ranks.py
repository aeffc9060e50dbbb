import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from xrecal.arrays import flatness_test, observation_ranks, rank_counts

value = st.integers(-3, 3).map(float)
histograms = st.integers(3, 12).flatmap(
    lambda k: arrays(np.float64, k, elements=st.integers(0, 30).map(float))
)

SLOPE = [3, 6, 3, 7, 4, 6, 4, 4, 2, 4, 1, 2, 3, 6, 2, 3]
"""A histogram with the values that the package testrankhist 0.12 publishes for it."""


# ranks -------------------------------------------------------------------------------------------


@given(
    arrays(np.float64, (4, 5), elements=value),
    arrays(np.float64, 4, elements=value),
    arrays(np.float64, 4, elements=st.floats(0.001, 0.999)),
)
def test_rank_lies_among_ties(members, observations, uniform):
    rank, n_members = observation_ranks(observations, members, uniform)
    np.testing.assert_array_equal(n_members, 5)
    for x, y, u, found in zip(members, observations, uniform, rank, strict=True):
        places = [sum(x < y) + k for k in range(sum(x == y) + 1)]
        assert found == places[int(u * len(places))]
    mirrored = observation_ranks(-observations, -members, 1 - uniform)[0]
    boundary = np.isclose(uniform * 60, np.round(uniform * 60))  # between two places
    np.testing.assert_array_equal((mirrored == 5 - rank) | boundary, True)


def test_ends_of_the_random_number():
    members, y = np.zeros((3, 49)), np.zeros(3)
    rank = observation_ranks(y, members, np.array([0.0, np.nextafter(1, 0), 1.0]))[0]
    np.testing.assert_array_equal(rank, [0, 49, 49])


def test_cases_that_miss_a_member_have_no_rank():
    members = np.array([[1.0, 2.0], [1.0, np.nan], [np.nan] * 2, [1.0, np.inf], [1, 2], [1, 2]])
    y, u = np.array([1.5, 1.5, 1.5, 1.5, np.nan, 1.5]), np.full(6, 0.5)
    u[5] = np.nan
    rank, n_members = observation_ranks(y, members, u)
    np.testing.assert_array_equal(rank, [1, *[np.nan] * 5])
    np.testing.assert_array_equal(n_members, [2, 1, 0, 2, 2, 2])


# counts ------------------------------------------------------------------------------------------


@given(st.integers(2, 6), st.data())
def test_counts(k, data):
    element = st.integers(0, k - 1).map(float) | st.just(np.nan)
    ranks = data.draw(arrays(np.float64, (3, 8), elements=element))
    for row, counts in zip(ranks, rank_counts(ranks, k), strict=True):
        known = row[~np.isnan(row)]
        expected = [sum(known == rank) for rank in range(k)]
        np.testing.assert_array_equal(counts, expected if known.size > 1 else [np.nan] * k)


# flatness ----------------------------------------------------------------------------------------


def closed_contrasts(k):
    """Orthogonal polynomials of degree 1 and 2 with their norms in closed form."""
    i = np.arange(1, k + 1) - (k + 1) / 2
    linear = i * np.sqrt(12 / (k**3 - k))
    quadratic = (i**2 - (k**2 - 1) / 12) * np.sqrt(180 / (k * (k**2 - 1) * (k**2 - 4)))
    return linear, quadratic


@given(histograms)
def test_flatness_follows_the_formula(counts):
    if counts.sum() < 2:
        return
    found = flatness_test(counts)
    expected = stats.chisquare(counts)
    np.testing.assert_allclose(found.statistic, expected.statistic, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.p_value, expected.pvalue, rtol=1e-8)
    x = (counts - counts.mean()) / np.sqrt(counts.mean())
    linear, quadratic = closed_contrasts(counts.size)
    np.testing.assert_allclose(found.slope, x @ linear, atol=1e-10)
    np.testing.assert_allclose(found.convexity, x @ quadratic, atol=1e-10)
    for part, p_value in (found[2:4], found[4:6]):
        np.testing.assert_allclose(p_value, stats.chi2.sf(part**2, 1), rtol=1e-8)
    assert found.slope**2 + found.convexity**2 <= found.statistic + 1e-9
    mirrored = flatness_test(counts[::-1])
    np.testing.assert_allclose(mirrored.slope, -found.slope, atol=1e-10)
    np.testing.assert_allclose(mirrored.convexity, found.convexity, atol=1e-10)


def test_published_values():
    found = flatness_test(np.array(SLOPE))
    assert found.statistic == 12.0
    assert found.p_value == pytest.approx(0.679, abs=5e-4)
    assert found.slope**2 == pytest.approx(1.807, abs=5e-4)
    assert found.slope_p_value == pytest.approx(0.179, abs=5e-4)


def test_size_of_the_tests(rng):
    found = flatness_test(rng.multinomial(200, [1 / 8] * 8, size=2000))
    for p_value in (found.p_value, found.slope_p_value, found.convexity_p_value):
        assert abs((p_value < 0.1).mean() - 0.1) < 0.02


def test_few_or_missing_counts():
    found = flatness_test(np.array([[1.0, 0, 0], [2.0, 0, 0], [np.nan, 3, 3], [0, 0, 0]]))
    for part in found:
        np.testing.assert_array_equal(np.isnan(part), [True, False, True, True])
    two = flatness_test(np.array([3.0, 1.0]))
    assert two.slope == pytest.approx(-1)
    assert two.p_value == pytest.approx(two.slope_p_value)
    assert np.isnan(two.convexity)
    assert np.isnan(two.convexity_p_value)


# shapes and errors -------------------------------------------------------------------------------


def test_errors():
    members = np.zeros((3, 4))
    message = r"observations of shape \(2,\) do not fit members of shape \(3, 4\), which need one"
    with pytest.raises(ValueError, match=message):
        observation_ranks(np.zeros(2), members, np.zeros(3))
    with pytest.raises(ValueError, match=r"do not fit members of shape \(\)"):
        observation_ranks(np.array(1.0), np.array(1.0), np.array(0.5))
    with pytest.raises(ValueError, match="uniform must lie between 0 and 1, found 2"):
        observation_ranks(np.zeros(3), members, np.full(3, 2.0))
    for rank in (-1.0, 5.0, 1.5, np.inf):
        with pytest.raises(ValueError, match="ranks must be whole numbers from 0 to 4, found"):
            rank_counts(np.array([rank, 1]), 5)
    with pytest.raises(ValueError, match="n_ranks is 1; give a whole number from 2"):
        rank_counts(np.zeros(3), 1)
    with pytest.raises(ValueError, match=r"counts must have shape .* ranks >= 2, got \(1,\)"):
        flatness_test(np.zeros(1))
    with pytest.raises(ValueError, match="counts must be 0 or more and finite, found -1"):
        flatness_test(np.array([1.0, -1.0]))
