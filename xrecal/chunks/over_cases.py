"""Array functions over the cases of a forecast, which they get as one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import as_array, contiguous

from .blockwise import run_blockwise


def over_cases(
    function: Callable[..., Any],
    *values: xr.DataArray,
    dims: Sequence[Hashable],
    out: Sequence[Sequence[Hashable]] = ((),),
    sizes: Mapping[Hashable, int] | None = None,
    dtypes: Sequence[Any] | None = None,
    what: str = "a diagnostic",
) -> tuple[xr.DataArray, ...]:
    """Apply an array function to values over cases, which it gets as one last axis.

    Values are one number a case, so those that Dask has in several chunks along the cases are
    brought together. They may lack other dimensions. A result whose entry of ``out`` is ``dims``
    is again one of each case.
    """
    every = {d: n for value in values for d, n in value.sizes.items()}
    whole = [
        value.expand_dims({d: every[d] for d in dims if d not in value.dims}) for value in values
    ]
    whole = [v if v.chunks is None else v.chunk(dict.fromkeys(dims, -1)) for v in whole]
    dtypes = [values[0].dtype] * len(out) if dtypes is None else dtypes
    per_case = [tuple(o) == tuple(dims) for o in out]
    shape = tuple(every[d] for d in dims)
    return run_blockwise(
        _OverCases(function, shape, per_case, dtypes),
        *[v.drop_vars([c for c in v.coords if c not in v.indexes]) for v in whole],
        core=[tuple(dims)] * len(whole),
        out=out,
        dtypes=dtypes,
        sizes={**every, **(sizes or {})},
        what=what,
    )


class _OverCases:
    """A function of values (..., n), called with values (..., *shape)."""

    def __init__(
        self,
        function: Callable[..., Any],
        shape: tuple[int, ...],
        per_case: Sequence[bool],
        dtypes: Sequence[Any],
    ) -> None:
        self.function, self.shape = function, shape
        self.per_case, self.dtypes = per_case, dtypes

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return bool(getattr(self.function, "on_device", False))

    def __call__(self, *values: npt.NDArray[Any]) -> Any:
        n_axes = len(self.shape)
        lead = np.broadcast_shapes(*(v.shape[: v.ndim - n_axes] for v in values))
        n = math.prod(self.shape)
        # In one layout, so that sums have one order whatever the chunks and the user's dimensions.
        rows = (np.broadcast_to(v, (*lead, *self.shape)).reshape(*lead, n) for v in values)
        result = self.function(*map(contiguous, rows))
        results = result if isinstance(result, tuple) else (result,)
        shaped = tuple(
            as_array(r.reshape(*lead, *self.shape) if own else r).astype(dtype, copy=False)
            for r, own, dtype in zip(results, self.per_case, self.dtypes, strict=True)
        )
        return shaped if len(shaped) > 1 else shaped[0]
