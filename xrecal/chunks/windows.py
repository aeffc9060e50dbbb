"""Array functions that need a window around each position, on chunks with their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from .blockwise import run_blockwise


def run_windows(
    function: Callable[..., Any],
    *args: xr.DataArray,
    windows: Mapping[Hashable, int],
    core: Sequence[Sequence[Hashable]],
    out: Sequence[Sequence[Hashable]],
    **options: Any,
) -> tuple[xr.DataArray, ...]:
    """Apply an array function as :func:`run_blockwise` does, in chunks along ``windows`` too.

    ``windows`` are dimensions with the odd width of the window along each. They are the first core
    dimensions of all arguments and results, or of none. Where Dask cuts one of them, each chunk
    comes with half a window of its neighbours on every side, and the function gets, after the
    arguments, an array of truth values for each dimension: whether results are wanted there.
    ``options`` are the other ones of :func:`run_blockwise`.
    """
    cut = [arg for arg in args if any(len(arg.chunksizes.get(d, ())) > 1 for d in windows)]
    if not cut:
        return run_blockwise(function, *args, core=core, out=out, **options)
    lengths = {d: n for arg in args for d, n in arg.sizes.items()}
    chunks = {d: _chunks(d, width // 2, cut, lengths[d]) for d, width in windows.items()}
    others = {d for arg, own in zip(args, core, strict=True) for d in arg.dims if d not in own}
    first, *rest = args
    first = first.expand_dims({d: lengths[d] for d in others if d not in first.dims})
    wide = [
        _overlapped(arg.transpose(..., *own), windows, chunks)
        for arg, own in zip((first, *rest), core, strict=True)
    ]
    wanted = [_wanted(d, width // 2, chunks[d]) for d, width in windows.items()]
    results = run_blockwise(
        function,
        *wide,
        *wanted,
        core=[*(_without(own, windows) for own in core), *[()] * len(wanted)],
        out=[_without(own, windows) for own in out],
        **options,
    )
    return tuple(_trimmed(result, windows) for result in results)


def _without(dims: Sequence[Hashable], windows: Mapping[Hashable, int]) -> tuple[Hashable, ...]:
    return tuple(d for d in dims if d not in windows)


def _chunks(dim: Hashable, depth: int, cut: Sequence[xr.DataArray], size: int) -> tuple[int, ...]:
    """Chunks of the first array that is cut along a dimension, none shorter than half a window."""
    from dask.array.overlap import ensure_minimum_chunksize

    several = (arg.chunksizes[dim] for arg in cut if len(arg.chunksizes.get(dim, ())) > 1)
    given = next(several, (size,))
    return tuple(ensure_minimum_chunksize(max(depth, 1), given))  # type: ignore[no-untyped-call]


def _overlapped(
    array: xr.DataArray, windows: Mapping[Hashable, int], chunks: Mapping[Hashable, tuple[int, ...]]
) -> xr.DataArray:
    """An array in chunks that overlap, without coordinates along them."""
    from dask.array.overlap import overlap

    bare = array.drop_vars([n for n, c in array.coords.items() if {*c.dims} & {*windows}])
    bare = bare.chunk(chunks)
    axes = {bare.get_axis_num(d): width // 2 for d, width in windows.items()}
    data = overlap(  # type: ignore[no-untyped-call]
        bare.data, depth=axes, boundary="none", allow_rechunk=False
    )
    return xr.DataArray(data, bare.coords, bare.dims, bare.name)


def _wanted(dim: Hashable, depth: int, chunks: tuple[int, ...]) -> xr.DataArray:
    """Which positions of overlapping chunks belong to the chunk itself."""
    ends = [depth * (i > 0) for i in range(len(chunks))], [depth] * (len(chunks) - 1) + [0]
    parts = [
        np.repeat([False, True, False], [low, n, high])
        for low, n, high in zip(ends[0], chunks, ends[1], strict=True)
    ]
    whole = xr.DataArray(np.concatenate(parts), dims=[dim])
    return whole.chunk({dim: tuple(part.size for part in parts)})


def _trimmed(result: xr.DataArray, windows: Mapping[Hashable, int]) -> xr.DataArray:
    """A result without what chunks have of their neighbours."""
    from dask.array.overlap import trim_internal

    axes = {result.get_axis_num(d): width // 2 for d, width in windows.items()}
    data = trim_internal(result.data, axes, boundary="none")  # type: ignore[no-untyped-call]
    return xr.DataArray(data, result.coords, result.dims)
