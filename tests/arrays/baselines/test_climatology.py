import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.arrays.ckme.reference import joint_weights_of_features
from xrecal.arrays import (
    climatology_quantiles,
    climatology_weights,
    features,
    in_window,
    weighted_quantile,
)

YEAR = 365.25

fractions = arrays(
    np.float64, st.integers(1, 12), elements=st.integers(0, 364).map(lambda d: d / 365)
)


def reference(observations, n_new, window=None, season=None, new_season=None):
    weights = np.full((len(observations), n_new, observations.shape[1]), np.nan)
    for place, y in enumerate(observations):
        for t in range(n_new):
            counted = np.isfinite(y)
            if window is not None:
                angle = 2 * np.pi * (season - new_season[t])
                days = YEAR * np.abs(np.angle(np.exp(1j * angle))) / (2 * np.pi)
                counted &= days <= window / 2
            if counted.any():
                weights[place, t] = counted / counted.sum()
    return weights


def windowed(observations, window, season, new_season):
    n_locations = len(observations)
    return in_window(
        climatology_weights(observations, new_season.size),
        np.broadcast_to(season, (n_locations, season.size)),
        np.broadcast_to(new_season, (n_locations, new_season.size)),
        window,
    )


def test_all_known_observations_count_equally(rng):
    observations = rng.normal(size=(3, 6))
    observations[0, 2], observations[1, 4], observations[2] = np.nan, np.inf, np.nan
    weights = climatology_weights(observations, 4)
    assert weights.shape == (3, 4, 6)
    np.testing.assert_array_equal(weights, reference(observations, 4))
    np.testing.assert_allclose(weights[0, 0], np.array([1, 1, 0, 1, 1, 1]) / 5)
    assert np.isnan(weights[2]).all()


@given(fractions, fractions, st.sampled_from([0.5, 10.5, 61.3, 200.7, 366.0]))
def test_window_is_centred_on_the_date_and_wraps_around_the_year(season, new_season, window):
    observations = np.where(np.arange(2 * season.size) % 5 == 3, np.nan, 1.0).reshape(2, -1)
    weights = windowed(observations, window, season, new_season)
    expected = reference(observations, new_season.size, window, season, new_season)
    np.testing.assert_allclose(weights, expected)
    used = ~np.isnan(weights).any(-1)
    np.testing.assert_allclose(weights[used].sum(-1), 1.0)
    if window > YEAR:  # the whole year is climatology without a window
        np.testing.assert_allclose(weights, climatology_weights(observations, new_season.size))


def test_a_window_keeps_the_ratios_of_the_weights_inside():
    season = np.array([[0.1, 0.11, 0.12, 0.6]])
    before = np.array([[[0.1, 0.2, 0.3, 0.4]]])
    found = in_window(before, season, np.array([[0.11]]), 30.0)
    np.testing.assert_allclose(found, np.array([[[1, 2, 3, 0]]]) / 6)


# covariates --------------------------------------------------------------------------------------


def make_features(rng, n_locations, n, n_new, periods=(None, 12.0)):
    size = len(periods)
    cases, new = (rng.normal(size=(n_locations, k, size)) for k in (n, n_new))
    return features(cases, periods), features(new, periods)


def test_observations_count_by_the_kernel_of_covariates(rng):
    observations = rng.normal(size=(2, 9))
    observations[0, 3] = np.nan
    of, new = make_features(rng, 2, 9, 4)
    weights = climatology_weights(observations, 4, features=of, new_features=new)
    for cell in range(2):
        used = np.isfinite(observations[cell])
        precision = joint_weights_of_features(of.values[cell, used], of.circular)
        np.testing.assert_array_equal(weights[cell][:, ~used], 0)
        for t in range(4):
            apart = (of.values[cell, used] - new.values[cell, t]) ** 2
            expected = np.exp(-apart @ precision)
            np.testing.assert_allclose(weights[cell, t, used], expected / expected.sum())
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_far_from_all_cases_the_nearest_count(rng):
    of, _ = make_features(rng, 1, 9, 1, (None,))
    far = features(np.full((1, 1, 1), 1e6), (None,))
    weights = climatology_weights(rng.normal(size=(1, 9)), 1, features=of, new_features=far)
    assert weights[0, 0, of.values[0, :, 0].argmax()] == pytest.approx(1)


def test_a_constant_covariate_changes_nothing(rng):
    observations = rng.normal(size=(1, 9))
    of, new = features(np.full((1, 9, 1), 3.0), (None,)), features(np.ones((1, 2, 1)), (None,))
    weights = climatology_weights(observations, 2, features=of, new_features=new)
    np.testing.assert_allclose(weights, 1 / 9)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("period", [None, 12.0])
def test_a_forecast_without_a_covariate_gets_nan(rng, value, period):
    of, _ = make_features(rng, 1, 9, 1, (period,))
    new = features(np.array([[[0.2], [value]]]), (period,))
    weights = climatology_weights(rng.normal(size=(1, 9)), 2, features=of, new_features=new)
    np.testing.assert_array_equal(np.isnan(weights[0]).all(-1), [False, True])


# quantiles ----------------------------------------------------------------------------------------


def test_quantiles_are_those_of_the_known_observations():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(2, 3, 30))
    y[0, 0, :10] = np.nan
    y[1, 2] = np.nan
    found = climatology_quantiles(y, np.array([0.8, 1 / 3]))
    assert found.shape == (2, 3, 2)
    for place in np.ndindex(2, 3):
        known = y[place][~np.isnan(y[place])]
        if known.size:
            expected = np.quantile(known, [0.8, 1 / 3], method="inverted_cdf")
            np.testing.assert_array_equal(found[place], expected)
        else:
            assert np.isnan(found[place]).all()


def test_quantiles_in_a_window_around_each_date():
    rng = np.random.default_rng(2)
    y, season = rng.normal(size=(4, 40)), rng.uniform(size=40)
    dates = np.array([0.01, 0.5, 0.98])
    options = {"season": season, "new_season": dates, "window": 60.0}
    found = climatology_quantiles(y, np.array([0.25, 0.5]), **options)
    equal = np.full((4, 3, 40), 1 / 40)
    whole = np.broadcast_to(season, (4, 40)), np.broadcast_to(dates, (4, 3))
    weights = in_window(equal, *whole, 60.0)
    assert 0 < (weights[0, 0] > 0).sum() < 40
    expected = weighted_quantile(y, np.array([0.25, 0.5]), weights)
    np.testing.assert_array_equal(found, expected)


def test_no_observation_in_the_window():
    y, season = np.ones((1, 3)), np.array([0.1, 0.11, 0.12])
    options = {"season": season, "new_season": np.array([0.11, 0.6]), "window": 10.0}
    found = climatology_quantiles(y, np.array([0.5]), **options)
    np.testing.assert_array_equal(found, [[[1.0], [np.nan]]])
