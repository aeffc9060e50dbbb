"""Calls of functions with arrays that have all cases of a forecast on one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xarray as xr

from xrecal.arrays.dispatch import contiguous

from .run import Named, run


def over_cases(
    function: Callable[..., Any],
    *values: xr.DataArray,
    dims: Sequence[Hashable],
    out: Sequence[Sequence[Hashable]] = ((),),
    sizes: Mapping[Hashable, int] | None = None,
    dtypes: Sequence[Any] | None = None,
    what: str = "a diagnostic",
) -> tuple[xr.DataArray, ...]:
    """Apply a function to arrays that have all cases on the last axis.

    ``over_cases`` joins Dask chunks along the cases, because arrays with one number per case are
    small. An array may lack some of the dimensions ``dims``. If an entry of ``out`` equals
    ``dims``, the result of this entry has one value per case.
    """
    every = {d: n for value in values for d, n in value.sizes.items()}
    whole = [
        value.expand_dims({d: every[d] for d in dims if d not in value.dims}) for value in values
    ]
    whole = [v if v.chunks is None else v.chunk(dict.fromkeys(dims, -1)) for v in whole]
    bare = [v.drop_vars([c for c in v.coords if c not in v.indexes]) for v in whole]
    dtypes = [values[0].dtype] * len(out) if dtypes is None else dtypes
    lengths = {**every, **(sizes or {})}
    results = run(
        _OverCases(
            function,
            tuple(every[d] for d in dims),
            tuple(tuple(own) == tuple(dims) for own in out),
        ),
        {"values": {i: (value, tuple(dims)) for i, value in enumerate(bare)}},
        {
            i: ({d: lengths[d] for d in own}, dtype)
            for i, (own, dtype) in enumerate(zip(out, dtypes, strict=True))
        },
        what=what,
    )
    return tuple(results.values())


@dataclass(frozen=True)
class _OverCases:
    """Task that reshapes arrays (L, *shape) to (L, n), and then calls a function with them."""

    function: Callable[..., Any]
    shape: tuple[int, ...]
    per_case: tuple[bool, ...]

    @property
    def on_device(self) -> bool:
        """True if the function accepts CuPy arrays."""
        return bool(getattr(self.function, "on_device", False))

    def __call__(self, values: Named) -> Named:
        n = math.prod(self.shape)
        # One layout, so that sums have one order for any chunks and dimensions of the user.
        result = self.function(*(contiguous(a.reshape(len(a), n)) for a in values.values()))
        results = result if isinstance(result, tuple) else (result,)
        return {
            i: array.reshape(len(array), *self.shape) if own else array
            for i, (array, own) in enumerate(zip(results, self.per_case, strict=True))
        }
