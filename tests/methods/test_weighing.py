"""Weights of pools with a component for all places, against the minimum of their mean score."""

import numpy as np
import pytest

import xrecal
from xrecal.arrays.distributions.pool import PULL, weights_of_scores
from xrecal.methods.components import components_of
from xrecal.methods.weighing import (
    MATRIX,
    TRUST,
    evidence,
    evidence_sizes,
    weights_at_places,
    weights_of_all,
)

PLACES = 30
COMPONENTS = components_of((xrecal.EMOS(), xrecal.IDR(), xrecal.Raw()))


@pytest.fixture(scope="module")
def choices():
    """Scores of places whose errors have other sizes, about those of one matrix."""
    rng = np.random.default_rng(3)
    mean = np.array([[1.05, 0.95, 0.93], [0.95, 1.0, 0.94], [0.93, 0.94, 1.1]])
    noise = 0.05 * rng.normal(size=(PLACES, 3, 3))
    size = rng.uniform(1.0, 50.0, (PLACES, 1, 1))
    scores = size * (mean + noise + np.swapaxes(noise, 1, 2))
    return scores, evidence(scores, np.ones(PLACES)), rng.integers(40, 80, PLACES).astype(float)


def by_grid(scores, pull, towards):
    """Weights with the smallest penalised score among those on a fine grid."""
    steps = np.linspace(0.0, 1.0, 201)
    first, second = (a.ravel() for a in np.meshgrid(steps, steps))
    grid = np.stack([first, second, 1.0 - first - second], -1)
    grid = grid[grid[:, 2] >= -1e-12]
    loss = np.einsum("gc,cd,gd->g", grid, scores, grid)
    loss += pull * scores.diagonal().min() * ((grid - towards) ** 2).sum(-1)
    return grid[loss.argmin()]


def test_those_of_all_are_best_for_the_mean(choices):
    scores, given, n = choices
    relative = scores / scores.diagonal(axis1=1, axis2=2).min(-1)[:, np.newaxis, np.newaxis]
    np.testing.assert_allclose(given[MATRIX], relative)
    assert {name: given[name].shape[1:] for name in given} == evidence_sizes(3)
    found = weights_of_all(COMPONENTS, given, n)
    mean = relative.mean(0)
    prior = mean.diagonal() ** -15.0
    expected = by_grid(mean, PULL * np.median(n) / n.sum(), prior / prior.sum())
    np.testing.assert_allclose(found["pool_weight"][0], expected, atol=0.006)
    np.testing.assert_allclose(found[MATRIX][0], mean)
    one = weights_of_all(COMPONENTS, {name: a[:1] for name, a in given.items()}, n[:1])
    np.testing.assert_allclose(one["pool_weight"], weights_of_scores(scores[:1]), rtol=1e-9)


def test_those_of_a_place_are_drawn_to_those_of_all(choices):
    _, given, n = choices
    of_all = weights_of_all(COMPONENTS, given, n)
    together = {name: np.repeat(a, PLACES, 0) for name, a in of_all.items()}
    share = np.where(np.arange(PLACES) < 3, 0.0, 0.3)
    found = weights_at_places(COMPONENTS, together, given, share)
    np.testing.assert_array_equal(found[:3], together["pool_weight"][:3])
    for place in (5, 17):
        blend = 0.7 * of_all[MATRIX][0] + 0.3 * given[MATRIX][place]
        expected = by_grid(blend, PULL, of_all["pool_weight"][0])
        np.testing.assert_allclose(found[place], expected, atol=0.006)


def test_a_component_that_is_unknown_at_a_place_has_the_score_of_others(choices):
    _, given, n = choices
    lacking = {name: a.copy() for name, a in given.items()}
    lacking[MATRIX][4, 1], lacking[MATRIX][4, :, 1] = np.nan, np.nan
    lacking[MATRIX][6], lacking[TRUST][6] = np.nan, np.nan
    of_all = weights_of_all(COMPONENTS, lacking, n)
    known = np.delete(given[MATRIX], [4, 6], 0)[:, 1, 1].mean()
    assert of_all[MATRIX][0, 1, 1] == pytest.approx(known)
    together = {name: np.repeat(a, PLACES, 0) for name, a in of_all.items()}
    found = weights_at_places(COMPONENTS, together, lacking, np.full(PLACES, 0.2))
    np.testing.assert_allclose(found.sum(-1), 1.0)
    np.testing.assert_allclose(found[6], of_all["pool_weight"][0], atol=0.02)


def test_where_errors_jumped_components_given_the_season_lose_weight(choices):
    _, given, n = choices
    seasonal = components_of((xrecal.EMOS(), xrecal.IDR(condition_on="season"), xrecal.Raw()))
    doubt = {**given, TRUST: np.full(PLACES, 0.25)}
    sure, unsure = (weights_of_all(seasonal, one, n)["pool_weight"][0] for one in (given, doubt))
    assert sure[1] > 0
    assert unsure[1] == pytest.approx(0.25 * sure[1])
    assert unsure.sum() == pytest.approx(1.0)
