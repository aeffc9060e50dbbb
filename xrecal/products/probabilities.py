"""Probabilities of exceeding thresholds, and of not exceeding them."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import NamedTuple

import xarray as xr

from xrecal.arrays.distributions.forms import Distribution
from xrecal.inputs.forms import Labelled
from xrecal.inputs.metadata import probability_attributes
from xrecal.inputs.thresholds import Threshold, read_thresholds
from xrecal.typing import FloatArray

from .of_model import sources_of
from .reductions import Reduction
from .source import Source, reduce


def exceedance_of(distribution: Distribution, thresholds: FloatArray) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k) of values above k thresholds, for T forecasts at L locations."""
    return (distribution.exceedance(thresholds),)


def cdf_of(distribution: Distribution, thresholds: FloatArray) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k) of values up to k thresholds, for T forecasts at L locations."""
    return (1.0 - distribution.exceedance(thresholds),)


class EventKind(NamedTuple):
    """A kind of events that thresholds define, and the texts that describe them in results."""

    name: str
    reduction: Reduction
    event: str
    """Text that describes the event, after the name of the variable."""
    line: str
    """Text that describes the probability, for the attribute ``history``."""


EXCEEDANCE = EventKind(
    "exceedance", exceedance_of, "exceeds the threshold", "probability of exceeding a threshold"
)
CDF = EventKind(
    "cdf", cdf_of, "does not exceed the threshold", "probability of not exceeding a threshold"
)


def exceedance(
    forecast: Labelled, threshold: Threshold, *, member_dim: Hashable | None = None
) -> Labelled:
    """``P(Y > threshold)`` of each forecast distribution: probability of exceeding a threshold.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form (ensemble, weighted ensemble, quantiles or normal distributions).
    threshold : float, sequence of float or DataArray
        Thresholds in the unit of the variable. A DataArray may have one new dimension. It may also
        have dimensions of the forecast, but not that of the members: then thresholds differ between
        locations or dates. If it has a dimension ``month`` (1-12), ``dayofyear`` (1-366) or
        ``season`` (DJF, MAM, JJA, SON), each forecast gets the thresholds of its valid date:
        ``valid_time``, or the date of the case.
    member_dim : hashable, optional
        The member dimension. By default, xrecal recognises its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Probabilities in [0, 1], one minus the CDF; lazy if an input is lazy. The dimension
        ``threshold``, or the new dimension of a DataArray, takes the place of the members; a single
        number adds no dimension. Values are NaN where the forecast or the threshold is missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units of the threshold do not fit the forecast. If thresholds have
        a dimension ``month``, ``dayofyear`` or ``season``, but forecasts have no dates, or a date
        has no threshold.
    TypeError
        If thresholds are not numbers.

    Notes
    -----
    xrecal rounds thresholds to the floating type of the variable, so a float32 member 0.1 does not
    exceed the threshold 0.1.

    Examples
    --------
    >>> forecast.recal.exceedance([0.0, 5.0]).mean(["init", "location"]).round(2).values
    array([0.68, 0.35])
    >>> model.exceedance(forecast, 5.0).mean().round(2).item()
    0.34
    """
    return _of_events(forecast, threshold, EXCEEDANCE, member_dim)


def cdf(
    forecast: Labelled, threshold: Threshold, *, member_dim: Hashable | None = None
) -> Labelled:
    """``P(Y <= threshold)`` of each forecast distribution: its cumulative distribution function.

    Parameters
    ----------
    forecast, threshold, member_dim
        As for :func:`exceedance`.

    Returns
    -------
    DataArray or Dataset
        Probabilities in [0, 1], one minus :func:`exceedance`. Probabilities do not decrease with
        the threshold. If the threshold is the quantile of level q, the probability is at least q,
        up to rounding.

    Raises
    ------
    ValueError, TypeError
        As for :func:`exceedance`.

    Examples
    --------
    >>> forecast.recal.cdf([0.0, 5.0]).mean(["init", "location"]).round(2).values
    array([0.32, 0.65])
    >>> model.cdf(forecast, [0.0, 5.0]).mean(["init", "location"]).round(2).values
    array([0.32, 0.66])
    """
    return _of_events(forecast, threshold, CDF, member_dim)


def _of_events(
    forecast: Labelled, threshold: Threshold, kind: EventKind, member_dim: Hashable | None
) -> Labelled:
    sources = sources_of(forecast, member_dim)
    one = partial(probabilities, threshold=threshold, kind=kind)
    return sources.product(one, kind.line + sources.after, kind.name)


def probabilities(source: Source, threshold: Threshold, kind: EventKind) -> xr.DataArray:
    """Probabilities of events of one kind."""
    thresholds = read_thresholds(threshold, source.form, source.threshold_dtype, source.dim)
    new = {thresholds.dim: thresholds.values.sizes[thresholds.dim]}
    result = thresholds.label(reduce(source, kind.reduction, new, [thresholds.values]))
    return result.assign_attrs(probability_attributes(source.attrs, kind.event))
