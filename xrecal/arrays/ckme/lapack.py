"""LAPACK routines of SciPy, called without the GIL; ``scipy.linalg`` would hold the GIL."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from xrecal.typing import FloatArray

N_INTEGERS = {"dpotrf": 3, "dpotrs": 5, "dtrsm": 4}
"""Number of integer parameters of each routine."""


class Positive:
    """A positive definite matrix A (r, r), stored as its Cholesky factor.

    The Cholesky factor takes half the work of an LU factor. The constructor overwrites the matrix.
    If rounding makes the matrix indefinite, or if the integers of SciPy's LAPACK differ in size
    from those of C, :func:`solve_any` solves the equations.

    References
    ----------
    .. [1] LAPACK, dpotrf and dpotrs: https://www.netlib.org/lapack/explore-html/
    .. [2] SciPy, ``scipy.linalg.cython_lapack``: its functions may be called from other languages.
    """

    def __init__(self, matrix: FloatArray) -> None:
        _check(matrix)
        self._matrix, self._is_factor = matrix, False
        factor, self._solver = _routine("lapack", "dpotrf"), _routine("lapack", "dpotrs")
        if factor is None or self._solver is None or not matrix.size:
            return
        diagonal = matrix.diagonal().copy()
        size, info = ctypes.c_int(matrix.shape[0]), ctypes.c_int(0)
        # LAPACK reads rows as columns. So its upper half "U" is the lower half of this symmetric
        # matrix.
        factor(_letter(b"U"), _by(size), matrix.ctypes.data, _by(size), _by(info))
        self._is_factor = info.value == 0
        if not self._is_factor:  # NumPy's upper half still holds the original matrix
            other = np.triu(matrix, 1)
            self._matrix = other + other.T
            self._matrix[np.diag_indices_from(other)] = diagonal

    def solve(self, rows: FloatArray) -> FloatArray:
        """Return ``B A⁻¹`` for a contiguous B (h, r); overwrite B."""
        _check(rows)
        if self._solver is None or not self._is_factor:
            return solve_any(self._matrix, rows.T).T
        size, count, info = map(ctypes.c_int, (self._matrix.shape[0], rows.shape[0], 0))
        self._solver(
            _letter(b"U"), _by(size), _by(count), self._matrix.ctypes.data, _by(size),
            rows.ctypes.data, _by(size), _by(info),
        )  # fmt: skip
        return rows


def solve_lower(root: FloatArray, columns: FloatArray) -> FloatArray:
    """Return ``C⁻¹ B`` for a lower triangular C (r, r) and B (r, k); overwrite B.

    Both arrays must be contiguous. The function takes O(r² k) time, half the time of a product with
    the inverse.
    """
    _check(root)
    _check(columns)
    solver = _routine("blas", "dtrsm")
    if solver is None or not root.size:
        return solve_any(root, columns)
    size, count, one = (
        ctypes.c_int(columns.shape[0]),
        ctypes.c_int(columns.shape[1]),
        ctypes.c_double(1),
    )
    # BLAS sees the transposes: Bᵀ C⁻ᵀ, with an upper triangle on the right.
    solver(
        _letter(b"R"), _letter(b"U"), _letter(b"N"), _letter(b"N"), _by(count), _by(size),
        _by(one), root.ctypes.data, _by(size), columns.ctypes.data, _by(count),
    )  # fmt: skip
    return columns


def solve_any(matrix: FloatArray, columns: FloatArray) -> FloatArray:
    """Return ``A⁻¹ B`` for A (r, r) and B (r, k), or the smallest least-squares solution.

    The function returns the least-squares solution if A is singular. With a ridge, only rounding
    can make A singular. The function raises no error, because an error at one location would stop
    the fit of all other locations.
    """
    try:
        return np.asarray(np.linalg.solve(matrix, columns))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, columns, rcond=None)[0])


def _check(array: FloatArray) -> None:
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise ValueError("LAPACK needs contiguous arrays of float64")


def _by(value: Any) -> Any:
    return ctypes.byref(value)


def _letter(letter: bytes) -> Any:
    return _by(ctypes.c_char(letter))


@cache
def _routine(library: str, name: str) -> Callable[..., None] | None:
    """Return a routine of SciPy's BLAS or LAPACK; ctypes releases the GIL while the routine runs.

    A Python capsule holds the routine, and the name of the capsule lists the parameters. The
    function returns None if the integer parameters are not of the type ``int`` of C.
    """
    capsule = import_module(f"scipy.linalg.cython_{library}").__pyx_capi__[name]
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature: bytes = name_of(capsule)
    if signature.count(b" int *") != N_INTEGERS[name]:
        return None
    found: Any = address_of(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * signature.count(b"*"))(found)
