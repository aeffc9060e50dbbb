from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.stats import energy_distance, norm

from xrecal.arrays import (
    crps,
    decompose,
    half_squared_distance,
    normal_squared_energy_distance,
    standard_error,
)
from xrecal.arrays.distributions.forms import Censored, Empirical, Normal

INF = np.inf
value = st.integers(-20, 20).map(lambda v: v / 4)
mass = st.sampled_from([0.0, 0.3, 1.0, 2.5])


@st.composite
def ensembles(draw, t, shared):
    n = draw(st.integers(1, 6))
    members = draw(arrays(np.float64, (n,) if shared else (t, n), elements=value))
    weights = draw(arrays(np.float64, (t, n), elements=mass))
    weights[:, 0] += 0.5
    return Empirical(members, weights)


@st.composite
def pairs(draw):
    t = draw(st.integers(1, 4))
    return [draw(ensembles(t, draw(st.booleans()))) for _ in range(2)]


def each(ensemble):
    """Members and weights of each forecast."""
    for t, w in enumerate(ensemble.weights):
        yield (ensemble.members if ensemble.members.ndim == 1 else ensemble.members[t]), w


# distance of pairs -------------------------------------------------------------------------------


@given(pairs())
def test_ensembles_equal_scipy(pair):
    q, r = pair
    expected = [
        energy_distance(x, z, v, w) ** 2 / 2
        for (x, v), (z, w) in zip(each(q), each(r), strict=True)
    ]
    found = half_squared_distance(q, r)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found >= 0).all()
    np.testing.assert_allclose(half_squared_distance(r, q), found, atol=1e-13)
    np.testing.assert_allclose(half_squared_distance(q, q), 0.0, atol=1e-15)


@given(pairs(), st.floats(-50, 50), st.floats(-20, 20))
def test_laws(pair, shift, factor):
    q, r = pair
    found = half_squared_distance(q, r)
    moved = [Empirical(factor * e.members + shift, 7 * e.weights) for e in pair]
    np.testing.assert_allclose(half_squared_distance(*moved), abs(factor) * found, atol=1e-11)
    # Propriety, in numbers: the expected score of Q under R is that of R and the distance.
    for t, (z, w) in enumerate(each(r)):
        x, v = list(each(q))[t]
        scores = [
            crps(z, np.tile(e, (z.size, 1)), np.tile(u, (z.size, 1))) for e, u in ((x, v), (z, w))
        ]
        assert w / w.sum() @ (scores[0] - scores[1]) == pytest.approx(found[t], abs=1e-12)


@pytest.mark.parametrize("workspace", [64_000_000, 1])
def test_shared_members_over_locations(rng, monkeypatch, workspace):
    monkeypatch.setattr("xrecal.arrays.rows.WORKSPACE", workspace)
    q = Empirical(rng.normal(size=(2, 3, 4)))
    r = Empirical(rng.normal(size=(2, 9)), rng.gamma(1, size=(2, 3, 9)))
    own = Empirical(np.repeat(r.members[:, np.newaxis], 3, axis=1), r.weights)
    found = half_squared_distance(q, r)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found, half_squared_distance(q, own), atol=1e-14)
    np.testing.assert_allclose(half_squared_distance(own, r), 0.0, atol=1e-15)


def integrated(distribution_function, z, w):
    """Squared difference of distribution functions, between members and bounds."""

    def difference(t):
        return (distribution_function(t) - w[z <= t].sum() / w.sum()) ** 2

    knots = np.unique([*z, -60.0, -12.0, -3.0, -0.5, 0.0, 0.75, 3.0, 12.0, 60.0])
    return sum(quad(difference, a + 1e-12, b - 1e-12)[0] for a, b in pairwise(knots))


@pytest.mark.parametrize("shared", [False, True])
def test_normals_from_the_definition(rng, shared):
    z, w = rng.normal(size=(3, 5)), rng.gamma(1, size=(3, 5))
    w[:, 2] = 0.0
    loc, scale, weights = rng.normal(size=(3, 2)), rng.gamma(2, size=(3, 2)), [0.3, 0.6]
    q = Normal(loc, scale, np.array(weights))
    r = Empirical(z[0] if shared else z, w)
    found = half_squared_distance(q, r)
    for t, (points, masses) in enumerate(each(r)):

        def mixture(x, t=t):
            return norm.cdf(x, loc[t], scale[t]) @ weights / 0.9

        expected = integrated(mixture, points, masses)
        assert found[t] == pytest.approx(expected, abs=1e-7)
    points = z[:1].repeat(3, 0) if shared else z
    expected = normal_squared_energy_distance(
        loc, scale, points, 0 * points, x_weights=np.tile(weights, (3, 1)), y_weights=w
    )
    np.testing.assert_allclose(found, np.diag(expected) / 2, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("lower", "upper"), [(-INF, INF), (0.0, INF), (-0.5, 0.75)])
def test_censored_from_the_definition(rng, monkeypatch, lower, upper, shared):
    monkeypatch.setattr("xrecal.arrays.rows.WORKSPACE", 1)  # one case at a time
    z, w = np.clip(rng.normal(size=(4, 6)), lower, upper), rng.gamma(1, size=(4, 6))
    z[:, 3], w[:, 4] = np.nan, 0.0
    loc, scale = rng.normal(size=(4, 1)), rng.gamma(2, size=(4, 1))
    r = Empirical(z[0] if shared else z, w)
    found = half_squared_distance(Censored(loc, scale, np.array(lower), np.array([upper])), r)
    for t, (points, masses) in enumerate(each(r)):

        def censored(x, t=t):
            return 0.0 if x < lower else 1.0 if x >= upper else norm.cdf(x, loc[t, 0], scale[t, 0])

        known = ~np.isnan(points)
        expected = integrated(censored, points[known], masses[known])
        assert found[t] == pytest.approx(expected, abs=1e-7)


def test_missing_values(rng):
    z, w = rng.normal(size=(7, 3)), np.ones((7, 3))
    x, v = rng.normal(size=(7, 4)), np.ones((7, 4))
    z[0], w[1], x[2], v[3] = np.nan, 0.0, np.nan, np.nan
    z[4, 0], x[5, 0] = INF, -INF
    z[6, 0], w[6, 0], x[6, 1], v[6, 1] = np.nan, np.nan, INF, 0.0
    r = Empirical(z, w)
    missing = [True] * 6 + [False]
    found = half_squared_distance(Empirical(x, v), r)
    np.testing.assert_array_equal(np.isnan(found), missing)
    expected = energy_distance(x[6, [0, 2, 3]], z[6, 1:]) ** 2 / 2
    assert found[6] == pytest.approx(expected)
    loc = np.where(np.arange(7) == 2, np.nan, 0.0)[:, np.newaxis]
    for q in (Normal(loc, 1 + 0 * loc), Censored(loc, 1 + 0 * loc, np.array(0.0), np.array(INF))):
        found = half_squared_distance(q, r)
        np.testing.assert_array_equal(np.isnan(found), [True] * 3 + [False, True, False, False])
    assert half_squared_distance(Empirical(x[:0]), Empirical(z[:0])).shape == (0,)
    assert np.isnan(half_squared_distance(Empirical(x[:, :0]), r)).all()


def test_errors_of_distances():
    q = Empirical(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="weights must not be negative, found one in r"):
        half_squared_distance(q, Empirical(q.members, -np.ones((3, 2))))
    with pytest.raises(ValueError, match="weights must not be negative, found one in q"):
        half_squared_distance(Empirical(q.members, -np.ones((3, 2))), q)
    with pytest.raises(TypeError, match="q is a ndarray; give Empirical, Normal or Censored"):
        half_squared_distance(q.members, q)


# decomposition -----------------------------------------------------------------------------------


def test_parts_and_their_errors(rng):
    q, r, d = rng.gamma(2, size=(3, 2, 50))
    q[0, 3] = r[0, 5] = d[0, 8] = np.nan
    found = decompose(q, r, d)
    common = np.delete(np.arange(50), [3, 5, 8])
    error = (d + q - r)[0, common] / 2
    assert found.calibration_error[0] == pytest.approx(error.mean())
    assert found.calibration_error_standard_error[0] == pytest.approx(float(standard_error(error)))
    rest = q[0, common] - error
    assert found.rest[0] == pytest.approx(rest.mean())
    assert found.rest_standard_error[0] == pytest.approx(float(standard_error(rest)))
    assert found.score[0] == pytest.approx(q[0, common].mean())
    np.testing.assert_allclose(found.calibration_error + found.rest, found.score)


def test_few_cases():
    none = decompose(np.full(4, np.nan), np.ones(4), np.ones(4))
    assert np.isnan(none).all()
    two = decompose(np.ones(2), np.zeros(2), np.ones(2))
    assert (two.calibration_error, two.rest, two.score) == (1.0, 0.0, 1.0)
    assert np.isnan(two.rest_standard_error)


def test_finds_a_known_calibration_error(rng):
    """Normal forecasts, too low by one, with the true law as recalibrated forecast."""
    n = 4000
    signal = rng.normal(size=(n, 1))
    y = signal[:, 0] + rng.normal(size=n)
    q, truth = Normal(signal - 1.0, np.ones((n, 1))), Normal(signal, np.ones((n, 1)))
    r = Empirical(truth.quantile((np.arange(100) + 0.5) / 100))
    found = decompose(q.crps(y), r.crps(y), half_squared_distance(q, r))
    expected = quad(lambda z: (norm.cdf(z) - norm.cdf(z + 1)) ** 2, -9, 9)[0]
    error = found.calibration_error_standard_error
    assert found.calibration_error == pytest.approx(expected, abs=4 * error)
    assert error < 0.02 * expected + 0.01
    assert found.rest == pytest.approx(1 / np.sqrt(np.pi), abs=4 * found.rest_standard_error)
