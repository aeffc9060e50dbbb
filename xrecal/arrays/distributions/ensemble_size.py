"""Corrections for forecasts with another number of members than the hindcast.

The mean of m members has an error variance of 1/m of their variance. The variance of members, and
their mean distance over all pairs, are too small by a share of 1/m. A fit to hindcasts of 5 members
learns the errors of means of 5 members. Forecasts of 51 members have smaller errors of the mean,
and are wider. Conversely, a fit may have learned from 51 members; then the variance of new
ensembles of 5 members is more uncertain than in the fit. Weighted members, quantiles and
distributions have no number of members, so they stay unchanged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray

from .forms import Forecasts

SAME = 1e-9
"""Differences of shares up to this limit are rounding errors."""

LEAST = 0.25
"""Smallest share of the variance of errors that :func:`narrowing` keeps."""


class Past(NamedTuple):
    """Sizes and variances of the ensembles from which L fits learned."""

    inverse_size: Any
    """(L,) mean of one divided by the number of members; NaN for forecasts without such a number"""
    past_variance: Any
    """(L,) mean of the variances of these ensembles"""
    past_variation: Any
    """(L,) mean squared difference of these variances from their mean"""


def past_of(inverse_size: FloatArray, variance: FloatArray) -> Past:
    """Summarise past ensembles (L, n) by :func:`inverse_sizes` and variances; ignore NaN."""
    mean = mean_of_known(variance)
    spread = mean_of_known((variance - mean[:, np.newaxis]) ** 2)
    return Past(mean_of_known(inverse_size), mean, spread)


def inverse_sizes(forecasts: Forecasts) -> Any:
    """Return one divided by the number of members of each forecast (..., n), or NaN."""
    xp, loc = namespace(forecasts.loc), forecasts.loc
    if forecasts.scale is not None or forecasts.weights is not None:
        return xp.full(loc.shape[:-1], np.nan)
    size = (~xp.isnan(loc)).sum(axis=-1).astype(np.float64)
    return xp.where(size > 0, 1.0 / xp.maximum(size, 1.0), np.nan)


def mean_of_known(values: FloatArray) -> FloatArray:
    """Return the mean (L,) of the known values among (L, n); NaN without any."""
    values = np.ascontiguousarray(values)  # sums in one order, whatever the layout
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(-1), known.sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def excess_of(past: Any, new: Any) -> Any:
    """Return how much larger the errors of past means are than those of new means.

    Parameters
    ----------
    past, new : array of float
        Results of :func:`inverse_sizes`: their mean over the cases of the fit, and the values of
        new forecasts.

    Returns
    -------
    array of float64
        The difference of the error variances, as a share of the variance of members. It is 0 for
        equal and for unknown sizes, and negative if new forecasts have fewer members. To compare
        new members with those of the fit, multiply their variance and mean distance by one minus
        this share.
    """
    xp = namespace(new)
    is_known = xp.isfinite(past + new) & (new < 1.0)
    share = (past - new) / xp.where(is_known, 1.0 - new, 1.0)
    return xp.where(is_known & (abs(share) > SAME), share, 0.0)


def on_footing(variance: Any, new: Any, past: Past) -> tuple[Any, Any]:
    """Adjust variances of new ensembles to the size in the fit, and return errors that means lack.

    Parameters
    ----------
    variance : array of float, shape (L, T)
        Variances of new ensembles, over all pairs.
    new : array of float, shape (L, T)
        Result of :func:`inverse_sizes` for these ensembles.
    past : Past
        The ensembles from which the fits learned.

    Returns
    -------
    two arrays of float64, shape (L, T)
        First the variances, unchanged for equal sizes. Then the part of the variance of past errors
        that new means do not have; it is negative for fewer members.

    Notes
    -----
    The variance of k normal members varies by 2/(k - 1) of its square. If new ensembles have fewer
    members than in the fit, their variance is shrunk to the mean of the record. The share comes
    from the linear regression of the variance at the past size on the variance at the new size. If
    past variances vary much, the result stays near the new variance.
    """
    xp = namespace(new)
    size, mean, spread = (xp.asarray(part)[..., None] for part in past)
    excess = excess_of(size, new)
    own, is_fewer = variance * (1.0 - excess), excess < 0.0
    # 2/(k - 1) of few members minus that of many, as a share of the mean square of past variances.
    uncertain = xp.where(is_fewer, -2.0 * excess / (1.0 + size), 0.0) * (mean**2 + spread)
    whole = spread + uncertain
    is_shrunk = is_fewer & (whole > 0.0)
    own = xp.where(is_shrunk, mean + spread / xp.where(is_shrunk, whole, 1.0) * (own - mean), own)
    of_members = xp.where(is_fewer, own / (1.0 - xp.where(is_fewer, excess, 0.0)), variance)
    return own, excess * of_members


def narrowing(noise: Any, variance: Any) -> Any:
    """Return the factor for spreads if the part ``noise`` of the error variance is removed."""
    xp = namespace(variance)
    share = noise / xp.where(variance > 0, variance, np.inf)
    return xp.sqrt(xp.maximum(1.0 - share, LEAST))
