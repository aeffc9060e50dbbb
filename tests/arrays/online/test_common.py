"""Regrets that locations have in common: against the formula, and sums in any order."""

import numpy as np
import pytest

from tests.arrays.online.reference import Aggregate
from tests.arrays.online.test_aggregation import FREE, J, K, assert_same, choices, stream, with_gaps
from xrecal.arrays.online.aggregation import issue, learn, mean_weights
from xrecal.arrays.online.common import Common, Record, Sum, comparable, timelines
from xrecal.arrays.online.state import CONTRAST, FADING, FORGETTING, MEMORY, SMOOTHING, empty_state

N, PLACES = 24, 3


def cases():
    """Quantiles and truths of three locations, in units that differ by a factor of a thousand."""
    said, truth = with_gaps(*stream(4, N, PLACES))
    unit = np.array([1.0, 1000.0, 0.1])[:, np.newaxis]
    return unit[..., np.newaxis, np.newaxis] * said, unit * truth


def first_pass(said, truth, times, order=range(PLACES)):
    """What locations have in common, whose cases verify at some times (L, n)."""
    record, own = Record(with_known=False), choices()

    def visit():
        if record.predictors is None:
            return
        for place in order:
            state = empty_state(own)
            for t in range(N):
                at = [place], slice(t, t + 1)
                before, state = comparable(state), learn(state, own, said[at], truth[at])
                record.add(float(times[place, t]), comparable(state) - before)

    (found,) = timelines([record], [True], visit)
    return found


def references():
    constants = {"forgetting": FORGETTING, "fading": FADING, "memory": MEMORY}
    constants |= {"contrast": CONTRAST, "deviation": SMOOTHING}
    return [Aggregate(K, J, 3, **constants) for _ in range(PLACES)]


@pytest.mark.parametrize("late", [0, 3])
def test_shared_is_what_the_formula_says(late):
    said, truth = cases()
    times = np.arange(N) + late * (np.arange(PLACES) == 1)[:, np.newaxis]
    timeline = first_pass(said, truth, times)
    states = [empty_state(choices()) for _ in range(PLACES)]
    slow = references()
    for time in range(N + late):
        learned = [one.comparable() for one in slow if one.cases]
        common = np.mean(learned, 0) if learned else None
        for place in range(PLACES):
            case = time - (times[place, 0])
            if not 0 <= case < N:
                continue
            known = timeline.before(times[[place], case])
            given = said[[place], case : case + 1], truth[[place], case : case + 1]
            states[place] = learn(states[place], choices(), *given, known)
            slow[place].learn(said[place, case], truth[place, case], FREE, common)
            now = timeline.regrets[known.at[0, 0]]
            found = issue(states[place], choices(), given[0], now)[0, 0]
            expected = slow[place].issue(said[place, case], FREE, common)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    for state, one in zip(states, slow, strict=True):
        np.testing.assert_allclose(state.score[0], one.score, rtol=1e-6)
    expected = np.mean([one.comparable() for one in slow], 0)
    np.testing.assert_allclose(timeline.last[0], expected, atol=1e-8)


def test_the_order_of_locations_changes_nothing():
    said, truth = cases()
    times = np.arange(N) + np.zeros((PLACES, 1))
    first, other = (first_pass(said, truth, times, order) for order in ([0, 1, 2], [2, 0, 1]))
    assert_same(first[:2], other[:2])


def test_without_anything_in_common_it_learns_by_itself():
    said, truth = (a[:1] for a in cases())
    own = choices()
    state = learn(empty_state(own), own, said, truth)
    n = len(FORGETTING)
    np.testing.assert_array_equal(state.score[0, :-1], np.tile(state.score[0, :n], 3))
    alone = own._replace(parts=np.zeros(0))
    before = learn(empty_state(alone), alone, said, truth)
    np.testing.assert_array_equal(
        issue(state, own, said[:, -1:]), issue(before, alone, said[:, -1:])
    )
    np.testing.assert_array_equal(mean_weights(state, own), mean_weights(before, alone))


def test_common_regrets_move_weights_but_no_own_regret():
    said, truth = (a[:1] for a in cases())
    own = choices()
    common = np.zeros((1, len(FORGETTING), K, J))
    common[:, :, 0] = 20.0
    known = Common(common, np.zeros((1, N), int))
    shared, alone = (learn(empty_state(own), own, said, truth, c) for c in (known, None))
    for name in ("regret", "square", "largest", "cases"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))
    weights = [mean_weights(one, own, c)[0, 0] for one, c in ((alone, common[0]), (alone, None))]
    assert weights[0] > weights[1]


def test_rounds_follow_each_other():
    def record(*entries):
        one = Record(with_known=False)
        for time, value, n in entries:
            one.add(time, Sum(np.full((1, 1, 1), value, np.int64) << 32, n))
        return one

    records = [record(), record((2.0, 4, 1), (1.0, 2, 1), (2.0, 2, 0)), record((3.0, 4, 2))]
    nothing, first, second = timelines(records, [True, False, False], lambda: None)
    assert nothing is None
    np.testing.assert_array_equal(first.times, [1.0, 2.0])
    np.testing.assert_array_equal(first.regrets.ravel(), [np.nan, 2.0, 4.0])
    np.testing.assert_array_equal(second.regrets.ravel(), [4.0, 3.0])
    np.testing.assert_array_equal(first.before(np.array([1.0, 1.5, 2.0])).at, [[0, 1, 1]])
    brought = record((-np.inf, 6, 2), (5.0, 2, 0))
    (third,) = timelines([brought], [True], lambda: None)
    np.testing.assert_array_equal(third.times, [5.0])
    np.testing.assert_array_equal(third.regrets.ravel(), [3.0, 4.0])
