"""What one Dask task does to pool: the cases of several positions, a block of fits at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import namespace
from xrecal.typing import IntArray

if TYPE_CHECKING:
    from xrecal.inputs.pool import Pool

Arrays: TypeAlias = npt.NDArray[Any] | tuple[npt.NDArray[Any], ...]


class PooledTask:
    """Gives a task the pooled cases of a block of fits at a time, and joins its results.

    Arguments are arrays (..., pooled dimensions, date, ...), results (..., pooled dimensions with
    fits of their own, ...). The task gets (B, n k, ...), so that the neighbours of all locations,
    many times the input, are never in memory at once.

    The last ``n_served`` arguments are not pooled: the task gets them as they are, (B, t, n, ...),
    at the t positions that each fit is for, and returns arrays (B, t, ...), so that results have
    all pooled dimensions.
    """

    def __init__(
        self,
        task: Callable[..., Arrays],
        pool: Pool,
        n_core: tuple[int, ...],
        n_served: int = 0,
    ) -> None:
        self.task, self.pool, self.n_core, self.n_served = task, pool, n_core, n_served

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return bool(getattr(self.task, "on_device", False))

    @property
    def told(self) -> str:
        """What it does, for messages."""
        return str(getattr(self.task, "told", ""))

    def __call__(self, *args: npt.NDArray[Any]) -> Arrays:
        """Run the task on one chunk."""
        from xrecal.arrays.blocks import location_blocks

        n_pooled = len(self.pool.dims)
        split = [a.ndim - n_pooled - n for a, n in zip(args, self.n_core, strict=True)]
        lead = np.broadcast_shapes(*(a.shape[:s] for a, s in zip(args, split, strict=True)))
        whole = [
            np.broadcast_to(a, (*lead, *a.shape[s:])) for a, s in zip(args, split, strict=True)
        ]
        places = self.pool.places()
        positions = np.arange(math.prod(self.pool.sizes)).reshape(len(places), -1)
        n_fits = math.prod(lead) * len(places)
        each = [a.dtype.itemsize * math.prod(a.shape[len(lead) + n_pooled :]) for a in whole]
        shape = (*lead, *(self.pool.sizes if self.pool.own_fits or self.n_served else ()))
        found: list[npt.NDArray[Any]] = []
        cut = len(whole) - self.n_served
        size = sum(each[:cut]) * places.shape[1] + sum(each[cut:]) * positions.shape[1]
        for block in location_blocks(n_fits, 4 * size):
            fits = np.arange(n_fits)[block]
            given = [_as_cases(self._at(a, lead, places, fits)) for a in whole[:cut]]
            given += [self._at(a, lead, positions, fits) for a in whole[cut:]]
            result = self.task(*given)
            results = result if isinstance(result, tuple) else (result,)
            xp = namespace(results[0])
            found = found or [xp.empty((n_fits, *r.shape[1:]), dtype=r.dtype) for r in results]
            for array, part in zip(found, results, strict=True):
                array[block] = part
        skip = 2 if self.n_served else 1
        joined = tuple(array.reshape((*shape, *array.shape[skip:])) for array in found)
        return joined if len(joined) > 1 else joined[0]

    def _at(
        self, array: npt.NDArray[Any], lead: tuple[int, ...], places: IntArray, fits: IntArray
    ) -> npt.NDArray[Any]:
        """Array (B, k, n, ...) at the k places of some fits, NaN beyond the edges."""
        of_fit = places[fits % len(places)]
        outer = np.unravel_index(fits // len(places), lead) if lead else ()
        inner = np.unravel_index(np.maximum(of_fit, 0), self.pool.sizes)
        xp = namespace(array)
        at = tuple(map(xp.asarray, (*(i[:, np.newaxis] for i in outer), *inner)))
        taken: npt.NDArray[Any] = xp.array(array[at])
        taken[xp.asarray(of_fit < 0)] = np.nan
        return taken


def _as_cases(at_places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Arrays (B, k, n, ...) as cases (B, n k, ...), by date and then by position."""
    by_date = np.swapaxes(at_places, 1, 2)
    return by_date.reshape(len(at_places), -1, *by_date.shape[3:])
