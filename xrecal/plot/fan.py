"""Fan charts: quantiles of forecasts over dates or leads."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes

from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.roles import Roles

from .labels import date_ticks, is_date, label_of, positions, width_beside
from .reading import (
    drop_single,
    only_ensemble,
    only_form,
    only_variable,
    require_one,
    same_quantity,
)
from .style import GREY, PALETTE, Style, dress, ink, legend_above, open_axes, veil

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantile levels of a fan: central intervals of 90 and 50 %, and the median."""

GAP = 3
"""Lines and areas have a gap between dates that are farther apart than this many median steps."""


def fan(
    quantiles: Labelled,
    *,
    ax: Axes | None = None,
    observations: Labelled | None = None,
    raw: Labelled | None = None,
) -> Axes:
    """Quantiles of forecasts over dates or leads, with observations and the raw ensemble.

    Parameters
    ----------
    quantiles : DataArray or Dataset
        Quantiles of one variable at one location, from ``model.quantile`` or
        ``forecast.recal.quantile``. They have a dimension ``quantile`` (0-1) or ``percentile``
        (0-100), and a dimension of dates or leads. Bands lie between the lowest and the highest
        level, between the second lowest and the second highest level, and so on.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure.
    observations : DataArray or Dataset, optional
        Observations at the same dates or leads, in the same units.
    raw : DataArray or Dataset, optional
        Plain ensembles at the same dates or leads, in the same units. Over leads, the figure shows
        members as lines, because each member is one run. Over dates, the figure shows members as
        points.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there are several locations or variables, if the forecast is not in quantiles, or if
        units differ.

    Notes
    -----
    The axis shows the coordinate ``valid_time``, if dates or leads have this coordinate. Curves
    have gaps between dates that are more than three median steps apart, and where forecasts are
    missing.

    Examples
    --------
    >>> quantiles = model.quantile(forecast, [0.1, 0.5, 0.9])
    >>> ax = xrecal.plot.fan(quantiles.isel(location=0), observations=observations.isel(location=0))
    >>> ax.get_ylabel()
    'forecast of the slow variable'
    """
    form = only_form(quantiles, name="quantiles")
    if form.kind != "quantile":
        raise ValueError(
            f"fan draws quantiles, but {form.name!r} is a forecast of the form {form.kind!r}; use "
            f"forecast.recal.quantile({list(LEVELS)})"
        )
    values, dim = _over_one_dim(form)
    ax = open_axes(ax, (7.0, 3.4))
    x, label = positions(_coordinate(values, dim))
    parts = _levels(values, dim, form.member_dim)
    order = np.argsort(x, kind="stable")
    leads = dim in Roles(values).leads
    shown = order if leads else _with_gaps(x[order], order)
    _draw_bands(ax, x, shown, *parts)
    if raw is not None:
        _draw_raw(ax, x, _like(raw, values, dim, "raw"), leads)
    if observations is not None:
        observed = _like(observations, values, dim, "observations").to_numpy()
        ax.plot(x, observed, "o", color=ink(ax), ms=3.2, mew=0, label="observed", zorder=4)
    dress(ax)
    ax.margins(x=0.01)
    ax.set(xlabel=label, ylabel=label_of(values, "forecast", width_beside(ax)))
    if is_date(x):
        date_ticks(ax.xaxis, x)
    legend_above(ax)
    return ax


def _over_one_dim(form: Form) -> tuple[xr.DataArray, Hashable]:
    """Quantiles along one dimension, in memory, and the name of this dimension."""
    values = drop_single(form.loc, (form.member_dim,))
    others = [d for d in values.dims if d != form.member_dim]
    roles = Roles(values)
    usual = [*roles.cases, *roles.leads]
    if not others:
        # One date or lead is a fan with one step.
        roles = Roles(form.loc)
        named = [*roles.cases, *roles.leads][:1]
        if not named:
            raise ValueError(
                f"a fan lies along dates or leads, but quantiles have {list(form.loc.dims)}; give "
                "several cases, or draw one with xrecal.plot.cdf(forecast)"
            )
        values, others = form.loc, named
    dim = next((d for d in usual if d in others), others[0]) if len(others) > 1 else others[0]
    return require_one(values, (dim, form.member_dim), figure="fan").compute(), dim


def _coordinate(values: xr.DataArray, dim: Hashable) -> xr.DataArray:
    """Valid times along a dimension, or its labels if it has no valid times."""
    valid = values.coords.get("valid_time")
    return valid if valid is not None and valid.dims == (dim,) else values[dim]


def _levels(
    values: xr.DataArray, dim: Hashable, level_dim: Hashable
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Levels in [0, 1], ascending, and quantiles (level, case)."""
    levels = values[level_dim].to_numpy().astype(np.float64)
    levels = levels / (100 if level_dim == "percentile" else 1)
    order = np.argsort(levels)
    return levels[order], values.transpose(level_dim, dim).to_numpy()[order].astype(np.float64)


def _with_gaps(x: npt.NDArray[Any], order: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Positions of cases in ascending order of ``x``, with -1 in each gap between dates."""
    if x.size < 3 or not is_date(x):
        return order
    steps = np.diff(x)
    lengths = (
        np.array([step.total_seconds() for step in steps])
        if steps.dtype == object
        else steps.astype(np.float64)
    )
    far = np.flatnonzero(lengths > GAP * np.median(lengths))
    return np.insert(order, far + 1, -1)


def _draw_bands(
    ax: Axes,
    x: npt.NDArray[Any],
    shown: npt.NDArray[Any],
    levels: npt.NDArray[Any],
    quantiles: npt.NDArray[Any],
) -> None:
    at = x[shown]
    drawn = np.where(shown < 0, np.nan, quantiles[:, shown])
    alone = _alone(np.asarray(np.isnan(drawn).any(0)))
    n_bands = levels.size // 2
    for i in range(n_bands):
        low, high = levels[i], levels[-1 - i]
        ends = drawn[i], drawn[-1 - i]
        alpha = veil(ax, 0.35 if n_bands == 1 else 0.2 + 0.3 * i / (n_bands - 1))
        even = np.isclose(low + high, 1)
        label = f"{high - low:.0%}" if even else f"{low:.0%} to {high:.0%}"
        ax.fill_between(at, *ends, color=PALETTE[0], alpha=alpha, lw=0, label=label, zorder=2)
        if alone.any():
            bars = at[alone], *(end[alone] for end in ends)
            ax.vlines(*bars, color=PALETTE[0], alpha=alpha, lw=3.5, zorder=2)
    if levels.size % 2:
        label = "median" if levels[n_bands] == 0.5 else f"{levels[n_bands]:.0%}"
        middle = drawn[n_bands]
        ax.plot(at, middle, color=PALETTE[0], lw=1.4, label=label, zorder=3)
        if alone.any():
            ax.plot(at[alone], middle[alone], "_", color=PALETTE[0], ms=6, mew=1.4, zorder=3)


def _alone(missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Mark cases without a neighbour on either side; lines and areas do not show such cases."""
    around = np.concatenate([[True], missing, [True]])
    return np.asarray(~missing & around[:-2] & around[2:])


def _like(given: Labelled, values: xr.DataArray, dim: Hashable, name: str) -> xr.DataArray:
    """Observations or raw members (case, member) at the labels of the quantiles."""
    if name == "raw":
        form = only_ensemble(given)
        array = form.loc
        keep: tuple[Hashable, ...] = (dim, form.member_dim)
    else:
        array, keep = only_variable(given, name=name), (dim,)
    same_quantity(values, array, names=("quantiles", name))
    if dim not in array.dims:
        raise ValueError(
            f"{name} have no dimension {dim!r}, along which the fan lies; they have "
            f"{list(array.dims)}"
        )
    array = require_one(array, keep, figure=f"fan ({name})")
    if dim in array.indexes and dim in values.indexes:
        array = array.reindex({dim: values.indexes[dim]})
    elif array.sizes[dim] != values.sizes[dim]:
        raise ValueError(
            f"{name} have {array.sizes[dim]} cases along {dim!r}, but quantiles have "
            f"{values.sizes[dim]}; add labels to match them"
        )
    return array.transpose(*keep).compute()


def _draw_raw(ax: Axes, x: npt.NDArray[Any], members: xr.DataArray, leads: bool) -> None:
    values = members.to_numpy()
    order = np.argsort(x, kind="stable")
    if leads:
        lines = ax.plot(x[order], values[order], color=GREY, lw=0.6, alpha=0.7, zorder=1.5)
        lines[0].set_label("raw ensemble")
        return
    at = np.repeat(x, values.shape[1])
    points: Style = {"ms": 1.8, "mew": 0, "alpha": 0.8, "zorder": 1.5}
    ax.plot(at, values.ravel(), "o", color=GREY, label="raw ensemble", **points)
