"""Ensembles of another size than those that a fit has learned from.

The mean of m members is off by 1/m of their variance, and of the variance and of the mean distance
of two members, taken over all pairs, 1/m is lacking. A fit to hindcasts of 5 members has learned
errors of such means; forecasts of 51 are better, and wider. Weighted members, quantiles and
distributions have no such number: they are taken as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray

from .forms import Forecasts

SAME = 1e-9
"""Difference of shares that is rounding."""

LEAST = 0.25
"""Share of the variance of errors that is left at least where forecasts have more members."""


def inverse_sizes(forecasts: Forecasts) -> Any:
    """One over the number of members of each forecast (..., n); NaN where that says nothing."""
    xp, loc = namespace(forecasts.loc), forecasts.loc
    if forecasts.scale is not None or forecasts.weights is not None:
        return xp.full(loc.shape[:-1], np.nan)
    size = (~xp.isnan(loc)).sum(axis=-1).astype(np.float64)
    return xp.where(size > 0, 1.0 / xp.maximum(size, 1.0), np.nan)


def mean_of_known(values: FloatArray) -> FloatArray:
    """Mean (L,) of values (L, n) that are known; NaN without any."""
    values = np.ascontiguousarray(values)  # or sums of the same numbers would differ in rounding
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(-1), known.sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def excess_of(past: Any, new: Any) -> Any:
    """Share of the variance of new ensembles by which past means were off, and theirs are not.

    Parameters
    ----------
    past, new : array of float
        :func:`inverse_sizes`: the mean of those of a fit, and those of new forecasts.

    Returns
    -------
    array of float64
        0 for equal sizes and where a size says nothing; negative for fewer members. The variance of
        the new members, and their mean distance, times one less this share are on the footing of
        the fit.
    """
    xp = namespace(new)
    is_known = xp.isfinite(past + new) & (new < 1.0)
    share = (past - new) / xp.where(is_known, 1.0 - new, 1.0)
    return xp.where(is_known & (abs(share) > SAME), share, 0.0)


def narrowing(noise: Any, variance: Any) -> Any:
    """Factor of spreads for errors of this variance if the part ``noise`` is not there."""
    xp = namespace(variance)
    share = noise / xp.where(variance > 0, variance, np.inf)
    return xp.sqrt(xp.maximum(1.0 - share, LEAST))
