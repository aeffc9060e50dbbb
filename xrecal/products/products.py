"""Probabilities of thresholds, and equally likely members, of forecasts of any form."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr

from xrecal.arrays.rows import is_whole
from xrecal.chunks.blockwise import like
from xrecal.inputs.dims import CALIBRATION, candidates
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.metadata import describing, history_line, probability_attributes
from xrecal.inputs.thresholds import Threshold, read_thresholds
from xrecal.methods.base import equal_mass_levels
from xrecal.typing import Places

from .ensembles import map_forms, reduce_form
from .reductions import Reduction, cdf_of, exceedance_of, members_of


def exceedance(
    forecast: Labelled, threshold: Threshold, *, member_dim: Hashable | None = None
) -> Labelled:
    """``P(Y > threshold)``, strictly, of each forecast distribution.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    threshold : float, sequence of float or DataArray
        In the unit of the variable. A DataArray may have dimensions of the forecast other than
        the members (thresholds by location, or by date), and one new one. Dimensions ``month``
        (1-12), ``dayofyear`` (1-366) or ``season`` (DJF, MAM, JJA, SON) are looked up at the date
        at which each forecast is valid: ``valid_time``, else that of the case.
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Probabilities in [0, 1], one minus the CDF; lazy if an input is. With ``threshold``, or
        the new dimension of a DataArray, in place of the members; without for one number. NaN
        where the forecast or the threshold is missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units of the threshold do not fit, or it differs by season and
        forecasts have no dates, or none of its labels is theirs.
    TypeError
        If it holds no numbers.

    Notes
    -----
    Thresholds are compared in the floating type of the variable: no float32 member 0.1 exceeds 0.1.

    Examples
    --------
    >>> forecast.recal.exceedance([0.0, 5.0]).mean(["init", "location"]).round(2).values
    array([0.68, 0.35])
    """
    return _of_events(forecast, threshold, member_dim, EXCEEDANCE)


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
        Probabilities in [0, 1], one minus :func:`exceedance`, not decreasing in the threshold; at
        the quantile of level q at least q, up to rounding.

    Raises
    ------
    ValueError, TypeError
        As for :func:`exceedance`.

    Examples
    --------
    >>> forecast.recal.cdf([0.0, 5.0]).mean(["init", "location"]).round(2).values
    array([0.32, 0.65])
    """
    return _of_events(forecast, threshold, member_dim, CDF)


class EventKind(NamedTuple):
    """A kind of events that thresholds define, and their names in results."""

    name: str
    reduction: Reduction
    event: str
    """After the name of the variable."""
    line: str
    """For the history."""


EXCEEDANCE = EventKind(
    "exceedance", exceedance_of, "exceeds the threshold", "probability of exceeding a threshold"
)
CDF = EventKind(
    "cdf", cdf_of, "does not exceed the threshold", "probability of not exceeding a threshold"
)


def _of_events(
    forecast: Labelled, threshold: Threshold, member_dim: Hashable | None, kind: EventKind
) -> Labelled:
    """Probabilities of events of one kind."""

    def one(form: Form) -> xr.DataArray:
        wanted = read_thresholds(threshold, form, form.loc.dtype)
        new = {wanted.dim: wanted.values.sizes[wanted.dim]}
        result = wanted.label(reduce_form(form, kind.reduction, new, [wanted.values]))
        return result.assign_attrs(probability_attributes(form.loc.attrs, kind.event))

    result = map_forms(forecast, member_dim, one)
    if isinstance(result, xr.DataArray):
        result = result.rename(kind.name)
    return result.assign_attrs(history_line(result.attrs, kind.line))


def members(
    forecast: Labelled, n: int, *, seed: int = 0, member_dim: Hashable | None = None
) -> Labelled:
    """Equally likely members that stand for each forecast distribution.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    n : int
        How many, at least 1; see Notes for more than the distribution can tell apart.
    seed : int
        Of the order of the members. Another one gives the same members in another order.
    member_dim : hashable, optional
        As for :func:`exceedance`.

    Returns
    -------
    DataArray or Dataset
        A plain ensemble as the forecast, with n members along its member dimension (``member``
        for quantiles and normal distributions); lazy if an input is.

    Raises
    ------
    ValueError
        If ``n`` is not a positive whole number, or ``seed`` not whole.

    Notes
    -----
    Quantiles at the levels (i - ½)/n, which represent the distribution best for their number. A
    plain ensemble of m members, or a weighted one, has no more than its members: of more, several
    are equal, each as often as its weight says (n / m times where that is whole). Each
    location and case has them in an order of its own, drawn by its position: rank k here says
    nothing of rank k elsewhere, so fields of one member are not coherent in space or time.

    Examples
    --------
    >>> forecast.recal.apply(model).recal.members(20).sizes["member"]
    20
    """
    check_count(n, seed)

    def one(form: Form) -> xr.DataArray:
        dims = candidates(form.broadcast().loc, CALIBRATION)
        numbers = numbers_of(form, dims[0] if len(dims) == 1 else None)
        result = reduce_form(form, drawn(n, seed), {form.member_dim_of_results: n}, numbers)
        return result.assign_attrs(describing(form.loc.attrs))

    result = map_forms(forecast, member_dim, one)
    return result.assign_attrs(history_line(result.attrs, members_line(n, seed)))


def numbers_of(
    form: Form, dim: Hashable | None, places: Places | None = None
) -> list[xr.DataArray]:
    """Numbers that tell forecasts apart: of the case along ``dim``, and parts of the location's.

    The location's number counts through its dimensions sorted by name, and is the sum of an array
    along each of them: tasks get the few values they need, whatever the number of locations. Where
    a forecast has a part of the ``places`` along a dimension it is the number among all of them.
    """
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    cases = xr.DataArray(np.int64(0))
    if dim in form.dims:
        cases = xr.DataArray(np.arange(sizes[dim]), dims=[dim])
    parts, stride = [], 1
    for d in sorted((d for d in form.dims if d != dim), key=str, reverse=True):
        at, size = (places or {}).get(d, (np.arange(sizes[d]), sizes[d]))
        parts.append(xr.DataArray(at * stride, dims=[d]))
        stride *= size
    return [like(number, form.loc) for number in (cases, *parts)]


def drawn(n: int, seed: int) -> Reduction:
    """Reduction to n equally likely members."""
    return partial(members_of, levels=equal_mass_levels(n), seed=seed)


def check_count(n: int | None, seed: int) -> int:
    """The number of members; raises ValueError unless it and the seed are whole."""
    if n is None or not is_whole(n) or n < 1:
        raise ValueError(f"n must be a whole number of members from 1 on, got {n!r}")
    check_seed(seed)
    return n


def check_seed(seed: int) -> None:
    """Raise ValueError unless the seed is whole."""
    if not is_whole(seed):
        raise ValueError(f"seed must be a whole number, got {seed!r}")


def members_line(n: int, seed: int) -> str:
    """What the history tells of members."""
    return f"{n} equally likely members, order of seed {seed}"
