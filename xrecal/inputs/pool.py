"""Pooled fits: one fit learns from the cases of several positions, such as places or leads."""

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
"""Location dimensions to pool: their names, or a mapping from names to widths of windows."""

MAX_POOLED = 1500
"""Largest number of pooled cases that a fit compares one by one. With more cases, the fit stores
sums over cases instead."""


@dataclass(frozen=True)
class Pool:
    """Positions whose cases one fit learns from; the cases are in the order of their dates."""

    dims: tuple[Hashable, ...]
    sizes: tuple[int, ...]
    """Sizes of the pooled dimensions."""
    widths: tuple[int, ...] | None
    """Sizes of a window around each location: the fit of the location learns from the positions in
    this window. None if one fit learns from all positions."""
    taken: tuple[int, ...]
    """Flat indices (the last dimension varies fastest) of the positions that a fit learns from.
    With windows, they count the positions in a window, otherwise all positions. They are sorted by
    the labels of the positions, so results do not depend on the order of positions."""
    features: tuple[str, ...] = ()
    """Coordinates of positions that the user names as features."""

    @property
    def own_fits(self) -> tuple[Hashable, ...]:
        """Pooled dimensions along which each location still has its own fit."""
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
        """Slice that takes the cases of the middle location from the cases of a window."""
        if self.widths is None:
            return slice(None)
        return slice(self.taken.index(math.prod(self.widths) // 2), None, len(self.taken))

    def __str__(self) -> str:
        if self.widths is None:
            return f"pooled over {', '.join(map(str, self.dims))}"
        windows = zip(self.dims, self.widths, strict=True)
        return f"pooled within {', '.join(f'{w} along {d}' for d, w in windows)}"

    def n_cases(self, n_dates: int) -> int:
        """Return the number of cases that a fit to ``n_dates`` dates learns from."""
        return len(self.taken) * n_dates

    def is_large(self, n_dates: int) -> bool:
        """Return whether ``n_dates`` dates have too many cases for comparing cases one by one."""
        return self.n_cases(n_dates) > MAX_POOLED

    def require_few(self, n_dates: int, why: str) -> None:
        """Raise ValueError if there are too many cases to compare one by one.

        If all positions share one fit, the message ends with ``why``: the reason for the
        comparison, and what to type instead.
        """
        if len(self.taken) == 1 or not self.is_large(n_dates):
            return
        if self.widths is not None:
            whole, most = self.dims[0] if len(self.dims) == 1 else self.dims, MAX_POOLED // n_dates
            why = (
                f"windows need; use narrower windows, of at most {max(most, 1)} positions, or "
                f"pool={whole!r} for one fit to all positions"
            )
        raise ValueError(
            f"pool: {len(self.taken)} positions at {n_dates} dates make {self.n_cases(n_dates)} "
            f"cases, but a fit compares at most {MAX_POOLED} cases one by one, a comparison "
            f"that {why}"
        )

    @property
    def numbers(self) -> IntArray:
        """Index of each position in ``taken``, as an array over the pooled dimensions."""
        numbers = np.empty(math.prod(self.sizes), np.int64)
        numbers[np.array(self.taken)] = np.arange(len(self.taken))
        return numbers.reshape(self.sizes)

    def repeat(self, of_dates: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat the value of each of n dates (n, ...) for the k cases of this date (n k, ...)."""
        return np.repeat(of_dates, len(self.taken), axis=0)

    def axis(self, dates: CaseAxis, n_dates: int) -> CaseAxis:
        """Return the dates of the pooled cases."""
        step = self.repeat(np.arange(n_dates))
        return replace(dates.take(step), step=step)

    def positions(self) -> IntArray:
        """Return positions (O, k): each of O fits learns from k of them; -1 is outside the data."""
        taken = np.array(self.taken)
        if self.widths is None:
            return taken[np.newaxis]
        centres = np.indices(self.sizes).reshape(len(self.sizes), -1, 1)
        offsets = np.array(np.unravel_index(taken, self.widths))
        offsets -= np.array(self.widths)[:, np.newaxis] // 2
        at = centres + offsets[:, np.newaxis]
        inside = (at >= 0) & (at < np.array(self.sizes)[:, np.newaxis, np.newaxis])
        return np.where(inside.all(0), np.ravel_multi_index(at, self.sizes, mode="clip"), -1)
