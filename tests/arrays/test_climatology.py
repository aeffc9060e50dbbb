import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import climatology_weights

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
    weights = climatology_weights(
        observations, new_season.size, window=window, season=season, new_season=new_season
    )
    expected = reference(observations, new_season.size, window, season, new_season)
    np.testing.assert_allclose(weights, expected)
    used = ~np.isnan(weights).any(-1)
    np.testing.assert_allclose(weights[used].sum(-1), 1.0)
    if window > YEAR:  # the whole year is climatology without a window
        np.testing.assert_allclose(weights, climatology_weights(observations, new_season.size))


def test_new_year_is_near_the_old_one():
    season = np.array([364.0, 2.0, 182.0]) / YEAR
    weights = climatology_weights(
        np.zeros((1, 3)), 2, window=10.0, season=season, new_season=np.array([0.0, 0.25])
    )
    np.testing.assert_array_equal(weights[0, 0], [0.5, 0.5, 0])
    assert np.isnan(weights[0, 1]).all()


def test_inputs_stay_unchanged_and_float32_works():
    observations, season = np.array([[1.0, np.nan, 3.0]]), np.array([0.1, 0.2, 0.9])
    for array in (observations, season):
        array.flags.writeable = False
    dates = {"window": 100.0, "season": season, "new_season": season}
    expected = climatology_weights(observations, 3, **dates)
    found = climatology_weights(observations.astype(np.float32), 3, **dates)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float64


def test_errors():
    for dates in ({}, {"season": np.zeros(2)}, {"new_season": np.zeros(1)}):
        with pytest.raises(ValueError, match="a window needs season and new_season, the dates"):
            climatology_weights(np.zeros((1, 2)), 1, window=30.0, **dates)
