"""Forecasts of every form: their mean, spread and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import require_one_chunk, run_blockwise, work_on
from xrecal.fit.state import NEW_MEMBER
from xrecal.inputs.circular import PERIOD
from xrecal.inputs.dims import level_coordinate, read_levels
from xrecal.inputs.forms import Form, Labelled, read_forms, task_parts
from xrecal.inputs.metadata import describing, history_line

from .reductions import Reduction, mean_of, on_circle, quantiles_of, std_of
from .tasks import StatisticTask


def mean(forecast: Labelled, *, member_dim: Hashable | None = None) -> Labelled:
    """Mean of each forecast distribution, in the unit of the variable.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        As the forecast, without the members; lazy if it is.

    Examples
    --------
    >>> forecast.recal.mean().isel(init=0).round(1).values
    array([ 8.1, -2.7,  4.1,  9.1])
    """
    return _moment(forecast, mean_of, "mean", "mean", member_dim)


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
    """
    return _moment(forecast, std_of, "standard_deviation", "standard deviation", member_dim)


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
        In any of the four forms.
    q : float or sequence of float
        Levels in [0, 1], each once, in any order.
    member_dim : hashable, optional
        As for :func:`mean`.

    Returns
    -------
    DataArray or Dataset
        As the forecast, with ``quantile`` in place of the members, in the order asked for; without
        it for one number.
        A quantile is the smallest value whose CDF reaches q.

    Raises
    ------
    ValueError
        If a level is outside [0, 1] or given twice.

    Examples
    --------
    >>> forecast.recal.quantile([0.1, 0.5, 0.9]).mean(["init", "location"]).round(1).values
    array([3.7, 3.9, 4.1])
    """
    levels = read_levels(q)
    reduction = partial(quantiles_of, levels=levels)

    def one(form: Form) -> xr.DataArray:
        result = reduce_form(form, reduction, {"quantile": levels.size})
        return result.assign_attrs(describing(form.loc.attrs))

    result = map_forms(forecast, member_dim, one)
    result = result.assign_coords(quantile=level_coordinate(levels))
    result = result.assign_attrs(history_line(result.attrs, _line("quantiles")))
    return result.isel(quantile=0) if np.ndim(q) == 0 else result


def _moment(
    forecast: Labelled, reduction: Reduction, method: str, what: str, member_dim: Hashable | None
) -> Labelled:
    """A moment of each distribution; ``method`` is the CF cell method."""

    def one(form: Form) -> xr.DataArray:
        attrs = with_cell_method(describing(form.loc.attrs), form, method)
        return reduce_form(form, reduction).assign_attrs(attrs)

    result = map_forms(forecast, member_dim, one)
    return result.assign_attrs(history_line(result.attrs, _line(what)))


def _line(what: str) -> str:
    return f"{what} of the forecast distribution"


def map_forms(
    forecast: Labelled, member_dim: Hashable | None, function: Callable[[Form], xr.DataArray]
) -> Labelled:
    """Result of a function on each forecast variable, of the type of ``forecast``."""
    results = {name: function(form) for name, form in read_forms(forecast, member_dim).items()}
    if isinstance(forecast, xr.DataArray):
        return next(iter(results.values())).rename(forecast.name)
    return xr.Dataset(results, attrs=forecast.attrs)


def reduce_form(
    form: Form,
    reduction: Reduction,
    new: Mapping[Hashable, int] | None = None,
    extras: Sequence[xr.DataArray] = (),
) -> xr.DataArray:
    """Reduce each forecast distribution; ``new`` are dimensions in place of the members.

    Further arrays ``extras`` may have those besides dimensions of the forecast. Members that many
    forecasts share (past observations) are not repeated for each of them.
    """
    reduction = on_circle(reduction, form.period, form.name, form.kind)
    shared = [d for d in form.dims if d not in form.loc.dims]
    if form.kind != "weighted" or not set(form.loc.dims) < set(form.parts["weights"].dims):
        shared = []  # each case has members of its own
    loops = [*(d for d in form.dims if d not in shared), *shared]
    for part in form.parts.values():
        require_one_chunk(part, (form.member_dim,), name="forecast")
    parts = task_parts(form, loops, {form.member_dim: NEW_MEMBER})
    args = list(parts.values())
    core: list[tuple[Hashable, ...]] = [(NEW_MEMBER,)] * len(args)
    own = [tuple(d for d in extra.dims if d not in loops) for extra in extras]
    for extra, dims in zip(extras, own, strict=True):
        args.append(extra.transpose(*[d for d in loops if d in extra.dims], *dims))
        core.append(dims)
    (result,) = run_blockwise(
        StatisticTask(reduction, tuple(parts), len(shared), tuple(map(len, own))),
        *args,
        core=core,
        out=[tuple(new or ())],
        dtypes=[form.loc.dtype],
        sizes=new or {},
        what=work_on("a statistic", form.name),
    )
    return result.transpose(*form.order(tuple(new or ())))


def with_cell_method(attrs: Mapping[Any, Any], form: Form, method: str) -> dict[str, Any]:
    """Attributes of a moment over the members, with the CF cell method added.

    Forms without members have it over ``realization``, a standard name, as components and levels
    are no axes of the variable. A spread of directions is no direction.
    """
    if method == "standard_deviation":
        attrs = {name: value for name, value in attrs.items() if name != PERIOD}
    over = form.member_dim if form.kind in ("ensemble", "weighted") else "realization"
    before = str(attrs.get("cell_methods", ""))
    return {**attrs, "cell_methods": f"{before} {over}: {method}".lstrip()}
