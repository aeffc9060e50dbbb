"""Weights by the leaves of a forest: those of scikit-learn's own trees, kept as arrays."""

import numpy as np
import pytest

from xrecal.arrays.baselines.forest import (
    LEAF,
    NO_SPLIT,
    SHARE,
    TRIED,
    FittedForest,
    Predictors,
    errors_of,
    fill_leaves,
    fit_forest,
    forest_forecasts,
    most_nodes,
)

sklearn = pytest.importorskip("sklearn.tree")

N, NEW, TREES = 150, 20, 12
FREE = np.full(1, -np.inf), np.full(1, np.inf)


def predictors(rng, n, k=4):
    mean, others = rng.normal(size=(1, n)), rng.normal(size=(1, n, k))
    return Predictors(mean, rng.gamma(2, size=(1, n)), np.zeros((1, n, 0)), others)


def observed(rng, of):
    """Errors follow the first two of the other predictors, in no straight line."""
    shift = np.where(of.others[..., 0] > 0, of.others[..., 1], -1)
    return of.mean + shift + 0.3 * rng.normal(size=of.mean.shape)


def fit(cases, observations, bounds=FREE, seed=0, n_trees=TREES, min_samples=20):
    step = np.arange(observations.shape[1])
    given = {"n_trees": n_trees, "seed": seed, "min_samples": min_samples}
    return fit_forest(cases, observations, bounds, step, **given)


@pytest.fixture
def world(rng):
    cases, new = predictors(rng, N), predictors(rng, NEW)
    observations = observed(rng, cases)
    return cases, new, observations, fit(cases, observations)


def grown_again(cases, errors, seed):
    """The trees of scikit-learn, and the predictors as it takes them."""
    columns, rng = cases.columns[0], np.random.default_rng(seed)
    for _ in range(TREES):
        some = np.sort(rng.permutation(N)[: int(SHARE * N)])
        tree = sklearn.DecisionTreeRegressor(
            min_samples_leaf=LEAF, max_features=TRIED, random_state=int(rng.integers(2**31))
        )
        yield tree.fit(columns[some], errors[some])


def leaves(fitted, columns):
    trees = fitted.predictor[0].astype(int), fitted.threshold[0].astype(float)
    leaf = np.empty((len(trees[0]), len(columns)), int)
    fill_leaves(*trees, fitted.right[0].astype(int), columns.astype(float), leaf)
    return leaf


def test_leaves_are_those_of_scikit_learn(world):
    cases, new, _, fitted = world
    trees = list(grown_again(cases, fitted.error[0], seed=0))
    for of in (cases, new):
        expected = [tree.apply(of.columns[0]) for tree in trees]
        np.testing.assert_array_equal(leaves(fitted, of.columns[0]), expected)


def test_leaves_between_values_that_single_precision_just_tells_apart(rng):
    steps = np.cumsum(np.full(N, np.finfo(np.float32).eps)) + 1
    cases = Predictors(steps[np.newaxis], np.ones((1, N)), np.zeros((1, N, 0)), np.zeros((1, N, 0)))
    fitted = fit(cases, rng.normal(size=(1, N)))
    trees = grown_again(cases, fitted.error[0], seed=0)
    expected = [tree.apply(cases.columns[0]) for tree in trees]
    found = leaves(fitted, cases.columns[0])
    parts = [np.unique(a, axis=1, return_inverse=True)[1].ravel() for a in (found, expected)]
    np.testing.assert_array_equal(*parts)


def test_weights_are_mean_shares_of_the_cases_in_a_leaf(world):
    cases, new, observations, fitted = world
    of_cases, of_new = (leaves(fitted, of.columns[0]) for of in (cases, new))
    expected = np.zeros((NEW, N))
    for tree in range(TREES):
        for t in range(NEW):
            together = of_cases[tree] == of_new[tree, t]
            expected[t] += together / together.sum() / TREES
    members, weights = forest_forecasts(new, cases, observations, fitted)
    np.testing.assert_allclose(weights[0], expected, atol=1e-14)
    np.testing.assert_allclose(weights.sum(-1), 1)
    assert np.isfinite(members).all()


def test_the_order_of_trees_makes_no_difference(world, rng):
    cases, new, observations, fitted = world
    order = rng.permutation(TREES)
    trees = {n: getattr(fitted, n)[:, order] for n in ("predictor", "threshold", "right")}
    found = forest_forecasts(new, cases, observations, fitted._replace(**trees))
    expected = forest_forecasts(new, cases, observations, fitted)
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_a_seed_fixes_all(world):
    cases, _, observations, fitted = world
    for found, expected in zip(fit(cases, observations), fitted, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert (fit(cases, observations, seed=1).predictor != fitted.predictor).any()


def test_members_are_errors_around_the_centre_of_the_forecast(world):
    cases, new, observations, fitted = world
    members, _ = forest_forecasts(new, cases, observations, fitted)
    a, b, c, d = fitted.centre[0]
    spread = np.sqrt(c**2 + d**2 * new.variance[0])
    expected = (a + b * new.mean[0])[:, np.newaxis] + spread[:, np.newaxis] * fitted.error[0]
    np.testing.assert_allclose(members[0], expected)


def test_errors_are_around_centres_without_the_own_fold(world):
    cases, _, observations, fitted = world
    changed = observations.copy()
    changed[0, 7] += 50
    far = fit(cases, changed).error[0, 7]
    changed[0, 7] += 50
    farther = fit(cases, changed).error[0, 7]
    np.testing.assert_allclose(farther - far, far - fitted.error[0, 7])


def test_errors_of_further_cases_are_around_the_centre_of_the_fit(world):
    _, new, _, fitted = world
    found = errors_of(new, new.mean, fitted.centre, FREE)
    a, b, c, d = fitted.centre[0]
    expected = ((1 - b) * new.mean[0] - a) / np.sqrt(c**2 + d**2 * new.variance[0])
    np.testing.assert_allclose(found[0], expected)


def test_cases_that_are_alike_have_the_weight(world, rng):
    cases, new, observations, fitted = world
    members, weights = forest_forecasts(new, cases, observations, fitted)
    by_forest = (weights * members).sum(-1)
    truth = observed(rng, new)
    assert np.abs(by_forest - truth).mean() < 0.7 * np.abs(members.mean(-1) - truth).mean()


def test_observations_on_a_bound_stay_there(rng):
    cases, new = predictors(rng, N), predictors(rng, NEW)
    rain = np.maximum(observed(rng, cases), 0)
    fitted = fit(cases, rain, (np.zeros(1), np.full(1, np.inf)))
    assert (fitted.error[rain == 0] == -np.inf).all()
    members, _ = forest_forecasts(new, cases, rain, fitted)
    assert (members[:, :, rain[0] == 0] == 0).all()
    assert members[:, :, rain[0] > 0].min() >= rain[rain > 0].min()


def test_cases_without_an_observation_have_no_weight(rng):
    cases, new = predictors(rng, N), predictors(rng, NEW)
    observations = observed(rng, cases)
    observations[0, ::3] = np.nan
    cases.others[0, 1, 0] = np.nan
    fitted = fit(cases, observations)
    _, weights = forest_forecasts(new, cases, observations, fitted)
    unused = np.isnan(observations[0])
    unused[1] = True
    assert np.isnan(fitted.error[0, unused]).all()
    assert (weights[..., unused] == 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_missing_forecasts_and_few_cases_have_no_weights(world):
    cases, new, observations, fitted = world
    new.mean[0, 3] = np.nan
    _, weights = forest_forecasts(new, cases, observations, fitted)
    assert np.isnan(weights[0, 3]).all()
    assert np.isfinite(np.delete(weights[0], 3, axis=0)).all()
    few = fit(cases, observations, min_samples=N + 1)
    assert np.isnan(forest_forecasts(new, cases, observations, few)[1]).all()


@pytest.mark.parametrize("n", [2, 3, 9, 10, 40])
def test_small_records_have_trees_of_few_nodes(rng, n):
    cases, new = predictors(rng, n), predictors(rng, NEW)
    observations = observed(rng, cases)
    fitted = fit(cases, observations, min_samples=2)
    assert fitted.predictor.shape == (1, TREES, most_nodes(n))
    _, weights = forest_forecasts(new, cases, observations, fitted)
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_constant_predictors_leave_one_leaf(rng):
    shape = (1, N)
    alike = Predictors(np.ones(shape), np.ones(shape), np.zeros((1, N, 0)), np.ones((1, N, 3)))
    fitted = fit(alike, rng.normal(size=shape))
    assert (fitted.predictor == NO_SPLIT).all()
    weights = forest_forecasts(alike, alike, rng.normal(size=shape), fitted)[1]
    np.testing.assert_allclose(weights, 1 / N)


def test_a_wild_error_does_not_take_all_splits(world):
    cases, new, observations, fitted = world
    wild = observations.copy()
    wild[0, 5] = 1e6
    found = forest_forecasts(new, cases, wild, fit(cases, wild))[1]
    expected = forest_forecasts(new, cases, observations, fitted)[1]
    assert np.abs(found - expected).sum(-1).mean() < 1


def test_nodes_that_no_fit_leaves_end_the_walk(world):
    cases, new, observations, fitted = world
    everywhere = np.full(fitted.right.shape, 30_000, np.int16)
    for right in (everywhere, np.zeros_like(everywhere), -everywhere):
        damaged = FittedForest(*fitted[:-1], right)
        weights = forest_forecasts(new, cases, observations, damaged)[1]
        np.testing.assert_allclose(weights.sum(-1), 1)
