"""Laws that all scores of weighted ensembles share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arrays.scores.ensembles import cases
from xrecal.arrays import (
    circular_crps,
    crps,
    energy_score,
    log_score,
    quantile_weighted_crps,
    threshold_weighted_crps,
)
from xrecal.arrays.scores.quantile_scores import WEIGHTINGS

INF, NAN = np.inf, np.nan


def of_thresholds(y, members, weights=None):
    return threshold_weighted_crps(y, members, weights, lower=-1.0, upper=0.7)


def of_turns(y, members, weights=None):
    return circular_crps(y, members, weights, period=7.0)


def of_vectors(y, members, weights=None):
    both = np.stack([members, -2 * members], axis=-2)
    return energy_score(np.stack([y, -2 * y], axis=-1), both, weights)


SCORES = {
    "crps": crps,
    "log": log_score,
    "thresholds": of_thresholds,
    "turns": of_turns,
    "vectors": of_vectors,
    **{
        weighting: lambda y, x, w=None, weighting=weighting: quantile_weighted_crps(
            y, x, w, weighting=weighting
        )
        for weighting in WEIGHTINGS
    },
}
of_each = pytest.mark.parametrize("name", SCORES)


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@of_each
@given(cases(), st.integers(0, 2**32 - 1))
def test_order_unit_of_weights_and_members_without_weight_change_nothing(name, case, seed):
    score, (y, members, weights) = SCORES[name], case
    found, own = score(y, members, weights), np.tile(members, (y.size, 1))
    assert found.shape == y.shape
    same(score(y, own, weights), found)
    order = np.random.default_rng(seed).permutation(members.size)
    same(score(y, members[order], 3 * weights[:, order]), found)
    same(score(y, own, np.full(own.shape, 0.2)), score(y, own))
    more = np.column_stack([weights, np.zeros(y.size), np.ones(y.size)])
    same(score(y, np.append(members, [7.0, NAN]), more), found)
    for i in range(y.size):
        same(score(y[i], members, weights[i]), found[i])


@pytest.mark.parametrize("name", sorted(set(SCORES) - {"log"}))
@given(cases())
def test_the_expected_score_is_smallest_for_the_truth(name, case):
    _, members, weights = case
    truth = weights[0] / weights[0].sum()
    expected = [
        truth @ SCORES[name](members, members, np.tile(w, (members.size, 1)))
        for w in (*weights, np.ones(members.size))
    ]
    assert min(expected) >= expected[0] - 1e-12


@of_each
@pytest.mark.parametrize("shared", [False, True])
def test_missing_values(name, shared):
    def score(y, members, weights):
        members = np.array(members) if shared else np.array([members])
        return SCORES[name](np.array([y]), members, np.array([weights]))[0]

    one, some = [1.0, 2.0], [0.2, 0.4]
    expected = score(0.3, some, one)
    assert np.isfinite(expected)
    alike = [([*some, NAN], [*one, 3.0])]
    if name != "vectors":
        alike += [([NAN, *some], [NAN, *one])]
        alike += [([*some, end], [*one, 0.0]) for end in (INF, -INF)]
    for members, weights in alike:
        assert score(0.3, members, weights) == pytest.approx(expected)
    for y, members, weights in (
        (NAN, some, one),
        (0.3, [NAN, NAN], one),
        (0.3, some, [0.0, 0.0]),
        (0.3, some, [1.0, NAN]),
        (0.3, [0.2, INF], one),
        (0.3, [0.2, -INF], one),
    ):
        assert np.isnan(score(y, members, weights))
    if name != "vectors":
        assert np.isnan(SCORES[name](np.zeros(2), np.empty((2, 0)))).all()
    assert np.isnan(SCORES[name](np.zeros(1), np.array([[0.2, INF]]))).all()


@pytest.mark.parametrize("name", sorted(set(SCORES) - {"vectors"}))
@pytest.mark.parametrize(
    ("n", "weights", "message"),
    [
        (3, -np.ones((3, 4)), "weights must not be negative"),
        (2, None, r"observations have shape \(2,\), .*(need|have shape) \(3,\)"),
    ],
)
def test_arguments_that_do_not_fit(name, n, weights, message):
    with pytest.raises(ValueError, match=message):
        SCORES[name](np.zeros(n), np.zeros((3, 4)), weights)
