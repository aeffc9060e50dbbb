import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from xrecal.arrays.calibration.dependence import distance_correlation

value = st.integers(-20, 20).map(lambda v: v / 4)
pairs = st.integers(4, 9).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 2), elements=value), arrays(np.float64, (n, 1), elements=value)
    )
)

_rng = np.random.default_rng(0)
many = _rng.normal(size=(200, 3)), _rng.gamma(2, size=(200, 1))


def centred(x):
    n, a = len(x), cdist(x, x)
    a = a - a.sum(0) / (n - 2) - a.sum(1)[:, np.newaxis] / (n - 2) + a.sum() / (n - 1) / (n - 2)
    np.fill_diagonal(a, 0)
    return a


def by_formula(x, y):
    a, b = centred(x), centred(y)
    if min((a * a).sum(), (b * b).sum()) < 1e-20:
        return np.nan
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


@given(pairs)
@example(many)
def test_follows_the_formula(pair):
    found = distance_correlation(*pair)
    assert found.shape == ()
    np.testing.assert_allclose(found, by_formula(*pair), atol=1e-11)


@pytest.mark.slow  # importing dcor compiles its functions for twenty seconds
def test_equals_dcor(rng):
    import dcor

    for n in (4, 30, 200):
        x = rng.normal(size=(n, 3))
        y = np.abs(x[:, :1]) + rng.normal(size=(n, 1))
        expected = dcor.u_distance_correlation_sqr(x, y)
        np.testing.assert_allclose(distance_correlation(x, y), expected, atol=1e-12)


def test_published_values():
    # dcor.u_distance_correlation_sqr documents these.
    x, y = np.arange(1.0, 17.0).reshape(4, 4), np.array([[1.0], [0.0], [0.0], [1.0]])
    assert distance_correlation(x, x) == pytest.approx(1)
    assert distance_correlation(x, y) == pytest.approx(-0.5)
    assert distance_correlation(y, y) == pytest.approx(1)


@given(pairs, st.floats(0.5, 4), st.integers(-5, 5), st.floats(0, 6))
def test_laws(pair, factor, shift, angle):
    x, y = pair
    found = distance_correlation(x, y)
    assert np.isnan(found) or -1 <= found <= 1
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for same in (
        distance_correlation(y, x),
        distance_correlation(x[::-1], y[::-1]),
        distance_correlation(factor * x + shift, -y),
        distance_correlation(x @ turn, y),
    ):
        np.testing.assert_allclose(same, found, atol=1e-10)
    itself = distance_correlation(x, factor * x)
    assert np.isnan(itself) or itself == pytest.approx(1)


def test_mean_is_zero_for_independent_quantities(rng):
    x, y = rng.normal(size=(3000, 20, 2)), rng.random((3000, 20, 1))
    found = distance_correlation(x, y)
    assert abs(found.mean()) < 4 * found.std() / np.sqrt(3000)
    assert found.min() < 0
    x = np.linspace(-1, 1, 200)[:, np.newaxis]  # uncorrelated but dependent
    assert distance_correlation(x, x**2) > 0.2


def test_too_few_and_constant_cases(rng):
    x, y = rng.normal(size=(8, 2)), rng.normal(size=(8, 1))
    assert np.isnan(distance_correlation(x[:3], y[:3]))
    assert np.isfinite(distance_correlation(x[:4], y[:4]))
    assert np.isnan(distance_correlation(x[:0], y[:0]))
    for fixed in (np.full((8, 1), 0.1), 0.1 + np.eye(8)[:, :1], 1e9 + np.eye(8)[:, 2:3]):
        assert np.isnan(distance_correlation(x, fixed))
        assert np.isnan(distance_correlation(fixed, y))


def test_missing_cases_are_as_if_never_there(rng):
    x, y = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    x[2, 1], y[5, 0], y[7, 2] = np.nan, np.nan, -np.inf
    known = np.isfinite(x).all(1) & np.isfinite(y).all(1)
    assert distance_correlation(x, y) == distance_correlation(x[known], y[known])


def test_places_are_independent(rng, monkeypatch):
    x, y = rng.normal(size=(3, 9, 2)), rng.normal(size=(3, 9, 1))
    x[1], y[2, 3] = np.nan, np.nan
    found = distance_correlation(x, y)
    monkeypatch.setattr("xrecal.arrays.rows.WORKSPACE", 1)
    np.testing.assert_array_equal(distance_correlation(x, y), found)
    alone = [distance_correlation(*pair) for pair in zip(x, y, strict=True)]
    np.testing.assert_array_equal(found, alone)
    assert distance_correlation(x[:0], y[:0]).shape == (0,)


def test_errors():
    message = r"same cases, got \(4, 2\) and \(5, 1\)"
    with pytest.raises(ValueError, match=message):
        distance_correlation(np.zeros((4, 2)), np.zeros((5, 1)))
    with pytest.raises(ValueError, match=r"shapes \(..., n, p\) and \(..., n, q\)"):
        distance_correlation(np.zeros(4), np.zeros(4))
