"""Positions whose cases are pooled."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.typing import IntArray

from .dates import CaseAxis

PoolOver: TypeAlias = Hashable | Sequence[Hashable] | Mapping[Hashable, int] | None
"""Location dimensions, by name or with the width of a window along each."""

HINDCAST_LABELS = "hindcast_labels"
"""Attribute of the positions of pooled cases: those of the hindcast, where some were left out."""

MAX_POOLED = 1500
"""Cases at most: the exact solver needs their cube in time, and a square in memory."""


@dataclass(frozen=True)
class Pool:
    """Positions whose cases are pooled; all cases of a date follow each other."""

    dims: tuple[Hashable, ...]
    sizes: tuple[int, ...]
    """Of these dimensions."""
    widths: tuple[int, ...] | None
    """Of the window around each location; None for one fit from all positions."""
    taken: tuple[int, ...]
    """Positions used, counted through all of them or through the window, last dimension first.

    In the order of their labels, so that results are the same whatever order they stand in."""

    @property
    def own_fits(self) -> tuple[Hashable, ...]:
        """Pooled dimensions along which each location has a fit of its own nevertheless."""
        return () if self.widths is None else self.dims

    @property
    def windows(self) -> dict[Hashable, int]:
        """Pooled dimensions with the width of the window along each; empty without windows."""
        return {} if self.widths is None else dict(zip(self.dims, self.widths, strict=True))

    @property
    def forecast_dims(self) -> tuple[Hashable, ...]:
        """Pooled dimensions along which all forecasts share a fit."""
        return self.dims if self.widths is None else ()

    @property
    def own_cases(self) -> slice:
        """Cases of the location itself, where a window has those of neighbours too."""
        if self.widths is None:
            return slice(None)
        return slice(self.taken.index(math.prod(self.widths) // 2), None, len(self.taken))

    @property
    def note(self) -> str | None:
        """Remark on positions that are left out."""
        whole = math.prod(self.sizes if self.widths is None else self.widths)
        if len(self.taken) == whole:
            return None
        return f"pools {len(self.taken)} of {whole} positions, for at most {MAX_POOLED} cases"

    def __str__(self) -> str:
        if self.widths is None:
            return f"pooled over {', '.join(map(str, self.dims))}"
        windows = zip(self.dims, self.widths, strict=True)
        return f"pooled within {', '.join(f'{w} along {d}' for d, w in windows)}"

    def is_large(self, n_dates: int) -> bool:
        """Whether all positions of so many dates have more cases than are compared one by one."""
        return self.widths is None and math.prod(self.sizes) * n_dates > MAX_POOLED

    def learning_from(self, n_dates: int, *, all_cases: bool = False) -> Pool:
        """The pool with as many positions, evenly spaced, as a fit to so many dates can have.

        Of all those taken so far, all with ``all_cases``, unless it has windows. The same ones
        whatever the values.
        Raises ValueError where no second position is left.
        """
        whole = math.prod(self.sizes if self.widths is None else self.widths)
        if all_cases and self.widths is None:
            return self
        k = min(whole, MAX_POOLED // max(n_dates, 1))
        if self.widths is not None and k % 2 == 0:
            k -= 1  # so that the location itself is among them
        if k < min(whole, 2):
            raise ValueError(
                f"pool: at most {MAX_POOLED} cases are pooled, which leaves {n_dates} dates no "
                "second position; leave pool out, as each location has many cases of its own"
            )
        even = (2 * np.arange(k) + 1) * whole // (2 * k)
        return replace(self, taken=tuple(self.taken[i] for i in even))

    @property
    def numbers(self) -> IntArray:
        """Number of each position among all that are taken, in the shape of the dimensions."""
        numbers = np.empty(math.prod(self.sizes), np.int64)
        numbers[np.array(self.taken)] = np.arange(len(self.taken))
        return numbers.reshape(self.sizes)

    def repeat(self, of_dates: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of dates (n, ...) repeated for their pooled cases (n k, ...)."""
        return np.repeat(of_dates, len(self.taken), axis=0)

    def axis(self, dates: CaseAxis, n_dates: int) -> CaseAxis:
        """Dates of the pooled cases."""
        step = self.repeat(np.arange(n_dates))
        return replace(dates.take(step), step=step)

    def positions(self) -> IntArray:
        """Positions (O, k) that each of O fits learns from, -1 beyond the edges."""
        taken = np.array(self.taken)
        if self.widths is None:
            return taken[np.newaxis]
        centres = np.indices(self.sizes).reshape(len(self.sizes), -1, 1)
        offsets = np.array(np.unravel_index(taken, self.widths))
        offsets -= np.array(self.widths)[:, np.newaxis] // 2
        at = centres + offsets[:, np.newaxis]
        inside = (at >= 0) & (at < np.array(self.sizes)[:, np.newaxis, np.newaxis])
        return np.where(inside.all(0), np.ravel_multi_index(at, self.sizes, mode="clip"), -1)
