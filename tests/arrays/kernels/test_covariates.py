import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.arrays.ckme.reference import joint_weights_of_features, weights_of_features
from xrecal.arrays import Features, features
from xrecal.arrays.kernels.kernel import (
    MEDIAN_CASES,
    feature_weights,
    joint_weights,
    no_features,
    subset,
)


def test_circular_covariates_are_sine_and_cosine_others_stand_as_they_are(rng):
    covariates = rng.normal(size=(2, 5, 3))
    found = features(covariates, (None, 2.5, None))
    angle = 2 * np.pi * covariates[..., 1] / 2.5
    columns = [covariates[..., 0], np.sin(angle), np.cos(angle), covariates[..., 2]]
    np.testing.assert_allclose(found.values, np.stack(columns, axis=-1), atol=1e-15)
    np.testing.assert_array_equal(found.circular, [False, True, True, False])


@given(st.floats(-50, 50), st.floats(-50, 50), st.sampled_from([1.0, 12.0, 365.25]))
def test_a_circular_covariate_gives_the_periodic_kernel(a, b, period):
    of = features(np.array([[[a], [b]]]), (period,))
    precision = feature_weights(of.values[0], of.circular)
    squared = precision @ (of.values[0, 0] - of.values[0, 1]) ** 2
    assert squared == pytest.approx(2 * np.sin(np.pi * (a - b) / period) ** 2, abs=1e-12)


columns = arrays(
    np.float64, st.tuples(st.integers(2, 12), st.just(3)), elements=st.integers(-3, 3).map(float)
)


@given(columns)
def test_weights_are_one_over_the_median_of_squared_differences(of):
    circular = np.array([False, True, False])
    expected = weights_of_features(of, circular)
    np.testing.assert_allclose(feature_weights(of, circular), expected)


@given(columns, st.sampled_from([0.25, 64.0]), st.integers(-100, 100))
def test_units_of_a_covariate_do_not_matter(of, factor, offset):
    plain = np.zeros(3, np.bool_)
    other = factor * of + offset
    np.testing.assert_allclose(
        feature_weights(other, plain) * factor**2, feature_weights(of, plain), rtol=1e-12
    )


def test_a_constant_covariate_weighs_nothing():
    of = np.column_stack([np.full(6, 0.1), np.arange(6.0)])
    found = feature_weights(of, np.zeros(2, np.bool_))
    assert found[0] == 0
    assert found[1] > 0


CIRCULAR, PLAIN = np.array([False, True, False]), np.zeros(3, np.bool_)


def joint_distance(of, circular):
    """Squared distances (n, n) of covariates that are not circular, by the definition."""
    weights = joint_weights(of, circular)
    return sum(
        weight * np.subtract.outer(column, column) ** 2
        for weight, column in zip(weights[~circular], of.T[~circular], strict=True)
    )


@given(columns, st.sampled_from([CIRCULAR, PLAIN]))
def test_joint_weights_are_those_of_features_over_the_median_of_their_sum(of, circular):
    np.testing.assert_allclose(
        joint_weights(of, circular), joint_weights_of_features(of, circular), rtol=1e-12
    )


@pytest.mark.parametrize("k", [2, 7, 36])
def test_many_covariates_are_as_far_apart_as_one(rng, k):
    of = rng.normal(size=(60, k)) * 10.0 ** rng.integers(-9, 9, k)
    pairs = np.triu_indices(60, 1)
    assert np.median(joint_distance(of, np.zeros(k, np.bool_))[pairs]) == pytest.approx(1)


def test_covariates_of_many_cases_have_a_median_distance_among_some_of_them(rng):
    of = rng.normal(size=(3 * MEDIAN_CASES, 3))
    pairs = np.triu_indices(len(of), 1)
    assert np.median(joint_distance(of, PLAIN)[pairs]) == pytest.approx(1, rel=0.1)


def test_where_covariates_of_some_cases_are_alike_those_of_all_count():
    n = 3 * MEDIAN_CASES
    of = np.zeros((n, 2))
    of[np.setdiff1d(np.arange(n), subset(n, MEDIAN_CASES))[0]] = 2.0, 3.0
    np.testing.assert_allclose(joint_weights(of, PLAIN[:2]), [1 / 8, 1 / 18])


@given(columns)
def test_one_covariate_counts_as_alone_beside_circular_and_constant_ones(of):
    of[:, 2] = 5.0
    expected = feature_weights(of, CIRCULAR)
    np.testing.assert_array_equal(joint_weights(of, CIRCULAR), expected)
    assert expected[2] == 0


@given(columns, st.permutations(range(3)))
def test_the_order_of_covariates_does_not_matter(of, order):
    found = joint_weights(of[:, order], CIRCULAR[order])
    np.testing.assert_allclose(found, joint_weights(of, CIRCULAR)[order], rtol=1e-12)


@given(columns, st.sampled_from([0.25, 64.0]), st.integers(0, 2))
def test_the_scale_of_a_covariate_beside_others_does_not_matter(of, factor, which):
    other = of.copy()
    other[:, which] *= factor
    np.testing.assert_allclose(joint_distance(other, PLAIN), joint_distance(of, PLAIN), rtol=1e-12)


@given(columns)
def test_a_duplicate_of_all_covariates_changes_nothing(of):
    twice = np.hstack([of, of])
    found = joint_distance(twice, np.zeros(6, np.bool_))
    np.testing.assert_allclose(found, joint_distance(of, PLAIN), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("period", [None, 2.0])
def test_missing_and_infinite_values_are_unknown_without_a_warning(period):
    covariates = np.array([[[0.5], [np.nan], [np.inf], [-np.inf]]])
    found = features(covariates, (period,)).values
    np.testing.assert_array_equal(np.isnan(found[0]).all(-1), [False, True, True, True])


def test_without_covariates_there_are_no_features():
    for found in (no_features(2, 5), features(np.zeros((2, 5, 0)), ())):
        assert isinstance(found, Features)
        assert found.values.shape == (2, 5, 0)
        assert found.circular.shape == (0,)


def test_errors():
    with pytest.raises(ValueError, match=r"need shape \(locations, cases, 2\), got \(1, 5, 1\)"):
        features(np.zeros((1, 5, 1)), (None, 1.0))
    with pytest.raises(ValueError, match=r"need shape \(locations, cases, 1\), got \(5, 1\)"):
        features(np.zeros((5, 1)), (None,))
    for period in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match=f"periods must be positive, got {period}"):
            features(np.zeros((1, 5, 1)), (period,))
