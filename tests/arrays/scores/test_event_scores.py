from functools import partial
from itertools import combinations
from operator import gt

import numpy as np
import properscoring
import pytest
import scores.probability
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import brier_score_loss

from tests.rules import scoringrules
from xrecal.arrays import brier_score, ranked_probability_score, weighted_exceedance

EDGES = np.array([-0.5, 0.0, 0.8])
value = st.integers(-8, 8).map(lambda v: v / 4)


# Brier -------------------------------------------------------------------------------------------


def test_equals_libraries(rng):
    y, members = rng.integers(-3, 4, 40) / 2, rng.integers(-3, 4, (40, 7)) / 2  # many ties
    p = weighted_exceedance(members, EDGES)
    found = brier_score(y, p, EDGES)
    close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-14)
    close(found, properscoring.threshold_brier_score(y, members, EDGES))
    close(found, scoringrules.brier_score(y[:, np.newaxis] > EDGES, p))
    for k in range(3):
        expected = brier_score_loss(y > EDGES[k], p[:, k], pos_label=True)
        assert found[:, k].mean() == pytest.approx(expected)
    labelled = xr.DataArray(members, dims=["case", "member"]), xr.DataArray(y, dims="case")
    for fair in (False, True):
        expected = scores.probability.brier_score_for_ensemble(
            *labelled,
            "member",
            EDGES.tolist(),
            preserve_dims="case",
            fair_correction=fair,
            event_threshold_operator=gt,
        ).transpose("case", "threshold")
        found = brier_score(y, p, EDGES, n_members=7 if fair else None)
        np.testing.assert_allclose(found, expected, atol=1e-15)


@given(arrays(np.float64, st.integers(2, 6), elements=value), value, value, st.data())
def test_fair_scores_of_subsets_have_the_same_mean(members, y, threshold, data):
    size = data.draw(st.integers(2, members.size))
    subsets = np.array(list(combinations(members, size)))
    p = weighted_exceedance(subsets, [threshold])
    found = brier_score(np.full(len(subsets), y), p, [threshold], n_members=size)
    whole = weighted_exceedance(members, [threshold])
    expected = brier_score(np.array(y), whole, [threshold], n_members=members.size)
    assert found.mean() == pytest.approx(float(expected[0]), abs=1e-12)
    assert (found >= -1e-15).all()


@given(st.floats(0, 1), st.floats(0, 1))
def test_expected_score_is_smallest_for_the_truth(truth, p):
    y, t = np.array([0.0, 1.0]), [0.5]
    expected = [
        np.array([1 - truth, truth]) @ brier_score(y, np.full((2, 1), forecast), t)[:, 0]
        for forecast in (truth, p)
    ]
    assert expected[0] <= expected[1] + 1e-12


def test_missing_values():
    y, p, t = np.zeros(4), np.full((4, 1), 0.5), np.zeros((4, 1))
    y[0] = p[1] = t[2] = np.nan
    for found in (brier_score(y, p, t), ranked_probability_score(y, p, t)[:, np.newaxis]):
        np.testing.assert_array_equal(np.isnan(found[:, 0]), [True, True, True, False])
    for members in (0, 1, np.nan):
        assert np.isnan(brier_score(y, p, t, n_members=members)).all()
    varying = brier_score(np.zeros(3), p[:1] * np.ones((3, 1)), t[:1], n_members=[1, 2, 3])
    np.testing.assert_allclose(varying[:, 0], [np.nan, 0.0, 0.125])


# ranked probability ------------------------------------------------------------------------------


def test_ranked_probability_score_equals_scoringrules_and_the_sum(rng):
    y, members = rng.normal(size=40), rng.normal(size=(40, 9))
    p = weighted_exceedance(members, EDGES)
    found = ranked_probability_score(y, p, EDGES)
    assert found.shape == (40,)
    shares = -np.diff(p, axis=-1, prepend=1.0, append=0.0)
    category = 1 + (y[:, np.newaxis] > EDGES).sum(-1)
    np.testing.assert_allclose(found, scoringrules.rps_score(category, shares), atol=1e-14)
    np.testing.assert_allclose(found, brier_score(y, p, EDGES).sum(-1))
    fair = ranked_probability_score(y, p, EDGES, n_members=9)
    np.testing.assert_allclose(fair, brier_score(y, p, EDGES, 9).sum(-1))
    assert (fair <= found).all()


def test_errors():
    y, p = np.zeros(3), np.full((3, 2), 0.5)
    with pytest.raises(ValueError, match="probabilities must lie between 0 and 1, found 50"):
        brier_score(y, 100 * p, [0.0, 1.0])
    with pytest.raises(ValueError, match=r"probabilities have shape \(3,\), but observations \(3,"):
        brier_score(y, p[:, 0], [0.0])
    with pytest.raises(
        ValueError, match=r"thresholds have shape \(3,\), which does not br.*\(3, 2"
    ):
        brier_score(y, p, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"n_members have shape \(2,\), which does not br.*\(3,\)"):
        brier_score(y, p, [0.0, 1.0], n_members=[3, 4])
    with pytest.raises(ValueError, match="edges decrease along the last axis; sort them"):
        ranked_probability_score(y, p, [1.0, 0.0])
    with pytest.raises(ValueError, match=r"edges have shape \(0,\); give at least one"):
        ranked_probability_score(y, p[:, :0], [])


def test_thresholds_of_cases_and_ties():
    y, p = np.array([1.0, 1.0]), np.full((2, 1), 0.25)
    found = brier_score(y, p, np.array([[1.0], [0.9]]))
    np.testing.assert_allclose(found, [[0.0625], [0.5625]])  # on the threshold is not above
