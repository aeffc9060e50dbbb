import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.spatial.distance import cdist

from tests.rules import scoringrules
from xrecal.arrays import (
    on_circle,
    spread_of_observations,
    squared_energy_distance,
    vector_energy_distance,
)
from xrecal.arrays.distributions.vectors import (
    BLOCK,
    cross_vector_distances,
    prepare_vectors,
    prepared_distances,
    rounding_of_vectors,
    self_vector_distances,
)


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


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("n", "m"), [(1, 1), (1, 7), (5, 6), (BLOCK // 8, 8), (BLOCK // 8 + 1, 8), (3, 2 * BLOCK + 9)]
)
def test_equals_formula(rng, d, n, m):
    x = 280 + rng.normal(size=(n, d, 1)) + rng.gamma(2, size=(n, 1, 1)) * rng.normal(size=(n, d, m))
    y = 280 + rng.normal(size=(4, d, 9))
    for found, expected in [
        (vector_energy_distance(x), double_sum_distance(x)),
        (vector_energy_distance(x, y), double_sum_distance(x, y)),
        (vector_energy_distance(y, x), double_sum_distance(y, x)),
    ]:
        np.testing.assert_allclose(found, expected, atol=1e-11, rtol=0)


def test_weighted_ensembles(rng):
    x, y = rng.normal(size=(70, 2, 5)), rng.normal(size=(3, 2, 8))
    x_weights, y_weights = rng.gamma(1, size=(70, 5)), rng.gamma(1, size=(3, 8))
    found = vector_energy_distance(x, y, x_weights=x_weights, y_weights=y_weights)
    expected = double_sum_distance(x, y, x_weights, y_weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    found = vector_energy_distance(x, x_weights=x_weights)
    np.testing.assert_allclose(found, double_sum_distance(x, x_weights=x_weights), atol=1e-12)
    found = vector_energy_distance(x, y, y_weights=y_weights)
    np.testing.assert_allclose(found, double_sum_distance(x, y, None, y_weights), atol=1e-12)


def test_members_missing_in_a_component_or_without_weight_are_left_out(rng):
    x, y = rng.normal(size=(80, 3, 7)), rng.normal(size=(6, 3, 5))
    x[rng.random(x.shape) < 0.2] = np.nan
    y[rng.random(y.shape) < 0.2] = np.nan
    x[:, :, 3], y[:, :, 0] = rng.normal(size=(80, 3)), rng.normal(size=(6, 3))
    x_weights = rng.gamma(1, size=(80, 7))
    x_weights[:, [0, 5]], x_weights[::2, 1] = np.nan, 0.0
    found = vector_energy_distance(x, y, x_weights=x_weights)
    np.testing.assert_allclose(found, double_sum_distance(x, y, x_weights), atol=1e-12)
    found = vector_energy_distance(x, x_weights=x_weights)
    np.testing.assert_allclose(found, double_sum_distance(x, x_weights=x_weights), atol=1e-12)


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


def test_one_component_is_the_distance_of_numbers(rng):
    x, y = 280 + rng.normal(size=(90, 6)), 280 + rng.normal(size=(7, 9))
    x_weights = rng.gamma(1, size=x.shape)
    found = vector_energy_distance(x[:, np.newaxis], y[:, np.newaxis], x_weights=x_weights)
    expected = squared_energy_distance(x, y, x_weights=x_weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = vector_energy_distance(x[:, np.newaxis])
    np.testing.assert_allclose(found, squared_energy_distance(x), rtol=1e-12)


def test_single_members_are_twice_the_norm_apart(rng):
    x, y = rng.normal(size=(70, 3, 1)), rng.normal(size=(3, 3, 1))
    expected = 2 * cdist(x[..., 0], y[..., 0])
    np.testing.assert_allclose(vector_energy_distance(x, y), expected, rtol=1e-13)


# laws --------------------------------------------------------------------------------------------


@given(ensembles)
def test_matrix_is_symmetric_with_a_positive_semi_definite_kernel(x):
    d = vector_energy_distance(x)
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_array_equal(np.diag(d), 0.0)
    assert (d >= 0).all()
    for bandwidth in (0.1, 1.0, 100.0):
        assert np.linalg.eigvalsh(np.exp(-d / bandwidth)).min() > -1e-10


@given(ensembles)
def test_self_is_cross_with_itself(x):
    found = vector_energy_distance(x, x)
    np.testing.assert_allclose(found, vector_energy_distance(x), atol=1e-11)
    np.testing.assert_array_equal(np.diag(found), 0.0)


@given(ensembles, st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_cross_is_symmetric(x, q, seed):
    y = 50 * np.random.default_rng(seed).normal(size=(q, x.shape[1], 4))
    found, turned = vector_energy_distance(x, y), vector_energy_distance(y, x).T
    np.testing.assert_allclose(found, turned, atol=1e-11)
    assert (found >= 0).all()


@given(ensembles, st.floats(-1e3, 1e3))
def test_translation_changes_nothing(x, shift):
    moved = x + shift * np.arange(1.0, x.shape[1] + 1)[:, np.newaxis]
    np.testing.assert_allclose(vector_energy_distance(moved), vector_energy_distance(x), atol=1e-9)


@given(ensembles, st.integers(0, 2**32 - 1))
def test_rotation_and_reflection_change_nothing(x, seed):
    turned = np.einsum("cd,ndm->ncm", orthogonal(np.random.default_rng(seed), x.shape[1]), x)
    np.testing.assert_allclose(vector_energy_distance(turned), vector_energy_distance(x), atol=1e-9)


@given(ensembles, st.floats(-1e3, 1e3))
def test_scaling_scales(x, factor):
    found, expected = vector_energy_distance(factor * x), abs(factor) * vector_energy_distance(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * (1 + abs(factor)))


@given(ensembles, st.randoms(use_true_random=False))
def test_order_of_members_and_weights_in_any_unit_change_nothing(x, random):
    order = random.sample(range(x.shape[2]), x.shape[2])
    weights = np.full((x.shape[0], x.shape[2]), 7.0)
    mixed = vector_energy_distance(x, x[:, :, order], x_weights=weights)
    np.testing.assert_allclose(mixed, vector_energy_distance(x), atol=1e-11)
    np.testing.assert_array_equal(np.diag(mixed), 0.0)


@given(ensembles, st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_integer_weights_are_repeated_members(x, repeats):
    repeats = np.array([1, *repeats[1:]])[: x.shape[2]]
    weights = np.broadcast_to(repeats * 0.3, (x.shape[0], x.shape[2]))
    found = vector_energy_distance(x, x_weights=weights)
    expected = vector_energy_distance(np.repeat(x, repeats, axis=2))
    np.testing.assert_allclose(found, expected, atol=1e-11)


@settings(max_examples=25)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 60)), elements=component),
    st.integers(2, 40),
    st.randoms(use_true_random=False),
)
def test_equal_ensembles_are_exactly_zero_apart(members, n, random):
    m = members.shape[1]
    orders = [random.sample(range(m), m) for _ in range(n)]
    x = np.stack([members[:, order] for order in orders]) + 273.15
    np.testing.assert_array_equal(vector_energy_distance(x), 0.0)
    np.testing.assert_array_equal(vector_energy_distance(x, x[:3]), 0.0)


# missing values, types, errors -------------------------------------------------------------------


def test_rows_without_members_are_nan_and_disturb_no_other(rng):
    x = rng.normal(size=(40, 2, 5))
    lost = [0, 3, 35, 39]
    kept = np.delete(np.arange(40), lost)
    alone = vector_energy_distance(x[kept])
    x[0], x[3, 0] = np.nan, np.nan
    weights = np.ones((40, 5))
    weights[35], weights[39] = 0.0, np.nan
    d = vector_energy_distance(x, x_weights=weights)
    assert np.isnan(d[lost]).all()
    assert np.isnan(d[:, lost]).all()
    np.testing.assert_allclose(d[np.ix_(kept, kept)], alone, atol=1e-12)
    for cross in (
        vector_energy_distance(x, x[:4], x_weights=weights),
        vector_energy_distance(x[:4], x, y_weights=weights).T,
    ):
        assert np.isnan(cross[:, [0, 3]]).all()
        assert np.isnan(cross[lost]).all()
        assert np.isfinite(cross[np.ix_(kept, [1, 2])]).all()
    assert np.isnan(vector_energy_distance(np.full((2, 2, 3), np.nan))).all()


def test_members_of_weight_zero_are_left_out_whatever_they_hold():
    x = np.array([[[1.0, 2.0, 9e36], [0.0, 1.0, 2.0]], [[3.0, 5.0, 0.0], [1.0, 1.0, -9e36]]])
    weights = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, np.nan]])
    expected = double_sum_distance(x[:, :, :2])
    np.testing.assert_allclose(vector_energy_distance(x, x_weights=weights), expected, atol=1e-14)


def test_no_ensembles_and_no_members():
    assert vector_energy_distance(np.empty((0, 2, 3))).shape == (0, 0)
    assert vector_energy_distance(np.ones((2, 2, 3)), np.empty((0, 2, 4))).shape == (2, 0)
    assert vector_energy_distance(np.empty((0, 2, 3)), np.ones((2, 2, 3))).shape == (0, 2)
    assert np.isnan(vector_energy_distance(np.empty((2, 2, 0)))).all()


def test_inputs_of_any_kind_stay_unchanged(rng):
    x, y, weights = rng.normal(size=(4, 2, 3)), rng.normal(size=(5, 2, 3)), np.ones((4, 3))
    for array in (x, y, weights):
        array.flags.writeable = False
    before = x.copy(), y.copy()
    expected = double_sum_distance(x, y)
    np.testing.assert_allclose(vector_energy_distance(x, y), expected, atol=1e-12)
    found = vector_energy_distance(x, y, x_weights=weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    vector_energy_distance(x, x_weights=weights)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])
    across = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, 2)), 2, 1)
    np.testing.assert_allclose(vector_energy_distance(across, y), expected, atol=1e-12)
    single = vector_energy_distance(x.astype(np.float32), y.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, expected, atol=1e-5)
    integers = rng.integers(0, 9, (4, 2, 3))
    found = vector_energy_distance(integers)
    np.testing.assert_allclose(found, double_sum_distance(integers * 1.0), atol=1e-12)


def test_kernels_are_what_the_function_calls(rng):
    x, y = rng.normal(size=(4, 2, 3)), rng.normal(size=(5, 2, 6))
    v, w = rng.gamma(1, size=(4, 3)), rng.gamma(1, size=(5, 6))
    found = self_vector_distances(x, v)
    np.testing.assert_array_equal(found, vector_energy_distance(x, x_weights=v))
    found = cross_vector_distances(x, v, y, w)
    expected = vector_energy_distance(x, y, x_weights=v, y_weights=w)
    np.testing.assert_array_equal(found, expected)


def test_errors():
    x = np.ones((3, 2, 4))
    with pytest.raises(ValueError, match=r"x needs shape \(ensemble, component, member\), got"):
        vector_energy_distance(x[0])
    with pytest.raises(ValueError, match=r"got \(3, 4\); a single ensemble is y\[np.newaxis\]"):
        vector_energy_distance(x, x[:, 0])
    with pytest.raises(ValueError, match="x has 2 components and y has 1; both need the same ones"):
        vector_energy_distance(x, x[:, :1])
    with pytest.raises(ValueError, match="x holds infinite members; set them to NaN"):
        vector_energy_distance(x * np.inf)
    with pytest.raises(ValueError, match=r"y_weights has shape \(3, 2\), .* its weight: \(3, 4\)"):
        vector_energy_distance(x, x, y_weights=np.ones((3, 2)))
    with pytest.raises(ValueError, match="y_weights is given without y; pass x_weights"):
        vector_energy_distance(x, y_weights=np.ones((3, 4)))
    for wrong in (-1.0, np.inf):
        weights = np.ones((3, 4))
        weights[1, 1] = wrong
        with pytest.raises(ValueError, match="x_weights must be finite and >= 0, or NaN to leave"):
            vector_energy_distance(x, x_weights=weights)


def test_small_spread_on_a_large_offset(rng):
    anomalies = 1e-4 * np.round(rng.normal(size=(40, 2, 6)), 3)
    expected = vector_energy_distance(anomalies)
    found = vector_energy_distance(np.array([[280.0], [1e3]]) + anomalies)
    np.testing.assert_allclose(found, expected, atol=1e-11, rtol=0)
    constant = 280.15 + 5.7e-14 * rng.choice([-1, 0, 1], size=(40, 2, 6))
    assert (vector_energy_distance(constant) == 0).all()


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
def test_prepared_ensembles_have_the_same_distances(seed, missing):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(7, 2, 4)) + 280, rng.normal(size=(5, 2, 4)) + 280
    wx, wy = rng.random((7, 4)) + 0.1, np.ones((5, 4))
    if missing:
        x[2, 1, 3] = x[4] = np.nan
        wx[1, 2] = 0.0
    centre = np.array([280.0, 280.0])
    a, b = prepare_vectors(x, wx, centre), prepare_vectors(y, wy, centre)
    tolerance = rounding_of_vectors(a[0], a[2], b[0], centre)
    rows, columns = np.array([6, 0, 2, 4]), np.array([1, 3])
    found = prepared_distances(a, rows, b, columns, tolerance, False)
    expected = cross_vector_distances(x, wx, y, wy)[np.ix_(rows, columns)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    found = prepared_distances(a, rows, a, rows, tolerance, True)
    expected = self_vector_distances(x, wx)[np.ix_(rows, rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(found, found.T)
