"""Squared energy distances on a GPU at many locations at once.

One thread of the GPU compares one pair of ensembles; threads run in blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba.cuda

from xrecal.arrays.dispatch import is_on_device, namespace

if TYPE_CHECKING:
    from .ensembles import Ensembles

cuda: Any = numba.cuda

TILE = 16
"""A block of threads compares this number of ensembles with this number of other ensembles."""

MOST_LAYERS = 65535
"""Largest number of blocks of threads along the axis of locations. With more locations than this, a
block computes several locations."""


@cuda.jit(device=True)
def _apart(x, at_x, x_mass, at_x_mass, m, y, at_y, y_mass, at_y_mass, p):  # type: ignore[no-untyped-def]
    """Compute ``2 int (F - G)^2`` for the CDFs F of m points x and G of p points y.

    The points lie in flat arrays, in ascending order, from the positions ``at_x`` and ``at_y`` on.
    The function goes through the points of both ensembles in one ascending order. Between two
    points, F - G is the mass of all smaller points x, minus the mass of all smaller points y.
    """
    i, j, below, total, at = 0, 0, 0.0, 0.0, 0.0
    u, v = x[at_x], y[at_y]
    for _ in range(m + p):
        mine = j >= p or (i < m and u <= v)
        z = u if mine else v
        total += below * below * (z - at)
        at = z
        if mine:
            below += x_mass[at_x_mass + i]
            i += 1
            if i < m:
                u = x[at_x + i]
        else:
            below -= y_mass[at_y_mass + j]
            j += 1
            if j < p:
                v = y[at_y + j]
    return 2.0 * total


@cuda.jit
def _pairs(x, x_mass, m, y, y_mass, p, same, out):  # type: ignore[no-untyped-def]
    """Compute distances (L, n, q) of ensembles in flat arrays.

    If ``same`` is True, the kernel compares each pair of ensembles only once.
    """
    j, i = cuda.grid(2)
    n, q = out.shape[1], out.shape[2]
    if i < n and j < q and not (same and j >= i):
        for cell in range(cuda.blockIdx.z, out.shape[0], cuda.gridDim.z):
            mine, theirs = (cell * n + i) * m, (cell * q + j) * p
            found = _apart(x, mine, x_mass, mine, m, y, theirs, y_mass, theirs, p)
            out[cell, i, j] = found
            if same:
                out[cell, j, i] = found


def among(ensembles: Ensembles) -> Any:
    """Compute squared energy distances (L, n, n) among ensembles, in O(n² m / 2) per location."""
    return _distances(ensembles, ensembles, same=True)


def across(ones: Ensembles, others: Ensembles) -> Any:
    """Compute squared energy distances (L, n, q) from n ensembles of m members to q of p members.

    The cost per location is O(n q (m + p)).
    """
    return _distances(ones, others, same=False)


def _distances(ones: Ensembles, others: Ensembles, *, same: bool) -> Any:
    xp = namespace(ones.points)
    n_locations, n, m = ones.points.shape
    q, p = others.points.shape[1:]
    out = xp.zeros((n_locations, n, q), dtype=xp.float64)
    if 0 in (out.size, m, p):
        return out
    x, x_mass, y, y_mass = (
        _view(xp.ascontiguousarray(part).reshape(-1))
        for part in (ones.points, ones.mass, others.points, others.mass)
    )
    grid = (-(-q // TILE), -(-n // TILE), min(n_locations, MOST_LAYERS))
    _pairs[grid, (TILE, TILE), _stream(out)](x, x_mass, m, y, y_mass, p, same, _view(out))
    return out


def _view(array: Any) -> Any:
    """Return a Numba array that shares the memory of an array, without waiting for pending work."""
    return cuda.as_cuda_array(array, sync=False) if is_on_device(array) else array


def _stream(array: Any) -> Any:
    """Return the CUDA stream of the library of an array, or 0 on the host.

    On this stream, pending work on the array finishes before new work begins.
    """
    if not is_on_device(array):
        return 0
    return cuda.external_stream(namespace(array).cuda.get_current_stream().ptr)
