import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays import Forecasts, Settings, ckme_weights, fit_ckme
from xrecal.arrays.ckme.centre import (
    Limits,
    Sample,
    error_of,
    fill_members,
    inside,
    rank_errors,
)
from xrecal.arrays.ckme.folds import arrange_folds

from .test_folds import folded_cases

SUPPORTS = ("mean", "regression", "standardised", "ratio")


def members(centre, spread, error, low, high, first, last):
    points = np.empty(error.size)
    fill_members(centre, spread, error, Limits(low, high, first, last), points)
    return points


def test_errors_are_infinite_on_bounds_alone():
    assert error_of(3.0, 1.0, 4.0, 0.0, 9.0) == 0.5
    assert error_of(0.0, 1.0, 4.0, 0.0, np.inf) == -np.inf
    assert error_of(9.0, 1.0, 4.0, -np.inf, 9.0) == np.inf
    assert error_of(0.0, 1.0, 4.0, -np.inf, np.inf) == -0.25


def test_the_inner_range_is_that_of_the_observations_between_bounds():
    y = np.array([0.0, 0.3, 5.0, 0.2, 9.0])
    assert inside(y, 0.0, 9.0) == (0.2, 5.0)
    assert inside(y, 0.0, np.inf) == (0.2, np.inf)
    assert inside(y, -np.inf, 9.0) == (-np.inf, 5.0)
    assert inside(y, -np.inf, np.inf) == (-np.inf, np.inf)
    assert inside(np.zeros(3), 0.0, np.inf) == (0.0, np.inf)  # none between


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=12),
    st.floats(-5, 15),
    st.floats(0.1, 3),
    st.sampled_from([(0.0, np.inf), (0.0, 10.0), (-np.inf, 10.0), (-np.inf, np.inf)]),
)
def test_members_of_errors(observed, centre, spread, bounds):
    y = np.array(observed)
    first, last = inside(y, *bounds)
    error = np.sort([error_of(v, 2.0, 1.5, *bounds) for v in y])
    found = members(centre, spread, error, *bounds, first, last)
    on_bound = np.isin(y, bounds)
    assert (np.diff(found) >= 0).all()
    assert (found >= bounds[0]).all()
    assert (found <= bounds[1]).all()
    within = np.clip(centre + spread * (y[~on_bound] - 2.0) / 1.5, first, last)
    expected = np.sort(np.concatenate([y[on_bound], within]))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("support", SUPPORTS)
def test_the_probability_of_a_dry_day_is_that_of_the_dry_cases(support, rng):
    """Neither drizzle from dry days, nor dry days from drizzle."""
    wet = rng.gamma(1.0, 3.0, size=(1, 150))
    x = np.maximum(wet[..., np.newaxis] + rng.normal(size=(1, 150, 8)), 0)
    y = np.where(wet + rng.normal(size=wet.shape) > 2, np.round(wet, 1), 0.0)
    fitted = fit_ckme(Forecasts(x), y, Settings(supports=(support,), ridge=0.01))
    assert fitted.lower == 0
    new = np.maximum(rng.gamma(1.0, 3.0, size=(1, 40, 1)) + rng.normal(size=(1, 40, 8)), 0)
    points, weights = ckme_weights(Forecasts(new), Forecasts(x), y, fitted, own_members=True)
    dry = (weights * (points == 0)).sum(-1)
    np.testing.assert_allclose(dry, (weights * (y[:, np.newaxis] == 0)).sum(-1), atol=1e-12)
    assert points[points > 0].min() >= y[y > 0].min()


@given(folded_cases(), st.integers(0, 3), st.booleans(), st.data())
def test_training_cases_are_ranked_by_their_errors(cases, gap, forward, data):
    """Those on a bound first, those without an error last, and none that are not trained on."""
    folds = arrange_folds(*cases, gap, forward)
    n = folds.cases.shape[1]
    value = st.sampled_from([0.0, 0.5, 0.5, 2.0, np.nan])
    target = np.array(data.draw(st.lists(value, min_size=n, max_size=n)))
    none = np.zeros(n)
    sample = Sample(none, none, np.zeros((n, 0)), target, 0.0, np.inf)
    found = rank_errors(folds, np.array([0]), sample)
    for f, n_out in enumerate(folds.n_out):
        train = folds.cases[f, n_out:]
        error = np.where(target[train] <= 0, -np.inf, target[train])
        order = np.argsort(error, kind="stable")
        np.testing.assert_array_equal(found.ranked[f, 0, : train.size], train[order])
        np.testing.assert_array_equal(found.error[f, 0, : train.size], error[order])
        assert np.isnan(found.error[f, 0, train.size :]).all()
