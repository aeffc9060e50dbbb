"""Weights and offsets of models, against searches of the simplex and sums from the formula."""

import numpy as np
import pytest
from scipy.optimize import minimize

from xrecal.arrays.baselines import named_members as nm
from xrecal.arrays.baselines.lines import BLOCKS
from xrecal.arrays.baselines.robust import deviations
from xrecal.arrays.distributions.forms import Forecasts

N, M = 200, 4


def cases(n_places=3, seed=0, scales=(0.5, 1.0, 2.0, 2.0), bias=(0.0, 1.0, -2.0, 3.0)):
    """Members (L, n, m) with errors of these sizes around the truth (L, n)."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_places, N))
    errors = np.array(bias) + np.array(scales) * rng.normal(size=(n_places, N, M))
    return truth[..., np.newaxis] + errors, truth


def weights_of(members, truth):
    bias, _ = nm.member_biases(members, truth)
    return nm.member_weights(nm.error_sums(members, truth, bias), N, members.shape[-1])


def test_biases_are_means_of_errors_with_their_squared_errors():
    members, truth = cases()
    bias, error = nm.member_biases(members, truth)
    errors = members - truth[..., np.newaxis]
    np.testing.assert_allclose(bias, errors.mean(1), atol=0.1)
    apart = errors - errors.mean(-1, keepdims=True)
    np.testing.assert_allclose(error, apart.var(1) / N, rtol=0.25)


def test_a_spike_moves_no_bias_and_no_weight():
    members, truth = cases()
    wild = members.copy()
    wild[0, 7, 0] += 1e6
    np.testing.assert_allclose(
        nm.member_biases(wild, truth)[0], nm.member_biases(members, truth)[0], atol=0.02
    )
    np.testing.assert_allclose(weights_of(wild, truth), weights_of(members, truth), atol=0.02)


def test_variables_with_a_bound_have_no_offsets():
    members, truth = cases()
    bias, error = nm.member_biases(np.maximum(members, 0.0), np.maximum(truth, 0.0))
    np.testing.assert_array_equal([bias, error], 0.0)


def test_sums_are_those_of_products_of_cut_errors():
    members, truth = cases(2)
    members[0, 3:9, 1] = np.nan
    truth[1, 50:70] = np.nan
    bias = np.arange(2 * M).reshape(2, M) / 10
    expected, counts = np.zeros((BLOCKS, M, M)), np.zeros(BLOCKS)
    for place in range(2):
        errors = members[place] - truth[place, :, np.newaxis] - bias[place]
        own = np.array(
            [np.mean(e[np.isfinite(e)]) if np.isfinite(e).any() else np.nan for e in errors]
        )
        middle, typical = deviations(own[np.isfinite(own)])
        for i in range(N):
            if np.isnan(truth[place, i]):
                continue
            e = np.where(np.isnan(errors[i]), own[i], errors[i])
            e = np.clip((e - middle) / typical, -3, 3)
            expected[i * BLOCKS // N] += np.outer(e, e)
            counts[i * BLOCKS // N] += 1
    found = nm.error_sums(members, truth, bias).reshape(BLOCKS, -1)
    np.testing.assert_array_equal(found[:, -1], counts)
    np.testing.assert_allclose(found[:, :-1].reshape(BLOCKS, M, M) / 2**20, expected, atol=1e-5)


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_the_minimum_on_the_simplex(ridge, seed):
    root = np.random.default_rng(seed).normal(size=(6, 6))
    square = root @ root.T
    scaled = square / (np.trace(square) / 6)

    def loss(w):
        return w @ scaled @ w + ridge * ((w - 1 / 6) ** 2).sum()

    found = nm._on_simplex(square, ridge)
    sums = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(loss, np.full(6, 1 / 6), bounds=[(0, 1)] * 6, constraints=sums, tol=1e-12)
    np.testing.assert_allclose(found.sum(), 1)
    assert found.min() >= 0
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_better_models_weigh_more_and_none_weighs_nothing():
    weights = weights_of(*cases())
    np.testing.assert_allclose(weights.sum(), 1)
    assert weights[0] > 0.4 > weights[1] > weights[2:].max()
    assert weights.min() >= nm.LEAST / M


@pytest.mark.parametrize("seed", range(5))
def test_equal_models_keep_equal_weights(seed):
    weights = weights_of(*cases(seed=seed, scales=(1.0,) * M))
    np.testing.assert_allclose(weights, 1 / M, atol=0.05)


def test_few_dates_leave_weights_equal():
    members, truth = cases()
    bias, _ = nm.member_biases(members[:, :39], truth[:, :39])
    sums = nm.error_sums(members[:, :39], truth[:, :39], bias)
    np.testing.assert_array_equal(nm.member_weights(sums, 39, M), 1 / M)


def test_offsets_shrink_with_their_errors_and_with_few_dates():
    bias, error = np.array([1.0, -1.0, 3.0, -3.0]), np.ones(4)
    share = (1 - 1 / 5) * 160 / (160 + nm.CASES_OF_NONE)  # of 200 dates, beyond the first 40
    np.testing.assert_allclose(nm.offsets_from(bias, error, 200), bias * share)
    np.testing.assert_array_equal(nm.offsets_from(bias, 6 * error, 200), 0.0)
    np.testing.assert_array_equal(nm.offsets_from(bias, 0 * error, nm.FEWEST), 0.0)
    some = np.array([2.0, np.nan, 4.0, np.nan])
    found = nm.offsets_from(some, np.where(np.isnan(some), np.nan, 0.0), 10**9)
    np.testing.assert_allclose(found, [-1.0, 0.0, 1.0, 0.0], rtol=1e-6)


def test_weighted_ensembles_keep_their_type():
    members, _ = cases()
    some = Forecasts(members.astype(np.float32))
    found = nm.as_weighted(some, np.full((3, M), 0.25), np.ones((3, M)))
    assert found.loc.dtype == found.weights.dtype == np.float32
    np.testing.assert_array_equal(found.loc, members.astype(np.float32) - 1)
    np.testing.assert_array_equal(found.weights, 0.25)
