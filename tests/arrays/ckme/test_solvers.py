"""Solvers against the linear system of each fold."""

import numpy as np
import pytest

from xrecal.arrays.ckme.folds import arrange_folds
from xrecal.arrays.ckme.location import MAX_RANK, MAX_RANK_OF_SHAPES
from xrecal.arrays.ckme.lowrank import FINE, ROUGH, LowRank
from xrecal.arrays.ckme.solvers import EXACT_UP_TO, Exact, Solvers, is_low_rank, landmark_slots

from .test_lowrank import gram, location


def folds(n=60, forward=False):
    return arrange_folds(np.arange(n) * 5 // n, np.arange(n), 2, forward)


def reference(matrix, root, some, f, ridge):
    n_out, n_held = some.n_out[f], some.n_held[f]
    train, held = some.cases[f, n_out:], some.cases[f, :n_held]
    shift = ridge * train.size * (root[train] ** 2).max() * np.eye(train.size)
    return np.linalg.solve(matrix[np.ix_(train, train)] + shift, matrix[np.ix_(train, held)])


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_exact_weights_solve_the_system_of_the_fold(forward, ridge):
    _, matrix, kernel = gram(0, True, 1.0, 1.0)
    exact = location(np.random.default_rng(0), low_rank=False, weights=True)
    solver, some = Exact(exact, *kernel), folds(forward=forward)
    for f in range(some.n_out.size):
        expected = reference(matrix, exact.root, some, f, ridge)
        np.testing.assert_allclose(solver.signed(some, f, ridge, FINE), expected.T, atol=1e-9)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("ridge", [1e-3, 0.1])
@pytest.mark.parametrize("slack", [ROUGH, FINE])
def test_weights_of_low_rank_solve_it_for_the_matrix_that_they_stand_for(forward, ridge, slack):
    ours, _, kernel = gram(0, True, 1.0, 1.0)
    solver, some = LowRank(ours, *kernel), folds(forward=forward)
    assert solver.reaches(ridge, slack)
    assert solver.residual <= slack * ridge
    matrix = solver.rows.T @ solver.rows
    for f in range(some.n_out.size):
        expected = reference(matrix, ours.root, some, f, ridge)
        np.testing.assert_allclose(solver.signed(some, f, ridge, slack), expected.T, atol=1e-9)


def test_what_was_done_for_other_ridges_and_folds_changes_nothing():
    ours, _, kernel = gram(0, False, 1.0, 1.0)
    solver, some = LowRank(ours, *kernel), folds()
    for ridge in (0.1, 1e-3, 0.03):
        for each in (some, folds(forward=True)):
            fresh = LowRank(ours, *kernel)
            np.testing.assert_allclose(
                solver.signed(each, 1, ridge, FINE), fresh.signed(each, 1, ridge, FINE), atol=1e-7
            )
            assert solver.landmarks_for(ridge) == fresh.landmarks_for(ridge)


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("kept", [0, 2**26])
def test_solvers_are_the_same_whether_kept_or_made_again(monkeypatch, low_rank, kept):
    monkeypatch.setattr("xrecal.arrays.ckme.solvers.KEPT", kept)
    one = location(np.random.default_rng(0), low_rank=low_rank)
    kernels = ((1.0, 0.0), (1.0, 1.0), (4.0, 0.25))
    solvers, some = Solvers(one, one.median), folds()
    first = [solvers[kernel].signed(some, 0, 1e-3, FINE) for kernel in kernels]
    kinds = [solvers[kernel] for kernel in kernels]
    assert all(isinstance(solver, LowRank if low_rank else Exact) for solver in kinds)
    assert (solvers[kernels[0]] is kinds[0]) == (kept > 0)
    for g, (widening, strength) in enumerate(kernels):
        again = solvers[kernels[g]]
        alone = type(kinds[g])(one, one.median * widening, strength)
        np.testing.assert_allclose(first[g], alone.signed(some, 0, 1e-3, FINE), atol=1e-9)
        np.testing.assert_allclose(again.signed(some, 0, 1e-3, FINE), first[g], atol=1e-7)
        if low_rank:
            assert again.landmarks_for(1e-3) == alone.landmarks_for(1e-3)


def test_many_cases_are_solved_with_low_rank_unless_told_otherwise():
    assert not is_low_rank("auto", "gaussian", EXACT_UP_TO)
    assert is_low_rank("auto", "gaussian", EXACT_UP_TO + 1)
    assert not is_low_rank("auto", "laplace", EXACT_UP_TO + 1)
    assert is_low_rank("lowrank", "laplace", 30)
    assert not is_low_rank("exact", "gaussian", 10_000)
    assert landmark_slots("auto", "gaussian", 100) == 1
    assert landmark_slots("lowrank", "gaussian", 100) == 100
    assert landmark_slots("auto", "gaussian", 5000) == MAX_RANK
    assert landmark_slots("auto", "gaussian", 5000, shapes=True) == MAX_RANK_OF_SHAPES
