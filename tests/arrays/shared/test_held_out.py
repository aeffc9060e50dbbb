"""Held-out forecasts of a shared fit: sums subtracted, against sums over the other cases."""

import numpy as np
import pytest

from benchmarks.shared.network import draw_dates, draw_network
from xrecal.arrays.shared.held_out import hold_out
from xrecal.arrays.shared.law import solve_sums
from xrecal.arrays.shared.network import Cases, place_sums_of
from xrecal.arrays.shared.passes import FOLDS, folds_of, run
from xrecal.arrays.shared.places import fit_places
from xrecal.arrays.shared.sums import all_of, sum_cases
from xrecal.methods.shared_ckme import InMemory

P, N, M = 8, 30, 5
LEVELS = np.array([0.05, 0.5, 0.9])


def draw():
    network = draw_network(P, 4)
    members, observed = draw_dates(network, 0, N, M, 4)
    date = np.repeat(np.arange(N), P)
    place, fold = np.tile(np.arange(P), N), folds_of(np.arange(N))[date]
    observed = observed.astype(float)
    observed[: N // 2, 3] = np.nan
    cases = Cases(
        members.astype(float).reshape(-1, M), observed.ravel(), place, fold, np.empty((N * P, 0))
    )
    return cases, date, np.stack([network.lat, network.lon, network.height], -1)


@pytest.fixture(scope="module")
def learned():
    cases, date, features = draw()
    return cases, run(InMemory(cases, date), features, 30), features


def reference(learned, which):
    """The network that cases of some folds teach, by what was chosen from all of them."""
    cases, known, features = learned
    fit, standards = known.fit, known.started.standards[0]
    seen = cases.take(np.flatnonzero(np.isin(cases.fold, which) & np.isfinite(cases.observations)))
    one = seen._replace(fold=np.zeros(seen.place.size, np.int64))
    sums = place_sums_of(fit.pooled, one, P, 1)[0]
    places = fit_places(sums, features, fit.pooled.kurtosis, known.started.places.settings)
    placed, errors = known.started.bases[0].placed(standards, seen)
    law = fit.laws[0]
    whole = sum_cases(law.landmarks, law.grid, placed, errors)
    law = solve_sums(law.landmarks, law.grid, whole, law.ridge)
    return fit.network(0, (places.local, features))._replace(law=law)


def test_as_fits_to_the_other_folds_and_to_earlier_ones(learned):
    cases, known, _ = learned
    held = hold_out(known.fit, known.started, known.place_sums, known.folds)
    found = held.quantiles(cases, LEVELS)
    assert found.shape == (2, N * P, LEVELS.size)
    for f in range(FOLDS):
        rows = np.flatnonzero(cases.fold == f)
        others = reference(learned, np.delete(np.arange(FOLDS), f))
        np.testing.assert_allclose(
            found[0, rows], others.quantiles(cases.take(rows), LEVELS), rtol=1e-6, atol=1e-6
        )
        if f == 0:
            assert np.isnan(found[1, rows]).all()
            continue
        earlier = reference(learned, np.arange(f))
        np.testing.assert_allclose(
            found[1, rows], earlier.quantiles(cases.take(rows), LEVELS), rtol=1e-6, atol=1e-6
        )


def test_a_case_without_members_has_no_forecast(learned):
    cases, known, _ = learned
    held = hold_out(known.fit, known.started, known.place_sums, known.folds)
    cases = cases._replace(members=np.where(np.arange(N * P)[:, None] == 7, np.nan, cases.members))
    missing = np.isnan(held.quantiles(cases, LEVELS)[0]).any(-1)
    np.testing.assert_array_equal(np.flatnonzero(missing), [7])


def test_of_a_single_fold_nothing_is_held_out(learned):
    _, known, _ = learned
    whole = all_of(sums for (law, _), sums in known.folds.items() if law == 0)
    sums = known.place_sums.sum(0, keepdims=True)
    held = hold_out(known.fit, known.started, sums, {(0, 0): whole})
    assert held.blocks == held.later == (None,)
