"""Positive definite systems against NumPy's solver."""

import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays._lapack import solve_positive


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


@pytest.mark.parametrize(
    "change", [lambda a: a.astype(np.float32), np.asfortranarray], ids=["float32", "Fortran"]
)
def test_other_arrays_are_refused(change):
    matrix, rows = np.eye(4), np.arange(12.0).reshape(3, 4)
    for arguments in ((change(matrix * np.ones((4, 4)) + 4), rows), (matrix, change(rows))):
        if not (arguments[0].flags.c_contiguous and arguments[0].dtype == np.float64) or not (
            arguments[1].flags.c_contiguous and arguments[1].dtype == np.float64
        ):
            with pytest.raises(ValueError, match="contiguous arrays of float64"):
                solve_positive(*arguments)


def test_other_threads_run_meanwhile():
    """The GIL is free, or the counting thread would stand still."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(1500, 1500))
    matrix, rows = factor @ factor.T + np.eye(1500), rng.normal(size=(5, 1500))
    solve_positive(matrix[:2, :2].copy(), rows[:, :2].copy())  # loads LAPACK
    counted, done, before = 0, threading.Event(), sys.getswitchinterval()

    def solve():
        solve_positive(matrix, rows)
        done.set()

    # A thread that wants the GIL would have to ask for it for longer than the solver takes.
    sys.setswitchinterval(1000.0)
    try:
        thread = threading.Thread(target=solve)
        thread.start()
        while not done.is_set():
            counted += 1
            time.sleep(0)  # gives the GIL away
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert counted > 10
