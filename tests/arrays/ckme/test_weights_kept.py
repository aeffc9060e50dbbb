from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from xrecal.arrays import Settings, ckme_novelty, ckme_weights, ckme_weights_of_both, fit_ckme, rows
from xrecal.arrays.ckme import learned, weights
from xrecal.arrays.distributions.forms import Forecasts


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    """What is known to begin with: nothing."""
    kept = rows.Kept(2**24)
    monkeypatch.setattr(weights, "KEPT", kept)
    return kept


def problem(n, seed=0, n_locations=2):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_locations, n))
    cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(n_locations, n, 6)))
    settings = Settings(supports=("observations", "mean"), min_samples=5)
    return cases, truth, fit_ckme(cases, truth, settings)


def first(cases, n_new):
    return Forecasts(cases.loc[:, :n_new] + 0.1)


CALLS = {
    "weights": lambda *given: ckme_weights(*given, own_members=True, return_novelty=True),
    "both": ckme_weights_of_both,
    "novelty": lambda *given: (ckme_novelty(*given),),
}


@pytest.mark.parametrize("n", [60, 300])  # exact, and by landmarks
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_forecasts_of_known_cases_are_the_same_bits(n, call, kept):
    given = problem(n)
    new = first(given[0], 3)
    fresh, *again = (call(new, *given) for _ in range(3))
    assert len(kept._known) == 1
    for each in again:
        for one, other in zip(fresh, each, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [60, 300])
def test_what_was_asked_for_before_is_no_matter(n, kept):
    given = problem(n)
    alone = ckme_weights(first(given[0], 2), *given)
    for _ in range(2):
        ckme_novelty(first(given[0], 5), *given)
        ckme_weights(first(given[0], 40), *given)
    assert kept._known
    for one, other in zip(alone, ckme_weights(first(given[0], 2), *given), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [60, 300])
def test_few_forecasts_are_weighed_as_many_are(n):
    given = problem(n)
    many, few = (ckme_weights(first(given[0], k), *given) for k in (learned.FEW + 1, 3))
    for one, other in zip(many, few, strict=True):
        np.testing.assert_allclose(one[..., :3, :] if one.ndim > 2 else one, other, atol=1e-9)


@pytest.mark.parametrize("part", ["forecasts", "observations", "ridge"])
def test_other_cases_are_other_contents(part, kept):
    cases, truth, fitted = problem(60)
    new = first(cases, 2)
    before = [ckme_weights(new, cases, truth, fitted)[1] for _ in range(3)][-1]
    if part == "forecasts":
        cases.loc[0, 5] += 1.0
    elif part == "observations":
        truth[0, 5] = np.nan
    else:
        fitted.ridge[0] *= 2
    after = ckme_weights(new, cases, truth, fitted)[1]
    kept._known.clear()
    np.testing.assert_array_equal(after, ckme_weights(new, cases, truth, fitted)[1])
    assert (after[0] != before[0]).any()
    np.testing.assert_array_equal(after[1], before[1])


def test_what_is_kept_has_no_part_in_what_was_given(kept):
    cases, truth, fitted = problem(60)
    new = first(cases, 2)
    copies = (
        cases._replace(loc=cases.loc.copy()),
        truth.copy(),
        fitted._replace(centre=fitted.centre.copy(), ridge=fitted.ridge.copy()),
    )
    before = [ckme_weights(new, *copies, own_members=True) for _ in range(2)][-1]
    for array in (copies[0].loc, copies[1], copies[2].centre, copies[2].ridge):
        array[:] = 7.0
    for one, other in zip(
        before, ckme_weights(new, cases, truth, fitted, own_members=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert len(kept._known) == 1


def test_the_oldest_is_let_go_when_there_is_no_room(kept, monkeypatch):
    monkeypatch.setattr(kept, "most", 1_000_000)
    given = [problem(60, seed) for seed in range(12)]
    for one in given * 2:
        ckme_weights(first(one[0], 2), *one)
    assert 0 < len(kept._known) < 12
    latest = next(reversed(kept._known))
    ckme_weights(first(given[-1][0], 2), *given[-1])
    assert next(reversed(kept._known)) == latest


def test_what_is_met_once_leaves_nothing_behind(kept, monkeypatch):
    for seed in range(3):
        given = problem(60, seed)
        ckme_weights(first(given[0], 2), *given)
    assert not kept._known
    monkeypatch.setattr(rows, "MET", 2)
    given = problem(60, 3)
    ckme_weights(first(given[0], 2), *given)
    assert len(kept._met) <= 3
    ckme_weights(first(given[0], 2), *given)
    assert len(kept._known) == 1


def test_many_forecasts_or_places_leave_nothing_behind(kept, monkeypatch):
    given = problem(300)
    for _ in range(3):
        ckme_weights(first(given[0], weights.A_DAY + 1), *given)
    monkeypatch.setattr(kept, "most", 100_000)
    for _ in range(3):
        ckme_weights(first(given[0], 2), *given)
    assert not kept._known


def test_threads_find_the_same(kept):
    given = problem(300)
    new = first(given[0], 2)
    alone = ckme_weights(new, *given, return_novelty=True)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: ckme_weights(new, *given, return_novelty=True), range(32))
        for each in found:
            for one, other in zip(alone, each, strict=True):
                np.testing.assert_array_equal(one, other)
