"""Laws of the distances between ensembles of numbers, ensembles of vectors, and normal mixtures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import (
    normal_squared_energy_distance,
    squared_energy_distance,
    vector_energy_distance,
)


def of_numbers(x, y=None, v=None, w=None):
    other = None if y is None else y[:, 0]
    return squared_energy_distance(x[:, 0], other, x_weights=v, y_weights=w)


def of_vectors(x, y=None, v=None, w=None):
    return vector_energy_distance(x, y, x_weights=v, y_weights=w)


def of_normals(x, y=None, v=None, w=None):
    """Mixtures with the second component as their scale."""
    other = (None, None) if y is None else (y[:, 0], abs(y[:, 1]))
    return normal_squared_energy_distance(x[:, 0], abs(x[:, 1]), *other, x_weights=v, y_weights=w)


DISTANCES = {"numbers": of_numbers, "vectors": of_vectors, "normals": of_normals}
of_each = pytest.mark.parametrize("name", DISTANCES)
component = st.floats(-50, 50).map(lambda v: round(v, 3))
ensembles = st.tuples(st.integers(1, 6), st.just(2), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=component)
)


def close(found, expected, atol=1e-10):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=atol)


@of_each
@given(ensembles)
def test_the_matrix_is_symmetric_with_a_positive_semi_definite_kernel(name, x):
    d = DISTANCES[name](x)
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_array_equal(np.diag(d), 0.0)
    assert (d >= 0).all()
    for bandwidth in (0.1, 1.0, 100.0):
        smallest = np.linalg.eigvalsh(np.exp(-d / bandwidth)).min()
        assert smallest > (-1e-8 if name == "normals" else -1e-10)
        if name == "numbers":
            assert np.linalg.eigvalsh(np.exp(-np.sqrt(d) / bandwidth)).min() > -1e-7


@of_each
@given(x=ensembles, shift=st.floats(-1e3, 1e3), factor=st.floats(-1e3, 1e3))
def test_translation_changes_nothing_and_scaling_scales(name, x, shift, factor):
    distance, moved = DISTANCES[name], factor * x
    expected = distance(x)
    close(distance(moved), abs(factor) * expected, atol=1e-10 * (1 + abs(factor)))
    shifted = x.copy()
    shifted[:, 0] += shift
    close(distance(shifted), expected, atol=1e-9)


@of_each
@given(ensembles, st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_the_order_of_members_and_of_arguments_changes_nothing(name, x, q, seed):
    distance, rng = DISTANCES[name], np.random.default_rng(seed)
    order, weights = rng.permutation(x.shape[2]), np.full((x.shape[0], x.shape[2]), 7.0)
    close(distance(x, x), distance(x), atol=1e-11)
    mixed = distance(x, x[..., order], v=weights)
    close(mixed, distance(x), atol=1e-11)
    np.testing.assert_array_equal(np.diag(mixed), 0.0)
    y = 50 * rng.normal(size=(q, 2, 4))
    close(distance(x, y), distance(y, x).T, atol=1e-11)
    assert (distance(x, y) >= 0).all()


@of_each
@given(ensembles, st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_integer_weights_are_repeated_members(name, x, repeats):
    repeats = np.array([1, *repeats[1:]])[: x.shape[2]]
    weights = np.broadcast_to(repeats * 0.3, (x.shape[0], x.shape[2]))
    repeated = np.repeat(x, repeats, axis=2)
    close(DISTANCES[name](x, v=weights), DISTANCES[name](repeated), atol=1e-11)


@pytest.mark.parametrize("name", ["numbers", "vectors"])
@given(
    members=arrays(
        np.float64, st.tuples(st.just(2), st.integers(1, 60)), elements=st.floats(-1e3, 1e3)
    ),
    n=st.integers(2, 70),
)
def test_equal_ensembles_are_exactly_zero_apart(name, members, n):
    rng = np.random.default_rng(n)
    x = np.stack([members[:, rng.permutation(members.shape[1])] for _ in range(n)]) + 273.15
    np.testing.assert_array_equal(DISTANCES[name](x), 0.0)
    np.testing.assert_array_equal(DISTANCES[name](x, x[:2]), 0.0)


@of_each
def test_rows_without_members_are_nan_and_disturb_no_other(name, rng):
    distance, x, weights = DISTANCES[name], rng.normal(size=(40, 2, 5)), np.ones((40, 5))
    lost = [0, 3, 35]
    kept = np.delete(np.arange(40), lost)
    alone = distance(x[kept])
    x[0], x[3, 0], weights[35] = np.nan, np.nan, 0.0
    d = distance(x, v=weights)
    assert np.isnan(d[lost]).all()
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_allclose(d[np.ix_(kept, kept)], alone, atol=1e-12)
    cross = distance(x, x[:4], v=weights)
    np.testing.assert_allclose(distance(x[:4], x, w=weights), cross.T, atol=1e-12)
    assert np.isnan(cross[:, [0, 3]]).all()
    assert np.isnan(cross[lost]).all()
    assert np.isfinite(cross[np.ix_(kept, [1, 2])]).all()
    assert np.isnan(distance(np.full((2, 2, 3), np.nan))).all()


@of_each
def test_members_without_weight_or_value_are_left_out(name, rng):
    distance, x, weights = DISTANCES[name], rng.normal(size=(4, 2, 3)), rng.gamma(1, size=(4, 3))
    expected = distance(x[..., :2], v=weights[:, :2])
    x[:, :, 2], weights[:, 2] = 9e36, 0.0
    np.testing.assert_allclose(distance(x, v=weights), expected, atol=1e-13)
    found = distance(x, x, v=weights, w=weights)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    x[:, 0, 2], weights[:, 2] = np.nan, 1.0
    np.testing.assert_allclose(distance(x, v=weights), expected, atol=1e-13)
    weights[:, 2] = np.nan
    if name != "normals":  # a missing member needs no weight
        np.testing.assert_allclose(distance(x, v=weights), expected, atol=1e-13)


@of_each
def test_no_ensembles_and_no_members(name):
    distance, some = DISTANCES[name], np.ones((2, 2, 3))
    assert distance(some[:0]).shape == (0, 0)
    assert distance(some, some[:0]).shape == (2, 0)
    assert distance(some[:0], some).shape == (0, 2)
    if name != "normals":
        assert np.isnan(distance(some[..., :0])).all()


@pytest.mark.parametrize("name", ["numbers", "vectors"])
def test_small_spread_on_a_large_offset(name, rng):
    anomalies = 1e-4 * np.round(rng.normal(size=(40, 2, 6)), 3)
    found = DISTANCES[name](np.array([[280.0], [1e3]]) + anomalies)
    atol = 3e-12 if name == "numbers" else 1e-11
    np.testing.assert_allclose(found, DISTANCES[name](anomalies), atol=atol, rtol=0)
    constant = 280.15 + 5.7e-14 * rng.choice([-1, 0, 1], size=(40, 2, 6))
    assert (DISTANCES[name](constant) == 0).all()
