"""Overlapping chunks, for tasks that need a window around each position."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import xarray as xr


def overlapped(
    arrays: Sequence[xr.DataArray],
    core: Sequence[Sequence[Hashable]],
    windows: Mapping[Hashable, int],
) -> list[xr.DataArray]:
    """Return arrays in chunks that overlap, along ``windows``, by half a window on every side.

    The last arrays, one for each dimension in ``windows``, are masks of the positions that belong
    to the chunk itself. In all other arrays, the core dimensions ``core`` come last.
    """
    lengths = {d: n for array in arrays for d, n in array.sizes.items()}
    chunks = {d: _chunks(d, width // 2, arrays, lengths[d]) for d, width in windows.items()}
    others = {
        d for array, own in zip(arrays, core, strict=True) for d in array.dims if d not in own
    }
    first, *rest = arrays
    first = first.expand_dims({d: lengths[d] for d in others if d not in first.dims})
    wide = [
        _overlapped(array.transpose(..., *own), windows, chunks)
        for array, own in zip((first, *rest), core, strict=True)
    ]
    return [*wide, *(_wanted(d, width // 2, chunks[d]) for d, width in windows.items())]


def _chunks(dim: Hashable, depth: int, cut: Sequence[xr.DataArray], size: int) -> tuple[int, ...]:
    """Return the chunks along a dimension, from the first array with several chunks along it.

    The function merges chunks that are shorter than half a window with their neighbours.
    """
    from dask.array.overlap import ensure_minimum_chunksize

    several = (arg.chunksizes[dim] for arg in cut if len(arg.chunksizes.get(dim, ())) > 1)
    given = next(several, (size,))
    return tuple(ensure_minimum_chunksize(max(depth, 1), given))  # type: ignore[no-untyped-call]


def _overlapped(
    array: xr.DataArray, windows: Mapping[Hashable, int], chunks: Mapping[Hashable, tuple[int, ...]]
) -> xr.DataArray:
    """Return an array in overlapping chunks, without coordinates along ``windows``."""
    from dask.array.overlap import overlap

    bare = array.drop_vars([n for n, c in array.coords.items() if {*c.dims} & {*windows}])
    bare = bare.chunk(chunks)
    axes = {bare.get_axis_num(d): width // 2 for d, width in windows.items()}
    data = overlap(  # type: ignore[no-untyped-call]
        bare.data, depth=axes, boundary="none", allow_rechunk=False
    )
    return xr.DataArray(data, bare.coords, bare.dims, bare.name)


def _wanted(dim: Hashable, depth: int, chunks: tuple[int, ...]) -> xr.DataArray:
    """Mark the positions of overlapping chunks that belong to the chunk, not to a neighbour."""
    ends = [depth * (i > 0) for i in range(len(chunks))], [depth] * (len(chunks) - 1) + [0]
    parts = [
        np.repeat([False, True, False], [low, n, high])
        for low, n, high in zip(ends[0], chunks, ends[1], strict=True)
    ]
    whole = xr.DataArray(np.concatenate(parts), dims=[dim])
    return whole.chunk({dim: tuple(part.size for part in parts)})


def trimmed(result: xr.DataArray, windows: Mapping[Hashable, int]) -> xr.DataArray:
    """Return a result without the parts of neighbouring chunks."""
    from dask.array.overlap import trim_internal

    axes = {result.get_axis_num(d): width // 2 for d, width in windows.items()}
    data = trim_internal(result.data, axes, boundary="none")  # type: ignore[no-untyped-call]
    return xr.DataArray(data, result.coords, result.dims)
