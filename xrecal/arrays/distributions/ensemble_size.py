"""Corrections for forecasts with another number of members than the hindcast.

The mean of m members has an error variance of 1/m of their variance. The variance of members, and
their mean distance over all pairs, are too small by 1/m. A fit to hindcasts of 5 members learns the
errors of such means; forecasts of 51 members have smaller errors, and are wider. Weighted members,
quantiles and distributions have no number of members, so they stay unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray

from .forms import Forecasts

SAME = 1e-9
"""Differences of shares up to this are rounding."""

LEAST = 0.25
"""Smallest share of the error variance that stays if forecasts have more members."""


def inverse_sizes(forecasts: Forecasts) -> Any:
    """One over the number of members of each forecast (..., n); NaN if it has no such number."""
    xp, loc = namespace(forecasts.loc), forecasts.loc
    if forecasts.scale is not None or forecasts.weights is not None:
        return xp.full(loc.shape[:-1], np.nan)
    size = (~xp.isnan(loc)).sum(axis=-1).astype(np.float64)
    return xp.where(size > 0, 1.0 / xp.maximum(size, 1.0), np.nan)


def mean_of_known(values: FloatArray) -> FloatArray:
    """Mean (L,) of the known values among (L, n); NaN without any."""
    values = np.ascontiguousarray(values)  # sums in one order, whatever the layout
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(-1), known.sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def excess_of(past: Any, new: Any) -> Any:
    """Error variance of past means beyond that of new ones, as a share of the variance of members.

    Parameters
    ----------
    past, new : array of float
        Results of :func:`inverse_sizes`: their mean over the cases of the fit, and those of new
        forecasts.

    Returns
    -------
    array of float64
        0 for equal sizes and for unknown sizes; negative for fewer members. Multiply the variance
        of the new members, and their mean distance, by one minus this share to compare them with
        those of the fit.
    """
    xp = namespace(new)
    is_known = xp.isfinite(past + new) & (new < 1.0)
    share = (past - new) / xp.where(is_known, 1.0 - new, 1.0)
    return xp.where(is_known & (abs(share) > SAME), share, 0.0)


def narrowing(noise: Any, variance: Any) -> Any:
    """Factor for spreads with errors of this variance, if the part ``noise`` of it is removed."""
    xp = namespace(variance)
    share = noise / xp.where(variance > 0, variance, np.inf)
    return xp.sqrt(xp.maximum(1.0 - share, LEAST))
