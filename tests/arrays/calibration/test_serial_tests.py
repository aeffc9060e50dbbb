"""Tests of the PIT and the SKCE of cases that depend on each other, or on the season."""

import numpy as np
import pytest
from scipy.special import ndtr

from tests.arrays.test_serial import autoregressive
from xrecal import arrays
from xrecal.arrays import (
    Forecasts,
    case_matrix,
    serial_uniform_test,
    skce_block_length,
    skce_test,
    skce_unbiased,
    uniform_test,
)
from xrecal.arrays.status import DEPENDENT, NOT_TOLD, SEASONAL


def skce_locations(forecasts, observations, *, location_numbers=None, season=None, **settings):
    """The array function, with its settings by name."""
    settings = arrays.SkceSettings(**settings)
    return arrays.skce_locations(
        forecasts, observations, settings, location_numbers=location_numbers, season=season
    )


def cosines(n, n_waves):
    t = np.arange(1, n + 1)
    rows = [np.full(n, n**-0.5)]
    rows += [np.sqrt(2 / n) * np.cos(np.pi * j * (t - 0.5) / n) for j in range(1, n_waves + 1)]
    return np.array(rows)


def directions(rng, n_resamples, n_waves):
    drawn = rng.standard_normal((n_resamples, n_waves + 1))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def test_uniform_test_follows_the_formula(rng):
    p, b = ndtr(autoregressive(rng, 0.5, (60,)) + 0.4), 5
    levels = np.arange(1, 64) / 64
    slow = cosines(60, 11) @ ((p[:, np.newaxis] <= levels) - levels)
    turned = directions(np.random.default_rng([3, 12]), 200, 11)
    count = np.sum(np.abs(turned @ slow).max(-1) >= np.abs(slow[0]).max() - 1e-12)
    found = serial_uniform_test(p, b, n_resamples=200, seed=3)
    assert found.p_value == pytest.approx((1 + count) / 201)
    assert found.statistic == uniform_test(p)[0]
    assert found.block_length == b


def test_independent_cases_have_the_exact_test(rng):
    p = rng.random((3, 40))
    p[1, 3] = np.nan
    found = serial_uniform_test(p, 1)
    np.testing.assert_array_equal(found[:2], uniform_test(p))
    assert not found.dependent.any()


def test_too_few_cases():
    few = serial_uniform_test(np.array([0.5, np.nan]))
    assert np.isnan(few.p_value)
    assert few.block_length == 0


def test_cases_of_one_date_count_together(rng):
    """Places that are copies of each other give the p-value of one of them."""
    p = rng.random(50)
    found = serial_uniform_test(np.repeat(p, 4), 2, simultaneous=4)
    assert found.p_value == serial_uniform_test(p, 2).p_value
    assert found.block_length == 2
    with pytest.raises(ValueError, match="50 cases are not a multiple of simultaneous=4"):
        serial_uniform_test(p, simultaneous=4)
    with pytest.raises(ValueError, match="block_length is 0; give a whole number from 1"):
        serial_uniform_test(p, 0)


@pytest.fixture(scope="module")
def errors():
    """Matrix of errors of calibrated forecasts whose cases depend on each other."""
    rng = np.random.default_rng(0)
    mean, z = autoregressive(rng, 0.6, (2, 80))
    return case_matrix(Forecasts(mean[:, np.newaxis], np.ones((80, 1))), mean + z + 0.5)


def test_skce_test_follows_the_formula(errors):
    basis = cosines(80, 9)
    products = basis @ errors @ basis.T
    turned = directions(np.random.default_rng([3, 7]), 200, 9)
    count = np.sum([a @ products @ a >= errors.sum() / 80 for a in turned])
    options = {"n_resamples": 200, "seed": 3, "location_number": 7}
    assert skce_test(errors, "serial", block_length=8, **options) == (1 + count) / 201
    chosen = skce_block_length(errors)
    assert chosen > 1
    found = skce_test(errors, "serial", **options)
    assert found == skce_test(errors, "serial", block_length=chosen, **options)


def test_block_length_is_that_of_the_errors(rng):
    e = autoregressive(rng, 0.9, (400,))
    assert 20 < skce_block_length(np.outer(e, e)) < 200
    assert skce_block_length(np.outer(e, e)) == skce_block_length(np.outer(e, e) * 7)
    white = rng.normal(size=400)
    assert skce_block_length(np.outer(white, white)) <= 3
    assert skce_block_length(np.ones((1, 1))) == 1


def test_locations_have_the_test_of_their_matrix(rng):
    mean, z = autoregressive(rng, 0.8, (2, 3, 60))
    forecasts = Forecasts(mean[..., np.newaxis], np.ones((3, 60, 1)))
    y = mean + z
    y[1, 5:9] = np.nan
    found = skce_locations(forecasts, y, test="serial", n_resamples=50)
    for i in range(3):
        h = case_matrix(Forecasts(mean[i][:, np.newaxis], np.ones((60, 1))), y[i])
        expected = skce_test(h, "serial", n_resamples=50, location_number=i)
        np.testing.assert_array_equal(found.p_value[i], expected)
        assert found.block_length[i] == skce_block_length(h)
        assert bool(found.status[i] & NOT_TOLD) == np.isnan(expected)


def test_cases_of_one_date_are_summed(rng):
    mean, z = rng.normal(size=(2, 30))
    one = Forecasts(mean[np.newaxis, :, np.newaxis], np.ones((1, 30, 1)))
    twice = Forecasts(*(None if part is None else np.repeat(part, 2, axis=1) for part in one))
    y = (mean + z)[np.newaxis]
    options = {"test": "serial", "n_resamples": 80, "block_length": 2}
    alone = skce_locations(one, y, **options)
    both = skce_locations(twice, np.repeat(y, 2, axis=1), simultaneous=2, **options)
    assert both.p_value[0] == pytest.approx(alone.p_value[0], abs=0.03)
    assert both.block_length[0] == 2


def test_tests_of_independent_cases_are_flagged_where_they_are_not(rng):
    mean, z = autoregressive(rng, 0.9, (2, 20, 100))
    forecasts = Forecasts(mean[..., np.newaxis], np.ones((20, 100, 1)))
    for test in ("bootstrap", "wild"):
        found = skce_locations(forecasts, mean + z, test=test, n_resamples=20)
        assert (found.status & DEPENDENT > 0).mean() > 0.9
    white = skce_locations(
        forecasts, mean + rng.normal(size=z.shape), test="wild", n_resamples=20, block_length=5
    )
    assert not (white.status & DEPENDENT).any()
    assert serial_uniform_test(ndtr(z)).dependent.mean() > 0.9
    assert serial_uniform_test(rng.random((200, 50))).dependent.mean() < 0.05


def test_level_with_dependence(rng):
    mean, z = autoregressive(rng, 0.6, (2, 60, 100))
    forecasts = Forecasts(mean[..., np.newaxis], np.ones((60, 100, 1)))
    serial, independent = (
        skce_locations(forecasts, mean + z, test=test, n_resamples=100).p_value
        for test in ("serial", "wild")
    )
    assert (serial < 0.05).mean() < 0.15
    assert (independent < 0.05).mean() > (serial < 0.05).mean()
    many = ndtr(autoregressive(rng, 0.6, (600, 100)))
    assert (serial_uniform_test(many, n_resamples=200).p_value < 0.05).mean() < 0.09
    assert (uniform_test(many)[1] < 0.05).mean() > 0.2


def seasonal(rng, factor, n=120, cycle=10.0):
    season = (np.arange(n) * 9 % 365) / 365
    mean = cycle * np.cos(2 * np.pi * season) + rng.normal(size=(20, n))
    y = mean + factor * rng.normal(size=mean.shape)
    return Forecasts(mean[..., np.newaxis], np.ones((20, n, 1))), y, np.tile(season, (20, 1))


def test_a_season_hides_no_error(rng):
    """90 % intervals that hold half of the observations are rejected beside an annual cycle."""
    for factor, least, most in ((2.4, 0.9, 1.0), (1.0, 0.0, 0.2)):
        forecasts, y, season = seasonal(rng, factor)
        found = skce_locations(forecasts, y, test="serial", n_resamples=100, season=season)
        assert (found.status & SEASONAL > 0).all()
        assert least <= (found.p_value < 0.05).mean() <= most
    forecasts, y, season = seasonal(rng, 2.4)
    hidden = skce_locations(forecasts, y, test="serial", n_resamples=100)
    assert (hidden.p_value < 0.05).mean() < 0.5


def test_the_cycle_is_that_of_the_forecasts(rng):
    forecasts, y, season = seasonal(rng, 1.0)
    angle = 2 * np.pi * season[0]
    design = np.stack([np.ones(120), *(f(k * angle) for k in (1, 2) for f in (np.cos, np.sin))], -1)
    mean = forecasts.loc[3, :, 0]
    cycle = design @ np.linalg.lstsq(design, mean - mean.mean())[0]
    h = case_matrix(Forecasts((mean - cycle)[:, np.newaxis], np.ones((120, 1))), y[3] - cycle)
    found = skce_locations(forecasts, y, season=season)
    assert found.skce[3] == pytest.approx(skce_unbiased(h), rel=1e-6)


def test_without_a_cycle_the_season_counts_for_nothing(rng):
    forecasts, y, season = seasonal(rng, 1.0, cycle=0.5)
    plain = skce_locations(forecasts, y, test="wild", n_resamples=50)
    dated = skce_locations(forecasts, y, test="wild", n_resamples=50, season=season)
    np.testing.assert_array_equal(plain, dated)
    few = seasonal(rng, 1.0, n=15)
    assert not (skce_locations(*few[:2], season=few[2]).status & SEASONAL).any()
    with pytest.raises(ValueError, match=r"season must have shape .*; got shape \(2, 120\) and"):
        skce_locations(forecasts, y, season=season[:2])
