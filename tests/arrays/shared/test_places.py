"""Centre and spread of places: by their records, by their features, and between the two."""

from functools import cache

import numpy as np
import pytest

from xrecal.arrays import fit_emos
from xrecal.arrays.shared.field import FieldSettings
from xrecal.arrays.shared.places import (
    Corrections,
    fit_places,
    inflation_of,
    place_sums,
    without_places,
)
from xrecal.arrays.shared.regression import Pooled, fit_pooled

P, D = 150, 60
rng = np.random.default_rng(0)
features = np.column_stack([rng.uniform(0, 10, P), rng.uniform(40, 50, P)])
bias = np.sin(features[:, 0]) + 0.3 * rng.normal(size=P)
spread = np.exp(0.4 * np.cos(features[:, 0]) + 0.1 * rng.normal(size=P))
place = np.tile(np.arange(P), D)
mean = 5 + 3 * rng.normal(size=P * D)
variance = rng.gamma(3.0, 0.5, P * D)
scale = np.sqrt(0.5 + variance) * spread[place]
observations = mean + bias[place] + scale * rng.normal(size=P * D)
cases = mean, variance, observations


@cache
def regression():
    return fit_pooled(*cases)


@pytest.fixture
def pooled():
    return regression()


@pytest.fixture(scope="module")
def sums():
    return place_sums(regression(), place, P, cases)


def rmse(found, truth):
    return np.sqrt(np.mean((found - truth) ** 2))


def bias_of(corrections, n=P):
    """Mean error of places where the ensemble mean is 5."""
    centre, _ = corrections.apply(regression(), np.arange(n), np.full(n, 5.0), np.ones(n))
    return centre - 5


def test_the_pooled_regression_is_emos_of_all_cases(pooled):
    expected, _, _ = fit_emos(*(part[np.newaxis] for part in cases))
    np.testing.assert_array_equal(pooled.coefficients, expected[0])


def test_long_records_tell_centre_and_spread(pooled, sums):
    places = fit_places(sums, features, pooled.kurtosis)
    assert rmse(bias_of(places.local), bias) < 1.1 / np.sqrt(D) * scale.mean()
    refined = without_places(pooled, places.local, place, cases)
    # Biases of places are no spread any more: the law of errors is 0.5 + v, times a factor.
    before, after = ((c / d) ** 2 - 0.5 for _, _, c, d in (pooled[0], refined[0]))
    assert abs(after) < 0.5 * abs(before)


def test_a_record_is_least_squares_weighted_by_the_spread_where_nothing_is_shrunk(pooled, sums):
    """Slope and centre of one place, as variances between places that are huge forbid shrinking."""
    settings = fit_places(sums, features, pooled.kurtosis).settings._replace(
        slope_variance=1e9, centre=FieldSettings(1.0, 1.0, 1e12)
    )
    found = fit_places(sums, features, pooled.kurtosis, settings).local
    for p in (0, 7):
        here = place == p
        location, width, level = pooled.standardised(mean[here], variance[here])
        slope, centre = np.polyfit(level, observations[here] - location, 1, w=1 / width)
        np.testing.assert_allclose([found.slope[p], found.centre[p]], [slope, centre], rtol=1e-5)


def test_spreads_are_those_of_the_residuals_where_nothing_is_shrunk(pooled, sums):
    settings = fit_places(sums, features, pooled.kurtosis).settings
    settings = settings._replace(spread=FieldSettings(1.0, 1.0, 1e12))
    found = fit_places(sums, features, pooled.kurtosis, settings).local
    for p in (0, 7):
        here = place == p
        centre, _ = found.apply(pooled, place[here], mean[here], variance[here])
        _, width, _ = pooled.standardised(mean[here], variance[here])
        errors = (observations[here] - centre) / width
        np.testing.assert_allclose(
            np.exp(found.log_factor[p]), np.sqrt((errors**2).sum() / (D - 1)), rtol=1e-9
        )


def test_a_place_without_a_record_is_told_by_its_features(pooled, sums):
    kept = sums.copy()
    kept[:, 100:] = 0.0
    places = fit_places(kept, features, pooled.kurtosis)
    error = bias_of(places.local)[100:] - bias[100:]
    assert (
        np.sqrt(np.mean(error**2)) < 0.45
    )  # 0.3 of it no feature tells; the spread of all is 0.75
    alone = places.at(features[100:])
    for one, other in zip(places.local, alone, strict=True):
        np.testing.assert_allclose(one[100:], other, rtol=1e-12)
    told = np.corrcoef(alone.log_factor, np.log(spread[100:]))[0, 1]
    assert told > 0.8


def test_short_records_leave_the_centre_open(pooled, sums):
    """In proportion as they are short; a place without a record as much as no feature tells."""
    mixed = sums.copy()
    mixed[:, :50] = place_sums(pooled, place[: 5 * P], P, tuple(p[: 5 * P] for p in cases))[:, :50]
    mixed[:, 0] = 0.0
    places = fit_places(mixed, features, pooled.kurtosis)
    doubt = places.local.doubt
    np.testing.assert_allclose(doubt[0], np.sqrt(places.settings.centre.nugget))
    assert doubt[0] > doubt[1:50].max()
    assert doubt[1:50].min() > doubt[50:].max()
    error = (bias_of(places.local) - bias)[1:]
    assert 0.8 < rmse(error / doubt[1:], 0) < 1.25  # it is the size of the error


def blocks_of(observed):
    """Sums of four blocks of dates."""
    parts = (np.arange(P * D) * 4 // (P * D) == f for f in range(4))
    given = mean, variance, observed
    return np.stack(
        [place_sums(regression(), place[h], P, tuple(p[h] for p in given)) for h in parts]
    )


def test_errors_that_persist_count_for_less(pooled):
    """The mean of AR(1) errors of coefficient 0.8 has (1 + 0.8) / (1 - 0.8) times the variance."""
    noise = np.zeros((D, P))
    for date in range(1, D):
        noise[date] = 0.8 * noise[date - 1] + 0.6 * rng.normal(size=P)
    persistent = mean + bias[place] + np.sqrt(0.5 + variance) * noise.ravel()
    assert inflation_of(blocks_of(observations)) < 1.15
    found = inflation_of(blocks_of(persistent))
    assert 3.5 < found < 12  # 9 for long blocks; these have 15 dates
    whole = blocks_of(persistent).sum(0)
    doubts = [
        fit_places(whole, features, pooled.kurtosis, inflation=factor).local.doubt.mean()
        for factor in (1.0, found)
    ]
    assert doubts[1] > 1.3 * doubts[0]


def test_nothing_is_inflated_where_nothing_tells(sums):
    assert inflation_of(np.zeros((4, 8, P))) == 1.0
    assert inflation_of(sums[np.newaxis]) == 1.0


def test_sums_add_and_folds_subtract(pooled, sums):
    parts = [
        place_sums(pooled, place[i::3], P, tuple(part[i::3] for part in cases)) for i in range(3)
    ]
    np.testing.assert_allclose(sum(parts), sums, rtol=1e-10)
    np.testing.assert_allclose(sums - parts[0], parts[1] + parts[2], rtol=1e-8, atol=1e-9)


def test_cases_that_are_not_known_are_left_out(pooled):
    broken = tuple(part.copy() for part in cases)
    for i, part in enumerate(broken):
        part[i] = np.nan
    kept = np.arange(3, P * D)
    expected = place_sums(pooled, place[kept], P, tuple(part[kept] for part in cases))
    np.testing.assert_allclose(place_sums(pooled, place, P, broken), expected, rtol=1e-12)


def test_places_without_features_or_cases_get_the_shared_regression(pooled, sums):
    unknown = features.copy()
    unknown[3] = np.nan
    kept = sums.copy()
    kept[:, [3, 4]] = 0.0
    places = fit_places(kept, unknown, pooled.kurtosis)
    assert all(np.isfinite(part).all() for part in places.local)
    assert places.local.centre[3] == places.centre.constant
    assert places.local.centre[4] != places.centre.constant


def test_a_place_with_a_unit_of_its_own_does_not_bend_the_field(pooled):
    odd = observations.copy()
    odd[place == 20] += 273.15
    broken = place_sums(pooled, place, P, (mean, variance, odd))
    found = fit_places(broken, features, pooled.kurtosis)
    others = np.arange(P) != 20
    assert rmse(bias_of(found.local)[others], bias[others]) < 0.4
    np.testing.assert_allclose(bias_of(found.local)[20] - bias[20], 273.15, atol=1.0)
    np.testing.assert_array_equal(np.flatnonzero(found.odd), [20])


def test_places_that_are_like_others_are_not_odd(pooled, sums):
    assert not fit_places(sums, features, pooled.kurtosis).odd.any()
    same = np.repeat(features[:1], P, axis=0)  # all at one place
    assert not fit_places(sums, same, pooled.kurtosis).odd.any()


def test_a_place_with_a_spread_of_its_own_is_odd(pooled):
    wild = observations.copy()
    wild[place == 9] += 60 * rng.normal(size=D)
    broken = place_sums(pooled, place, P, (mean, variance, wild))
    assert fit_places(broken, features, pooled.kurtosis).odd[9]


@pytest.mark.parametrize("spike", [1e3, -1e6, 1e12])
@pytest.mark.parametrize("part", [0, 2], ids=["forecast", "observation"])
def test_a_spike_changes_little_of_what_places_share(pooled, part, spike):
    wild = [values.copy() for values in cases]
    wild[part][17] = spike
    if part == 0:  # as much as the forecast said
        wild[2][17] = spike
    found = fit_pooled(*wild)
    np.testing.assert_allclose(found.coefficients, pooled.coefficients, atol=0.02)
    assert found.level == pytest.approx(pooled.level, abs=0.01)
    assert found.width == pytest.approx(pooled.width, rel=0.01)


def test_a_spike_that_is_far_from_all_is_no_reason_to_give_up(pooled):
    wild = observations.copy()
    wild[17] = 1e15
    assert fit_pooled(mean, variance, wild).width == pooled.width


def test_no_errors_to_learn_from():
    with pytest.raises(ValueError, match="leaves no errors to learn from"):
        fit_pooled(mean[:100], variance[:100], 2 * mean[:100] + 1)
    with pytest.raises(ValueError, match="no place has two cases"):
        fit_places(np.zeros((8, P)), features, 3.0)


def test_corrections_apply_in_the_unit_of_the_variable():
    one = Pooled(np.array([1.0, 2.0, 0.0, 1.0]), 10.0, 4.0, 3.0)
    changes = Corrections(*map(np.array, ([0.5], [2.0], [np.log(3.0)], [8.0])))
    centre, width = changes.apply(one, np.zeros(1, int), np.array([14.0]), np.array([4.0]))
    np.testing.assert_allclose([centre[0], width[0]], [1 + 28 + 0.5 + 2, np.hypot(6.0, 8.0)])


def test_a_new_place_is_shrunk_to_what_features_say_of_it(pooled, sums):
    known = fit_places(sums, features, pooled.kurtosis)
    nothing = np.zeros((8, P))
    without = fit_places(nothing, features, pooled.kurtosis, known=known).local
    for found, expected in zip(without, known.at(features), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    again = fit_places(sums, features, pooled.kurtosis, known=known)
    assert again.settings == known.settings
    # Places of the fit itself differ by the variance of their errors alone.
    np.testing.assert_allclose(again.local.centre, known.local.centre, atol=0.1)
    few = 3.0 * sums / np.maximum(sums[1], 1.0)
    some = fit_places(few, features, pooled.kurtosis, known=known).local
    said, own = known.at(features).centre, known.local.centre
    share = (some.centre - said) @ (own - said) / ((own - said) @ (own - said))
    assert 0.1 < share < 0.95
