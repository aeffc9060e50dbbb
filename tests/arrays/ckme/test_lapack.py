"""Positive definite systems against NumPy's solver."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays.ckme import lapack as _lapack
from xrecal.arrays.ckme.lapack import Positive, solve_any, solve_lower


def solve_positive(matrix, rows):
    return Positive(matrix).solve(rows)


@given(st.integers(1, 40), st.integers(0, 12), st.floats(-6, 2), st.integers(0, 2**32 - 1))
def test_rows_are_solved_as_by_numpy(size, count, exponent, seed):
    rng = np.random.default_rng(seed)
    factor, rows = rng.normal(size=(size, size + 3)), rng.normal(size=(count, size))
    matrix = factor @ factor.T + 10.0**exponent * np.eye(size)
    found = solve_positive(matrix.copy(), rows.copy())
    expected = np.linalg.solve(matrix, rows.T).T
    assert found.shape == (count, size)
    tolerance = 1e-14 * np.linalg.cond(matrix) * max(np.abs(expected).max(initial=0), 1)
    np.testing.assert_allclose(found, expected, atol=tolerance)


def test_only_the_half_below_the_diagonal_is_read():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(6, 9))
    matrix, rows = factor @ factor.T, rng.normal(size=(2, 6))
    below = matrix.copy()
    below[np.triu_indices(6, 1)] = np.nan
    np.testing.assert_array_equal(
        solve_positive(below, rows.copy()), solve_positive(matrix, rows.copy())
    )


def test_a_matrix_that_is_not_positive_definite_is_solved_all_the_same():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(7, 7))
    matrix, rows = half + half.T, rng.normal(size=(3, 7))
    assert np.linalg.eigvalsh(matrix)[0] < 0
    found = solve_positive(matrix.copy(), rows.copy())
    np.testing.assert_allclose(found @ matrix, rows, atol=1e-12)


def test_a_singular_matrix_gives_the_smallest_of_the_closest_solutions():
    matrix, rows = np.diag([2.0, 0.0, 4.0]), np.array([[2.0, 3.0, 8.0]])
    np.testing.assert_allclose(solve_positive(matrix.copy(), rows.copy()), [[1.0, 0.0, 2.0]])
    np.testing.assert_allclose(solve_any(matrix, rows.T)[:, 0], [1.0, 0.0, 2.0])


def test_nothing_is_solved_without_a_word(capfd):
    assert solve_positive(np.empty((0, 0)), np.empty((4, 0))).shape == (4, 0)
    assert solve_lower(np.empty((0, 0)), np.empty((0, 4))).shape == (0, 4)
    assert capfd.readouterr() == ("", "")  # LAPACK writes of what it does not take


@pytest.mark.parametrize("name", ["dpotrf", "dpotrs", "dtrsm"])
def test_other_integers_are_left_to_numpy(name, monkeypatch):
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(6, 9))
    matrix, rows = factor @ factor.T, rng.normal(size=(2, 6))
    root, columns = np.linalg.cholesky(matrix), np.ascontiguousarray(rows.T)
    expected = solve_positive(matrix.copy(), rows.copy()), solve_lower(root, columns.copy())
    monkeypatch.setitem(_lapack.N_INTEGERS, name, 0)
    _lapack._routine.cache_clear()
    try:
        assert _lapack._routine("blas" if name == "dtrsm" else "lapack", name) is None
        np.testing.assert_allclose(solve_positive(matrix, rows), expected[0], rtol=1e-11)
        np.testing.assert_allclose(solve_lower(root, columns), expected[1], rtol=1e-11)
    finally:
        _lapack._routine.cache_clear()


@given(st.integers(1, 40), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_triangles_are_solved_as_by_numpy(size, count, seed):
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(size, size))) + 3 * np.sqrt(size) * np.eye(size)
    columns = rng.normal(size=(size, count))
    filled = root + np.triu(np.full((size, size), np.nan), 1)
    found = solve_lower(filled, columns.copy())
    np.testing.assert_allclose(found, np.linalg.solve(root, columns), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("change", [np.float32, np.asfortranarray])
@pytest.mark.parametrize("which", [0, 1])
def test_other_arrays_are_refused(change, which):
    arrays = [np.eye(4), np.arange(12.0).reshape(3, 4)]
    arrays[which] = change(arrays[which])
    with pytest.raises(ValueError, match="contiguous arrays of float64"):
        solve_positive(*arrays)


def test_other_threads_run_meanwhile():
    """One that waits for the GIL gets it while another solves."""
    matrix, rows = np.eye(300), np.ones((2, 300))  # stay what they are when overwritten
    solve_positive(matrix, rows)  # loads LAPACK
    met, seen, before = threading.Event(), [], sys.getswitchinterval()

    def solve():
        for _ in range(2000):
            solve_positive(matrix, rows)
            if met.is_set():
                seen.append(True)
                return

    sys.setswitchinterval(1000.0)  # nobody is made to give the GIL away
    try:
        thread = threading.Thread(target=solve)
        thread.start()
        met.set()
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert seen
