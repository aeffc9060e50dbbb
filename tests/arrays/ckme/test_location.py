import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays.ckme.location import Cases, new_forecasts, ordered_cases
from xrecal.arrays.distributions.forms import Forecasts, moments
from xrecal.arrays.kernels.kernel import features, no_features
from xrecal.arrays.rows import WORKSPACE, location_blocks


def in_order(forecasts, y, covariates=None, step=None):
    """Cases in order, with weights that tell which case is which."""
    n_locations, n = y.shape
    covariates = no_features(n_locations, n) if covariates is None else covariates
    numbers = np.broadcast_to(np.arange(n), y.shape)
    cases = Cases(forecasts, y, covariates, 1.0 + numbers, step)
    return ordered_cases(cases, centred=True)


def test_usable_cases_come_first_in_the_order_of_time(rng):
    loc = rng.normal(size=(2, 6, 3)).astype(np.float32)
    scale, weights = np.abs(loc) + 1, rng.uniform(size=loc.shape).astype(np.float32)
    y = np.array([[3, 1, np.nan, 2, np.inf, 1], [6, 5, 4, 3, 2, 1]], np.float32)
    loc[1, 2] = np.nan  # no members
    loc[1, 4, 0] = -np.inf
    covariates = features(rng.normal(size=(2, 6, 2)), (None, 1.0))
    loc.flags.writeable = y.flags.writeable = False
    ordered, invalid = in_order(Forecasts(loc, scale, weights), y, covariates)
    np.testing.assert_array_equal(invalid, [True, True])
    np.testing.assert_array_equal(ordered.n_used, [4, 4])
    np.testing.assert_array_equal(ordered.slot[:, :4], [[0, 1, 3, 5], [0, 1, 3, 5]])
    np.testing.assert_array_equal(ordered.step, ordered.slot)
    np.testing.assert_array_equal(ordered.circular, covariates.circular)
    expected = moments(Forecasts(loc, scale, weights))
    for cell in range(2):
        assert sorted(ordered.slot[cell]) == list(range(6))
        slots = ordered.slot[cell, :4]
        np.testing.assert_array_equal(ordered.target[cell, :4], y[cell, slots])
        assert np.isnan(ordered.target[cell, 4:]).all()
        np.testing.assert_array_equal(ordered.weight[cell, :4], 1 + slots)
        for part, moment in zip((ordered.mean, ordered.variance), expected, strict=True):
            np.testing.assert_array_equal(part[cell, :4], moment[cell, slots])
        given_parts = (loc, scale, weights, covariates.values)
        for part, given_part in zip((*ordered[:3], ordered.features), given_parts, strict=True):
            assert part.dtype == np.float64
            assert part.flags.c_contiguous
            np.testing.assert_array_equal(part[cell, :4], given_part[cell, slots])
    plain, _ = in_order(Forecasts(loc), y)
    assert plain.scale is None
    assert (plain.weights == 1).all()
    assert plain.features.shape == (2, 6, 0)


def test_steps_go_with_their_cases(rng):
    y = rng.normal(size=(1, 6))
    y[0, 1] = np.nan
    ordered, _ = in_order(Forecasts(rng.normal(size=(1, 6, 3))), y, step=np.arange(6) // 2)
    np.testing.assert_array_equal(ordered.slot, [[0, 2, 3, 4, 5, 1]])
    np.testing.assert_array_equal(ordered.step, [[0, 1, 1, 2, 2, 0]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("period", [None, 2.0])
def test_cases_without_a_covariate_are_left_out(value, period, rng):
    covariates = rng.normal(size=(2, 6, 2))
    covariates[0, 3, 1] = value
    y = rng.normal(size=(2, 6))
    of = features(covariates, (None, period))
    ordered, _ = in_order(Forecasts(rng.normal(size=(2, 6, 3))), y, of)
    np.testing.assert_array_equal(ordered.n_used, [5, 6])
    np.testing.assert_array_equal(ordered.slot[0], [0, 1, 2, 4, 5, 3])


def valid(forecasts, covariates=None):
    shape = forecasts.loc.shape[:2]
    covariates = no_features(*shape) if covariates is None else covariates
    return new_forecasts(forecasts, covariates, centred=False)


def test_missing_and_invalid_forecasts_become_nan(rng):
    loc = rng.normal(size=(1, 4, 3)).astype(np.float32)
    loc[0, 1, 1] = np.inf
    loc[0, 2] = np.nan
    loc[0, 3, 0] = np.nan
    covariates = features(rng.normal(size=(1, 4, 2)), (None, None))
    found = valid(Forecasts(loc), covariates)
    assert found.scale is None
    assert (found.weights == 1).all()
    assert np.isnan(found.loc[0, 1:3]).all()
    np.testing.assert_array_equal(found.loc[0, [0, 3]], loc[0, [0, 3]])
    np.testing.assert_array_equal(found.mean, 0)
    np.testing.assert_array_equal(found.variance, 0)
    np.testing.assert_array_equal(found.features, covariates.values)
    bad_weights = np.ones_like(loc)
    bad_weights[0, 0, 0] = -1
    assert np.isnan(valid(Forecasts(loc, None, bad_weights)).loc[0, 0]).all()
    assert np.isnan(valid(Forecasts(loc, -np.ones_like(loc))).loc).all()


@given(st.integers(0, 50), st.integers(0, 2 * WORKSPACE))
def test_blocks_cover_all_locations_once(n_locations, bytes_each):
    numbers = np.arange(n_locations)
    blocks = [numbers[block] for block in location_blocks(n_locations, bytes_each)]
    np.testing.assert_array_equal(np.concatenate([*blocks, []]), numbers)
    assert all(block.size == 1 or block.size * bytes_each <= WORKSPACE for block in blocks)
