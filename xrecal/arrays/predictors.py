"""Usual values of a predictor (median and range of the record), and detection of broken values.

A value of a predictor may be missing. It may also be broken: it may be in another unit, come from
another archive, or be a number that marks missing values. The median of the record replaces missing
and broken values, so they neither shift a forecast nor remove it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

from .dispatch import namespace

MARGIN = 0.5
"""How far a plausible value may lie below or above the range of the record, as a share of this
range."""

ROUNDING = 1e-6
"""A plausible value may lie outside the range by a further distance, because conversions, such as
to float32, round values. The distance is this share of the largest absolute value of the record."""

FEWEST = 20
"""A fit gets a further feature that marks missing values, if the record has at least this number of
cases with a value, and at least this number without."""

COARSE = 10
"""A predictor counts as continuous if the mean difference between neighbouring values of the record
is more than this number times the smallest difference between different values."""

INDICATOR = 2.0**0.5
"""Value of the feature that marks missing values: this number if the predictor is missing, and 0 if
it is known. In squared distances this feature has the weight 1/2, like sines and cosines. So a
missing value is as far from a known value as two typical known values are from each other."""


class Usual(NamedTuple):
    """Usual values of a predictor in the record of L places; arrays have the shape (L, 1)."""

    middle: FloatArray
    """Median of the record, or mean direction of a circular predictor; 0 if no value is known."""
    low: FloatArray
    """Smallest plausible value; minus infinity for a circular predictor, or if no value is
    known."""
    high: FloatArray
    """Largest plausible value; infinity for a circular predictor, or if no value is known."""
    known: npt.NDArray[np.bool_]
    """True if at least one value of the record is known."""
    mixed: npt.NDArray[np.bool_]
    """True if the record has at least 20 cases with a value and at least 20 cases without."""
    never_zero: npt.NDArray[np.bool_]
    """True if zero must be a fill value: it lies inside the range of a continuous predictor, but
    the record has no zero."""
    first: FloatArray
    """Smallest value of the record; 0 for a circular predictor, or if no value is known."""
    last: FloatArray
    """Largest value of the record; 0 for a circular predictor, or if no value is known."""

    def broken(self, values: FloatArray) -> npt.NDArray[np.bool_]:
        """Mark broken values (L, T): infinite values, and values that are not plausible."""
        xp = namespace(values)
        far = (values < self.low) | (values > self.high) | xp.isinf(values)
        broken: npt.NDArray[np.bool_] = far | (self.never_zero & (values == 0))
        return broken

    def unusable(self, values: FloatArray) -> npt.NDArray[np.bool_]:
        """Mark values (L, T) that are missing or broken, or whose predictor has no known values."""
        gone: npt.NDArray[np.bool_] = namespace(values).isnan(values) | ~self.known
        return self.broken(values) | gone


N_NUMBERS = len(Usual._fields)
"""How many numbers are stored for each predictor at each place."""

NO_PREDICTORS = np.empty((1, 0, N_NUMBERS))
"""Result of :func:`stacked` for one place without predictors."""


def usual_of(record: FloatArray, period: float | None = None) -> Usual:
    """Compute the usual values of a predictor.

    Parameters
    ----------
    record : array of float, shape (L, n)
        Values of the predictor in n cases at L places, NaN if missing. Infinite values count as
        missing.
    period : float, optional
        Period of a circular predictor. A circular predictor has no plausible range.

    Returns
    -------
    Usual
        Usual values, in the unit of the predictor.

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
    """Stack the usual values of p >= 1 predictors at L places as numbers (L, p, 8)."""
    return np.stack([np.concatenate(one, axis=-1, dtype=np.float64) for one in usual], axis=1)


def unstacked(numbers: FloatArray) -> list[Usual]:
    """Return the usual values of p predictors from the numbers (L, p, 8) of :func:`stacked`."""
    flags = [name in ("known", "mixed", "never_zero") for name in Usual._fields]
    return [
        Usual(*(a > 0 if flag else a for a, flag in zip(one, flags, strict=True)))
        for one in np.moveaxis(numbers, 1, 0)[..., np.newaxis].swapaxes(1, 2)
    ]
