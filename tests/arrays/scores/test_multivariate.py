import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.rules import scoringrules
from xrecal.arrays import energy_score, variogram_score

SCORES = {"energy": energy_score, "variogram": variogram_score}


@pytest.fixture
def fields(rng):
    """Observations (..., d), members (..., d, m) and weights."""
    return rng.normal(size=(6, 4)), rng.normal(size=(6, 4, 5)), rng.random((6, 5))


def slow_energy(y, x, w):
    return w @ cdist(x.T, y[np.newaxis])[:, 0] - w @ cdist(x.T, x.T) @ w / 2


def slow_variogram(y, x, w, order):
    total = 0.0
    for i in range(y.size):
        for j in range(y.size):
            forecast = w @ abs(x[i] - x[j]) ** order
            total += (abs(y[i] - y[j]) ** order - forecast) ** 2
    return total


def test_equals_scoringrules(fields):
    y, x, _ = fields
    expected = scoringrules.es_ensemble(y, np.swapaxes(x, -1, -2))
    np.testing.assert_allclose(energy_score(y, x), expected, rtol=1e-12)
    for order in (0.5, 1.0, 2.0):
        expected = scoringrules.vs_ensemble(y, np.swapaxes(x, -1, -2), p=order)
        np.testing.assert_allclose(variogram_score(y, x, order=order), expected, rtol=1e-12)


def test_weighted_as_loops(fields):
    y, x, w = fields
    w[2, 1:] = 0
    shares = w / w.sum(-1, keepdims=True)
    expected = [slow_energy(*case) for case in zip(y, x, shares, strict=True)]
    np.testing.assert_allclose(energy_score(y, x, w), expected, rtol=1e-12)
    for order in (0.5, 1.3):
        expected = [slow_variogram(*case, order) for case in zip(y, x, shares, strict=True)]
        np.testing.assert_allclose(variogram_score(y, x, w, order=order), expected, rtol=1e-12)


def test_scale_and_shift(fields):
    y, x, _ = fields
    for score in SCORES.values():
        np.testing.assert_allclose(score(3 * y, 3 * x), 3 * score(y, x), rtol=1e-12)
    biased = variogram_score(y, x + 2)
    np.testing.assert_allclose(biased, variogram_score(y, x), rtol=1e-9)
    assert (energy_score(y, x + 9) > energy_score(y, x)).all()


@pytest.mark.parametrize("score", SCORES)
def test_missing_places_and_members_are_left_out(score, fields):
    y, x, w = fields
    expected = SCORES[score](y, x, w)
    gap = y.copy(), x.copy(), w.copy()
    gap[0][0, 1] = np.nan  # no observation
    gap[1][1, 2] = np.nan  # no member has the place
    gap[1][2, 0, 3] = np.nan  # one member has not
    gap[0][3], gap[1][4], gap[2][5, 0] = np.nan, np.nan, np.nan
    found = SCORES[score](*gap)
    some = [
        SCORES[score](np.delete(y[0], 1), np.delete(x[0], 1, 0), w[0]),
        SCORES[score](np.delete(y[1], 2), np.delete(x[1], 2, 0), w[1]),
        SCORES[score](y[2], np.delete(x[2], 3, -1), np.delete(w[2], 3)),
    ]
    np.testing.assert_array_equal(found[:3], some)
    np.testing.assert_array_equal(found[3:], np.nan)
    gap[2][5, 0] = -0.1
    assert np.isnan(SCORES[score](*gap)[5])
    assert (found[:3] != expected[:3]).all()


@pytest.mark.parametrize("score", SCORES)
def test_members_and_weights_broadcast(score, fields):
    y, x, w = fields
    every = SCORES[score](y, np.broadcast_to(x[0], x.shape), np.broadcast_to(w[0], w.shape))
    np.testing.assert_array_equal(SCORES[score](y, x[0], w[0]), every)
    assert SCORES[score](y[0], x[0]).shape == ()


def test_blocks_of_many_fields_are_those_of_each(rng):
    y, x = rng.normal(size=(40, 3000)), rng.normal(size=(40, 3000, 30))
    found = energy_score(y, x)
    np.testing.assert_array_equal(
        found[[0, 17, 39]], [energy_score(y[i], x[i]) for i in (0, 17, 39)]
    )


@pytest.mark.parametrize("score", SCORES)
def test_arguments_that_do_not_fit(score, fields):
    y, x, w = fields
    with pytest.raises(
        ValueError, match=r"observations \(\.\.\., d\) of shape \(6, 3\) do not fit"
    ):
        SCORES[score](y[:, :3], x)
    with pytest.raises(ValueError, match=r"members come last: use np.swapaxes\(members, -1, -2\)"):
        SCORES[score](y, np.swapaxes(x, -1, -2))
    with pytest.raises(ValueError, match=r"weights of shape \(6, 4\) do not fit 5 members"):
        SCORES[score](y, x, w[:, :4])
    for order in (0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="order must be a positive number, got"):
            variogram_score(y, x, order=order)
