from itertools import combinations

import numpy as np
import pytest
import scores.probability
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.rules import scoringrules
from xrecal.arrays import crps, fair_crps


def fair_sum(y, members):
    """``E|X - y|`` less half the mean difference of distinct members; NaN members left out."""
    x = members[~np.isnan(members)]
    pairs = np.abs(np.subtract.outer(x, x)).sum()
    return np.abs(x - y).mean() - pairs / (2 * x.size * (x.size - 1))


value = st.integers(-20, 20).map(lambda v: v / 4)
ensemble = st.integers(2, 7).flatmap(lambda m: arrays(np.float64, m, elements=value))


@given(value, ensemble, st.floats(-50, 50), st.floats(-20, 20))
def test_equals_the_double_sum_in_any_unit(y, members, shift, factor):
    expected, at = fair_sum(y, members), np.array(y)
    assert fair_crps(at, members) == pytest.approx(expected, abs=1e-13)
    assert fair_crps(at, members[::-1]) == pytest.approx(expected, abs=1e-13)
    assert fair_crps(at + shift, members + shift) == pytest.approx(expected, abs=1e-11)
    scaled = fair_crps(factor * at, factor * members)
    assert scaled == pytest.approx(abs(factor) * expected, abs=1e-10)
    assert fair_crps(at, members) <= crps(at, members) + 1e-13


@given(value, ensemble, st.data())
def test_subsets_have_the_same_score_on_average(y, members, data):
    """What makes it fair: drawing fewer members changes no expectation. The CRPS gets worse."""
    size = data.draw(st.integers(2, members.size))
    subsets = np.array(list(combinations(members, size)))
    at = np.full(len(subsets), y)
    expected = fair_crps(np.array(y), members)
    assert fair_crps(at, subsets).mean() == pytest.approx(expected, abs=1e-12)
    assert crps(at, subsets).mean() >= crps(np.array(y), members) - 1e-12


def test_equals_scoringrules_and_scores(rng):
    y, members = rng.normal(280, 1, size=40), rng.normal(280, 2, size=(40, 9))
    found = fair_crps(y, members)
    np.testing.assert_allclose(
        found, scoringrules.crps_ensemble(y, members, estimator="fair"), atol=1e-11
    )
    members[3, 4:7] = np.nan
    labelled = scores.probability.crps_for_ensemble(
        xr.DataArray(members, dims=["case", "member"]),
        xr.DataArray(y, dims="case"),
        "member",
        method="fair",
        preserve_dims="case",
    )
    np.testing.assert_allclose(fair_crps(y, members), labelled, atol=1e-11)


def test_missing_values(rng):
    y, members = rng.normal(size=6), rng.normal(size=(6, 4))
    y[0] = np.nan
    members[1] = np.nan
    members[2, 1:] = np.nan
    members[3, 0] = np.inf
    members[4, :2] = np.nan
    found = fair_crps(y, members)
    np.testing.assert_array_equal(np.isnan(found), [True, True, True, True, False, False])
    assert found[4] == pytest.approx(fair_sum(y[4], members[4]))
    assert np.isnan(fair_crps(np.zeros(2), np.empty((2, 0)))).all()
