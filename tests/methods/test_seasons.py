"""Evidence of pools that are given the season, from records that have each season once or more."""

import numpy as np
import pytest

from xrecal.methods import CKME, IDR
from xrecal.methods.components import components_of
from xrecal.methods.seasons import forget_first_year, in_first_year

SEASONAL = components_of((CKME(condition_on="season"), IDR()))
PLAIN = components_of((CKME(), IDR()))


@pytest.mark.parametrize("step", [1, 7, 30.4])
def test_the_first_year_of_two_or_more(step):
    days = 18000 + np.arange(0.0, 731.0, step)
    found = in_first_year(days)
    np.testing.assert_array_equal(found, days - 18000 < 365.25)
    np.testing.assert_array_equal(in_first_year(days[::-1]), found[::-1])
    assert not in_first_year(np.arange(690.0)).any()
    assert in_first_year(np.empty(0)).size == 0


@pytest.mark.parametrize(("components", "forgotten"), [(SEASONAL, 366), (PLAIN, 0)])
def test_only_a_season_needs_the_whole_year(components, forgotten):
    days = np.arange(1000.0)
    quantiles = np.zeros((2, 2, days.size, 3))
    forget_first_year(quantiles, components, days)
    assert np.isnan(quantiles).all((0, 1, 3)).sum() == forgotten
    assert np.isfinite(quantiles[:, :, forgotten:]).all()
    forget_first_year(quantiles, components, None)
