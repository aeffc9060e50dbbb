"""Laws from sums over cases, against those from weights on all cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xrecal.arrays import crps, project_energy, squared_energy_distance
from xrecal.arrays.kernels.kernel import feature_weights, positive_median
from xrecal.arrays.shared import sums as summing
from xrecal.arrays.shared.cells import cell_averages, error_grid
from xrecal.arrays.shared.coordinates import Coordinates, coordinates_from
from xrecal.arrays.shared.folds import whole_folds
from xrecal.arrays.shared.landmarks import Landmarks, choose_landmarks
from xrecal.arrays.shared.law import nearest_law, ridge_losses, solve_sums
from xrecal.arrays.shared.sums import all_of, some_of, sum_cases, sum_parts

N, NEW, M = 260, 40, 8
rng = np.random.default_rng(0)
shapes = rng.gamma(3.0, size=(N + NEW, 1)) * rng.normal(size=(N + NEW, M))
features = np.column_stack([rng.normal(size=N + NEW), 50 + rng.random(N + NEW)])
errors = shapes.std(1) * rng.normal(size=N + NEW) + features[:, 0]
case_weights = rng.random(N) + 0.1
placed_by = coordinates_from(shapes[:N], features[:N])
placed = placed_by.of(shapes, features)
old, new = placed[:N], placed[N:]
grid = error_grid(errors[:N])
every = choose_landmarks(old, N, 0.0)
KERNEL = np.exp(-((placed[:, np.newaxis] - placed[:N]) ** 2).sum(-1))


def dense(ridge, weights=None, train=slice(None)):
    """Signed weights (NEW, n) of CKME on all cases, and those that keep the average law."""
    w = np.ones(N) if weights is None else weights
    w = w[train]
    among, across = KERNEL[:N][train][:, train], KERNEL[N:][:, train]
    beta = np.linalg.solve(among + ridge * w.sum() * np.diag(1 / w), across.T).T
    return beta + (1 - beta.sum(1, keepdims=True)) * w / w.sum()


@pytest.mark.parametrize("weights", [None, case_weights])
@pytest.mark.parametrize("ridge", [1e-4, 1e-2, 1.0])
def test_equals_ckme_on_all_cases(ridge, weights):
    law = solve_sums(every, grid, sum_cases(every, grid, old, errors[:N], weights), ridge)
    averages = cell_averages(errors[:N, np.newaxis], grid)
    np.testing.assert_allclose(law.signed(new), dense(ridge, weights) @ averages, atol=1e-8)


def test_scores_as_ckme_with_the_exact_projection_of_the_weights():
    weights = solve_sums(every, grid, sum_cases(every, grid, old, errors[:N]), 1e-2).weights(new)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-12)
    assert (weights >= 0).all()
    found = crps(errors[N:], np.broadcast_to(grid, (NEW, grid.size)), weights).mean()
    exact = project_energy(dense(1e-2), errors[:N])
    members = np.broadcast_to(errors[:N], exact.shape)
    assert abs(found / crps(errors[N:], members, exact).mean() - 1) < 1e-3


def test_the_nearest_law_is_that_of_the_energy_projection():
    signed = rng.normal(size=(5, grid.size - 1)).cumsum(1) / 4
    out = np.empty((5, grid.size))
    nearest_law(signed, np.diff(grid), out)
    beta = np.diff(signed, prepend=0, append=1)
    np.testing.assert_allclose(out, project_energy(beta, grid), atol=1e-12)
    unknown = np.full((1, grid.size - 1), np.nan)
    nearest_law(unknown, np.diff(grid), out[:1])
    assert np.isnan(out[0]).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(20, N))
def test_sums_do_not_depend_on_order_or_pieces(seed, n_pieces, block):
    few = choose_landmarks(old, 30)
    order = np.random.default_rng(seed).permutation(N)
    whole = sum_cases(few, grid, old, errors[:N], case_weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summing, "BLOCK", block)
        pieces = [
            sum_cases(few, grid, old[part], errors[part], case_weights[part])
            for part in np.array_split(order, n_pieces)
        ]
    for one, other in zip(all_of(pieces), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)
    rest = some_of(pieces, np.arange(n_pieces) > 0)  # none of a single piece
    for one, other in zip(rest.plus(pieces[0]), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


def test_cases_that_are_not_known_are_left_out():
    broken = old.copy(), errors[:N].copy(), np.ones(N)
    broken[0][3, 0], broken[1][5], broken[2][7] = np.nan, np.inf, 0.0
    kept = np.setdiff1d(np.arange(N), [3, 5, 7])
    for one, other in zip(
        sum_cases(every, grid, *broken),
        sum_cases(every, grid, old[kept], errors[kept]),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


def test_losses_of_ridges_are_those_of_each_held_out_case():
    fold, ridges = np.arange(N) * 3 // N, np.array([1e-3, 1e-1])
    parts = sum_parts(every, grid, old, errors[:N], fold, 3)
    averages, gaps = cell_averages(errors[:N, np.newaxis], grid), np.diff(grid)
    found = []
    for ridge in ridges:
        losses = np.empty(N)
        for f in range(3):
            law = solve_sums(every, grid, some_of(parts, np.arange(3) != f), ridge)
            cdf = law.signed(old[fold == f])
            seen = averages[fold == f]
            losses[fold == f] = (cdf**2 - 2 * cdf * seen + seen) @ gaps
        found.append(losses.mean())
    np.testing.assert_allclose(ridge_losses(parts, grid, whole_folds(3), ridges), found, rtol=1e-9)


def test_the_share_of_similar_cases_fades_far_away():
    law = solve_sums(every, grid, sum_cases(every, grid, old, errors[:N]), 1e-3)
    far = placed_by.of(shapes[N:], features[N:] + 100.0)
    assert (law.share @ law.landmarks.similarities(far) < 1e-6).all()
    np.testing.assert_allclose(law.signed(far), np.tile(law.average, (NEW, 1)), atol=1e-6)
    assert np.median(law.share @ law.landmarks.similarities(old)) > 0.8


def test_similarities_are_the_energy_distance_kernel_times_that_of_features():
    """Exactly so on a grid of all members; to 0.02 on 100 points."""
    members, few = shapes[:40], features[:40]
    squared = squared_energy_distance(members)
    bandwidth = positive_median(squared)
    precision = feature_weights(few, np.zeros(2, bool))
    apart = ((few[:, np.newaxis] - few) ** 2) @ precision
    fine = Coordinates(np.unique(members), bandwidth, few.mean(0), precision)
    for coordinates, accuracy in ((fine, 1e-10), (coordinates_from(members, few), 2e-2)):
        points = coordinates.of(members, few)
        found = Landmarks(points, np.eye(40)).similarities(points)
        np.testing.assert_allclose(found, np.exp(-squared / bandwidth - apart), atol=accuracy)


def test_vectors_of_cases_stand_for_their_similarities():
    z = every.embed(placed)
    np.testing.assert_allclose(z[:, N:].T @ z[:, :N], KERNEL[N:], atol=1e-9)
    few = choose_landmarks(old, N, 1e-3)
    z = few.embed(old)
    assert (1 - (z**2).sum(0) < 1.1e-3).all()


def test_equal_cases_are_one_landmark_and_constant_features_count_for_nothing():
    same = np.repeat(old[:3], 20, axis=0)
    assert choose_landmarks(same).rank == 3
    constant = np.column_stack([features[:N], np.full(N, 7.0)])
    added = coordinates_from(shapes[:N], constant)
    assert added.precision[2] == 0
    unknown = added.of(shapes[:N], np.column_stack([features[:N], np.full(N, np.nan)]))
    np.testing.assert_allclose(unknown[:, :-1], old, rtol=1e-12)


def test_messages():
    sums = sum_cases(every, grid, old, errors[:N])
    with pytest.raises(ValueError, match="ridge must be positive, got 0"):
        solve_sums(every, grid, sums, 0)
    with pytest.raises(ValueError, match="no cases to learn from"):
        solve_sums(every, grid, sums.times(0.0), 0.1)
    with pytest.raises(ValueError, match="need two folds with cases, found 0"):
        ridge_losses([sums], grid, whole_folds(1))
    with pytest.raises(ValueError, match="must be of the same cases"):
        sum_cases(every, grid, old, errors)
    with pytest.raises(ValueError, match="weights must not be negative, found -1"):
        sum_cases(every, grid, old, errors[:N], -np.ones(N))
    with pytest.raises(ValueError, match="landmarks need cases with finite coordinates"):
        choose_landmarks(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match=r"features need shape \(300, 2\)"):
        placed_by.of(shapes, features[:, :1])


def test_shapes_that_are_all_alike_do_not_count():
    alike = coordinates_from(np.ones((4, 3)), np.arange(4.0)[:, None])
    np.testing.assert_array_equal(alike.of(np.ones((4, 3)), np.arange(4.0)[:, None])[:, :-1], 0)
    assert np.ptp(alike.of(np.ones((4, 3)), np.arange(4.0)[:, None])[:, -1]) > 0
