"""Held-out forecasts of a shared fit: sums of parts of the folds, against sums over other cases."""

import numpy as np
import pytest

from benchmarks.shared.network import draw_dates, draw_network
from xrecal.arrays.shared.folds import FOLDS, Folds, folds_of, parts_of, whole_folds
from xrecal.arrays.shared.held_out import hold_out, in_time
from xrecal.arrays.shared.law import ridge_losses, solve_sums
from xrecal.arrays.shared.network import Cases, place_sums_of
from xrecal.arrays.shared.passes import run, sums_of_law
from xrecal.arrays.shared.places import fit_places
from xrecal.arrays.shared.sums import all_of, sum_cases
from xrecal.methods.shared_ckme import InMemory

P, N, M = 8, 30, 5
LEVELS, RIDGE = np.array([0.05, 0.5, 0.9]), np.array([0.01])
FOLD = folds_of(np.arange(N))
HALVED = 0.5 ** (np.arange(N)[::-1] / 9.0)
GAPS = [(0, np.ones(N)), (2, np.ones(N)), (7, np.ones(N)), (2, HALVED)]
"""Dates left out, some from folds that are no neighbours; and weights."""


def draw(gap, weights):
    network = draw_network(P, 4)
    members, observed = draw_dates(network, 0, N, M, 4)
    date = np.repeat(np.arange(N), P)
    part, folds = parts_of(FOLD, (np.arange(N, dtype=float), gap), weights)
    observed = observed.astype(float)
    observed[: N // 2, 3] = np.nan
    cases = Cases(
        members.astype(float).reshape(-1, M),
        observed.ravel(),
        np.tile(np.arange(P), N),
        part[date],
        np.empty((N * P, 0)),
        weights[date],
    )
    return cases, date, folds, np.stack([network.lat, network.lon, network.height], -1)


@pytest.fixture(scope="module", params=GAPS, ids=["", "gap", "wide", "weights"])
def learned(request):
    cases, date, folds, features = draw(*request.param)
    return cases, date, run(InMemory(cases, date), features, folds, 30), features, request.param


def kept_without(f, gap):
    """Dates that a fit without a fold learns from."""
    apart = np.abs(np.arange(N)[:, np.newaxis] - np.flatnonzero(f == FOLD)).min(1)
    return apart > gap


def reference(learned, dates):
    """The network that cases of some dates teach, by what was chosen from all of them."""
    cases, date, known, features, (_, weights) = learned
    fit, standards = known.fit, known.started.centred.standards[0]
    seen = cases.take(np.flatnonzero(dates[date] & np.isfinite(cases.observations)))
    seen = seen._replace(weight=seen.weight * weights.max() / weights[dates].max())
    one = seen._replace(part=np.zeros(seen.place.size, np.int64))
    sums = place_sums_of(fit.pooled, one, P, 1)[0]
    places = fit_places(sums, features, fit.pooled.kurtosis, known.started.centred.places.settings)
    placed, errors = known.started.bases[0].placed(standards, seen)
    law = fit.laws[0]
    whole = sum_cases(law.landmarks, law.grid, placed, errors, seen.weight)
    law = solve_sums(law.landmarks, law.grid, whole, law.ridge)
    return fit.network(0, (places.local, features))._replace(law=law)


def test_as_fits_to_the_other_folds_and_to_earlier_ones(learned):
    cases, date, known, _, (gap, weights) = learned
    held = hold_out(known.fit, known.started, known.place_sums, known.law_sums)
    found = held.quantiles(cases, LEVELS)
    assert found.shape == (2, N * P, LEVELS.size)
    for f in range(FOLDS):
        rows = np.flatnonzero(FOLD[date] == f)
        kept = kept_without(f, gap)
        for way, dates in enumerate((kept, kept & (f > FOLD))):
            if not dates.any():
                assert np.isnan(found[way, rows]).all()
                continue
            if way == 1 and weights.min() < 1:
                continue  # earlier cases count as if the newest of all others were the newest
            expected = reference(learned, dates).quantiles(cases.take(rows), LEVELS)
            np.testing.assert_allclose(found[way, rows], expected, rtol=1e-6, atol=1e-6)


def test_what_was_issued_knows_the_folds_before_that_of_the_first_unknown_date(learned):
    cases, date, known, *_ = learned
    held = hold_out(known.fit, known.started, known.place_sums, known.law_sums)
    part = np.array([cases.part[date == day][0] for day in range(N)])
    issued = in_time(held, part, (0.0, np.inf))
    assert issued.bounds == (0.0, np.inf)
    for count in range(N):
        assert issued.known(count) is held.later[FOLD[count]]
    assert issued.known(0) is None
    assert issued.known(N) is None


def test_errors_are_around_centres_of_dates_beyond_the_gap(learned):
    cases, date, known, _, (gap, _) = learned
    errors, _, _ = known.started.centred.standards[0].standardised(cases)
    for f in range(FOLDS):
        rows = np.flatnonzero(FOLD[date] == f)
        centre, scale, _ = reference(learned, kept_without(f, gap)).placed(cases.take(rows))
        expected = (cases.observations[rows] - centre) / scale
        np.testing.assert_allclose(errors[rows], expected, rtol=1e-7, atol=1e-7)


def test_losses_of_ridges_are_those_of_laws_of_dates_beyond_the_gap(learned):
    cases, date, known, _, (gap, _) = learned
    standards, law = known.started.centred.standards[0], known.fit.laws[0]
    placed, errors = known.started.bases[0].placed(standards, cases)
    placed_by = law.landmarks, law.grid
    # A loss needs two folds: each of them is held out twice here.
    twice = Folds(np.array([2, 0, 1]), np.array([[1.0, 0.0, 0.0]] * 2))
    losses, weights = [], []
    for f in range(FOLDS):
        train, held = (
            sum_cases(*placed_by, placed[rows], errors[rows], cases.weight[rows])
            for rows in (kept_without(f, gap)[date], FOLD[date] == f)
        )
        losses.append(ridge_losses([train, held, held], law.grid, twice, RIDGE)[0])
        weights.append(float(held.weight))
    parts = sums_of_law(known.started, known.law_sums, 0)
    found = ridge_losses(parts, law.grid, standards.folds, RIDGE)[0]
    assert found == pytest.approx(np.average(losses, weights=weights), rel=1e-8)


def test_a_case_without_members_has_no_forecast(learned):
    cases, _, known, *_ = learned
    held = hold_out(known.fit, known.started, known.place_sums, known.law_sums)
    cases = cases._replace(members=np.where(np.arange(N * P)[:, None] == 7, np.nan, cases.members))
    missing = np.isnan(held.quantiles(cases, LEVELS)[0]).any(-1)
    np.testing.assert_array_equal(np.flatnonzero(missing), [7])


def test_of_a_single_fold_nothing_is_held_out(learned):
    _, _, known, *_ = learned
    started = known.started
    standards = started.centred.standards[0]._replace(folds=whole_folds(1))
    centred = started.centred._replace(standards=(standards, started.centred.standards[1]))
    started = started._replace(centred=centred)
    whole = all_of(sums for (law, _), sums in known.law_sums.items() if law == 0)
    sums = known.place_sums.sum(0, keepdims=True)
    held = hold_out(known.fit, started, sums, {(0, 0): whole})
    assert held.blocks == held.later == (None,)


@pytest.mark.parametrize("gap", [0, 1, 4, 40])
def test_parts_are_dates_that_the_same_folds_learn_from(gap):
    fold = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    part, folds = parts_of(fold, (np.arange(9.0), gap), np.ones(9))
    np.testing.assert_array_equal(folds.of_part[part], fold)
    apart = np.abs(np.arange(9)[:, np.newaxis] - np.arange(9))
    for f in range(3):
        kept = apart[:, fold == f].min(1) > gap
        np.testing.assert_array_equal(folds.learned[f][part], kept.astype(float))
    assert np.unique(folds.learned, axis=1).shape[1] <= part.max() + 1
    if gap == 0:
        np.testing.assert_array_equal(part, fold)
