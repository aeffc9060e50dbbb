"""A network of places from cases to forecasts."""

from typing import NamedTuple

import numpy as np
import pytest

from benchmarks.shared.fitting import FOLDS, Data, fit, fold_sums
from benchmarks.shared.network import draw_dates, draw_network, truth
from xrecal.arrays import crps, normal_crps
from xrecal.arrays.shared.folds import whole_folds
from xrecal.arrays.shared.network import (
    Standards,
    basis_from,
    moments_of,
    place_sums_of,
    with_record,
    without_record,
)
from xrecal.arrays.shared.places import Corrections, Places, fit_places
from xrecal.arrays.shared.regression import Pooled, fit_pooled

SEED, PLACES, HELD, DATES, TEST, M = 4, 60, 60, 60, 40, 10
network = draw_network(PLACES + HELD, SEED)
features = network.features
drawn = Data(*draw_dates(network, 0, DATES + TEST, M, SEED))
train = Data(*(part[:DATES, :PLACES] for part in drawn))
chunks = train.chunks()
cases = train.cases(slice(None), np.arange(DATES) * FOLDS // DATES)


class Record(NamedTuple):
    """What the cases tell of places that have some."""

    pooled: Pooled
    sums: np.ndarray
    places: Places
    standards: Standards


@pytest.fixture(scope="module")
def record():
    pooled = fit_pooled(*cases.moments(), cases.observations)
    sums = place_sums_of(pooled, cases, PLACES, FOLDS)
    return Record(pooled, sums, *with_record(pooled, sums, features[:PLACES], whole_folds(FOLDS)))


@pytest.fixture(scope="module")
def fitted():
    return fit(train, features[:PLACES], 1, 100)


def scores(law, test):
    new = test.cases(slice(None))
    centre, scale, weights = law.predict(new)
    return crps(new.observations, centre[:, None] + scale[:, None] * law.law.grid, weights).mean()


def best(places_of, test, known):
    law = truth(places_of, test.members, known=known)
    return normal_crps(test.observations, law.loc, law.scale, law.weights).mean()


def test_close_to_the_truth_at_places_of_the_fit(fitted):
    test = Data(*(part[DATES:, :PLACES] for part in drawn))
    ratio = scores(fitted.known, test) / best(network.take(slice(PLACES)), test, True)
    assert 0.99 < ratio < 1.04
    shared = fitted.known._replace(corrections=Corrections(*np.zeros((4, PLACES))))
    assert scores(fitted.known, test) < 0.95 * scores(shared, test)  # without its own centres


def test_close_to_the_truth_at_places_without_a_record(fitted):
    test = Data(*(part[DATES:, PLACES:] for part in drawn))
    elsewhere = features[PLACES:]
    law = fitted.new._replace(corrections=fitted.places.at(elsewhere), features=elsewhere)
    assert 0.98 < scores(law, test) / best(network.take(slice(PLACES, None)), test, False) < 1.06


def test_errors_are_around_centres_that_other_dates_tell(record):
    pooled, sums, places, standards = record
    errors, _, _ = standards.standardised(cases)
    for f in range(FOLDS):
        others = np.delete(sums, f, axis=0).sum(0)
        told = fit_places(others, features[:PLACES], pooled.kurtosis, places.settings).local
        here = cases.part == f
        moments = (part[here] for part in cases.moments())
        centre, scale = told.apply(pooled, cases.place[here], *moments)
        expected = (cases.observations[here] - centre) / scale
        np.testing.assert_allclose(errors[here], expected, rtol=1e-8, atol=1e-8)


def test_errors_are_around_centres_that_other_places_tell(record):
    pooled, sums, places, _ = record
    fold = np.arange(PLACES) % 3
    told = without_record(pooled, sums, features[:PLACES], places, fold)
    changed = sums.copy()
    changed[..., fold == 1] = 0.0
    without = without_record(pooled, changed, features[:PLACES], places, fold)
    for one, same in zip(told.corrections, without.corrections, strict=True):
        np.testing.assert_array_equal(one.reshape(3, -1)[1], same.reshape(3, -1)[1])
    assert (told.corrections.centre != without.corrections.centre).reshape(3, -1)[[0, 2]].all()
    errors, _, _ = told.standardised(cases)
    here = fold[cases.place] == 1
    corrections = Corrections(*(p.reshape(3, -1)[1] for p in told.corrections))
    moments = (part[here] for part in cases.moments())
    centre, scale = corrections.apply(pooled, cases.place[here], *moments)
    np.testing.assert_allclose(errors[here], (cases.observations[here] - centre) / scale)


def test_corrections_of_a_fold_are_those_without_its_dates(record):
    pooled, sums, *_ = record
    kept = cases.part != 3
    without = place_sums_of(pooled, cases.take(kept), PLACES, FOLDS)
    np.testing.assert_allclose(sums.sum(0) - sums[3], without.sum(0), rtol=1e-9, atol=1e-9)


def test_workers_change_nothing_but_rounding(fitted):
    two = fit(train, features[:PLACES], 2, 100)
    new = train.cases(slice(0, 3))
    levels = np.linspace(0.01, 0.99, 21)
    for one, other in zip(fitted[:2], two[:2], strict=True):
        close = np.abs(one.quantiles(new, levels) - other.quantiles(new, levels))
        assert np.quantile(close, 0.999) < 1e-6  # a quantile on a step may be the next threshold


def test_quantiles_are_those_of_the_law(fitted):
    new = train.cases(slice(0, 2))
    centre, scale, weights = fitted.known.predict(new)
    levels = np.array([0.1, 0.5, 0.9])
    found = fitted.known.quantiles(new, levels)
    cdf = weights.cumsum(1)
    for q, level in enumerate(levels):
        at = (cdf < level).sum(1)
        np.testing.assert_allclose(found[:, q], centre + scale * fitted.known.law.grid[at])


def test_missing_members_are_left_out_and_missing_cases_count_for_nothing(record):
    members = np.array([[1.0, 3.0, np.nan], [2.0, 4.0, 9.0], [np.nan] * 3])
    mean, variance = moments_of(members)
    np.testing.assert_allclose(mean[:2], [2.0, 5.0])
    np.testing.assert_allclose(variance[:2], [1.0, np.var([2, 4, 9])])
    assert np.isnan(mean[2])
    assert np.isnan(variance[2])
    broken = cases._replace(members=cases.members.copy(), observations=cases.observations.copy())
    broken.members[5], broken.observations[9] = np.nan, np.nan
    kept = np.setdiff1d(np.arange(len(cases.place)), [5, 9])
    rest = cases.take(kept)
    basis = basis_from(record.standards, cases, 40)
    for one, other in zip(
        fold_sums(basis, record.standards, broken),
        fold_sums(basis, record.standards, rest),
        strict=True,
    ):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_allclose(part, same, rtol=1e-9, atol=1e-9)


def test_a_place_without_features_that_count_has_no_law_but_others_do(fitted):
    unknown = fitted.known.features.copy()
    unknown[1] = np.nan
    counting = fitted.known.coordinates.scaled(1.0, np.zeros(3))
    law = fitted.known._replace(
        features=unknown, coordinates=counting._replace(precision=np.full(3, 0.1))
    )
    new = train.cases(slice(0, 1))
    _, _, weights = law.predict(new)
    assert np.isnan(weights[1]).all()
    assert np.isfinite(np.delete(weights, 1, axis=0)).all()
    ignored = law._replace(coordinates=counting)
    assert np.isfinite(ignored.predict(new)[2]).all()


def test_a_sample_without_cases_is_refused(record):
    nothing = cases._replace(observations=np.full_like(cases.observations, np.nan))
    with pytest.raises(ValueError, match="no case of the sample has members"):
        basis_from(record.standards, nothing)
