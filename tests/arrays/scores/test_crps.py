from itertools import pairwise

import numpy as np
import properscoring
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad

from tests.rules import scoringrules
from xrecal.arrays import crps, squared_energy_distance, weighted_cdf


def double_sum_crps(y, members, weights=None):
    """``sum w |x - y| - sum w w |x - x'| / 2`` of one forecast; NaN members left out."""
    keep = ~np.isnan(members)
    weights = np.ones(members.size) if weights is None else weights
    x, w = members[keep], weights[keep] / weights[keep].sum()
    return w @ np.abs(x - y) - w @ np.abs(np.subtract.outer(x, x)) @ w / 2


value = st.integers(-20, 20).map(lambda v: v / 4)


@st.composite
def cases(draw):
    """T observations, n shared members with ties, weights (T, n) with zeros."""
    t, n = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    weights = draw(arrays(np.float64, (t, n), elements=st.sampled_from([0.0, 0.3, 1.0, 2.5])))
    weights[:, 0] += 0.5
    y, members = draw(arrays(np.float64, t, elements=value)), arrays(np.float64, n, elements=value)
    return y, draw(members), weights


# against the formula and libraries ---------------------------------------------------------------


@given(cases())
def test_equals_the_double_sum(case):
    y, members, weights = case
    own = np.tile(members, (y.size, 1))
    expected = [double_sum_crps(v, members, w) for v, w in zip(y, weights, strict=True)]
    np.testing.assert_allclose(crps(y, members, weights), expected, atol=1e-13)
    np.testing.assert_allclose(crps(y, own, weights), expected, atol=1e-13)
    plain = [double_sum_crps(v, members) for v in y]
    np.testing.assert_allclose(crps(y, own), plain, atol=1e-13)
    np.testing.assert_allclose(crps(y, members, np.full_like(weights, 0.2)), plain, atol=1e-13)


def test_equals_properscoring_and_scoringrules(rng):
    y, members, weights = rng.normal(size=60), rng.normal(size=25), rng.gamma(1, size=(60, 25))
    own = np.tile(members, (60, 1))
    for expected in (
        properscoring.crps_ensemble(y, own, weights=weights),
        scoringrules.crps_ensemble(y, own, ens_w=weights, estimator="nrg"),
        scoringrules.crps_ensemble(y, own, ens_w=weights, estimator="qd"),
    ):
        np.testing.assert_allclose(crps(y, members, weights), expected, atol=1e-12)
        np.testing.assert_allclose(crps(y, own, weights), expected, atol=1e-12)
    own = rng.normal(size=(60, 25))
    expected = scoringrules.crps_ensemble(y, own, estimator="nrg")
    np.testing.assert_allclose(crps(y, own), expected, atol=1e-12)


def test_is_the_integrated_squared_cdf_error(rng):
    members, weights = rng.normal(size=5), rng.gamma(1, size=(1, 5))
    for y in (-4.0, 0.1, 4.0):

        def error(z, y=y):
            return (weighted_cdf(members, [z], weights)[0, 0] - (z >= y)) ** 2

        knots = np.unique([*members, y])
        expected = sum(quad(error, a, b)[0] for a, b in pairwise(knots))
        assert crps(np.array([y]), members, weights)[0] == pytest.approx(expected, abs=1e-9)


def test_is_half_the_energy_distance_to_the_observation(rng):
    y, members, weights = rng.normal(size=4), rng.normal(size=(4, 6)), rng.gamma(1, size=(4, 6))
    d = squared_energy_distance(members, y[:, np.newaxis], x_weights=weights)
    np.testing.assert_allclose(crps(y, members, weights), np.diag(d) / 2, atol=1e-12)


def test_known_values():
    assert crps(np.array(2.0), np.array([5.0])) == 3.0
    assert crps(np.array(0.0), np.array([-1.0, 1.0])) == 0.5
    shared = crps(np.array([0.0, 0.0]), np.array([1.0, -1.0]), np.array([[1.0, 1], [1, 0]]))
    np.testing.assert_array_equal(shared, [0.5, 1.0])


# laws --------------------------------------------------------------------------------------------


@given(cases(), st.floats(-50, 50), st.floats(-20, 20))
def test_laws(case, shift, factor):
    y, members, weights = case
    score = crps(y, members, weights)
    assert (score >= 0).all()
    moved = crps(y + shift, members + shift, weights)
    np.testing.assert_allclose(moved, score, atol=1e-11)
    scaled = crps(factor * y, factor * members, weights)
    np.testing.assert_allclose(scaled, abs(factor) * score, atol=1e-11)
    np.testing.assert_allclose(crps(y, members, 7 * weights), score, atol=1e-13)
    np.testing.assert_allclose(crps(y, members[::-1], weights[:, ::-1]), score, atol=1e-13)


@given(cases())
def test_expected_score_is_smallest_for_the_truth(case):
    _, members, weights = case
    truth = weights[0] / weights[0].sum()
    forecasts = np.concatenate([weights, np.ones((1, members.size))])
    expected = [truth @ crps(members, members, np.tile(w, (members.size, 1))) for w in forecasts]
    assert min(expected) >= expected[0] - 1e-12


# shapes, missing values, types -------------------------------------------------------------------


def test_shared_members_over_locations(rng):
    members, weights = rng.normal(size=(2, 3, 8)), rng.gamma(1, size=(2, 3, 5, 8))
    y = rng.normal(size=(2, 3, 5))
    score = crps(y, members, weights)
    assert score.shape == y.shape
    repeated = np.repeat(members[..., np.newaxis, :], 5, axis=-2)
    np.testing.assert_allclose(score, crps(y, repeated, weights), atol=1e-13)
    assert crps(y, repeated).shape == y.shape


def test_missing_values(rng):
    members, weights, y = rng.normal(size=(5, 4)), rng.gamma(1, size=(5, 4)), rng.normal(size=5)
    y[0] = np.nan
    members[1] = np.nan
    weights[2] = 0
    weights[3, 1] = np.nan
    members[4, :2] = np.nan
    weights[4, 0] = np.nan  # of a missing member
    score = crps(y, members, weights)
    np.testing.assert_array_equal(np.isnan(score), [True, True, True, True, False])
    assert score[4] == pytest.approx(double_sum_crps(y[4], members[4], weights[4]))
    plain = crps(y, members)
    np.testing.assert_array_equal(np.isnan(plain), [True, True, False, False, False])
    for i in (2, 3, 4):
        assert plain[i] == pytest.approx(double_sum_crps(y[i], members[i]))
    for i in range(5):  # the same rules on a shared support
        shared = crps(y[[i]], members[i], weights[[i]])
        np.testing.assert_allclose(shared, score[[i]], atol=1e-13)


def test_members_of_weight_zero_do_not_count_whatever_they_hold():
    members, weights = np.array([[1.0, 2.0, np.inf]]), np.array([[1.0, 1.0, 0.0]])
    expected = double_sum_crps(1.5, members[0, :2])
    assert crps(np.array([1.5]), members, weights) == pytest.approx(expected)
    assert crps(np.array([1.5]), members[0], weights) == pytest.approx(expected)


def test_no_members():
    assert np.isnan(crps(np.zeros(2), np.empty((2, 0)))).all()


def test_errors():
    y, members = np.zeros(3), np.zeros((3, 4))
    with pytest.raises(ValueError, match="weights must not be negative"):
        crps(y, members, np.full((3, 4), -0.1))
    with pytest.raises(ValueError, match="weights must not be negative"):
        crps(y, members[0], np.full((3, 4), -0.1))
    with pytest.raises(ValueError, match=r"observations have shape \(2,\).*forecasts need \(3,\)"):
        crps(y[:2], members)
    with pytest.raises(ValueError, match=r"observations have shape \(2,\).*forecasts need \(3,\)"):
        crps(y[:2], members[0], np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"weights of shape \(3, 5\) do not fit members of sh"):
        crps(y, members[0], np.ones((3, 5)))


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_an_infinite_member_that_counts_gives_nan(infinite):
    members, weights, y = np.array([1.0, 2.0, infinite]), np.full((1, 3), 1 / 3), np.zeros(1)
    assert np.isnan(crps(y, members[np.newaxis]))
    assert np.isnan(crps(y, members[np.newaxis], weights))
    assert np.isnan(crps(y, members, weights))
    weights[0, 2] = 0.0
    assert crps(y, members, weights)[0] == pytest.approx(1.25)
    assert crps(y, members[np.newaxis], weights)[0] == pytest.approx(1.25)
