"""Solvers against the linear system of each fold."""

import numpy as np
import pytest

from xrecal.arrays.solvers import (
    EXACT_UP_TO,
    MAX_RANK,
    SEARCH,
    Exact,
    LowRank,
    is_low_rank,
    landmark_slots,
)
from xrecal.arrays.tuning import arrange_folds

from .test_lowrank import gram, location


def folds(n=60, forward=False):
    return arrange_folds(np.arange(n) * 5 // n, np.arange(n), 2, forward)


def reference(matrix, root, some, f, ridge):
    n_out, n_held = some.n_out[f], some.n_held[f]
    train, held = some.cases[f, n_out:], some.cases[f, :n_held]
    shift = ridge * train.size * (root[train] ** 2).max() * np.eye(train.size)
    return train, np.linalg.solve(matrix[np.ix_(train, train)] + shift, matrix[np.ix_(train, held)])


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_exact_weights_solve_the_system_of_the_fold(forward, ridge):
    _, matrix, kernel = gram(0, True, 1.0, 1.0)
    exact = location(np.random.default_rng(0), low_rank=False, weights=True)
    solver, some = Exact(exact, *kernel), folds(forward=forward)
    for f in range(some.n_out.size):
        train, expected = reference(matrix, exact.root, some, f, ridge)
        assert solver.reaches(ridge)
        np.testing.assert_allclose(solver.signed(some, f, ridge)[train], expected, atol=1e-9)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("ridge", [1e-3, 0.1])
def test_weights_of_low_rank_solve_it_for_the_matrix_that_they_stand_for(forward, ridge):
    ours, _, kernel = gram(0, True, 1.0, 1.0)
    solver, some = LowRank(ours, *kernel), folds(forward=forward)
    assert solver.reaches(ridge)
    assert solver.factor.residual <= SEARCH * ridge
    matrix = solver.factor.rows.T @ solver.factor.rows
    for f in range(some.n_out.size):
        train, expected = reference(matrix, ours.root, some, f, ridge)
        np.testing.assert_allclose(solver.signed(some, f, ridge)[train], expected, atol=1e-9)
    solver.refine(ridge)
    assert solver.factor.residual <= ridge


def test_products_of_folds_are_kept_until_landmarks_or_folds_change():
    ours, _, kernel = gram(0, False, 1.0, 1.0)
    solver, some = LowRank(ours, *kernel), folds()
    for ridge in (0.1, 0.03, 1e-3):
        solver.reaches(ridge)
        for each in (some, folds(forward=True)):
            fresh = LowRank(ours, *kernel, solver.landmarks)
            np.testing.assert_allclose(
                solver.signed(each, 1, ridge), fresh.signed(each, 1, ridge), atol=1e-7
            )


def test_many_cases_are_solved_with_low_rank_unless_told_otherwise():
    assert not is_low_rank("auto", "gaussian", EXACT_UP_TO)
    assert is_low_rank("auto", "gaussian", EXACT_UP_TO + 1)
    assert not is_low_rank("auto", "laplace", EXACT_UP_TO + 1)
    assert is_low_rank("lowrank", "laplace", 30)
    assert not is_low_rank("exact", "gaussian", 10_000)
    assert landmark_slots("auto", "gaussian", 100) == 1
    assert landmark_slots("lowrank", "gaussian", 100) == 100
    assert landmark_slots("auto", "gaussian", 5000) == MAX_RANK
