"""Evidence of pools that are given the season, from records that have each season once or more."""

import numpy as np
import pytest

from xrecal.methods import CKME, IDR
from xrecal.methods.components import components_of
from xrecal.methods.seasons import in_first_year

SEASONAL = components_of((CKME(condition_on="season"), IDR()))
PLAIN = components_of((CKME(), IDR()))


@pytest.mark.parametrize("step", [1, 7, 30.4])
def test_the_first_year_of_two_or_more_says_nothing_of_the_seasons(step):
    days = 18000 + np.arange(0.0, 731.0, step)
    found = in_first_year(SEASONAL, days)
    np.testing.assert_array_equal(found, days - 18000 < 365.25)
    np.testing.assert_array_equal(in_first_year(SEASONAL, days[::-1]), found[::-1])


def test_shorter_records_and_those_without_season_or_dates_keep_all_cases():
    days = np.arange(690.0)
    assert not in_first_year(SEASONAL, days).any()
    assert not in_first_year(PLAIN, np.arange(2000.0)).any()
    assert in_first_year(SEASONAL, None).size == 0
    assert in_first_year(SEASONAL, np.empty(0)).size == 0
