"""Missing values: weights of the quantiles that are known, and numbers that mark missing values."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import namespace, to_host
from xrecal.typing import FloatArray

from .forms import Forecasts

MILLION = 1e6
"""A value counts as missing only if it exceeds this number times the largest known value."""

LEAST = 900.0
"""Values up to this limit never count as missing. For example, 40 mm of rain is a valid forecast,
even after a dry season whose zeros are stored as about 1e-9. Numbers that mark missing values are
above the limit: 999, 9999, 32767, ..."""


def forecasts_from(parts: Mapping[str, FloatArray]) -> Forecasts:
    """Make forecasts (..., m) from their named arrays.

    If one array holds the ``levels`` of quantiles, the weights are from :func:`level_masses`.
    """
    given = dict(parts)
    levels = given.pop("levels", None)
    if levels is not None:
        given["weights"] = level_masses(levels, given["loc"])
    return Forecasts(**given)


def level_masses(levels: FloatArray, quantiles: FloatArray) -> FloatArray:
    """Return the mass of each quantile: the probability that it represents.

    The mass of a level begins halfway to the next lower level, or at 0 if no level is lower. It
    ends halfway to the next higher level, or at 1 if no level is higher.

    Parameters
    ----------
    levels : array of float, shape (..., m)
        Levels in [0, 1], in any order. All rows hold the same levels, but the row of a missing
        forecast may be NaN.
    quantiles : array of float, shape (..., m)
        Quantiles; NaN where a forecast lacks a level.

    Returns
    -------
    array, shape and type of ``quantiles``
        Masses of the quantiles of each forecast, with sum one. A missing quantile has mass 0 unless
        all quantiles of its forecast are missing. If each forecast has all quantiles or none, the
        result is a read-only view of one row.

    Examples
    --------
    >>> level_masses(np.array([0.1, 0.5, 0.9]), np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]]))
    array([[0.3, 0.4, 0.3],
           [0.5, 0. , 0.5]])
    """
    xp = namespace(quantiles)
    if xp is not np:
        unknown = np.where(to_host(xp.isnan(quantiles)), np.nan, 0.0).astype(quantiles.dtype)
        found: FloatArray = xp.asarray(np.array(level_masses(to_host(levels), unknown)))
        return found
    if 0 in levels.shape or 0 in quantiles.shape:
        return np.zeros(quantiles.shape, quantiles.dtype)
    known = ~np.isnan(levels[..., 0])
    row = levels[np.unravel_index(np.argmax(known), known.shape)]
    order = np.argsort(row)
    lacking = np.isnan(quantiles)
    some = lacking.any(-1) & ~lacking.all(-1)
    whole = np.empty(row.size, quantiles.dtype)
    whole[order] = _masses(row[order], np.ones((1, row.size), np.bool_))[0]
    masses = np.broadcast_to(whole, quantiles.shape)
    if not some.any():
        return masses
    masses = masses.copy()
    found = np.empty((int(some.sum()), row.size))
    found[:, order] = _masses(row[order], ~lacking[some][:, order])
    masses[some] = found
    return masses


def _masses(levels: FloatArray, there: npt.NDArray[np.bool_]) -> FloatArray:
    """Return masses (n, m) of ascending levels (m,); 0 for levels that are not ``there`` (n, m)."""
    before = np.maximum.accumulate(np.where(there, levels, -np.inf), axis=-1)
    after = np.minimum.accumulate(np.where(there, levels, np.inf)[:, ::-1], axis=-1)[:, ::-1]
    before = np.pad(before[:, :-1], ((0, 0), (1, 0)), constant_values=-np.inf)
    after = np.pad(after[:, 1:], ((0, 0), (0, 1)), constant_values=np.inf)
    start = np.where(np.isinf(before), 0.0, (levels + before) / 2)
    end = np.where(np.isinf(after), 1.0, (after + levels) / 2)
    return np.where(there, end - start, 0.0)


def beyond(values: FloatArray, largest: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Mark finite values as missing if they are far above the ``largest`` known absolute value.

    A value is missing if its absolute value is above ``LEAST``, and is more than a million times
    the largest known absolute value. If the largest known absolute value is 0, no value is missing.
    """
    largest = np.asarray(largest)
    sizes = np.abs(values)
    absurd = (sizes > LEAST) & (sizes < np.inf) & (largest > 0)
    return np.asarray(absurd & (sizes > MILLION * np.where(largest > 0, largest, 1.0)))


def largest_of(*arrays: FloatArray) -> FloatArray:
    """Return the largest absolute value (L,) of arrays (L, ...), ignoring NaN; 0 if all are NaN."""
    largest = np.zeros(len(arrays[0]))
    for a in arrays:
        flat = np.asarray(a).reshape(len(a), math.prod(a.shape[1:]))
        for end in (np.fmax.reduce(flat, axis=-1, initial=0), np.fmin.reduce(flat, -1, initial=0)):
            np.maximum(largest, np.abs(end), out=largest)
    return largest


def largest_among(*arrays: FloatArray) -> FloatArray:
    """Return the largest absolute value (L,) of arrays (L, ...) that is not absurdly large.

    The function sorts the absolute values of each location, without infinite values. In the upper
    half, it looks for the first value that is above ``LEAST``, and more than a million times the
    value before it. This value and all larger values are absurd. So the function also finds several
    absurd values of similar size, if they are fewer than half of all values.
    """
    largest = largest_of(*arrays)
    for place in np.flatnonzero(largest > LEAST):
        sizes = np.concatenate([np.abs(a[place], dtype=np.float64).ravel() for a in arrays])
        ascending = np.sort(sizes[np.isfinite(sizes)])
        upper = ascending[ascending.size // 2 :] if ascending.size else np.zeros(1)
        gaps = np.flatnonzero(beyond(upper[1:], upper[:-1]))
        largest[place] = upper[gaps[0]] if gaps.size else upper[-1]
    return largest


def absurd_among(*arrays: FloatArray) -> tuple[npt.NDArray[np.bool_], ...]:
    """Mark values of arrays (L, ...) that are absurdly large; see :func:`largest_among`."""
    largest = largest_among(*arrays)
    return tuple(beyond(a, largest.reshape(-1, *[1] * (a.ndim - 1))) for a in arrays)
