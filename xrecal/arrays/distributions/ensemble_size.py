"""Corrections for forecasts with another number of members than the hindcast.

The mean of m members has an error variance of 1/m of their variance. The variance of members, and
their mean distance over all pairs, are too small by 1/m. A fit to hindcasts of 5 members learns the
errors of such means; forecasts of 51 members have smaller errors, and are wider. The variance of 5
members is more uncertain than that of 51 members, which a fit may have learned from. Weighted
members, quantiles and distributions have no number of members, so they stay unchanged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray

from .forms import Forecasts

SAME = 1e-9
"""Differences of shares up to this are rounding."""

LEAST = 0.25
"""Smallest share of the variance of errors that :func:`narrowing` keeps."""


class Past(NamedTuple):
    """Sizes and variances of the ensembles that L fits have learned from."""

    inverse_size: Any
    """(L,) mean of one over the number of members; NaN if they have no such number"""
    past_variance: Any
    """(L,) mean of their variances"""
    past_variation: Any
    """(L,) mean square of the differences of their variances from that mean"""


def past_of(inverse_size: FloatArray, variance: FloatArray) -> Past:
    """Summary of past ensembles (L, n) by :func:`inverse_sizes` and variances; NaN is left out."""
    mean = mean_of_known(variance)
    spread = mean_of_known((variance - mean[:, np.newaxis]) ** 2)
    return Past(mean_of_known(inverse_size), mean, spread)


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
    """Error variance of past means minus that of new means, as a share of the variance of members.

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


def on_footing(variance: Any, new: Any, past: Past) -> tuple[Any, Any]:
    """Variances of new ensembles as if of the size in the fit, and the error that their means lack.

    Parameters
    ----------
    variance : array of float, shape (L, T)
        Variances of new ensembles, over all pairs.
    new : array of float, shape (L, T)
        Their :func:`inverse_sizes`.
    past : Past
        The ensembles of the fits.

    Returns
    -------
    two arrays of float64, shape (L, T)
        Variances, the same for equal sizes; and the variance of the past errors that new means do
        not have, negative for fewer members.

    Notes
    -----
    The variance of k normal members varies by 2/(k - 1) of its square. The variance of fewer
    members than in the fit is shrunk to the mean of the record, by the linear regression of the
    variance of the past size on that of the new size. Much is kept if past variances vary much.
    """
    xp = namespace(new)
    size, mean, spread = (xp.asarray(part)[..., None] for part in past)
    excess = excess_of(size, new)
    own, is_fewer = variance * (1.0 - excess), excess < 0.0
    # 2/(k - 1) of few members less that of many, in shares of the mean square of past variances.
    uncertain = xp.where(is_fewer, -2.0 * excess / (1.0 + size), 0.0) * (mean**2 + spread)
    whole = spread + uncertain
    is_shrunk = is_fewer & (whole > 0.0)
    own = xp.where(is_shrunk, mean + spread / xp.where(is_shrunk, whole, 1.0) * (own - mean), own)
    of_members = xp.where(is_fewer, own / (1.0 - xp.where(is_fewer, excess, 0.0)), variance)
    return own, excess * of_members


def narrowing(noise: Any, variance: Any) -> Any:
    """Factor for spreads with errors of this variance, if the part ``noise`` of it is removed."""
    xp = namespace(variance)
    share = noise / xp.where(variance > 0, variance, np.inf)
    return xp.sqrt(xp.maximum(1.0 - share, LEAST))
