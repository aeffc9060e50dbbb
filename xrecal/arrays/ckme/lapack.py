"""LAPACK as SciPy brings it, called without the GIL, which ``scipy.linalg`` itself holds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from xrecal.typing import FloatArray

N_INTEGERS = 5
"""Parameters of dposv that are integers."""


def solve_positive(matrix: FloatArray, rows: FloatArray) -> FloatArray:
    """``B A⁻¹`` of a positive definite A (r, r) and rows B (h, r), by a Cholesky factor of A.

    Half the work of an LU decomposition. Both are overwritten and must be contiguous. Where
    rounding leaves A indefinite, or SciPy's LAPACK takes other integers than C's, the solution is
    that of :func:`numpy.linalg.solve`.

    References
    ----------
    .. [1] LAPACK, dposv: https://www.netlib.org/lapack/explore-html/d9/d2a/group__posv.html
    .. [2] SciPy, ``scipy.linalg.cython_lapack``: its functions may be called from other languages.
    """
    for array in (matrix, rows):
        if array.dtype != np.float64 or not array.flags.c_contiguous:
            raise ValueError("LAPACK needs contiguous arrays of float64")
    dposv = _dposv()
    if dposv is None:
        return np.asarray(np.linalg.solve(matrix, rows.T).T)
    size, count, info = ctypes.c_int(matrix.shape[0]), ctypes.c_int(rows.shape[0]), ctypes.c_int(0)
    # Rows are the columns of LAPACK, and of the symmetric matrix its upper half is this lower one.
    diagonal = matrix.diagonal().copy()
    dposv(
        ctypes.byref(ctypes.c_char(b"U")), ctypes.byref(size), ctypes.byref(count),
        matrix.ctypes.data, ctypes.byref(size), rows.ctypes.data, ctypes.byref(size),
        ctypes.byref(info),
    )  # fmt: skip
    if info.value == 0:
        return rows
    # The other half of the matrix still is what it was.
    other = np.triu(matrix, 1)
    other += other.T
    other[np.diag_indices_from(other)] = diagonal
    return np.asarray(np.linalg.solve(other, rows.T).T)


@cache
def _dposv() -> Callable[..., None] | None:
    """LAPACK's solver of positive definite systems; ctypes releases the GIL while it runs.

    The name of the capsule tells its parameters; None if integers are not C's.
    """
    import scipy.linalg.cython_lapack as lapack

    capsule = lapack.__pyx_capi__["dposv"]
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    if name.count(b" int *") != N_INTEGERS:
        return None
    found: Any = address_of(capsule, name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)(found)
