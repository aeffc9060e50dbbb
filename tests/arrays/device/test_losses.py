import numpy as np
import pytest

from xrecal.arrays.ckme import held_out_losses as losses
from xrecal.arrays.ckme.location import median_gap
from xrecal.arrays.device import losses as batched


@pytest.fixture
def forecast(rng):
    points, weights = np.sort(rng.normal(size=(6, 33)), axis=-1), rng.random((6, 33))
    return weights / weights.sum(-1, keepdims=True), points, rng.normal(size=6), rng.random(6)


@pytest.mark.parametrize("name", ["crps", "laplace"])
def test_losses_are_those_of_the_host(library, forecast, name):
    weights, points, y, theta = forecast
    expected = np.empty((6, 1))
    for i in range(6):
        losses.LOSSES[name](weights[i], points[i], theta[i], y[i], expected[i])
    found = library.host(batched.LOSSES[name](*map(library, (weights, points, y, theta))))
    np.testing.assert_allclose(found, expected[:, 0], atol=1e-14)


def test_laplace_loss_is_the_distance_in_the_space_of_the_kernel(forecast):
    weights, points, y, theta = forecast
    found = batched.laplace_loss(weights, points, y, theta)
    for i in range(6):
        among = np.exp(-np.abs(points[i, :, None] - points[i]) / theta[i])
        match = weights[i] @ np.exp(-np.abs(points[i] - y[i]) / theta[i])
        assert found[i] == pytest.approx(1.0 - 2.0 * match + weights[i] @ among @ weights[i])


def test_points_may_be_shared(library, forecast):
    weights, points, y, theta = forecast
    each = np.broadcast_to(points[:1], points.shape)
    for loss in batched.LOSSES.values():
        alone = loss(*map(library, (weights, np.array(each), y, theta)))
        together = loss(*map(library, (weights, points[:1], y, theta)))
        np.testing.assert_allclose(library.host(together), library.host(alone), rtol=1e-13)


@pytest.mark.parametrize("n", [2, 60, 450])
def test_scale_of_the_laplace_loss_is_that_of_the_host(library, rng, n):
    target = rng.normal(size=(2, n)).round(1)
    found = library.host(batched.median_gaps(library(target)))
    assert found.tolist() == [median_gap(row) for row in target]


def test_constant_targets_have_scale_one(library):
    assert library.host(batched.median_gaps(library(np.zeros((1, 9))))).tolist() == [1.0]
