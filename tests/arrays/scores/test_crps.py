import numpy as np
import properscoring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arrays.scores.ensembles import cases
from tests.rules import scoringrules
from xrecal.arrays import crps


def double_sum_crps(y, members, weights=None):
    """``sum w |x - y| - sum w w |x - x'| / 2`` of one forecast; NaN members left out."""
    keep = ~np.isnan(members)
    weights = np.ones(members.size) if weights is None else weights
    x, w = members[keep], weights[keep] / weights[keep].sum()
    return w @ np.abs(x - y) - w @ np.abs(np.subtract.outer(x, x)) @ w / 2


# against the formula and libraries ---------------------------------------------------------------


@given(cases())
def test_equals_the_double_sum(case):
    y, members, weights = case
    own = np.tile(members, (y.size, 1))
    expected = [double_sum_crps(v, members, w) for v, w in zip(y, weights, strict=True)]
    np.testing.assert_allclose(crps(y, members, weights), expected, atol=1e-13)
    np.testing.assert_allclose(crps(y, own, weights), expected, atol=1e-13)
    plain = [double_sum_crps(v, members) for v in y]
    np.testing.assert_allclose(crps(y, own), plain, atol=1e-13)
    np.testing.assert_allclose(crps(y, members, np.full_like(weights, 0.2)), plain, atol=1e-13)


def test_equals_properscoring_and_scoringrules(rng):
    y, members, weights = rng.normal(size=60), rng.normal(size=25), rng.gamma(1, size=(60, 25))
    own = np.tile(members, (60, 1))
    for expected in (
        properscoring.crps_ensemble(y, own, weights=weights),
        scoringrules.crps_ensemble(y, own, ens_w=weights, estimator="nrg"),
        scoringrules.crps_ensemble(y, own, ens_w=weights, estimator="qd"),
    ):
        np.testing.assert_allclose(crps(y, members, weights), expected, atol=1e-12)
        np.testing.assert_allclose(crps(y, own, weights), expected, atol=1e-12)
    own = rng.normal(size=(60, 25))
    expected = scoringrules.crps_ensemble(y, own, estimator="nrg")
    np.testing.assert_allclose(crps(y, own), expected, atol=1e-12)


# laws --------------------------------------------------------------------------------------------


@given(cases(), st.floats(-50, 50), st.floats(-20, 20))
def test_units(case, shift, factor):
    y, members, weights = case
    score = crps(y, members, weights)
    assert (score >= 0).all()
    moved = crps(factor * y + shift, factor * members + shift, weights)
    np.testing.assert_allclose(moved, abs(factor) * score, atol=1e-11)


# shapes, missing values, types -------------------------------------------------------------------


def test_errors():
    y, members = np.zeros(3), np.zeros((3, 4))
    with pytest.raises(ValueError, match="weights must not be negative"):
        crps(y, members[0], np.full((3, 4), -0.1))
    with pytest.raises(ValueError, match=r"weights of shape \(3, 5\) do not fit members of sh"):
        crps(y, members[0], np.ones((3, 5)))
