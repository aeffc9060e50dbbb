import numpy as np
import pytest

from xrecal.arrays import Forecasts
from xrecal.arrays.baselines import pit_recalibration as pit
from xrecal.arrays.ckme import held_out_losses as losses
from xrecal.arrays.ckme.location import median_gap
from xrecal.arrays.device import scores as batched
from xrecal.arrays.device.kernel import median_gaps
from xrecal.arrays.device.scores import pit_values
from xrecal.arrays.scores import crps as scores
from xrecal.arrays.scores.significance import mean_of_cases

from .test_weighted import given, own, plain, shared


@pytest.mark.parametrize("make", [plain, own, shared])
def test_scores_are_those_of_the_host(library, rng, make):
    members, weights = make(rng)
    observed = rng.normal(size=members.shape[:-1] if make is not shared else weights.shape[:-1])
    observed[0, 1] = np.nan
    found = batched.crps(library(observed), *given(library, (members, weights)))
    expected = scores.crps(observed, members, weights)
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)


def test_infinite_members_that_count_have_no_score(library, rng):
    members, weights = rng.normal(size=(2, 3, 5)), rng.random((2, 3, 5))
    members[0, 0, 1], members[0, 1, 2] = np.inf, -np.inf
    weights[0, 1, 2] = 0.0
    observed = rng.normal(size=(2, 3))
    found = batched.crps(*map(library, (observed, members, weights)))
    np.testing.assert_allclose(
        library.host(found), scores.crps(observed, members, weights), atol=1e-14
    )
    assert np.isnan(library.host(found)[0, 0])


def test_what_does_not_fit_is_refused(library):
    members = library(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="weights must not be negative"):
        batched.crps(library(np.zeros(2)), members, library(np.full((2, 3), -1.0)))
    with pytest.raises(ValueError, match=r"observations have shape \(3,\), but the forecasts need"):
        batched.crps(library(np.zeros(3)), members)


def test_means_are_those_of_the_host(library, rng):
    given = rng.normal(size=(3, 7))
    given[0, 2], given[1] = np.nan, np.nan
    found = library.host(batched.mean_of_cases(library(given)))
    np.testing.assert_allclose(found, mean_of_cases(given), rtol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_transforms_are_those_of_the_host(library, rng, weighted):
    members, weights = own(rng)
    weights[0, 1, 2] = -1.0
    members[2, 0, 0] = np.inf
    forecasts = Forecasts(members, None, weights if weighted else None)
    observed, uniform = rng.normal(size=(3, 4)).round(1), rng.random((3, 4))
    observed[0, 1], observed[1, 0], uniform[2, 1] = np.nan, np.inf, np.nan
    found = pit_values(library.tuple(forecasts), library(observed), library(uniform))
    expected = pit.pit_values(forecasts, observed, uniform)
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)


def test_transforms_of_what_does_not_fit_are_refused(library):
    one = library(np.zeros((1, 2, 3)))
    two = library(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"uniform have shape \(2, 1\), but forecasts need"):
        pit_values(Forecasts(one), two, library(np.zeros((2, 1))))
    with pytest.raises(TypeError, match="of normal distributions has no implementation"):
        pit_values(Forecasts(one, one), two, two)


@pytest.fixture
def forecast(rng):
    points, weights = np.sort(rng.normal(size=(6, 33)), axis=-1), rng.random((6, 33))
    return weights / weights.sum(-1, keepdims=True), points, rng.normal(size=6), rng.random(6)


@pytest.mark.parametrize("name", ["crps", "laplace"])
def test_losses_are_those_of_the_host(library, forecast, name):
    weights, points, y, theta = forecast
    expected = np.empty((6, 1))
    for i in range(6):
        losses.LOSSES[name](
            weights[i], points[i], theta[i, np.newaxis, np.newaxis], y[i], expected[i]
        )
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
    found = library.host(median_gaps(library(target)))
    assert found.tolist() == [median_gap(row) for row in target]


def test_constant_targets_have_scale_one(library):
    assert library.host(median_gaps(library(np.zeros((1, 9))))).tolist() == [1.0]
