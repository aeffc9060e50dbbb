"""Predictors of errors that places have in common: against loops, and laws that they obey."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import median_abs_deviation

from xrecal.arrays.online.in_common import FEWEST, LASTS, OfPlace, in_common, standard_of


def expected_standard(values):
    """Centre and size of values (n,) before each of them, and after all."""
    found, centre, size, known = [], np.nan, np.nan, []
    for value in [*values, np.nan]:
        found.append((centre, size))
        if np.isnan(value):
            continue
        known.append(value)
        if len(known) == FEWEST:
            centre = np.median(known)
            size = median_abs_deviation(known, scale="normal")
            size = size or np.mean(np.abs(known - centre)) * np.sqrt(np.pi / 2)
        elif len(known) > FEWEST:
            gap, rate = value - centre, max(0.01, 1 / len(known))
            gap = np.clip(gap, -3 * size, 3 * size) if size > 0 else gap
            centre += rate * gap
            size += rate * (abs(gap) * np.sqrt(np.pi / 2) - size)
    return np.array(found).T


def each_in_units(values):
    """Values (n, p), each standardised by those before it."""
    return standard_of(values).standardised(values, np.arange(len(values)))


def mean_of_known(values):
    known = [v for v in values if v == v]
    return np.mean(known) if known else np.nan


def expected_errors(places, now):
    """Means of the last errors that are known at a time, over both groups of places."""
    last = []
    every = [t for p in places for t, e in zip(p.verified, p.errors, strict=True) if e == e]
    newest = max((t for t in every if t <= now), default=-np.inf)
    for one in places:
        last.append(np.nan)
        for i, (t, e) in enumerate(zip(one.verified, one.errors, strict=True)):
            until = t + LASTS * (t - one.verified[i - 1]) if i else np.inf
            if t <= now and e == e:
                last[-1] = e if newest <= until else np.nan
    ahead = [abs(one.ahead) for one in places]
    short = [e for e, a in zip(last, ahead, strict=True) if a == min(ahead)]
    return [mean_of_known(last), mean_of_known(short if len(set(ahead)) > 1 else [])]


def expected_predictors(places, now):
    """Means of the predictors that are issued at a time."""
    return [
        mean_of_known(
            [
                value
                for one in places
                for t, value in zip(one.issued, one.predictors[:, p], strict=True)
                if t == now
            ]
        )
        for p in range(3)
    ]


def places_of(seed, n_places, equal=False):
    rng = np.random.default_rng(seed)
    found = []
    for place in range(n_places):
        errors = np.where(rng.random(12) < 0.3, np.nan, rng.normal(size=12))
        predictors = np.where(rng.random((12, 3)) < 0.2, np.nan, rng.normal(size=(12, 3)))
        ahead = 1.0 if equal else 1.0 + place % 3
        verified = np.cumsum(rng.choice([0.0, 0.1, 1.0, 3.0], 12))
        issued = rng.permutation(16)[:12].astype(float)
        found.append(OfPlace(ahead, verified, errors, np.sort(issued), predictors))
    return found


@pytest.mark.parametrize("wild", [1.0, 1e9])
def test_centres_and_sizes_are_those_of_a_loop(wild):
    rng = np.random.default_rng(1)
    values = rng.normal(3, 2, size=(60, 3))
    values[5::7, 0] = np.nan
    values[20, 1] *= wild
    found = standard_of(values)
    for p in range(3):
        expected = expected_standard(values[:, p])
        np.testing.assert_allclose([found.centre[:, p], found.size[:, p]], expected)


@pytest.mark.parametrize(("at", "late"), [(4, 0.25), (100, 0.1)])
def test_a_spike_is_bounded_and_forgotten(at, late):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(300, 1))
    spiked = values.copy()
    spiked[at] = 1e9
    found, without = each_in_units(spiked), each_in_units(values)
    assert at < FEWEST or found[at] == 3.0
    np.testing.assert_allclose(found[200:], without[200:], atol=late)


def test_the_last_error_of_a_closed_place_ends():
    n = np.arange(40.0)
    living = OfPlace(1.0, n + 1, np.zeros(40), n, np.zeros((40, 3)))
    closed = living._replace(verified=n[:8] + 1, errors=np.full(8, 3.0), issued=n[:8])
    closed = closed._replace(predictors=np.zeros((8, 3)))
    found = in_common([living, closed]).errors_known_at(n)[:, 0]
    np.testing.assert_array_equal(found[1:], np.where(n[1:] <= 8 + LASTS, 1.5, 0.0))


def test_without_any_spread_numbers_are_zero():
    still = each_in_units(np.full((30, 1), 4.0))[:, 0]
    np.testing.assert_array_equal(still, [np.nan] * FEWEST + [0.0] * (30 - FEWEST))


def test_numbers_of_a_steady_record_are_standard():
    rng = np.random.default_rng(2)
    found = each_in_units(rng.normal(5, 3, size=(20_000, 1)))[500:]
    assert found.mean() == pytest.approx(0, abs=0.03)
    assert found.std() == pytest.approx(1, abs=0.05)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.sampled_from([1e-4, 30.0]), st.floats(-50, 50))
def test_units_and_bias_make_no_difference(seed, factor, shift):
    values = np.random.default_rng(seed).normal(size=(40, 2))
    moved = factor * (values + shift)
    np.testing.assert_allclose(each_in_units(moved), each_in_units(values), atol=1e-7)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 5), st.booleans())
def test_means_are_over_what_is_known(seed, n_places, equal):
    places = places_of(seed, n_places, equal)
    times, found = np.arange(-1.0, 40.0, 0.5), in_common(places)
    errors = [expected_errors(places, now) for now in times]
    np.testing.assert_allclose(found.errors_known_at(times), errors, atol=1e-9)
    np.testing.assert_allclose(found.last, errors[-1], atol=1e-9)
    predictors = [expected_predictors(places, now) for now in times]
    np.testing.assert_allclose(found.predictors_at(times), predictors, atol=1e-9)


def test_new_forecasts_count_like_those_that_verified():
    places = places_of(4, 3)
    new = [(np.array([20.0]), np.array([[value, np.nan, 1.0]])) for value in (0.5, 1.5)]
    found = in_common(places, new).predictors_at(np.array([20.0]))
    np.testing.assert_allclose(found, [[1.0, np.nan, 1.0]])
    np.testing.assert_array_equal(in_common(places, new).errors, in_common(places).errors)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.permutations(range(4)))
def test_the_order_of_places_changes_no_bit(seed, order):
    places = places_of(seed, 4)
    first, other = in_common(places), in_common([places[i] for i in order])
    for a, b in zip(first, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_places_nothing_is_known():
    found = in_common([])
    assert np.isnan(found.last).all()
    assert np.isnan(found.predictors_at(np.arange(3.0))).all()
