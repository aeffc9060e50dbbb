"""Learning and issuing: against the formulas, by laws, and its rules for what is missing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.arrays.online.reference import Aggregate
from xrecal.arrays.online.aggregation import issue, learn
from xrecal.arrays.online.state import empty_state, settings_of

K, J = 4, 12
FREE = (-np.inf, np.inf)


def stream(seed, n, n_locations=1, lower=None):
    """Quantiles (L, n, K, J) of experts who are biased and spread each in their way; truths."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(n_locations, n, 1, 1))
    bias, spread = rng.normal(size=(2, K))
    members = np.sort(rng.normal(size=(n_locations, n, K, J)), -1)
    said = centre + 0.5 * bias[:, np.newaxis] + np.exp(0.3 * spread)[:, np.newaxis] * members
    truth = centre[..., 0, 0] + rng.normal(size=(n_locations, n))
    if lower is not None:
        return np.maximum(said, lower), np.maximum(truth, lower)
    return said, truth


def with_gaps(said, truth, seed=0):
    rng = np.random.default_rng(seed)
    said, truth = said.copy(), truth.copy()
    said[rng.random(said.shape[:3]) < 0.2] = np.nan
    said[:, :10, 2] = np.nan  # not fitted yet
    said[:, 7] = np.nan
    truth[rng.random(truth.shape) < 0.2] = np.nan
    return said, truth


def lagged(n, lag):
    return np.maximum(np.arange(n) - lag + 1, 0)


def replay(state, own, said, truth, known):
    """Issue each case after those that had verified by then, and learn these in turn."""
    issued, done = np.empty((*said.shape[:2], J)), 0
    for t, end in enumerate(known):
        state = learn(state, own, said[:, done:end], truth[:, done:end])
        done = end
        issued[:, [t]] = issue(state, own, said[:, [t]])
    return issued, state


def choices(n_locations=1, bounds=FREE, alone=3):
    return settings_of([bounds] * n_locations, K, J, alone=alone)


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


# against the formulas ----------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize("alone", [-1, 3])
@pytest.mark.parametrize("bounds", [FREE, (-0.3, np.inf), (-0.3, 0.9)])
def test_replay_is_what_the_formulas_give(alone, bounds):
    said, truth = stream(1, 60)
    said, truth = with_gaps(np.clip(said, *bounds), np.clip(truth, *bounds))
    known = lagged(60, 3)
    own = choices(bounds=bounds, alone=alone)
    issued, state = replay(empty_state(own), own, said, truth, known)
    slow = Aggregate(
        K,
        J,
        alone,
        forgetting=(1.0, 0.998, 0.99),
        fading=0.99,
        deviation=0.15,
        memory=0.998,
        contrast=1.0,
    )
    done = 0
    for t in range(60):
        for past in range(done, known[t]):
            slow.learn(said[0, past], truth[0, past], bounds)
        done = known[t]
        np.testing.assert_allclose(issued[0, t], slow.issue(said[0, t], bounds), atol=2e-4)
    np.testing.assert_allclose(state.regret[0], slow.regret, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(state.largest[0], slow.largest, rtol=1e-3)


def test_before_anything_is_learned_experts_count_alike_or_as_they_are_told_to():
    said, _ = stream(2, 5)
    own = choices(alone=-1)
    np.testing.assert_allclose(issue(empty_state(own), own, said), said.mean(2))
    told = own._replace(prior=np.array([0.7, 0.1, 0.1, 0.1]))
    expected = np.einsum("k,lnkj->lnj", told.prior, said)
    np.testing.assert_allclose(issue(empty_state(told), told, said), expected)


# laws --------------------------------------------------------------------------------------------

seeds = st.integers(0, 10**6)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, cuts=st.lists(st.integers(0, 30), max_size=5))
def test_thirty_cases_at_once_are_thirty_steps_bit_for_bit(seed, cuts):
    said, truth = with_gaps(*stream(seed, 30, 2, lower=-0.5), seed)
    own = choices(2, (-0.5, np.inf))
    whole = learn(empty_state(own), own, said, truth)
    state = empty_state(own)
    edges = [0, *sorted(cuts), 30]
    for start, end in pairwise(edges):
        state = learn(state, own, said[:, start:end], truth[:, start:end])
    assert_same(state, whole)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, lag=st.integers(1, 9), case=st.integers(0, 29))
def test_nothing_depends_on_what_had_not_verified(seed, lag, case):
    said, truth = stream(seed, 30)
    own, known = choices(), lagged(30, lag)
    issued, _ = replay(empty_state(own), own, said, truth, known)
    truth[:, case] += 3.0
    other, _ = replay(empty_state(own), own, said, truth, known)
    before = known <= case
    np.testing.assert_array_equal(issued[:, before], other[:, before])
    assert before.all() or not np.array_equal(issued, other)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, unit=st.sampled_from([1e-3, 0.5, 7.0, 1e4]), zero=st.sampled_from([-50.0, 3.0]))
def test_units_do_not_matter(seed, unit, zero):
    said, truth = stream(seed, 40)
    own, known = choices(), lagged(40, 2)
    issued, _ = replay(empty_state(own), own, said, truth, known)
    other, _ = replay(empty_state(own), own, zero + unit * said, zero + unit * truth, known)
    np.testing.assert_allclose((other - zero) / unit, issued, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_the_order_of_experts_and_locations_does_not_matter(seed):
    said, truth = with_gaps(*stream(seed, 40, 3), seed)
    own, known = choices(3, alone=0), lagged(40, 2)
    issued, _ = replay(empty_state(own), own, said, truth, known)
    turned, _ = replay(
        empty_state(own), own._replace(alone=3), said[::-1, :, ::-1], truth[::-1], known
    )
    np.testing.assert_allclose(turned[::-1], issued, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, lower=st.sampled_from([-np.inf, -0.5, 0.5]))
def test_what_is_issued_ascends_within_what_experts_say(seed, lower):
    said, truth = stream(seed, 40, lower=lower)
    own = choices(bounds=(lower, np.inf))
    issued, _ = replay(empty_state(own), own, said, truth, lagged(40, 1))
    assert (np.diff(issued, axis=-1) >= 0).all()
    assert (issued >= said.min((2, 3), keepdims=True)[..., 0, :] - 1e-12).all()
    assert (issued <= said.max((2, 3), keepdims=True)[..., 0, :] + 1e-12).all()


# what is missing ---------------------------------------------------------------------------------


def test_a_missing_expert_leaves_its_weight_to_the_others_and_learns_nothing():
    said, truth = stream(5, 50)
    own = choices()
    state = learn(empty_state(own), own, said, truth)
    new, y = stream(6, 1)
    new[:, :, 1, 3] = np.nan  # a single level is enough
    others = [0, 2, 3]
    fewer = settings_of([FREE], 3, J, alone=2)
    part = state._replace(
        regret=state.regret[:, :, others],
        square=state.square[:, :, others],
        largest=state.largest[:, :, others],
    )
    issued = issue(state, own, new)
    assert np.isfinite(issued).all()
    # Rates depend on the number of experts; with few cases E alone limits them here.
    np.testing.assert_allclose(issued, issue(part, fewer, new[:, :, others]), atol=0.05)
    after = learn(state, own, new, y)
    np.testing.assert_array_equal(after.regret[:, :, 1], state.regret[:, :, 1])
    assert (after.regret[:, :, others] != state.regret[:, :, others]).any()


def test_a_case_without_observation_or_expert_teaches_nothing():
    said, truth = stream(7, 20)
    own = choices()
    state = learn(empty_state(own), own, said, truth)
    assert_same(learn(state, own, said[:, :1], [[np.nan]]), state)
    nothing = np.full((1, 1, K, J), np.nan)
    assert_same(learn(state, own, nothing, [[0.3]]), state)
    assert np.isnan(issue(state, own, nothing)).all()


def test_strategies_keep_their_scores_where_the_expert_that_stands_alone_is_missing():
    said, truth = stream(8, 20)
    own = choices()
    state = learn(empty_state(own), own, said, truth)
    said[:, 0, own.alone] = np.nan
    after = learn(state, own, said[:, :1], truth[:, :1])
    np.testing.assert_array_equal(after.score, state.score)
    assert (after.regret != state.regret).any()
    assert np.isfinite(issue(after, own, said[:, :1])).all()


def test_locations_learn_alone():
    said, truth = with_gaps(*stream(9, 40, 2))
    own, single = choices(2), choices(1)
    both = learn(empty_state(own), own, said, truth)
    for cell in range(2):
        alone = learn(empty_state(single), single, said[[cell]], truth[[cell]])
        assert_same([part[[cell]] for part in both], alone)


def test_a_perfect_strategy_takes_all():
    truth = np.linspace(0.0, 1.0, 30)[np.newaxis]
    said = np.tile(truth[..., np.newaxis, np.newaxis], (1, 1, K, J))
    said[:, :, :3] += 1.0
    own = choices()
    state = learn(empty_state(own), own, said, truth)
    np.testing.assert_allclose(issue(state, own, said), said[:, :, 3])


def test_nothing_that_is_given_changes():
    said, truth = stream(10, 12)
    own = choices()
    first = empty_state(own)
    for part in (said, truth, *first):
        part.flags.writeable = False
    known = lagged(12, 1)
    issued, state = replay(first, own, said, truth, known)
    assert not any(part.any() for part in first)
    issue(read_only(state), own, said)
    assert np.isfinite(issued).all()


def read_only(state):
    for part in state:
        part.flags.writeable = False
    return state


# errors ------------------------------------------------------------------------------------------


def test_shapes_that_do_not_fit_are_refused():
    said, truth = stream(0, 5)
    own = choices()
    state = empty_state(own)
    with pytest.raises(ValueError, match=r"quantiles must have shape \(1, cases, 4, 12\).*3, 12\)"):
        issue(state, own, said[:, :, :3])
    with pytest.raises(ValueError, match=r"quantiles must have shape .* found \(5, 4, 12\)"):
        learn(state, own, said[0], truth)
    with pytest.raises(ValueError, match=r"observations must have shape \(1, 5\).*\(1, 4\)"):
        learn(state, own, said, truth[:, :4])
    with pytest.raises(ValueError, match=r"bounds must have shape \(locations, 2\), found \(2,\)"):
        settings_of([0.0, 1.0], K, J)
    with pytest.raises(ValueError, match="alone must be one of 4 positions from 0, or -1, found 4"):
        settings_of([FREE], K, J, alone=4)


def test_a_state_of_other_settings_is_refused():
    said, truth = stream(0, 5)
    own = choices()
    two = own._replace(forgetting=np.ones(2))
    with pytest.raises(
        ValueError, match=r"the state has arrays of shape .*empty_state\(settings\)"
    ):
        learn(empty_state(two), own, said, truth)
