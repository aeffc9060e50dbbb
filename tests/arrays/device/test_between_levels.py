import numpy as np

from xrecal.arrays.distributions.between_levels import quantile_pit


def test_transforms_are_those_of_the_host(library, rng):
    quantiles, q = np.sort(rng.normal(size=(3, 40, 4)).round(1), axis=-1), rng.random(4)
    observed, uniform = rng.normal(size=(3, 40)).round(1), rng.random((3, 40))
    quantiles[0, 0, 2] = quantiles[1, 3] = observed[1, 1] = np.nan
    quantiles[2, 0, 3], observed[0, 1] = np.inf, np.inf
    assert (quantiles == observed[..., np.newaxis]).any(-1).sum() > 5
    found = quantile_pit(library(quantiles), q, library(observed), library(uniform))
    expected = quantile_pit(quantiles, q, observed, uniform)
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)
    assert np.isnan(expected).sum() == 4
