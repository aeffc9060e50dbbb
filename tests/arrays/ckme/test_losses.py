import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import crps, weighted_quantile
from xrecal.arrays.ckme.held_out_losses import (
    crps_and_quantiles,
    crps_loss,
    laplace_loss,
)
from xrecal.arrays.ckme.location import median_gap
from xrecal.arrays.kernels.kernel import MEDIAN_CASES

from . import reference as ckme_reference


@st.composite
def forecasts(draw):
    """Weights that sum to one on ascending points with ties, and an observation."""
    n = draw(st.integers(1, 9))
    weights = draw(arrays(np.float64, n, elements=st.integers(0, 8).map(float)))
    weights[draw(st.integers(0, n - 1))] += 1
    points = np.sort(draw(arrays(np.float64, n, elements=st.integers(-9, 9).map(lambda v: v / 2))))
    return weights / weights.sum(), points, draw(st.integers(-12, 12)) / 2


def record(loss, weights, points, y, theta=1.0, size=1):
    out = np.full(size, np.nan)
    loss(weights, points, np.array([[theta]]), y, out)
    return out


@given(forecasts())
def test_crps_is_the_formula_and_that_of_the_scores(forecast):
    weights, points, y = forecast
    (found,) = record(crps_loss, weights, points, y)
    assert found == pytest.approx(ckme_reference.crps_loss(weights, points, y), abs=1e-12)
    assert found == pytest.approx(float(crps(y, points, weights)), abs=1e-12)


@given(forecasts(), st.sampled_from([0.1, 1.0, 7.0]))
def test_laplace_loss_is_the_quadratic_form(forecast, theta):
    weights, points, y = forecast
    (found,) = record(laplace_loss, weights, points, y, theta)
    assert found == pytest.approx(ckme_reference.laplace_loss(weights, points, y, theta), abs=1e-12)
    assert found >= -1e-12


@given(forecasts(), st.integers(1, 7))
def test_quantiles_are_those_of_the_weighted_ensemble(forecast, q):
    weights, points, y = forecast
    found = record(crps_and_quantiles, weights, points, y, size=1 + q)
    assert found[0] == record(crps_loss, weights, points, y)[0]
    levels = (np.arange(q) + 0.5) / q
    below = np.cumsum(weights)
    clear = np.abs(below[:, np.newaxis] - levels).min(0) > 1e-9  # no rounding at a step decides
    expected = weighted_quantile(points, levels, weights)
    np.testing.assert_array_equal(found[1:][clear], expected[clear])
    assert np.isin(found[1:], points).all()
    assert (np.diff(found[1:]) >= 0).all()


def test_weights_that_sum_to_a_little_less_than_one_still_have_all_quantiles():
    found = record(crps_and_quantiles, np.array([0.5, 0.4]), np.array([1.0, 2.0]), 1.5, size=6)
    np.testing.assert_array_equal(found[1:], [1, 1, 1, 2, 2])
    nothing = record(crps_and_quantiles, np.zeros(2), np.array([1.0, 2.0]), 1.5, size=3)
    np.testing.assert_array_equal(nothing[1:], 2)


def test_scale_from_many_cases_is_that_of_a_subset(rng):
    target = rng.normal(size=3 * MEDIAN_CASES)
    apart = np.abs(np.subtract.outer(target, target))
    assert median_gap(target) == pytest.approx(np.median(apart[apart > 0]), rel=0.1)
