"""A shared fit in chunks, its arrays, and what it issues."""

import numpy as np
import pytest

from benchmarks.shared.fitting import Data
from benchmarks.shared.network import draw_dates, draw_network
from xrecal.arrays import fit_emos, normal_crps, predict_emos
from xrecal.arrays.scores.crps import crps
from xrecal.arrays.shared.folds import FOLDS, folds_of, whole_folds
from xrecal.arrays.shared.issuing import issue
from xrecal.arrays.shared.law import RIDGES
from xrecal.arrays.shared.network import place_sums_of
from xrecal.arrays.shared.packed import ENTRIES, Sizes, nothing, pack, unpack
from xrecal.arrays.shared.passes import (
    LAWS,
    added_sums_of,
    basis_of,
    centre_places,
    finish,
    first_regression,
    join_added,
    join_sums,
    landmarks_for,
    law_sums_of,
    learn_law,
    second_regression,
    start_laws,
    with_added,
)
from xrecal.arrays.shared.samples import draw_sample, join_samples

PLACES, DATES, MORE, M, RANK = 30, 40, 20, 6, 60
network = draw_network(PLACES, 7)
features = network.features
drawn = Data(*draw_dates(network, 0, DATES + MORE, M, 7))
fold = folds_of(np.arange(DATES + MORE))
every = drawn.cases(slice(None), fold)
date = np.repeat(np.arange(DATES + MORE), PLACES)
LEVELS = (np.arange(50) + 0.5) / 50


def fitted(pieces):
    """The fit of cases in pieces: rows of each."""
    cases = [every.take(rows) for rows in pieces]
    sample = draw_sample(cases[0], date[pieces[0]], 500)
    for rows, some in zip(pieces[1:], cases[1:], strict=True):
        sample = join_samples(sample, draw_sample(some, date[rows], 500), 500)
    pooled = first_regression(sample)
    sums = sum(place_sums_of(pooled, some, PLACES, FOLDS) for some in cases)
    pooled = second_regression(pooled, sums, features, sample, whole_folds(FOLDS))
    sums = sum(place_sums_of(pooled, some, PLACES, FOLDS) for some in cases)
    centred = centre_places(pooled, sums, features, whole_folds(FOLDS))
    started = start_laws(centred, sample, *(basis_of(centred, sample, RANK, law) for law in LAWS))
    folds = {}
    for some, rows in zip(cases, pieces, strict=True):
        folds = join_sums(folds, law_sums_of(some, date[rows], started))
    return finish(started, *(learn_law(started, folds, RIDGES, law) for law in LAWS))


def issued(fit, cases, at=features):
    place = np.where(cases.place < 0, 0, cases.place)
    return issue(fit, cases, at[place], LEVELS)


@pytest.fixture(scope="module")
def whole():
    return fitted([np.arange(date.size)])


def test_chunks_in_any_order_give_the_same_fit(whole):
    order = np.random.default_rng(0).permutation(date.size)
    parts = fitted(np.array_split(order, 5))
    a, b = issued(whole, every), issued(parts, every)
    # A quantile on a step of the law may be the next threshold.
    assert np.quantile(np.abs(a.quantiles - b.quantiles), 0.999) < 1e-6
    np.testing.assert_allclose(a.novelty, b.novelty, atol=1e-6)


def test_a_sample_is_that_of_all_cases_however_they_are_cut():
    alone = draw_sample(every, date, 100)
    parts = [draw_sample(every.take(r), date[r], 100) for r in (date % 3 == k for k in range(3))]
    joined = join_samples(join_samples(parts[2], parts[0], 100), parts[1], 100)
    for one, same in zip(alone.cases, joined.cases, strict=True):
        np.testing.assert_array_equal(one, same)
    assert alone.draws.size == 100
    assert (np.diff(alone.draws) > 0).all()


def test_what_cannot_be_learned_from_is_in_no_sample():
    broken = every._replace(
        observations=np.where(date == 3, np.nan, every.observations),
        members=np.where((date == 5)[:, None], np.nan, every.members),
        covariates=np.where(date == 7, np.inf, 0.0)[:, None],
    )
    found = draw_sample(broken, date, date.size)
    assert found.draws.size == (DATES + MORE - 3) * PLACES


def test_arrays_hold_a_fit_bit_by_bit(whole):
    sizes = Sizes(PLACES, 3, 0, RANK + 9)
    packed = pack(whole, sizes)
    assert {k: v.shape for k, v in packed.items()} == {
        k: tuple(sizes.of_dims[d] for d in e.dims) for k, e in ENTRIES.items()
    }
    same = unpack(packed)
    a, b = issued(whole, every), issue(same, every, features[every.place], LEVELS)
    np.testing.assert_array_equal(a.quantiles, b.quantiles)
    np.testing.assert_array_equal(a.novelty, b.novelty)
    for_forecasts = {k: v for k, v in packed.items() if not ENTRIES[k].for_updates}
    part = unpack(for_forecasts)
    new = every._replace(place=np.full_like(every.place, -1))
    a = issue(same, new, features[every.place], LEVELS)
    b = issue(part, new, features[every.place], LEVELS)
    np.testing.assert_array_equal(a.quantiles, b.quantiles)
    bare = nothing(sizes)
    assert {k: v.shape for k, v in bare.items()} == {k: v.shape for k, v in packed.items()}


def test_added_sums_are_those_of_all_in_one_or_in_parts():
    first = fitted([np.flatnonzero(date < DATES)])
    later = [every.take(date == d) for d in range(DATES, DATES + MORE)]
    one = added_sums_of(first, every.take(date >= DATES))
    parts = added_sums_of(first, later[0])
    for cases in later[1:]:
        parts = join_added(parts, added_sums_of(first, cases))
    a, b = with_added(first, one), with_added(first, parts)
    np.testing.assert_allclose(a.places.local, b.places.local, rtol=1e-9)
    np.testing.assert_allclose(a.laws[0].average, b.laws[0].average, rtol=1e-12)
    twice = with_added(with_added(first, parts), added_sums_of(first, every.take(date < 0)))
    np.testing.assert_allclose(twice.place_sums, b.place_sums)
    assert a.sums[0].weight == first.sums[0].weight + MORE * PLACES
    # More is known of each place.
    assert (a.places.local.doubt < first.places.local.doubt).all()
    assert a.laws[0].ridge == first.laws[0].ridge


def test_better_than_a_regression_at_places_with_short_records():
    short = np.flatnonzero((date < DATES) & ((every.place % 2 == 0) | (date < 5)))
    fit = fitted([short])
    young = (date >= DATES) & (every.place % 2 == 1)
    ours = issued(fit, every.take(young)).quantiles
    members, observed = (np.swapaxes(part, 0, 1)[1::2] for part in drawn)
    mean, variance = members.mean(-1, dtype=float), members.var(-1, dtype=float)
    own = fit_emos(mean[:, :5], variance[:, :5], observed[:, :5], min_samples=2)[0]
    alone = normal_crps(
        observed[:, DATES:], *predict_emos(own, mean[:, DATES:], variance[:, DATES:])
    )
    score = crps(every.observations[young], ours).mean()
    assert score < 0.8 * alone.mean()


def test_novelty_of_what_is_far(whole):
    usual = issued(whole, every)
    assert np.quantile(usual.novelty, 0.9) < 0.1
    width = np.ptp(whole.seen[0])
    for shift, least, most in ((0.0, 0.0, 0.1), (1.2 * width, 0.4, 1.0), (3 * width, 0.95, 1.0)):
        hot = every.take([7])._replace(members=every.members[[7]] + shift)
        assert least <= issued(whole, hot).novelty[0] <= most
    new = every._replace(place=np.full_like(every.place, -1))
    among, far = issued(whole, new), features + np.array([30.0, 0.0, 0.0])
    assert np.quantile(among.novelty, 0.9) < 0.2
    away = issue(whole, new, far[every.place], LEVELS)
    assert away.novelty.min() > 0.9
    assert np.isfinite(away.quantiles).all()


def test_missing_forecasts_have_no_law_and_no_novelty(whole):
    gone = every.take([0, 1])._replace(members=np.full((2, M), np.nan))
    found = issued(whole, gone)
    assert np.isnan(found.quantiles).all()
    assert np.isnan(found.novelty).all()


@pytest.mark.parametrize(
    ("n", "expected"), [(1, 1), (30, 30), (400, 50), (2000, 200), (10**6, 1000)]
)
def test_landmarks_stand_for_several_cases(n, expected):
    assert landmarks_for(n) == expected


def test_folds_cut_no_group():
    years = np.repeat(np.arange(2000, 2007), 3)
    folds = folds_of(years)
    assert folds.max() == FOLDS - 1
    assert all(np.unique(folds[years == year]).size == 1 for year in years)
    assert (np.diff(folds) >= 0).all()
    np.testing.assert_array_equal(folds_of(np.array([3, 3, 8])), [0, 0, 1])
