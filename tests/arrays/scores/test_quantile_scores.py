import numpy as np
import pytest
import scores.continuous
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from sklearn.metrics import mean_pinball_loss

from tests.arrays.scores.ensembles import cases, value
from tests.rules import scoringrules
from xrecal.arrays import crps, quantile_score, quantile_weighted_crps

WEIGHTS = {
    "center": lambda t: t * (1 - t),
    "tails": lambda t: (2 * t - 1) ** 2,
    "upper": lambda t: t**2,
    "lower": lambda t: (1 - t) ** 2,
}
LEVELS = np.array([0.9, 0.1, 0.5])


def integrated(y, members, weights, weighting):
    """The defining integral of one forecast over levels, between the steps of its quantiles."""
    keep = ~np.isnan(members) & (weights > 0)
    order = np.argsort(members[keep])
    members, mass = members[keep][order], weights[keep][order] / weights[keep].sum()
    ends = np.concatenate([[0], np.cumsum(mass)])
    total = 0.0
    for q, start, end in zip(members, ends[:-1], ends[1:], strict=True):
        slope = quad(lambda t, q=q: ((y <= q) - t) * WEIGHTS[weighting](t), start, end)[0]
        total += 2 * (q - y) * slope
    return total


# single quantiles --------------------------------------------------------------------------------


def test_quantile_score_is_the_pinball_loss_of_libraries(rng):
    y, quantiles = rng.normal(size=30), rng.normal(size=(30, 3))
    quantiles[:3, 1] = y[:3]
    found = quantile_score(y, quantiles, LEVELS)
    labelled = xr.DataArray(y, dims="case")
    for k, level in enumerate(LEVELS):
        expected = scoringrules.quantile_score(y, quantiles[:, k], level)
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-12, atol=1e-14)
        expected = scores.continuous.quantile_score(
            xr.DataArray(quantiles[:, k], dims="case"), labelled, level, preserve_dims=["case"]
        )
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-12, atol=1e-14)
        expected = mean_pinball_loss(y, quantiles[:, k], alpha=level)
        assert found[:, k].mean() == pytest.approx(expected)


@given(arrays(np.float64, st.integers(1, 8), elements=value), value)
def test_mean_over_equal_levels_is_half_the_crps(members, y):
    levels = (np.arange(members.size) + 0.5) / members.size
    found = quantile_score(np.array(y), np.sort(members), levels)
    assert (found >= 0).all()
    assert 2 * found.mean() == pytest.approx(float(crps(np.array(y), members)), abs=1e-12)


@given(st.floats(0.01, 0.99), arrays(np.float64, 5, elements=value), value)
def test_the_quantile_has_the_smallest_expected_score(level, members, other):
    q = np.quantile(members, level, method="inverted_cdf")
    best, score = (
        quantile_score(members, np.full((5, 1), at), np.array([level])).mean() for at in (q, other)
    )
    assert best <= score + 1e-12


def test_quantile_score_of_missing_values_and_ends():
    y, quantiles = np.array([0.0, np.nan, 1.0]), np.zeros((3, 2))
    quantiles[2, 0] = np.nan
    found = quantile_score(y, quantiles, [0.1, 0.5])
    np.testing.assert_array_equal(np.isnan(found), [[False] * 2, [True] * 2, [True, False]])
    ends = quantile_score(np.array(1.0), np.array([-np.inf, np.inf]), [0.0, 1.0])
    np.testing.assert_array_equal(ends, [0.0, 0.0])


def test_errors_of_the_quantile_score():
    with pytest.raises(ValueError, match=r"q must hold levels between 0 and 1, got \[1.5\]"):
        quantile_score(np.zeros(2), np.zeros((2, 1)), [1.5])
    with pytest.raises(ValueError, match=r"quantiles have shape \(3, 2\).*need \(2, 3\); put the"):
        quantile_score(np.zeros(2), np.zeros((3, 2)), LEVELS)


# weighted quantiles ------------------------------------------------------------------------------


@given(cases(), st.sampled_from(list(WEIGHTS)))
def test_equals_the_integral(case, weighting):
    y, members, weights = case
    expected = [integrated(v, members, w, weighting) for v, w in zip(y, weights, strict=True)]
    found = quantile_weighted_crps(y, members, weights, weighting=weighting)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    own = np.tile(members, (y.size, 1))
    found = quantile_weighted_crps(y, own, weights, weighting=weighting)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    expected = [integrated(v, members, np.ones(members.size), weighting) for v in y]
    found = quantile_weighted_crps(y, own, weighting=weighting)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(cases())
def test_weights_that_add_up_to_one_give_the_crps(case):
    center, tails, upper, lower = (quantile_weighted_crps(*case, weighting=v) for v in WEIGHTS)
    expected = crps(*case)
    np.testing.assert_allclose(tails + 4 * center, expected, atol=1e-12)
    np.testing.assert_allclose(upper + lower + 2 * center, expected, atol=1e-12)


@given(cases(), st.floats(-50, 50), st.floats(0.1, 20))
def test_laws(case, shift, factor):
    y, members, weights = case
    for weighting, mirrored in zip(WEIGHTS, ["center", "tails", "lower", "upper"], strict=True):
        found = quantile_weighted_crps(y, members, weights, weighting=weighting)
        assert (found >= 0).all()
        moved = quantile_weighted_crps(
            factor * y + shift, factor * members + shift, 3 * weights, weighting=weighting
        )
        np.testing.assert_allclose(moved, factor * found, atol=1e-10)
        turned = quantile_weighted_crps(-y, -members, weights, weighting=mirrored)
        np.testing.assert_allclose(turned, found, atol=1e-12)


def test_errors():
    with pytest.raises(ValueError, match="weighting is 'left'; give one of 'center', 'tails', 'up"):
        quantile_weighted_crps(np.zeros(3), np.zeros((3, 4)), weighting="left")
