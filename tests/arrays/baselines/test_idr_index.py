import numpy as np
import pytest

from xrecal.arrays.baselines.emos import fit_emos
from xrecal.arrays.baselines.idr import fit_index, index_of


def predictors(rng, n=80, k=2):
    means, regressors = rng.normal(280, 5, size=(1, n)), rng.normal(size=(1, n, k))
    y = 3 + 0.9 * means + regressors @ np.arange(1, k + 1) + rng.normal(size=(1, n))
    return means, y, regressors


def location(means, observations, regressors):
    """Line of EMOS for a constant spread."""
    none = np.zeros((1, means.size))
    given = means[np.newaxis], none, observations[np.newaxis], regressors[np.newaxis]
    found = fit_emos(*given, in_spread=False)[0][0]
    return np.concatenate([found[:2], found[4 : 4 + regressors.shape[1]]])


@pytest.mark.parametrize("k", [0, 1, 3])
def test_index_is_the_location_of_emos_for_a_constant_spread(rng, k):
    means, y, regressors = predictors(rng, k=k)
    coefficients = fit_index(means, y, regressors)
    expected = location(means[0], y[0], regressors[0])
    np.testing.assert_allclose(coefficients[0], expected, rtol=1e-9)
    design = np.column_stack([np.ones(80), means[0], regressors[0]])
    np.testing.assert_allclose(index_of(coefficients, means, regressors)[0], design @ expected)


@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0), (1e9, 0), (1.0, 1e5), (-1.8, 32.0)])
def test_units_of_regressors_change_no_index(rng, scale, offset):
    means, y, regressors = predictors(rng)
    expected = index_of(fit_index(means, y, regressors), means, regressors)
    other = scale * regressors + offset
    found = index_of(fit_index(means, y, other), means, other)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_what_is_not_identified_is_zero(rng):
    means, y, regressors = predictors(rng)
    constant = np.full_like(means, 0.1)[..., np.newaxis]
    coefficients = fit_index(means, y, np.concatenate([regressors, constant], axis=-1))[0]
    assert coefficients[4] == 0
    np.testing.assert_allclose(coefficients[:4], fit_index(means, y, regressors)[0], rtol=1e-9)
    still = fit_index(np.full_like(means, 280.1), y, regressors)[0]
    assert still[1] == 0
    np.testing.assert_allclose(still, location(0 * means[0], y[0], regressors[0]), rtol=1e-6)
    flat = fit_index(means, 0 * y + 7, regressors)[0]
    np.testing.assert_allclose(flat, [7, 0, 0, 0], rtol=1e-14)
    np.testing.assert_array_equal(fit_index(means[:, :1], y[:, :1], regressors[:, :1]), np.nan)


def test_columns_given_twice_change_no_index(rng):
    means, y, regressors = predictors(rng, n=400)
    copies = regressors, 2 * means[..., np.newaxis] - 5, regressors[..., :1]
    several = np.concatenate(copies, axis=-1)
    found = index_of(fit_index(means, y, several), means, several)
    expected = index_of(fit_index(means, y, regressors), means, regressors)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_a_negative_slope_becomes_none(rng):
    means, y, regressors = predictors(rng)
    y -= 2 * means
    coefficients = fit_index(means, y, regressors)[0]
    assert coefficients[1] == 0
    expected = location(0 * means[0], y[0], regressors[0])
    np.testing.assert_allclose(coefficients, expected, rtol=1e-6)


def test_equal_inputs_have_equal_indices(rng):
    means, y, regressors = predictors(rng, n=21, k=4)
    coefficients = fit_index(means, y, regressors)
    index = index_of(coefficients, means, regressors)
    for i in range(21):
        assert index_of(coefficients, means[:, [i]], regressors[:, [i]]) == index[0, i]


def test_errors():
    two = np.zeros((2, 5))
    with pytest.raises(ValueError, match=r"coefficients must have shape \(2, 3\), got \(2, 4\)"):
        index_of(np.zeros((2, 4)), two, np.zeros((2, 5, 1)))
