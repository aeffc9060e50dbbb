"""Single columns of the distance matrix."""

import numpy as np
import pytest

from tests.arrays.distributions.test_distance import double_sum_distance
from xrecal.arrays import Forecasts, normal_squared_energy_distance, squared_energy_distance
from xrecal.arrays.ckme.columns import Columns
from xrecal.arrays.ckme.location import Cases, ordered_cases
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, no_features, positive_median, subset


def columns(forecasts, y=None, *, laplace=False, squared=None):
    """Columns of the only location; ``y`` (n,) tells which cases can be used."""
    n = forecasts.loc.shape[1]
    y = np.zeros((1, n)) if y is None else y[np.newaxis]
    cases = Cases(forecasts, y, no_features(1, n), np.zeros((1, n)))
    ordered, _ = ordered_cases(cases, centred=True)
    slot = ordered.slot[0, : ordered.n_used[0]]
    return Columns(ordered.forecasts(0), slot, laplace=laplace, squared=squared)


def column(of, case):
    """Distances (n,) from one case."""
    return of.of(np.array([case]))[0]


@pytest.fixture
def ensembles(rng):
    x = (
        273.15
        + rng.normal(size=(1, 30, 1))
        + rng.gamma(2, size=(1, 30, 1)) * rng.normal(size=(1, 30, 7))
    )
    x[0, ::4, 2:4] = np.nan
    x[0, 9] = x[0, 3]
    return x


def test_they_equal_the_double_sum(ensembles):
    found = columns(Forecasts(ensembles))
    expected = double_sum_distance(ensembles[0])
    for case in (0, 3, 9, 29):
        np.testing.assert_allclose(column(found, case), expected[case], atol=1e-10)
    assert column(found, 3)[9] == 0


def test_they_equal_the_matrix_with_weights(ensembles, rng):
    weights = rng.gamma(1, size=ensembles.shape)
    weights[0, :, 1] = 0
    found = columns(Forecasts(ensembles, None, weights))
    expected = squared_energy_distance(ensembles[0], x_weights=weights[0])
    for case in range(30):
        np.testing.assert_allclose(column(found, case), expected[case], atol=1e-11)


def test_cases_that_cannot_be_used_have_no_place(ensembles):
    y = np.zeros(30)
    y[[2, 20]] = np.nan
    used = np.flatnonzero(~np.isnan(y))
    expected = squared_energy_distance(ensembles[0, used])
    found = columns(Forecasts(ensembles), y)
    np.testing.assert_allclose(column(found, 5), expected[5], atol=1e-11)


def test_mixtures_of_normals(rng):
    loc, scale = rng.normal(size=(1, 12, 2)), rng.gamma(2, size=(1, 12, 2))
    weights = rng.gamma(1, size=(1, 12, 2))
    found = columns(Forecasts(loc, scale, weights))
    expected = normal_squared_energy_distance(loc[0], scale[0], x_weights=weights[0])
    np.testing.assert_allclose(column(found, 4), expected[4], atol=1e-12)
    assert found.median() == pytest.approx(positive_median(expected))


def test_known_distances_are_taken(ensembles, rng):
    squared = rng.gamma(1, size=(30, 30))
    y = np.where(np.arange(30) == 2, np.nan, 0.0)
    found = columns(Forecasts(ensembles), y, squared=squared)
    rest = np.delete(np.arange(30), 2)
    np.testing.assert_array_equal(column(found, 3), squared[4, rest])
    assert found.median() == positive_median(np.ascontiguousarray(squared[np.ix_(rest, rest)]))


def test_the_laplace_kernel_takes_roots(ensembles):
    plain, root = columns(Forecasts(ensembles)), columns(Forecasts(ensembles), laplace=True)
    np.testing.assert_allclose(column(root, 7) ** 2, column(plain, 7))
    assert root.median() ** 2 == pytest.approx(plain.median())


def test_the_median_is_that_of_some_cases_or_of_all_where_these_are_alike(rng):
    x = rng.normal(size=(1, 450, 3))
    some = subset(450, MEDIAN_CASES)
    assert columns(Forecasts(x)).median() == positive_median(squared_energy_distance(x[0, some]))
    x[:] = 1.0
    assert columns(Forecasts(x)).median() == np.inf
    other = np.setdiff1d(np.arange(450), some)[0]
    x[0, other] = 2.0
    assert columns(Forecasts(x)).median() == pytest.approx(2.0)
