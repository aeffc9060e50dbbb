import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from xrecal.arrays import normal_quantile
from xrecal.arrays.baselines.pit_recalibration import (
    SMALLEST_LEVEL,
    pit_values,
    recalibrated_members,
)
from xrecal.arrays.distributions.forms import Forecasts


def reference_pit(members, weights, y, u):
    """PIT of one weighted ensemble, from the formula."""
    keep = ~np.isnan(members)
    members, weights = members[keep], weights[keep] / weights[keep].sum()
    below, at = weights[members < y].sum(), weights[members <= y].sum()
    return below + u * (at - below)


def reference_quantile(members, weights, level):
    """Smallest member z of positive weight with F(z) at least the level."""
    keep = ~np.isnan(members) & (weights > 0)
    members, weights = members[keep], weights[keep] / weights[keep].sum()
    for z in np.sort(members):
        if weights[members <= z].sum() >= level - 1e-12:
            return z
    return members.max()


@st.composite
def ensembles(draw, n_levels=4):
    """Members (1, n, m) with ties and gaps, weights, and numbers in (0, 1) for each case."""
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    half_integers = st.integers(-4, 4).map(lambda v: v / 2)
    members = draw(arrays(np.float64, (1, n, m), elements=half_integers | st.just(np.nan)))
    members[..., 0] = np.nan_to_num(members[..., 0])
    weights = draw(arrays(np.float64, (1, n, m), elements=st.integers(1, 4).map(float)))
    y = draw(arrays(np.float64, (1, n), elements=half_integers))
    u = draw(arrays(np.float64, (1, n), elements=st.floats(0.01, 0.99)))
    return members, weights, y, u


def normals(rng, shape, k=1):
    loc = rng.normal(size=(*shape, k))
    return loc, 0.5 + rng.random(loc.shape), 0.2 + rng.random(loc.shape)


# probability integral transform ------------------------------------------------------------------


@given(ensembles())
def test_pit_of_weighted_ensembles_is_the_formula(case):
    members, weights, y, u = case
    found = pit_values(Forecasts(members, None, weights), y, u)
    for i in range(y.shape[1]):
        expected = reference_pit(members[0, i], weights[0, i], y[0, i], u[0, i])
        assert found[0, i] == pytest.approx(expected, abs=1e-14)
    equal = pit_values(Forecasts(members), y, u)
    np.testing.assert_array_equal(
        equal, pit_values(Forecasts(members, None, 0 * weights + 1), y, u)
    )


def test_pit_of_normal_distributions_is_the_cdf(rng):
    loc, scale, weights = normals(rng, (3, 20), 4)
    y, u = rng.normal(size=(3, 20)), rng.random((3, 20))
    expected = np.average(stats.norm.cdf(y[..., None], loc, scale), axis=-1, weights=weights)
    np.testing.assert_allclose(
        pit_values(Forecasts(loc, scale, weights), y, u), expected, rtol=1e-13
    )
    single = Forecasts(loc[..., :1], scale[..., :1])
    expected = stats.norm.cdf(y, loc[..., 0], scale[..., 0])
    np.testing.assert_allclose(pit_values(single, y, u), expected, rtol=1e-13)


@given(ensembles())
def test_pit_of_point_masses_is_that_of_the_ensemble(case):
    members, weights, y, u = case
    expected = pit_values(Forecasts(members, None, weights), y, u)
    found = pit_values(Forecasts(members, np.zeros_like(members), weights), y, u)
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_pit_is_missing_where_something_is(rng):
    loc, scale, weights = normals(rng, (1, 8), 3)
    y, u = rng.normal(size=(1, 8)), rng.random((1, 8))
    complete = pit_values(Forecasts(loc[..., 1:], scale[..., 1:], weights[..., 1:]), y, u)
    loc[0, 0, 0] = weights[0, 1, 0] = np.nan
    weights[0, 2, 0] = 0
    loc[0, 3], loc[0, 4, 0], weights[0, 5, 0], y[0, 6], y[0, 7] = np.nan, np.inf, -1, np.nan, np.inf
    for forecasts in (Forecasts(loc, None, weights), Forecasts(loc, scale, weights)):
        found = pit_values(forecasts, y, u)
        assert np.isfinite(found[0, :3]).all()
        assert np.isnan(found[0, 3:]).all()
    np.testing.assert_allclose(found[0, :3], complete[0, :3], rtol=1e-14)


# recalibrated members ----------------------------------------------------------------------------


@given(
    ensembles(), st.lists(st.floats(0, 1) | st.sampled_from([0.25, 0.5]), min_size=1, max_size=5)
)
def test_members_of_ensembles_are_quantiles(case, levels):
    members, weights, _, _ = case
    found = recalibrated_members(Forecasts(members, None, weights), np.array([levels]))
    assert found.shape == (1, members.shape[1], len(levels))
    for i in range(members.shape[1]):
        expected = [reference_quantile(members[0, i], weights[0, i], level) for level in levels]
        np.testing.assert_array_equal(found[0, i], expected)


def test_members_of_normal_distributions_are_quantiles(rng):
    levels = rng.random((2, 30))
    levels[0, 3] = np.nan
    for k in (1, 3):
        loc, scale, weights = normals(rng, (2, 6), k)
        found = recalibrated_members(Forecasts(loc, scale, weights), levels)
        assert np.isnan(found[0, :, 3]).all()
        for i in range(2):
            expected = normal_quantile(np.nan_to_num(levels[i]), loc[i], scale[i], weights[i])
            known = ~np.isnan(levels[i])
            np.testing.assert_array_equal(found[i][:, known], expected[:, known])
    unweighted = recalibrated_members(Forecasts(loc[..., :1], scale[..., :1]), levels)
    z = stats.norm.ppf(levels[:, np.newaxis])
    np.testing.assert_allclose(unweighted, loc[..., :1] + scale[..., :1] * z, rtol=1e-12)


def test_levels_at_the_ends_stay_finite():
    forecasts = Forecasts(np.full((1, 1, 1), 10.0), np.full((1, 1, 1), 2.0))
    found = recalibrated_members(forecasts, np.array([[0.0, 1.0, 1e-300, SMALLEST_LEVEL]]))
    np.testing.assert_allclose((found - 10) / 2, [[[-8.21, 8.21, -8.21, -8.21]]], atol=0.01)
    members = Forecasts(np.array([[[3.0, 1.0, np.nan, 2.0]]]))
    found = recalibrated_members(members, np.array([[0.0, 1.0]]))
    np.testing.assert_array_equal(found, [[[1, 3]]])


@given(ensembles())
def test_observations_are_their_own_quantiles(case):
    members, weights, _, u = case
    forecasts = Forecasts(members, None, weights)
    y = members[..., 0]
    levels = pit_values(forecasts, y, u)
    for i in range(y.shape[1]):
        found = recalibrated_members(forecasts, levels)[0, i, i]
        assert found == y[0, i]


def test_members_are_missing_where_the_forecast_is(rng):
    loc, scale, weights = normals(rng, (1, 5), 3)
    loc[0, 0], loc[0, 1, 0], weights[0, 2, 0], weights[0, 3, 0] = np.nan, np.inf, -1, np.nan
    levels = np.array([[0.2, 0.9]])
    for forecasts in (Forecasts(loc, None, weights), Forecasts(loc, scale, weights)):
        found = recalibrated_members(forecasts, levels)
        assert np.isnan(found[0, :3]).all()
        assert np.isfinite(found[0, 3:]).all()
    scale[0, 4, 1] = -1
    assert np.isnan(recalibrated_members(Forecasts(loc, scale), levels)[0, 4]).all()
    unknown = recalibrated_members(Forecasts(loc), np.full((1, 4), np.nan))
    assert unknown.shape == (1, 5, 4)
    assert np.isnan(unknown).all()
    single = recalibrated_members(Forecasts(loc.astype(np.float32)), levels)
    assert single.dtype == np.float32


# errors ------------------------------------------------------------------------------------------


def test_errors():
    forecasts = Forecasts(np.zeros((2, 5, 3)))
    with pytest.raises(ValueError, match=r"levels must have shape \(2, n\), got \(3, 4\)"):
        recalibrated_members(forecasts, np.zeros((3, 4)))
    for level in (-0.1, 1.1, np.inf):
        with pytest.raises(ValueError, match="levels must lie between 0 and 1, or be NaN"):
            recalibrated_members(forecasts, np.full((2, 4), level))
