"""Corrections by recent errors, against regressions written out, and laws that they obey."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import Ridge

from xrecal.arrays.online.corrections import MEAN_SIZE, corrected, corrections, normal_scores

from .reference import expected_corrections, quantiles_corrected, within_reach

FREE = (-np.inf, np.inf)
BY_ONE = 0.7
"""By which a wild predictor of a hundred moves a correction at most."""


def past(seed=0, n=60, lag=3, n_new=4, n_common=0):
    rng = np.random.default_rng(seed)
    predictors = rng.normal(size=(n + n_new, 3 + n_common))
    predictors[:, 2] = rng.gamma(2.0, size=n + n_new)
    earlier = np.maximum(np.arange(n) - lag, 0)
    return rng.normal(size=n), earlier, predictors[:n], predictors[n:]


def test_a_normal_score_is_where_the_observation_lies():
    quantiles = np.arange(9.0)
    found = normal_scores(np.tile(quantiles, (5, 1)), [-1.0, 3.5, 4.0, 20.0, np.nan])
    expected = norm.ppf([0.05, 0.45, 0.5, 0.95, np.nan])
    np.testing.assert_allclose(found, expected, atol=1e-15)
    dry = np.r_[np.zeros(5), 1.0, 2.0, 3.0, 4.0]
    assert normal_scores(dry, 0.0) == pytest.approx(norm.ppf(0.3))  # in the middle of the dry ones
    assert np.isnan(normal_scores(np.r_[np.nan, quantiles], 1.0))


def test_scores_of_what_is_normal_are_standard_normal():
    rng = np.random.default_rng(1)
    quantiles = norm.ppf((np.arange(100) + 0.5) / 100, loc=3, scale=2)
    scores = normal_scores(np.tile(quantiles, (20_000, 1)), rng.normal(3, 2, size=20_000))
    assert scores.mean() == pytest.approx(0, abs=0.03)
    # Those beyond all quantiles are at most 2.6.
    assert np.abs(scores).mean() == pytest.approx(MEAN_SIZE, abs=0.03)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 60])
@pytest.mark.parametrize("lag", [0, 5])
@pytest.mark.parametrize("wild", [1.0, -1e9])
def test_corrections_are_those_of_regressions_written_out(n, lag, wild):
    errors, earlier, predictors, new = past(2, n, lag)
    predictors[n // 3 : n // 3 + 1, 1] *= wild
    new[1, 0] *= wild
    found = corrections(errors, earlier, predictors, new)
    if n == 0:
        np.testing.assert_array_equal(found, 0)
        return
    np.testing.assert_allclose(found, expected_corrections(errors, earlier, predictors, new))


@pytest.mark.parametrize("strength", [0.0, 0.2, 1.0])
def test_what_places_have_in_common_counts_by_its_evidence(strength):
    errors, earlier, predictors, new = past(7, 400, n_common=5)
    errors = errors + strength * predictors[:, 4]
    predictors[::9, 3] = np.nan
    found = corrections(errors, earlier, predictors, new)
    np.testing.assert_allclose(found, expected_corrections(errors, earlier, predictors, new))
    alone = corrections(errors, earlier, predictors[:, :3], new[:, :3])
    np.testing.assert_array_equal(found[:, 1], alone[:, 1])
    if strength == 0.0:
        np.testing.assert_allclose(found, alone, atol=0.05)
    unknown = [np.column_stack([a[:, :3], np.full((len(a), 5), np.nan)]) for a in (predictors, new)]
    np.testing.assert_allclose(corrections(errors, earlier, *unknown), alone)


def test_a_regression_is_the_ridge_regression_of_a_library():
    errors, earlier, predictors, new = past(3, 200, 0)
    errors, ridge = 0.4 * errors + 0.3 * predictors[:, 0], 20.0
    recent = [sum(0.1 * 0.9 ** (k - 1 - i) * errors[i] for i in range(k)) for k in earlier]
    recent.append(sum(0.1 * 0.9 ** (199 - i) * errors[i] for i in range(200)))
    cut = [within_reach(column, 200) for column in np.concatenate([predictors, new[:1]]).T]
    table = np.column_stack([recent, *cut])
    centred = table - np.r_[0, table[:200, 1:].mean(0)]
    scaled = (centred / np.sqrt((centred[:200] ** 2).mean(0))).clip(-3, 3)
    model = Ridge(alpha=ridge, fit_intercept=False).fit(scaled[:200], errors)
    found = corrections(errors, earlier, predictors, new[:1], rate=0.1, ridge=ridge)
    assert found[0, 0] == pytest.approx(model.predict(scaled[200:])[0])


def test_what_is_missing_is_missing_alone():
    errors, earlier, predictors, new = past(5)
    holes = new.copy()
    holes[1, 2] = np.nan
    found = corrections(errors, earlier, predictors, holes)
    np.testing.assert_array_equal(np.isnan(found), [[False] * 2, [True] * 2] + [[False] * 2] * 2)
    whole = corrections(errors, earlier, predictors, new)
    np.testing.assert_array_equal(found[[0, 2, 3]], whole[[0, 2, 3]])
    quantiles = np.tile(np.arange(5.0), (4, 1))
    quantiles[0] = np.nan
    assert np.isnan(corrected(quantiles, found, FREE)).any(-1).tolist() == [
        True,
        True,
        False,
        False,
    ]


@settings(max_examples=50)
@given(
    seed=st.integers(0, 10_000),
    column=st.integers(0, 2),
    case=st.integers(0, 99),
    wild=st.sampled_from([1e3, -1e3, 1e6, -1e12, 1e300]),
)
def test_a_wild_predictor_counts_as_one_at_an_edge(seed, column, case, wild):
    errors, earlier, predictors, new = past(seed, 100)
    errors = 0.5 * errors + predictors[:, column]
    usual = corrections(errors, earlier, predictors, new)
    far = predictors.copy()
    far[case, column] = wild
    found = corrections(errors, earlier, far, new)
    far[case, column] = np.copysign(1e3, wild)
    np.testing.assert_allclose(found, corrections(errors, earlier, far, new), atol=1e-9)
    assert np.abs(found - usual).max() < BY_ONE
    # What is learned of the others stays: the shift still follows the predictor.
    assert found[:, 0] @ usual[:, 0] > 0.2 * usual[:, 0] @ usual[:, 0]

    now = new.copy()
    now[0, column] = wild
    found = corrections(errors, earlier, predictors, now)
    np.testing.assert_array_equal(found[1:], usual[1:])
    now[0, column] = np.copysign(1e3, wild)
    np.testing.assert_array_equal(found, corrections(errors, earlier, predictors, now))


def test_scores_of_wild_observations_are_bounded():
    wild = np.array([-1e300, -np.inf, 1e300, np.inf])
    found = normal_scores(np.tile(np.arange(100.0), (4, 1)), wild)
    np.testing.assert_allclose(np.abs(found), norm.ppf(100.5 / 101))


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.sampled_from([1e-3, 7.0, 1e4]))
def test_units_make_no_difference(seed, factor):
    errors, earlier, predictors, new = past(seed, 30)
    one = corrections(errors, earlier, predictors, new)
    np.testing.assert_allclose(
        corrections(errors, earlier, factor * predictors, factor * new), one, atol=1e-12
    )
    # Another sign of the variable turns the shift round, and leaves the stretch.
    turned = [1, 1, -1] * -predictors, [1, 1, -1] * -new
    np.testing.assert_allclose(corrections(-errors, earlier, *turned), one * [-1, 1], atol=1e-12)


@settings(max_examples=100)
@given(st.integers(0, 10_000), st.floats(-1, 1), st.floats(-0.7, 0.7), st.sampled_from([2, 9, 100]))
def test_quantiles_are_read_off_at_other_levels(seed, shift, stretch, n_levels):
    quantiles = np.sort(np.random.default_rng(seed).normal(size=n_levels))
    found = corrected(quantiles[np.newaxis], [[shift, stretch]], FREE)[0]
    np.testing.assert_allclose(found, quantiles_corrected(quantiles, shift, stretch), atol=1e-9)
    assert (np.diff(found) >= 0).all()
    within = corrected(quantiles[np.newaxis], [[shift, stretch]], (-0.1, 0.3))
    np.testing.assert_array_equal(within[0], found.clip(-0.1, 0.3))


def test_of_a_normal_distribution_they_are_those_of_another():
    scores = norm.ppf((np.arange(100) + 0.5) / 100)
    found = corrected(3 + 2 * scores[np.newaxis], [[0.5, np.log(1.3)]], FREE)[0]
    np.testing.assert_allclose(found, 3 + 2 * (0.5 + 1.3 * scores))
    np.testing.assert_allclose(corrected([[3.0, 5.0]], [[0.0, 0.0]], FREE), [[3.0, 5.0]])
    np.testing.assert_array_equal(corrected([[3.0]], [[1.0, 0.0]], FREE), [[3.0]])
