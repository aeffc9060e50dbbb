"""Usual values of a predictor: its median and range in the record, and values that are outside.

A predictor that breaks (another unit, another archive, a fill value) must not move a forecast, and
a missing one must not take it away. Both are replaced by the median of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

from .dispatch import namespace

MARGIN = 0.5
"""Share of the range of the record by which a predictor may exceed it at either end."""

ROUNDING = 1e-6
"""Share of its size by which a predictor may exceed its range as well, as types round it."""

FEWEST = 20
"""Numbers of cases with and without a value from which on an indicator is learned."""

COARSE = 10
"""Of the mean step between values of the record: the smallest step of a continuous predictor is
less than one over this."""

INDICATOR = 2.0**0.5
"""Indicator of a missing value. Like sines and cosines it has the weight 1/2 in squared distances,
so that a missing and a known value are as far apart as two known ones typically are."""


class Usual(NamedTuple):
    """Usual values of a predictor in the record of L places; each array is (L, 1)."""

    middle: FloatArray
    """Median of the record, mean direction of a circular predictor; 0 where nothing is known."""
    low: FloatArray
    """Least value that counts; minus infinity for a circular predictor and an unknown one."""
    high: FloatArray
    """Greatest value that counts."""
    known: npt.NDArray[np.bool_]
    """Whether the record has a value."""
    mixed: npt.NDArray[np.bool_]
    """Whether the record has enough cases with a value and enough without one."""
    never_zero: npt.NDArray[np.bool_]
    """Whether zero can only be a fill value: within a continuous range, and never in the record."""
    first: FloatArray
    """Least value of the record; 0 for a circular predictor and an unknown one."""
    last: FloatArray
    """Greatest value of the record."""

    def broken(self, values: FloatArray) -> npt.NDArray[np.bool_]:
        """True for values (L, T) that the record cannot have had; not for missing ones."""
        xp = namespace(values)
        far = (values < self.low) | (values > self.high) | xp.isinf(values)
        broken: npt.NDArray[np.bool_] = far | (self.never_zero & (values == 0))
        return broken

    def unusable(self, values: FloatArray) -> npt.NDArray[np.bool_]:
        """True for values (L, T) that are missing or broken, and where nothing is known of any."""
        gone: npt.NDArray[np.bool_] = namespace(values).isnan(values) | ~self.known
        return self.broken(values) | gone


N_NUMBERS = len(Usual._fields)
"""Numbers that are stored of each predictor."""

NO_PREDICTORS = np.empty((1, 0, N_NUMBERS))
"""Usual values of no predictor at one place, as :func:`stacked` has them."""


def usual_of(record: FloatArray, period: float | None = None) -> Usual:
    """Usual values of a predictor.

    Parameters
    ----------
    record : array of float, shape (L, n)
        Its values in the cases of L places, NaN where missing; infinite ones count as missing.
    period : float, optional
        Of a circular predictor, which has no range.

    Returns
    -------
    Usual
        In the unit of the predictor.

    Examples
    --------
    >>> usual = usual_of(np.array([[1.0, np.nan, 2.0, 4.0]]))
    >>> usual.middle, usual.low.round(3), usual.high.round(3)
    (array([[2.]]), array([[-0.5]]), array([[5.5]]))
    >>> usual.broken(np.array([[5.0, 400.0]]))
    array([[False,  True]])
    """
    xp = namespace(record)
    finite = xp.isfinite(record)
    count = finite.sum(-1, keepdims=True)
    known, n = count > 0, record.shape[-1]
    mixed = (count >= FEWEST) & (n - count >= FEWEST)
    if period is not None:
        angle = xp.where(finite, 2 * np.pi * (record / period), 0.0)
        parts = (xp.where(finite, of(angle), 0.0).sum(-1, keepdims=True) for of in (xp.sin, xp.cos))
        middle, end = xp.arctan2(*parts) * (period / (2 * np.pi)), xp.full(count.shape, np.inf)
        none = xp.zeros(count.shape)
        return Usual(middle, -end, end, known, mixed, none > 0, none, none)
    if n == 0:
        none = xp.zeros(count.shape)
        return Usual(none, none - np.inf, none + np.inf, known, mixed, known, none, none)
    ordered = xp.sort(xp.where(finite, record, np.nan).astype(np.float64), axis=-1)  # NaN last
    end = xp.maximum(count - 1, 0)
    first, below, above, last = (
        xp.where(known, xp.take_along_axis(ordered, at, -1), 0.0)
        for at in (0 * end, end // 2, count // 2, end)
    )
    room = MARGIN * (last - first) + ROUNDING * xp.maximum(abs(first), abs(last))
    steps = xp.diff(ordered, axis=-1, append=np.inf)
    smallest = xp.where(steps > 0, steps, 1.0 + last - first).min(-1, keepdims=True)
    continuous = COARSE * count * smallest < last - first
    never_zero = continuous & (first < 0) & (last > 0) & ~(ordered == 0).any(-1, keepdims=True)
    low, high = xp.where(known, first - room, -np.inf), xp.where(known, last + room, np.inf)
    return Usual((below + above) / 2, low, high, known, mixed, never_zero, first, last)


def stacked(usual: Sequence[Usual]) -> FloatArray:
    """Numbers (L, p, 8) that p predictors have as usual values at L places, one at least."""
    return np.stack([np.concatenate(one, axis=-1, dtype=np.float64) for one in usual], axis=1)


def unstacked(numbers: FloatArray) -> list[Usual]:
    """Usual values of p predictors from the numbers (L, p, 8) that :func:`stacked` returns."""
    flags = [name in ("known", "mixed", "never_zero") for name in Usual._fields]
    return [
        Usual(*(a > 0 if flag else a for a, flag in zip(one, flags, strict=True)))
        for one in np.moveaxis(numbers, 1, 0)[..., np.newaxis].swapaxes(1, 2)
    ]
