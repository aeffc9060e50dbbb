"""Corrections for forecasts that have more or fewer members than the hindcast.

The mean of m members has a sampling error, whose variance is 1/m of the variance of the members. On
average, the variance of m members is smaller than the true variance by a share of 1/m. The mean
distance of two members, over all pairs, is too small by the same share. A fit to hindcasts of 5
members learns the errors of means of 5 members. For new forecasts of 51 members, the means have
smaller errors, and the differences between members are larger. If instead the hindcasts have 51
members and the new forecasts have 5, the variances of the new forecasts are more uncertain than the
variances in the fit. Forecasts of weighted members, quantiles or distributions have no number of
members, so this module does not correct them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.typing import FloatArray

from .forms import Forecasts

SAME = 1e-9
"""Results of :func:`excess_of` up to this size count as rounding errors and become 0."""

LEAST = 0.25
"""The function :func:`narrowing` keeps at least this share of the squared spread."""


class Past(NamedTuple):
    """Sizes and variances of the past ensembles that the fits of L locations learned from."""

    inverse_size: Any
    """(L,) mean of 1 / m for forecasts of m members; NaN if forecasts have no number of members"""
    past_variance: Any
    """(L,) mean of the variances of the past ensembles"""
    past_variation: Any
    """(L,) variance of the variances of the past ensembles: how much these variances differ"""


def past_of(inverse_size: FloatArray, variance: FloatArray) -> Past:
    """Summarise past ensembles by their :func:`inverse_sizes` and variances (L, n); ignore NaN."""
    mean = mean_of_known(variance)
    spread = mean_of_known((variance - mean[:, np.newaxis]) ** 2)
    return Past(mean_of_known(inverse_size), mean, spread)


def inverse_sizes(forecasts: Forecasts) -> Any:
    """Return 1 / m for the number m of members of each forecast; NaN without such a number."""
    xp, loc = namespace(forecasts.loc), forecasts.loc
    if forecasts.scale is not None or forecasts.weights is not None:
        return xp.full(loc.shape[:-1], np.nan)
    size = (~xp.isnan(loc)).sum(axis=-1).astype(np.float64)
    return xp.where(size > 0, 1.0 / xp.maximum(size, 1.0), np.nan)


def mean_of_known(values: FloatArray) -> FloatArray:
    """Return the mean (L,) of the finite values among (L, n); NaN if no value is finite."""
    values = np.ascontiguousarray(values)  # sums in one order, whatever the layout
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(-1), known.sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def excess_of(past: Any, new: Any) -> Any:
    """Return the sampling variance of past ensemble means minus that of new ensemble means.

    Parameters
    ----------
    past : array of float
        Mean of :func:`inverse_sizes` over the past cases from which a fit learned.
    new : array of float
        Results of :func:`inverse_sizes` for new forecasts.

    Returns
    -------
    array of float64
        Difference of the two sampling variances, as a share of the variance of members. The share
        is 0 if past and new forecasts have the same number of members, if one of these numbers is
        unknown, or if new forecasts have only one member. Otherwise, it is negative if new
        forecasts have fewer members. Before you compare new ensembles with the ensembles of the
        fit, multiply the variances and the mean distances of the new ensembles by one minus this
        share.
    """
    xp = namespace(new)
    is_known = xp.isfinite(past + new) & (new < 1.0)
    share = (past - new) / xp.where(is_known, 1.0 - new, 1.0)
    return xp.where(is_known & (abs(share) > SAME), share, 0.0)


def on_footing(variance: Any, new: Any, past: Past) -> tuple[Any, Any]:
    """Adjust variances and errors of new ensembles to the number of members in the fit.

    Parameters
    ----------
    variance : array of float, shape (L, T)
        Variances of new ensembles: mean squared deviations of members from their mean.
    new : array of float, shape (L, T)
        Result of :func:`inverse_sizes` for the new ensembles.
    past : Past
        Sizes and variances of the past ensembles from which the fits learned.

    Returns
    -------
    two arrays of float64, shape (L, T)
        The first array holds the adjusted variances. They are unchanged if new ensembles have as
        many members as the ensembles in the fit. The second array is a difference: the variance of
        the sampling error of past means, minus the variance of the sampling error of new means. The
        difference is negative if new ensembles have fewer members.

    Notes
    -----
    The variance of k members from a normal distribution has a sampling error. The variance of this
    error is 2/(k - 1) times the squared variance of the members. If new ensembles have fewer
    members than the ensembles in the fit, the function moves their variances towards the mean of
    past variances. The size of this step follows from a linear regression, which predicts the
    variances of past ensembles from the variances of ensembles of the new size. If past variances
    differ much from each other, the result stays near the new variance.
    """
    xp = namespace(new)
    size, mean, spread = (xp.asarray(part)[..., None] for part in past)
    excess = excess_of(size, new)
    own, is_fewer = variance * (1.0 - excess), excess < 0.0
    # 2/(k - 1) for few members minus 2/(k - 1) for many, times the mean square of past variances.
    uncertain = xp.where(is_fewer, -2.0 * excess / (1.0 + size), 0.0) * (mean**2 + spread)
    whole = spread + uncertain
    is_shrunk = is_fewer & (whole > 0.0)
    own = xp.where(is_shrunk, mean + spread / xp.where(is_shrunk, whole, 1.0) * (own - mean), own)
    of_members = xp.where(is_fewer, own / (1.0 - xp.where(is_fewer, excess, 0.0)), variance)
    return own, excess * of_members


def narrowing(noise: Any, variance: Any) -> Any:
    """Return the factor by which a spread shrinks if ``noise`` is subtracted from its square.

    ``variance`` is the square of the spread.
    """
    xp = namespace(variance)
    share = noise / xp.where(variance > 0, variance, np.inf)
    return xp.sqrt(xp.maximum(1.0 - share, LEAST))
