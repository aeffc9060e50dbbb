"""What holds for the embedding whatever the cases are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xrecal.arrays import Forecasts, ckme_weights, features, fit_ckme, weighted_quantile
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.location import SMALLEST_WEIGHT

from .test_ckme import fixed, make_cases, same, weigh, with_covariates

ERRORS = ("mean", "regression", "ratio")
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
projections = st.sampled_from(["euclidean", "energy"])


def rain(rng, n_locations, n=40):
    """Ensembles and observations (L, n) that are zero about half of the time."""
    x, y = make_cases(rng, n_locations, n, missing=False)
    return np.maximum(x, 0), np.maximum(y, 0)


def fit_and_weigh(x, y, new, setting, of=None, new_of=None, **dates):
    fitted = fit_ckme(Forecasts(x), y, setting, features=of, **dates)
    dates.pop("half_life", None)
    return fitted, *ckme_weights(
        Forecasts(new),
        Forecasts(x),
        y,
        fitted,
        projection=setting.projection,
        features=of,
        new_features=new_of,
        own_members=True,
        **dates,
    )


# limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_wide_kernel_and_large_ridge_tend_to_climatology(rng, projection):
    x, y = make_cases(rng, 1, missing=False)
    for setting in (fixed(1, 1e9, 1.0), fixed(1, 1.0, 1e9), fixed(1, np.inf, 0.1)):
        weights = weigh(x, x, y, setting, projection=projection)
        np.testing.assert_allclose(weights, 1 / 40, atol=1e-8)


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_narrow_kernel_and_tiny_ridge_reproduce_the_own_observation(rng, projection):
    x, y = make_cases(rng, 1, missing=False)
    weights = weigh(x, x, y, fixed(1, 1e-3, 1e-12), projection=projection)
    np.testing.assert_allclose(weights[0], np.eye(40), atol=1e-8)


def test_a_large_ridge_and_a_half_life_leave_climatology_by_age(rng):
    x, y = make_cases(rng, 1, missing=False)
    days = 3.0 * np.arange(40)
    half = fixed(1, 1.0, 1e12)._replace(half_life=np.array([30.0]))
    weights = weigh(x, x, y, half, days=days, projection="energy")
    expected = 0.5 ** ((days[-1] - days) / 30)
    np.testing.assert_allclose(weights[0], np.tile(expected / expected.sum(), (40, 1)), atol=1e-9)


def test_half_lives_from_endless_to_none(rng):
    x, y = make_cases(rng, 1, missing=False)
    days = 3.0 * np.arange(40)
    endless = fit_ckme(Forecasts(x), y, days=days, half_life=1e12)
    plain = fit_ckme(Forecasts(x), y)
    np.testing.assert_allclose(endless.ridge, plain.ridge, rtol=1e-6)
    same_day = fit_ckme(Forecasts(x), y, days=np.zeros(40), half_life=1.0)
    same(same_day, plain, but=("half_life",))
    shifted = fit_ckme(Forecasts(x), y, days=days - 1e4, half_life=50.0)
    same(shifted, fit_ckme(Forecasts(x), y, days=days, half_life=50.0))
    none = fixed(1, 1.0, 0.1)._replace(half_life=np.array([1e-3]))
    weights = weigh(x[:, :3], x, y, none, days=days)
    assert 0 < SMALLEST_WEIGHT < 1e-6
    np.testing.assert_allclose(weights[0, :, -1], 1, atol=1e-6)


# laws --------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(seeds, projections)
def test_order_of_cases_and_members_permutes_the_weights(rng, projection):
    x, y = make_cases(rng, 1, 25)
    order, members = rng.permutation(25), rng.permutation(6)
    new = Forecasts(rng.normal(size=(1, 2, 6)))
    weights, permuted = (
        weigh(new, a, b, fixed(1, 0.5, 0.02), projection=projection)
        for a, b in ((x, y), (x[:, order][..., members], y[:, order]))
    )
    np.testing.assert_allclose(permuted, weights[..., order], atol=1e-10)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-13)
    assert (weights >= 0).all()


@settings(max_examples=6)
@given(seeds, st.sampled_from([2.0**-10, 4.0]), projections)
def test_the_unit_changes_members_alone(rng, factor, projection):
    x, y = rain(rng, 2)
    new = np.maximum(rng.normal(size=(2, 3, 6)), 0)
    (of, new_of), days = with_covariates(rng, 2, 40, 3), np.arange(40.0)
    setting = Settings(
        supports=("observations", *ERRORS), kernels=((1.0, 0.0), (1.0, 1.0)), projection=projection
    )
    dates = {"days": days, "half_life": 30.0}
    fitted, members, weights = fit_and_weigh(x, y, new, setting, of, new_of, **dates)
    other, theirs, same_weights = fit_and_weigh(
        factor * x, factor * y, factor * new, setting, of, new_of, **dates
    )
    for name in ("support", "strength", "status"):
        np.testing.assert_array_equal(getattr(other, name), getattr(fitted, name))
    np.testing.assert_allclose(other.ridge, fitted.ridge, rtol=1e-6)
    np.testing.assert_allclose(other.bandwidth, factor * fitted.bandwidth, rtol=1e-9)
    np.testing.assert_allclose(theirs, factor * members, rtol=1e-9, atol=1e-9 * factor)
    np.testing.assert_allclose(same_weights, weights, atol=1e-6)


@settings(max_examples=15)
@given(seeds, st.sampled_from([32.0, -273.15]))
def test_a_shift_of_the_unit_shifts_the_members(rng, shift):
    x, y = make_cases(rng, 1)
    new = rng.normal(size=(1, 3, 6))
    setting = Settings(supports=("observations", "mean", "regression"))
    fitted, members, weights = fit_and_weigh(x, y, new, setting)
    other, theirs, same_weights = fit_and_weigh(x + shift, y + shift, new + shift, setting)
    assert other.support == fitted.support
    np.testing.assert_allclose(other.ridge, fitted.ridge, rtol=1e-6)
    np.testing.assert_allclose(theirs, members + shift, atol=1e-8)
    np.testing.assert_allclose(same_weights, weights, atol=1e-6)


@settings(max_examples=3)
@given(seeds)
def test_locations_permute(rng):
    x, y = rain(rng, 3)
    y[1, 4] = np.nan
    x[2] = np.nan
    new = rng.normal(size=(3, 2, 6))
    of, new_of = with_covariates(rng, 3, 40, 2)
    setting = Settings(supports=("observations", *ERRORS), kernels=((1.0, 0.0), (4.0, 0.25)))
    dates = {"days": np.arange(40.0), "half_life": "cv"}
    found = fit_and_weigh(x, y, new, setting, of, new_of, **dates)
    order = rng.permutation(3)
    moved = of._replace(values=of.values[order]), new_of._replace(values=new_of.values[order])
    permuted = fit_and_weigh(x[order], y[order], new[order], setting, *moved, **dates)
    for part, expected in zip((*permuted[0], *permuted[1:]), (*found[0], *found[1:]), strict=True):
        np.testing.assert_array_equal(part, expected[order])


@settings(max_examples=15)
@given(seeds, projections, st.sampled_from([("auto", 1), ((None, 0.0), -1), ((0.0, None), 1)]))
def test_members_never_leave_the_bounds_and_reach_them_exactly(rng, projection, bounds):
    given_bounds, sign = bounds
    x, y = rain(rng, 2)
    new = np.maximum(rng.normal(-1, 1, size=(2, 4, 6)), 0)
    setting = Settings(supports=ERRORS, bounds=given_bounds, projection=projection)
    fitted, members, weights = fit_and_weigh(sign * x, sign * y, sign * new, setting)
    np.testing.assert_array_equal(fitted.lower if sign > 0 else fitted.upper, 0)
    assert (sign * members >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-12)
    assert (weights >= 0).all()
    dry = (members == 0).any(-1)
    assert dry.any()
    ends = weighted_quantile(members, np.array([0.0, 1.0]), weights)
    assert (sign * ends >= 0).all()
    for mass, least in zip(
        (weights * (members == 0)).sum(-1)[dry], ends[..., 0 if sign > 0 else 1][dry], strict=True
    ):
        assert least == 0 or mass < 1e-9


def test_bounds_that_are_violated_are_told_and_left_out(rng):
    from xrecal.arrays.status import BOUNDS

    x, y = rain(rng, 2)
    y[1, 7] = -0.5
    fitted, members, _ = fit_and_weigh(x, y, x[:, :4], Settings(supports=ERRORS, bounds=(0, None)))
    np.testing.assert_array_equal(fitted.status & BOUNDS, [0, BOUNDS])
    np.testing.assert_array_equal(fitted.lower, [0, -np.inf])
    assert (members[0] >= 0).all()
    assert (members[1] < 0).any()
    off = fit_ckme(Forecasts(x), y, Settings(supports=ERRORS, bounds=None))
    np.testing.assert_array_equal(off.lower, -np.inf)
    observations = fit_ckme(Forecasts(x), y, Settings(bounds=(0, None)))
    np.testing.assert_array_equal(observations.status & BOUNDS, 0)  # cannot be left anyway


@pytest.mark.parametrize("support", [*ERRORS, "standardised"])
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


@settings(max_examples=15)
@given(seeds, st.floats(-100, 100))
def test_a_whole_period_more_changes_nothing(rng, turns):
    x, y = make_cases(rng, 1)
    value, new_value = rng.uniform(0, 365.25, (1, 40, 1)), rng.uniform(0, 365.25, (1, 3, 1))
    new = rng.normal(size=(1, 3, 6))
    setting = Settings(kernels=((1.0, 1.0),), ridge=0.02)
    found = []
    for whole in (0, np.round(turns)):
        of, new_of = (features(v + whole * 365.25, (365.25,)) for v in (value, new_value))
        fitted = fit_ckme(Forecasts(x), y, setting, features=of)
        found.append(weigh(new, x, y, fitted, features=of, new_features=new_of))
    np.testing.assert_allclose(*found, atol=1e-8)
