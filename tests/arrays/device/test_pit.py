import numpy as np
import pytest

from xrecal.arrays import Forecasts
from xrecal.arrays.baselines import pit_recalibration as pit
from xrecal.arrays.device.pit import pit_values

from .test_weighted import own


@pytest.mark.parametrize("weighted", [False, True])
def test_transforms_are_those_of_the_host(library, rng, weighted):
    members, weights = own(rng)
    weights[0, 1, 2] = -1.0
    members[2, 0, 0] = np.inf
    forecasts = Forecasts(members, None, weights if weighted else None)
    observed, uniform = rng.normal(size=(3, 4)).round(1), rng.random((3, 4))
    observed[0, 1], observed[1, 0], uniform[2, 1] = np.nan, np.inf, np.nan
    found = pit_values(library.tuple(forecasts), library(observed), library(uniform))
    expected = pit.pit_values(forecasts, observed, uniform)
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)


def test_what_does_not_fit_is_refused(library):
    one = library(np.zeros((1, 2, 3)))
    two = library(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"uniform have shape \(2, 1\), but forecasts need"):
        pit_values(Forecasts(one), two, library(np.zeros((2, 1))))
    with pytest.raises(TypeError, match="of normal distributions has no implementation"):
        pit_values(Forecasts(one, one), two, two)
