import numpy as np
import pytest

from tests.arrays.online.reference import smoothing
from xrecal.arrays.online.bernstein import smoothing_cosines


@pytest.mark.parametrize("deviation", [0.1, 0.15, 0.3])
def test_cosines_smooth_as_a_gaussian_that_is_reflected_at_the_ends(deviation):
    cosines = smoothing_cosines(40, deviation)
    np.testing.assert_allclose(cosines.T @ cosines, smoothing(40, deviation), atol=1e-5)


def test_without_a_deviation_rows_stay_as_they_are(rng):
    cosines, row = smoothing_cosines(30, 0.0), rng.normal(size=30)
    np.testing.assert_allclose(cosines.T @ (cosines @ row), row)


def test_the_mean_of_a_row_stays_whatever_the_deviation(rng):
    row = rng.normal(size=30)
    for deviation in (0.05, 0.5, 5.0):
        cosines = smoothing_cosines(30, deviation)
        assert (cosines.T @ (cosines @ row)).mean() == pytest.approx(row.mean())
