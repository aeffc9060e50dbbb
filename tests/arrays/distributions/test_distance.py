import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import energy_distance

from xrecal.arrays import squared_energy_distance
from xrecal.arrays.distributions.distance import LANES


def double_sum_distance(x, y=None, x_weights=None, y_weights=None):
    """2E|X-Y| - E|X-X'| - E|Y-Y'| as written, for rows (n, m) and (q, p); NaN members left out."""
    y, y_weights = (x, x_weights) if y is None else (y, y_weights)

    def valid(row, weights):
        keep = ~np.isnan(row)
        mass = np.ones(row.size) if weights is None else weights
        return row[keep], mass[keep] / mass[keep].sum()

    def mean(a, b):
        return a[1] @ np.abs(np.subtract.outer(a[0], b[0])) @ b[1]

    rows = [valid(row, None if x_weights is None else x_weights[i]) for i, row in enumerate(x)]
    columns = [valid(row, None if y_weights is None else y_weights[i]) for i, row in enumerate(y)]
    return np.array([[2 * mean(a, b) - mean(a, a) - mean(b, b) for b in columns] for a in rows])


def scipy_distance(x, y):
    x, y = ([row[~np.isnan(row)] for row in rows] for rows in (x, y))
    return np.array([[energy_distance(a, b) ** 2 for b in y] for a in x])


def frozen(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


member = st.floats(-50, 50).map(lambda v: round(v, 3))
ensembles = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=member)


# against the formula and SciPy -------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, LANES - 1, LANES, LANES + 1, 2 * LANES + 6])
@pytest.mark.parametrize("offset", [0.0, 280.0])
def test_equals_formula_and_scipy(rng, n, offset):
    x = offset + rng.normal(size=(n, 1)) + rng.gamma(2, size=(n, 1)) * rng.normal(size=(n, 6))
    y = offset + rng.normal(size=(5, 9))
    np.testing.assert_allclose(squared_energy_distance(x), double_sum_distance(x), atol=1e-10)
    np.testing.assert_allclose(squared_energy_distance(x, y), scipy_distance(x, y), atol=1e-10)
    np.testing.assert_allclose(squared_energy_distance(y, x), scipy_distance(y, x), atol=1e-10)


def test_weighted_ensembles(rng):
    x, y = rng.normal(size=(40, 5)), rng.normal(size=(3, 8))
    x_weights, y_weights = rng.gamma(1, size=x.shape), rng.gamma(1, size=y.shape)
    x_weights[::3, 1] = 0.0
    expected = [
        [energy_distance(a, b, v, w) ** 2 for b, w in zip(y, y_weights, strict=True)]
        for a, v in zip(x, x_weights, strict=True)
    ]
    found = squared_energy_distance(x, y, x_weights=x_weights, y_weights=y_weights)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    found = squared_energy_distance(x, x_weights=x_weights)
    np.testing.assert_allclose(found, double_sum_distance(x, x_weights=x_weights), atol=1e-10)
    found = squared_energy_distance(x, y, y_weights=y_weights)
    np.testing.assert_allclose(
        found, double_sum_distance(x, y, np.ones_like(x), y_weights), atol=1e-10
    )


def test_ragged_ensembles_are_shorter_ones(rng):
    x, y = rng.normal(size=(36, 7)), rng.normal(size=(4, 5))
    x[rng.random(x.shape) < 0.4] = np.nan
    y[:, 1:][rng.random((4, 4)) < 0.4] = np.nan
    x[:, 3] = rng.normal(size=36)
    np.testing.assert_allclose(squared_energy_distance(x, y), scipy_distance(x, y), atol=1e-10)
    np.testing.assert_allclose(squared_energy_distance(x), scipy_distance(x, x), atol=1e-10)


def test_ties_within_and_between_ensembles(rng):
    x, y = rng.integers(0, 4, (35, 6)) * 1.0, rng.integers(0, 4, (7, 3)) * 1.0
    np.testing.assert_allclose(squared_energy_distance(x, y), scipy_distance(x, y), atol=1e-10)
    np.testing.assert_allclose(squared_energy_distance(x), scipy_distance(x, x), atol=1e-10)


def test_single_members_are_twice_the_absolute_difference_apart(rng):
    x, y = rng.normal(size=(40, 1)), rng.normal(size=(3, 1))
    np.testing.assert_allclose(squared_energy_distance(x, y), 2 * np.abs(x - y.T), atol=1e-13)


def test_published_value():
    # scipy.stats.energy_distance documents 0.88003340976158217 for these weighted values.
    x, y = np.array([[0.7, 7.4, 2.4, 6.8]]), np.array([[1.4, 8.0]])
    weights = {
        "x_weights": np.array([[2.1, 4.2, 7.4, 8.0]]),
        "y_weights": np.array([[7.6, 8.8]]),
    }
    assert squared_energy_distance(x, y, **weights)[0, 0] == pytest.approx(0.88003340976158217**2)


# laws --------------------------------------------------------------------------------------------


@given(ensembles)
def test_matrix_is_symmetric_with_a_positive_semi_definite_kernel(x):
    d = squared_energy_distance(x)
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_array_equal(np.diag(d), 0.0)
    assert (d >= 0).all()
    for bandwidth in (0.1, 1.0, 100.0):
        assert np.linalg.eigvalsh(np.exp(-d / bandwidth)).min() > -1e-10
        assert np.linalg.eigvalsh(np.exp(-np.sqrt(d) / bandwidth)).min() > -1e-7


@given(ensembles)
def test_self_is_cross_with_itself(x):
    np.testing.assert_allclose(
        squared_energy_distance(x, x), squared_energy_distance(x), atol=1e-11
    )


@given(ensembles, st.floats(-1e3, 1e3))
def test_translation_changes_nothing(x, shift):
    np.testing.assert_allclose(
        squared_energy_distance(x + shift), squared_energy_distance(x), atol=1e-9
    )


@given(ensembles, st.floats(-1e3, 1e3))
def test_scaling_scales_and_mirroring_changes_nothing(x, factor):
    found = squared_energy_distance(factor * x)
    expected = abs(factor) * squared_energy_distance(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * (1 + abs(factor)))


@given(ensembles, st.randoms(use_true_random=False))
def test_order_of_members_and_weights_in_any_unit_change_nothing(x, random):
    order = random.sample(range(x.shape[1]), x.shape[1])
    mixed = squared_energy_distance(x, x[:, order], x_weights=np.full_like(x, 7.0))
    np.testing.assert_allclose(mixed, squared_energy_distance(x), atol=1e-11)
    np.testing.assert_array_equal(np.diag(mixed), 0.0)


@given(ensembles, st.lists(st.integers(0, 3), min_size=7, max_size=7))
def test_integer_weights_are_repeated_members(x, repeats):
    repeats = np.array([1, *repeats[1:]])[: x.shape[1]]
    weights = np.broadcast_to(repeats * 0.3, x.shape)
    repeated = np.repeat(x, repeats, axis=1)
    np.testing.assert_allclose(
        squared_energy_distance(x, x_weights=weights), squared_energy_distance(repeated), atol=1e-11
    )


@given(arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e3, 1e3)), st.integers(2, 70))
def test_identical_rows_are_exactly_zero_apart(row, n):
    np.testing.assert_array_equal(squared_energy_distance(np.tile(row, (n, 1)) + 273.15), 0.0)


# missing values, types, errors -------------------------------------------------------------------


def test_rows_without_members_are_nan_and_disturb_no_other(rng):
    x = rng.normal(size=(40, 5))
    alone = squared_energy_distance(np.delete(x, [3, 35], axis=0))
    x[3] = np.nan
    weights = np.ones_like(x)
    weights[35] = 0.0
    d = squared_energy_distance(x, x_weights=weights)
    assert np.isnan(d[[3, 35]]).all()
    assert np.isnan(d[:, [3, 35]]).all()
    kept = np.delete(np.arange(40), [3, 35])
    np.testing.assert_allclose(d[np.ix_(kept, kept)], alone, atol=1e-12)
    cross = squared_energy_distance(x, x[:4])
    assert np.isnan(cross[:, 3]).all()
    assert np.isfinite(cross[np.ix_(kept, [0, 1, 2])]).all()
    assert np.isnan(squared_energy_distance(np.full((2, 3), np.nan))).all()


def test_members_of_weight_zero_are_left_out_whatever_they_hold():
    x = np.array([[1.0, 2.0, 9e36], [3.0, 5.0, -9e36]])
    weights = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    expected = double_sum_distance(x[:, :2])
    np.testing.assert_allclose(squared_energy_distance(x, x_weights=weights), expected, atol=1e-14)
    found = squared_energy_distance(x, x, x_weights=weights, y_weights=weights)
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_missing_members_need_no_weight():
    x, weights = np.array([[1.0, np.nan], [3.0, 5.0]]), np.array([[1.0, np.nan], [1.0, 1.0]])
    expected = squared_energy_distance(x)
    np.testing.assert_array_equal(squared_energy_distance(x, x_weights=weights), expected)


def test_no_ensembles_and_no_members():
    assert squared_energy_distance(np.empty((0, 3))).shape == (0, 0)
    assert squared_energy_distance(np.ones((2, 3)), np.empty((0, 4))).shape == (2, 0)
    assert np.isnan(squared_energy_distance(np.empty((2, 0)))).all()


def test_inputs_of_any_kind_stay_unchanged(rng):
    x, y, weights = frozen(rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), np.ones((4, 3)))
    before = x.copy(), y.copy()
    expected = double_sum_distance(x, y)
    np.testing.assert_allclose(squared_energy_distance(x, y), expected, atol=1e-12)
    np.testing.assert_allclose(squared_energy_distance(x, y.copy()), expected, atol=1e-12)
    found = squared_energy_distance(x, y, x_weights=weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])
    sliced = np.repeat(x, 2, axis=1)[:, ::2]
    np.testing.assert_allclose(squared_energy_distance(sliced, y), expected, atol=1e-12)
    single = squared_energy_distance(x.astype(np.float32), y.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, expected, atol=1e-5)
    integers = rng.integers(0, 9, (4, 3))
    np.testing.assert_allclose(
        squared_energy_distance(integers), double_sum_distance(integers * 1.0)
    )


def test_errors():
    x = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"x needs shape \(ensemble, member\), got \(2,\).*x\[np"):
        squared_energy_distance(x[0])
    with pytest.raises(ValueError, match=r"y needs shape \(ensemble, member\), got \(1, 3, 2\)"):
        squared_energy_distance(x, x[np.newaxis])
    with pytest.raises(ValueError, match="x holds infinite members; set them to NaN"):
        squared_energy_distance(np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match=r"y_weights has shape \(2,\), but y has \(3, 2\)"):
        squared_energy_distance(x, x, y_weights=np.ones(2))
    with pytest.raises(ValueError, match="y_weights is given without y; pass x_weights"):
        squared_energy_distance(x, y_weights=x)
    for wrong in (-1.0, np.nan, np.inf):
        weights = np.ones_like(x)
        weights[1, 1] = wrong
        with pytest.raises(ValueError, match="x_weights must be finite and >= 0"):
            squared_energy_distance(x, x_weights=weights)


def test_small_spread_on_a_large_offset(rng):
    anomalies = 1e-4 * np.round(rng.normal(size=(40, 6)), 3)
    expected = squared_energy_distance(anomalies)
    found = squared_energy_distance(280.0 + anomalies)
    np.testing.assert_allclose(found, expected, atol=3e-12, rtol=0)
    constant = 280.15 + 5.7e-14 * rng.choice([-1, 0, 1], size=(40, 6))
    assert (squared_energy_distance(constant) == 0).all()


def test_small_but_real_distances_survive():
    x = np.array([[0.0], [1e-9], [1.0]])
    assert squared_energy_distance(x)[0, 1] == pytest.approx(2e-9)


def test_members_near_the_largest_number_warn_of_nothing():
    huge = np.finfo(np.float64).max
    x = np.array([[huge, huge, -huge, -huge], [0.0, 1.0, 2.0, 3.0]])
    found = squared_energy_distance(x)
    assert np.isnan(found[1, 0])
    assert squared_energy_distance(x[1:], x_weights=np.full((1, 4), huge)) == 0
