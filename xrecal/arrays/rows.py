"""Arrays with one row per location, their division into blocks of rows, and checks of arguments."""

from __future__ import annotations

import math
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

from .status import FEWEST

ROUNDING = 1e-6
"""Distance by which a probability may lie outside [0, 1], because float32 is inexact. Such a
probability counts as 0 or 1."""

# Approximate bytes of a copy of cases. Functions copy the cases of some locations at a time.
WORKSPACE = 64_000_000

MET = 4096
"""A :class:`Kept` remembers at most this number of digests without a stored result."""

Made = TypeVar("Made")


def as_rows(**arrays: npt.ArrayLike) -> tuple[list[Any], tuple[int, ...]]:
    """Return arrays (..., n) of one shape as rows (L, n), and the shape (...) of the locations.

    The function raises ValueError if the arrays differ in shape, or have no axis of cases.
    """
    given = {name: np.asarray(array) for name, array in arrays.items()}
    shapes = {name: array.shape for name, array in given.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"all arrays need the same shape (..., cases), got {listed}")
    for name, shape in shapes.items():
        if not shape:
            raise ValueError(f"{name} has no axis of cases; give an array of shape (..., n)")
    lead, n = shape[:-1], shape[-1]
    return [array.reshape(math.prod(lead), n) for array in given.values()], lead


def check_probability(name: str, values: FloatArray) -> None:
    """Raise ValueError if a number other than NaN is outside [0, 1] by more than rounding."""
    outside = (values < -ROUNDING) | (values > 1 + ROUNDING)
    if outside.any():
        raise ValueError(
            f"{name} must lie between 0 and 1, found {values[outside][0]:g}; divide by 100 if it "
            "is in percent"
        )


def check_level(level: float) -> None:
    """Raise ValueError unless a level is inside (0, 1)."""
    if not (np.ndim(level) == 0 and 0 < level < 1):
        raise ValueError(f"level is {level!r}; give a number between 0 and 1, such as 0.9")


def whole_number(name: str, number: Any, least: int, most: int | None = None) -> int:
    """Return ``number`` as an int.

    If the number is not an integer from ``least`` to ``most``, the function raises a ValueError
    that names the argument.
    """
    try:
        whole = operator.index(number)
    except TypeError:
        whole = least - 1
    if whole < least or (most is not None and whole > most):
        end = "" if most is None else f" to {most}"
        raise ValueError(f"{name} is {number!r}; give a whole number from {least}{end}")
    return whole


def is_whole(value: object) -> bool:
    """Return True if a value is an integer, but not a Boolean or a timedelta.

    In Python and NumPy, Booleans and timedeltas count as integers, too.
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def mean_of_known(
    values: FloatArray, known: npt.NDArray[np.bool_], fewest: int = FEWEST
) -> FloatArray:
    """Return means (...) of values (..., n) over known cases.

    A mean is NaN if there are fewer than ``fewest`` known cases.
    """
    count = known.sum(-1)
    total = np.where(known, values, 0.0).sum(-1)
    return np.asarray(total / np.where(count < fewest, np.nan, count))


def double_blocks(*arrays: FloatArray) -> Iterator[tuple[slice, tuple[FloatArray, ...]]]:
    """Yield slices of locations, and the arrays (L, ...) at these locations as contiguous float64.

    A slice has only a few locations, so the copies in float64 need little memory.
    """
    n_locations = arrays[0].shape[0]
    values = sum(array.size for array in arrays)
    for block in location_blocks(n_locations, 8 * values // max(n_locations, 1)):
        yield block, tuple(np.ascontiguousarray(array[block], np.float64) for array in arrays)


def location_blocks(n_locations: int, bytes_each: int) -> Iterator[slice]:
    """Yield slices of locations; a slice of several locations needs at most ``WORKSPACE`` bytes.

    ``bytes_each`` is the memory that one location needs.
    """
    step = max(1, WORKSPACE // max(bytes_each, 1))
    for start in range(0, n_locations, step):
        yield slice(start, start + step)


class Kept(Generic[Made]):
    """Cache of results: if a call repeats earlier contents, the cache returns the stored result.

    A model that issues forecasts day after day, or one product after the other, uses the same cases
    again and again. The key of a result is a digest of all contents on which the result depends.
    The cache stores a result when the same contents come for the second time. It holds at most
    ``most`` bytes; a full cache drops the results that were used least recently.
    """

    def __init__(self, most: int) -> None:
        self.most, self._lock = most, Lock()
        self._met: OrderedDict[bytes, None] = OrderedDict()
        self._known: OrderedDict[bytes, tuple[int, tuple[Made, ...]]] = OrderedDict()

    def get(
        self, contents: Iterable[Any], n_bytes: int, make: Callable[[], Iterable[Made]]
    ) -> Iterable[Made]:
        """Return the stored result, or the result of ``make`` (about ``n_bytes`` bytes)."""
        key = digest(contents)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key][1]
            if key not in self._met:
                self._met[key] = None
                if len(self._met) > MET:
                    self._met.popitem(last=False)
                return make()
        made = tuple(make())
        with self._lock:
            self._known[key] = n_bytes, made
            while sum(size for size, _ in self._known.values()) > self.most:
                self._known.popitem(last=False)
        return made


def digest(contents: Iterable[Any]) -> bytes:
    """Compute a digest of arrays with their types and shapes, and of texts, numbers or None."""
    found, told = sha256(), []  # processors have instructions for SHA-256
    for part in contents:
        if isinstance(part, np.ndarray):
            told.append((part.dtype.str, part.shape))
            found.update(np.ascontiguousarray(part).data)
        else:
            told.append(part)
    found.update(repr(told).encode())
    return found.digest()
