import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.spatial.distance import cdist

from tests.rules import scoringrules
from xrecal.arrays import (
    on_circle,
    spread_of_observations,
    vector_energy_distance,
)
from xrecal.arrays.distributions.vectors import BLOCK, VectorDistances


def double_sum_distance(x, y=None, x_weights=None, y_weights=None):
    """2E|X-Y| - E|X-X'| - E|Y-Y'| as written, for ensembles (n, d, m) and (q, d, p)."""
    y, y_weights = (x, x_weights) if y is None else (y, y_weights)

    def valid(ensemble, weights):
        mass = np.ones(ensemble.shape[1]) if weights is None else np.nan_to_num(weights)
        keep = ~np.isnan(ensemble).any(axis=0) & (mass > 0)
        return ensemble[:, keep].T, mass[keep] / mass[keep].sum()

    def mean(a, b):
        return a[1] @ cdist(a[0], b[0]) @ b[1]

    rows = [valid(row, None if x_weights is None else x_weights[i]) for i, row in enumerate(x)]
    columns = [valid(row, None if y_weights is None else y_weights[i]) for i, row in enumerate(y)]
    return np.array([[2 * mean(a, b) - mean(a, a) - mean(b, b) for b in columns] for a in rows])


def orthogonal(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


component = st.floats(-50, 50).map(lambda v: round(v, 3))
ensembles = arrays(np.float64, array_shapes(min_dims=3, max_dims=3, max_side=6), elements=component)


# against the formula and libraries ---------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["plain", "weighted", "gaps"])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("n", "m"), [(1, 1), (1, 7), (5, 6), (BLOCK // 8, 8), (BLOCK // 8 + 1, 8), (3, 2 * BLOCK + 9)]
)
def test_equals_formula(rng, d, n, m, kind):
    x = 280 + rng.normal(size=(n, d, 1)) + rng.gamma(2, size=(n, 1, 1)) * rng.normal(size=(n, d, m))
    y, v, w = 280 + rng.normal(size=(4, d, 9)), None, None
    if kind != "plain":
        v, w = rng.gamma(1, size=(n, m)) + 0.01, rng.gamma(1, size=(4, 9))
    if kind == "gaps":  # in a component or without a weight
        v[::2, 1:3], v[:, 5:6] = 0.0, np.nan
        x[:, :, 1:][rng.random((n, d, m - 1)) < 0.2] = np.nan
        y[:, :, 1:][rng.random((4, d, 8)) < 0.2] = np.nan
    for a, b, p, q in ((x, y, v, w), (y, x, w, v), (x, y, None, w), (x, None, v, None)):
        found = vector_energy_distance(a, b, x_weights=p, y_weights=q)
        expected = double_sum_distance(a, b, p, q)
        np.testing.assert_allclose(found, expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_is_the_divergence_of_the_energy_score(rng, d):
    x, y = rng.normal(size=(4, d, 6)), 1 + rng.normal(size=(3, d, 11))

    def score(members, seen):
        return np.mean([scoringrules.es_ensemble(each, members.T) for each in seen.T])

    expected = [[2 * (score(a, b) - score(b, b)) for b in y] for a in x]
    np.testing.assert_allclose(vector_energy_distance(x, y), expected, rtol=1e-12)


@pytest.mark.slow  # importing dcor compiles its functions for twenty seconds
@pytest.mark.parametrize("d", [1, 2, 5])
def test_equals_dcor(rng, d):
    import dcor

    x, y = rng.normal(size=(4, d, 6)), 1 + rng.normal(size=(3, d, 11))
    expected = [[dcor.energy_distance(a.T, b.T, exponent=1) for b in y] for a in x]
    np.testing.assert_allclose(vector_energy_distance(x, y), expected, rtol=1e-12)


def test_published_value():
    # dcor.energy_distance documents 20.5780594... for these members.
    x = np.arange(1.0, 17.0).reshape(4, 4).T
    y = np.array([[1.0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]]).T
    assert vector_energy_distance(x[np.newaxis], y[np.newaxis])[0, 0] == pytest.approx(20.5780594)


# laws --------------------------------------------------------------------------------------------


@given(ensembles, st.integers(0, 2**32 - 1))
def test_rotation_and_reflection_change_nothing(x, seed):
    turned = np.einsum("cd,ndm->ncm", orthogonal(np.random.default_rng(seed), x.shape[1]), x)
    np.testing.assert_allclose(vector_energy_distance(turned), vector_energy_distance(x), atol=1e-9)


# missing values, types, errors -------------------------------------------------------------------


def test_errors():
    x = np.ones((3, 2, 4))
    with pytest.raises(ValueError, match=r"x needs shape \(ensemble, component, member\), got"):
        vector_energy_distance(x[0])
    with pytest.raises(ValueError, match=r"got \(3, 4\); a single ensemble is y\[np.newaxis\]"):
        vector_energy_distance(x, x[:, 0])
    with pytest.raises(ValueError, match="x has 2 components and y has 1; give both the same"):
        vector_energy_distance(x, x[:, :1])
    with pytest.raises(ValueError, match="x holds infinite members; set them to NaN"):
        vector_energy_distance(x * np.inf)
    with pytest.raises(
        ValueError, match=r"y_weights has shape \(3, 2\), .* one weight, in shape \(3, 4\)"
    ):
        vector_energy_distance(x, x, y_weights=np.ones((3, 2)))
    with pytest.raises(ValueError, match="y_weights is given without y; pass x_weights"):
        vector_energy_distance(x, y_weights=np.ones((3, 4)))
    for wrong in (-1.0, np.inf):
        weights = np.ones((3, 4))
        weights[1, 1] = wrong
        with pytest.raises(ValueError, match="x_weights must be finite and >= 0, or NaN to leave"):
            vector_energy_distance(x, x_weights=weights)


def test_small_but_real_distances_survive():
    x = np.array([[[0.0], [0.0]], [[3e-9], [4e-9]], [[1.0], [0.0]]])
    assert vector_energy_distance(x)[0, 1] == pytest.approx(1e-8)


# scale of components -----------------------------------------------------------------------------


def test_spread_is_the_standard_deviation_of_what_is_known(rng):
    x = 280 + 3 * rng.normal(size=(4, 50))
    x[1, ::3], x[2, 5] = np.nan, np.inf
    expected = [np.std(row[np.isfinite(row)]) for row in x]
    np.testing.assert_allclose(spread_of_observations(x), expected, rtol=1e-12)
    assert spread_of_observations(x[0]) == pytest.approx(expected[0])
    assert spread_of_observations(x[0].astype(np.float32)).dtype == np.float64


def test_spread_on_a_circle_is_that_of_the_points(rng):
    x = rng.vonmises(0, 4, size=(3, 50)) * 180 / np.pi
    x[1, ::3] = np.nan
    for row, found in zip(x, spread_of_observations(x, 360.0), strict=True):
        points = on_circle(row[~np.isnan(row)], 360.0)
        apart = cdist(points.T, points.mean(axis=1)[np.newaxis])
        assert found == pytest.approx(np.sqrt((apart**2).mean()), rel=1e-12)
    near = 1e-3 * x  # where a circle is nearly a line
    np.testing.assert_allclose(spread_of_observations(near, 360.0), np.nanstd(near, -1), rtol=1e-5)
    opposite = spread_of_observations(np.array([10.0, 190.0]), 360.0)
    assert opposite == pytest.approx(360 / (2 * np.pi))


def test_spread_of_nothing_or_constants_is_one():
    for period in (None, 360.0):
        constant = np.full(1000, 273.15)
        assert spread_of_observations(constant, period) == 1.0
        assert spread_of_observations(np.full(5, np.nan), period) == 1.0
        assert spread_of_observations(np.empty(0), period) == 1.0
    assert spread_of_observations(np.array([-5.0, 355.0, 715.0]), 360.0) == 1.0
    assert spread_of_observations(np.array([0.0, 1e-9])) == pytest.approx(5e-10)
    with pytest.raises(ValueError, match="period must be a positive number, got 0"):
        spread_of_observations(constant, 0)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_pairs_that_are_asked_for_have_the_same_distances(seed, missing):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(7, 2, 4)) + 280, rng.normal(size=(5, 2, 4)) + 280
    wx, wy = rng.random((7, 4)) + 0.1, np.ones((5, 4))
    if missing:
        x[2, 1, 3] = x[4] = np.nan
        wx[1, 2] = 0.0
    rows, columns = np.array([6, 0, 2, 4]), np.array([1, 3])
    found = VectorDistances(x, wx, y, wy)[np.ix_(rows, columns)]
    expected = vector_energy_distance(x, y, x_weights=wx, y_weights=wy)[np.ix_(rows, columns)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    found = VectorDistances(x, wx)[np.ix_(rows, rows)]
    expected = vector_energy_distance(x, x_weights=wx)[np.ix_(rows, rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(found, found.T)
