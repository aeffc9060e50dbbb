import numpy as np
import pytest

from xrecal.arrays.ckme.location import feature_distances
from xrecal.arrays.device import covariates as batched
from xrecal.arrays.kernels import kernel as covariates


def test_features_are_those_of_the_host(library, rng):
    values = rng.normal(size=(2, 9, 3))
    values[0, 0, 0], values[1, 2, 1] = np.inf, np.nan
    periods = (None, 1.0, 24.0)
    found = batched.features(library(values), periods)
    expected = covariates.features(values, periods)
    np.testing.assert_allclose(library.host(found.values), expected.values, atol=1e-14)
    np.testing.assert_array_equal(found.circular, expected.circular)
    assert library.host(batched.features(library(values[..., :0]), ()).values).shape == (2, 9, 0)


def test_features_of_what_does_not_fit(library):
    with pytest.raises(ValueError, match=r"covariates need shape \(locations, cases, 2\)"):
        batched.features(library(np.zeros((1, 2, 1))), (None, 1.0))
    with pytest.raises(ValueError, match="periods must be positive, got -1"):
        batched.features(library(np.zeros((1, 2, 1))), (-1.0,))


def test_distances_are_those_of_the_host(library, rng):
    values = rng.normal(size=(2, 12, 2))
    values[1, :, 1] = 4.0  # constant
    of = covariates.features(values, (1.0, None))
    precision = batched.feature_weights(library(of.values), of.circular)
    expected = np.stack([covariates.feature_weights(v, of.circular) for v in of.values])
    np.testing.assert_allclose(library.host(precision), expected, rtol=1e-14)
    assert expected[1, 2] == 0.0
    ours = library(of.values)
    found = library.host(batched.feature_distances(ours[:, :4, :], ours, precision))
    for place in range(2):
        one = of.values[place]
        apart = feature_distances(one[:4], one, expected[place])
        np.testing.assert_allclose(found[place], apart, atol=1e-13)
