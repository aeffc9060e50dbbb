from itertools import pairwise

import numpy as np
import pytest
import scores.probability
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad

from tests.arrays.scores.ensembles import cases, value
from tests.rules import scoringrules
from xrecal.arrays import crps, threshold_weighted_crps, weighted_cdf

INF = np.inf


@st.composite
def cases_with_ends(draw):
    """Cases with ascending thresholds (2, T)."""
    y, members, weights = draw(cases())
    ends = draw(arrays(np.float64, (2, y.size), elements=value))
    return y, members, weights, np.sort(ends, axis=0)


def integrated(y, members, weights, lower, upper):
    """The defining integral of one forecast, between neighbouring jumps."""

    def error(z):
        return (weighted_cdf(members, [z], weights)[0] - (z >= y)) ** 2

    knots = np.unique(np.clip([*members, y, lower, upper], lower, upper))
    knots = knots[np.isfinite(knots)]
    return sum(quad(error, a, b)[0] for a, b in pairwise(knots))


# against the formula and libraries ---------------------------------------------------------------


@pytest.mark.parametrize(("lower", "upper"), [(-1, 0.5), (-INF, 0.2), (0.2, INF), (3, 9), (1, 1)])
def test_is_the_integrated_squared_error(rng, lower, upper):
    members, weights = rng.normal(size=5), rng.gamma(1, size=5)
    for y in (-4.0, 0.1, 0.7, 4.0):
        expected = integrated(y, members, weights, lower, upper)
        found = threshold_weighted_crps(np.array(y), members, weights, lower=lower, upper=upper)
        assert found == pytest.approx(expected, abs=1e-9)


def test_equals_scoringrules_and_scores(rng):
    y, members = rng.normal(size=30), rng.normal(size=(30, 8))
    weights = rng.gamma(1, size=members.shape)
    labelled = xr.DataArray(members, dims=["case", "member"]), xr.DataArray(y, dims="case")
    for lower, upper in ((-0.5, 0.8), (0.3, INF), (-INF, 0.3)):
        found = threshold_weighted_crps(y, members, weights, lower=lower, upper=upper)
        expected = scoringrules.twcrps_ensemble(y, members, lower, upper, ens_w=weights)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    plain = threshold_weighted_crps(y, members, lower=0.3)
    np.testing.assert_allclose(plain, scoringrules.twcrps_ensemble(y, members, a=0.3), atol=1e-12)
    expected = scores.probability.tail_tw_crps_for_ensemble(
        *labelled, "member", 0.3, preserve_dims="case"
    )
    np.testing.assert_allclose(plain, expected, atol=1e-12)
    expected = scores.probability.interval_tw_crps_for_ensemble(
        *labelled, "member", -0.5, 0.8, preserve_dims="case"
    )
    found = threshold_weighted_crps(y, members, lower=-0.5, upper=0.8)
    np.testing.assert_allclose(found, expected, atol=1e-12)


# laws --------------------------------------------------------------------------------------------


@given(cases_with_ends(), st.floats(-50, 50), st.floats(0.1, 20))
def test_laws(case, shift, factor):
    y, members, weights, (low, high) = case
    found = threshold_weighted_crps(y, members, weights, lower=low, upper=high)
    assert (found >= 0).all()
    below = threshold_weighted_crps(y, members, weights, upper=low)
    above = threshold_weighted_crps(y, members, weights, lower=high)
    np.testing.assert_allclose(below + found + above, crps(y, members, weights), atol=1e-12)
    moved = threshold_weighted_crps(
        factor * y + shift,
        factor * members + shift,
        weights,
        lower=factor * low + shift,
        upper=factor * high + shift,
    )
    np.testing.assert_allclose(moved, factor * found, atol=1e-10)
    mirrored = threshold_weighted_crps(-y, -members, weights, lower=-high, upper=-low)
    np.testing.assert_allclose(mirrored, found, atol=1e-13)


# shapes, missing values, types -------------------------------------------------------------------


def test_missing_thresholds():
    for ends in ((np.nan, 1.0), (-1.0, np.nan)):
        found = threshold_weighted_crps(np.zeros(1), np.ones((1, 2)), lower=ends[0], upper=ends[1])
        assert np.isnan(found)


def test_errors():
    y, members = np.zeros(3), np.zeros((3, 4))
    with pytest.raises(
        ValueError, match="lower must not exceed upper, found 2 and 1; for no threshold give"
    ):
        threshold_weighted_crps(y, members, lower=2, upper=[3, 1, 3])
    with pytest.raises(ValueError, match="lower must not exceed upper, found inf and inf"):
        threshold_weighted_crps(y, members[0], np.ones((3, 4)), lower=INF)
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(\).*of observations, \(3,\)"):
        threshold_weighted_crps(y, members, lower=np.zeros(2))
