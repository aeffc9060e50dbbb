import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.arrays.ckme.reference import weights_of_features
from xrecal.arrays import Features, features
from xrecal.arrays.kernels.kernel import feature_weights, no_features


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
