import numpy as np
import pytest

from xrecal import arrays
from xrecal.arrays.distributions.distance import pairwise_distances
from xrecal.arrays.distributions.forms import Forecasts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ensembles(rng, dtype):
    members = rng.normal(size=(2, 7, 4)).astype(dtype)
    members[0, 2, 1] = np.nan
    weights = rng.random(members.shape)
    plain, weighted = (pairwise_distances(Forecasts(members, None, w)) for w in (None, weights))
    assert plain.dtype == np.float64
    for i in range(2):
        expected = arrays.squared_energy_distance(members[i])
        np.testing.assert_array_equal(plain[i], expected)
        expected = arrays.squared_energy_distance(members[i], x_weights=weights[i])
        np.testing.assert_array_equal(weighted[i], expected)


def test_normals_and_mixtures(rng):
    loc, scale, weights = rng.normal(size=(2, 7, 3)), rng.random((2, 7, 3)), rng.random((2, 7, 3))
    found = pairwise_distances(Forecasts(loc, scale, weights))
    equal = pairwise_distances(Forecasts(loc, scale))
    for i in range(2):
        own = loc[i], scale[i]
        expected = arrays.normal_squared_energy_distance(*own, x_weights=weights[i])
        np.testing.assert_allclose(found[i], expected, rtol=1e-12, atol=1e-14)
        expected = arrays.normal_squared_energy_distance(*own)
        np.testing.assert_allclose(equal[i], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("normal", [False, True])
def test_missing_and_invalid_forecasts_are_nan(rng, bad, normal):
    loc = rng.normal(size=(1, 5, 3))
    without = np.delete(loc, 3, axis=1)
    loc[0, 3] = bad
    found, expected = (
        pairwise_distances(Forecasts(a, np.ones_like(a) if normal else None))
        for a in (loc, without)
    )
    assert np.isnan(found[0, 3]).all()
    assert np.isnan(found[0, :, 3]).all()
    rest = np.delete(np.delete(found, 3, axis=1), 3, axis=2)
    np.testing.assert_array_equal(rest, expected)


def test_members_that_do_not_count(rng):
    loc, weights = rng.normal(size=(1, 5, 3)), np.ones((1, 5, 3))
    loc[0, 2, 0], weights[0, 2, 0] = np.inf, 0.0
    weights[0, 4, 1] = np.nan
    found = pairwise_distances(Forecasts(loc, None, weights))
    plain = np.where((weights > 0), loc, np.nan)
    np.testing.assert_allclose(found, pairwise_distances(Forecasts(plain)), rtol=1e-12)
    negative = np.where(np.arange(5)[:, np.newaxis] == 1, -1.0, np.ones((1, 5, 3)))
    assert np.isnan(pairwise_distances(Forecasts(plain, None, negative))[0, 1]).all()
