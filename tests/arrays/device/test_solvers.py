import numpy as np
import pytest

from xrecal.arrays import squared_energy_distance
from xrecal.arrays.ckme.folds import arrange_folds
from xrecal.arrays.device.case_groups import Cases
from xrecal.arrays.device.location import locate
from xrecal.arrays.device.lowrank import LowRank
from xrecal.arrays.device.namespace import linear
from xrecal.arrays.device.solvers import Exact, split_of

from .cases import forecasts_and_observations

N = 40


@pytest.fixture(params=["alike", "older count less"])
def root(request):
    return np.ones(N) if request.param == "alike" else 2.0 ** (-np.arange(N)[::-1] / 60)


def located(library, rng, root, *, low_rank):
    """Locations of the library, and the kernel matrices that they stand for."""
    cases, observed = forecasts_and_observations(rng, 3, N)
    zeros = library(np.zeros((3, N)))
    known = Cases(
        library(cases.loc), None, zeros, zeros, library(np.zeros((3, N, 0))), library(observed), N
    )
    where = locate(known, np.zeros(0, bool), root, laplace=False, low_rank=low_rank)
    squared = np.stack([squared_energy_distance(members) for members in cases.loc])
    bandwidth = np.array([0.5, 1.0, 2.0])
    gram = np.exp(-squared / bandwidth[:, None, None]) * root[:, None] * root
    return where, library(bandwidth), library(np.zeros(3)), gram


def folds_of(blocks, gap=1):
    fold = np.arange(N) * blocks // N
    return arrange_folds(fold, np.arange(N), gap, False)


@pytest.mark.parametrize(
    "blocks", [5, 2]
)  # of two, with a gap, each trains on fewer than it leaves
def test_weights_solve_for_what_is_trained_on(library, rng, root, blocks):
    where, bandwidth, strength, gram = located(library, rng, root, low_rank=False)
    folds, ridge = folds_of(blocks, 2), np.array([1e-1, 1e-3])
    at = np.array([0, 2])
    solved = Exact(where, bandwidth, strength).prepare(at, ridge, 1.0)
    for f in range(folds.n_out.size):
        held, _, train = split_of(folds, f)
        found = library.host(solved.signed(folds, f))
        for k, place in enumerate(at):
            among = gram[place][np.ix_(train, train)]
            shift = ridge[k] * train.size * (root[train] ** 2).max() * np.eye(train.size)
            expected = np.linalg.solve(among + shift, gram[place][np.ix_(train, held)]).T
            np.testing.assert_allclose(found[k], expected, atol=1e-9)


def test_kernel_is_that_of_the_distances(library, rng, root):
    where, bandwidth, strength, gram = located(library, rng, root, low_rank=False)
    found = library.host(where.gram(bandwidth, strength))
    np.testing.assert_allclose(found, gram, atol=1e-12)
    chosen = np.array([[3, 1], [0, 5], [7, 7]])
    columns = library.host(where.columns(np.arange(3), library(chosen), bandwidth, strength))
    for place in range(3):
        np.testing.assert_allclose(columns[place], gram[place][chosen[place]], atol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
def test_factors_leave_no_more_than_the_tolerance(library, rng, root, tolerance):
    where, bandwidth, strength, gram = located(library, rng, root, low_rank=True)
    solver = LowRank(where, bandwidth, strength)
    at, limits = np.arange(3), np.array([tolerance, 10 * tolerance, tolerance])
    rank = solver.ranks_for(at, limits)
    rows = library.host(solver.rows_for(at, rank))
    for place in range(3):
        left = gram[place] - rows[place].T @ rows[place]
        assert np.linalg.eigvalsh(left).min() > -1e-9
        assert np.diag(left).mean() <= limits[place] + 1e-12
        assert len(set(solver.landmarks[place])) == len(solver.landmarks[place])
        first = solver.landmarks[place][: rank[place]]
        np.testing.assert_allclose(left[first], 0.0, atol=1e-9)
    fewer = solver.ranks_for(at, 3 * limits)
    assert (fewer <= rank).all()
    assert fewer.sum() < rank.sum()


def test_factors_from_known_landmarks_are_the_same(library, rng, root):
    where, bandwidth, strength, _ = located(library, rng, root, low_rank=True)
    solver, again = (LowRank(where, bandwidth, strength) for _ in range(2))
    at, limits = np.arange(3), np.array([1e-2, 1e-1, 1e-3])
    rank = solver.ranks_for(at, limits)
    again.start_from([np.array(found[:r]) for found, r in zip(solver.landmarks, rank, strict=True)])
    np.testing.assert_array_equal(again.rank, rank)
    np.testing.assert_allclose(
        again.residual, [r[n] for r, n in zip(solver._residuals, rank, strict=True)], atol=1e-12
    )
    one, other = (library.host(s.rows_for(at, rank)) for s in (solver, again))
    np.testing.assert_allclose(one, other, atol=1e-8)
    more = again.ranks_for(at, limits / 10)
    assert (more >= rank).all()


def test_low_rank_comes_to_the_exact_solution(library, rng, root):
    where, bandwidth, strength, gram = located(library, rng, root, low_rank=True)
    folds, ridge = folds_of(5), np.full(3, 1e-3)
    solver = LowRank(where, bandwidth, strength)
    solved = solver.prepare(np.arange(3), ridge, 1e-6)  # as good as all cases
    for f in range(folds.n_out.size):
        held, _, train = split_of(folds, f)
        found = library.host(solved.signed(folds, f))
        for place in range(3):
            among = gram[place][np.ix_(train, train)]
            shift = 1e-3 * train.size * (root[train] ** 2).max() * np.eye(train.size)
            expected = np.linalg.solve(among + shift, gram[place][np.ix_(train, held)]).T
            np.testing.assert_allclose(found[place], expected, atol=1e-4)


def test_operators_turn_similarities_into_weights(library, rng, root):
    where, bandwidth, strength, gram = located(library, rng, root, low_rank=True)
    solver, ridge = LowRank(where, bandwidth, strength), np.array([1e-5, 1e-4, 1e-5])
    chosen, first, rows = solver.operators(ridge)
    first, rows = library.host(first), library.host(rows)
    for place in range(3):
        known = chosen[place] >= 0
        landmarks = chosen[place][known]
        similarity = np.where(known, gram[place][:5][:, np.maximum(chosen[place], 0)], 9.0)
        found = similarity @ first[place] @ rows[place]
        columns = gram[place][:, landmarks]
        low = columns @ np.linalg.solve(gram[place][np.ix_(landmarks, landmarks)], columns.T)
        expected = np.linalg.solve(low + ridge[place] * N * np.eye(N), low[:, :5]).T
        np.testing.assert_allclose(found, expected, atol=1e-6)


def contradictory(library, monkeypatch):
    """A healthy location beside one whose kernel matrix has eigenvalues below zero."""
    where, bandwidth, strength, gram = located(
        library, np.random.default_rng(3), np.ones(N), low_rank=True
    )
    gram = gram.copy()
    gram[1] = np.where(np.eye(N) > 0, 1.0, np.where(np.add.outer(*2 * [np.arange(N)]) % 2, 0.9, 0))

    def of(at, chosen, *kernel):
        found = np.stack(
            [gram[place][own] for place, own in zip(at, library.host(chosen), strict=True)]
        )
        return library(found)

    assert np.linalg.eigvalsh(gram[1])[0] < -1
    monkeypatch.setattr(type(where), "columns", lambda _, *to: of(*to))
    return where, bandwidth, strength


def test_landmarks_stop_where_only_rounding_is_left(library, monkeypatch):
    where, bandwidth, strength = contradictory(library, monkeypatch)
    solver, limits = LowRank(where, bandwidth, strength), np.full(3, 1e-4)
    rank = solver.ranks_for(np.arange(3), limits)
    assert (solver.residual <= limits).all()
    assert 0 < rank[1] < 5 < rank[0]
    rows = library.host(solver.rows_for(np.arange(3), rank))
    assert (rows[1] ** 2).sum(0).max() < 2


def test_landmarks_that_rounding_makes_dependent_are_chosen_anew(library, monkeypatch):
    where, bandwidth, strength = contradictory(library, monkeypatch)
    whole, again = (LowRank(where, bandwidth, strength) for _ in range(2))
    rank = whole.ranks_for(np.arange(3), np.full(3, 1e-3))
    landmarks = [np.array(found[:r]) for found, r in zip(whole.landmarks, rank, strict=True)]
    again.start_from([landmarks[0], np.arange(20), landmarks[2]])
    np.testing.assert_array_equal(again.rank, [rank[0], 0, rank[2]])
    np.testing.assert_array_equal(again.ranks_for(np.arange(3), np.full(3, 1e-3)), rank)
    one, other = (library.host(s.rows_for(np.arange(3), rank)) for s in (whole, again))
    np.testing.assert_allclose(other, one, atol=1e-7)


@pytest.mark.parametrize("name", ["cholesky", "inv"])
def test_a_matrix_that_fails_is_missing_alone(library, name):
    stacked = library(np.stack([4 * np.eye(3), np.zeros((3, 3)), np.eye(3)]))
    found = library.host(linear(library.module, name, stacked))
    np.testing.assert_array_equal(np.isnan(found).all((1, 2)), [False, True, False])
    np.testing.assert_allclose(found[2], np.eye(3))
