"""Mean, standard deviation and quantiles of distributions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import Distribution
from xrecal.inputs.circular import PERIOD
from xrecal.inputs.dims import level_coordinate, read_levels
from xrecal.inputs.forms import Labelled
from xrecal.typing import FloatArray

from .of_model import sources_of
from .reductions import Reduction, on_circle
from .source import Source, Sources, reduce

MEDIAN = 0.5
"""Level of the median: CF has a cell method for this quantile only."""


@on_circle
def mean_of(distribution: Distribution) -> tuple[FloatArray, ...]:
    """Return means (L, T), at L locations with T forecasts each."""
    return (distribution.mean(),)


@on_circle
def std_of(distribution: Distribution) -> tuple[FloatArray, ...]:
    """Return standard deviations (L, T), at L locations with T forecasts each."""
    return (distribution.std(),)


def quantiles_of(distribution: Distribution, levels: FloatArray) -> tuple[FloatArray, ...]:
    """Return quantiles (L, T, k) at k levels."""
    return (distribution.quantile(levels),)


def mean(forecast: Labelled, *, member_dim: Hashable | None = None) -> Labelled:
    """Mean of each forecast distribution, in the unit of the variable.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form (ensemble, weighted ensemble, quantiles or normal distributions).
    member_dim : hashable, optional
        The member dimension. By default, xrecal recognises its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Mean along the dimensions of the forecast, without the member dimension; lazy if the
        forecast is lazy.

    Examples
    --------
    >>> forecast.recal.mean().isel(init=0).round(1).values
    array([ 8.1, -2.7,  4.1,  9.1])
    >>> model.mean(forecast).isel(init=0).round(1).values
    array([ 8.1, -2.6,  4.1,  9.1])
    """
    return _moment(sources_of(forecast, member_dim), mean_of, "mean", "mean")


def std(forecast: Labelled, *, member_dim: Hashable | None = None) -> Labelled:
    """Standard deviation of each forecast distribution (not corrected for ensemble size).

    Parameters
    ----------
    forecast, member_dim
        As for :func:`mean`.

    Returns
    -------
    DataArray or Dataset
        As for :func:`mean`.

    Examples
    --------
    >>> forecast.recal.std().isel(init=0).round(1).values
    array([0.2, 0.1, 0. , 0.2])
    >>> model.std(forecast).isel(init=0).round(1).values
    array([0.5, 0.3, 0.3, 0.7])
    """
    sources = sources_of(forecast, member_dim)
    return _moment(sources, std_of, "standard_deviation", "standard deviation")


def quantile(
    forecast: Labelled,
    q: float | Sequence[float] | np.ndarray,
    *,
    member_dim: Hashable | None = None,
) -> Labelled:
    """Quantiles of each forecast distribution.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form (ensemble, weighted ensemble, quantiles or normal distributions).
    q : float or sequence of float
        Different levels in [0, 1], in any order.
    member_dim : hashable, optional
        As for :func:`mean`.

    Returns
    -------
    DataArray or Dataset
        Quantiles along the dimensions of the forecast, with ``quantile`` in place of the members,
        in the order of ``q``. If ``q`` is one number, the result has no dimension ``quantile``. The
        quantile of level q is the smallest value at which the CDF reaches q.

    Raises
    ------
    ValueError
        If a level is outside [0, 1] or given twice.

    Examples
    --------
    >>> forecast.recal.quantile([0.1, 0.5, 0.9]).mean(["init", "location"]).round(1).values
    array([3.7, 3.9, 4.1])
    >>> model.quantile(forecast, [0.1, 0.5, 0.9]).mean(["init", "location"]).round(1).values
    array([3.4, 3.9, 4.4])
    """
    levels = read_levels(q)
    sources = sources_of(forecast, member_dim)
    one = partial(quantiles, levels=levels, several=np.ndim(q) > 0)
    return sources.product(one, f"quantiles{sources.after_recalibration}")


def _moment(sources: Sources[Any], reduction: Reduction, method: str, moment: str) -> Labelled:
    """Compute a moment of each distribution; ``method`` is the CF cell method of the moment."""

    def one(source: Source) -> xr.DataArray:
        attrs = _with_cell_method(source.attrs, method)
        return reduce(source, reduction).assign_attrs(attrs)

    return sources.product(one, moment + sources.after_recalibration)


def quantiles(source: Source, levels: FloatArray, several: bool) -> xr.DataArray:
    """Return quantiles of each distribution; if ``several``, along the dimension ``quantile``."""
    result = reduce(source, partial(quantiles_of, levels=levels), {"quantile": levels.size})
    result = result.assign_coords(quantile=level_coordinate(levels)).assign_attrs(source.attrs)
    if several:
        return result
    attrs = source.attrs if levels[0] != MEDIAN else _with_cell_method(source.attrs, "median")
    return result.isel(quantile=0).assign_attrs(attrs)


def _with_cell_method(attrs: Mapping[Any, Any], method: str) -> dict[str, Any]:
    """Attributes of a statistic over the members, with the CF cell method.

    The cell method names the members by their standard name, ``realization``: CF allows no other
    name, because the result has no member dimension. A standard deviation of directions is not a
    direction, so it gets no period.
    """
    if method == "standard_deviation":
        attrs = {name: value for name, value in attrs.items() if name != PERIOD}
    before = str(attrs.get("cell_methods", ""))
    return {**attrs, "cell_methods": f"{before} realization: {method}".lstrip()}
