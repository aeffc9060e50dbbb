"""Forecasts of every form: making them explicit, and their mean, spread and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

import numpy as np
import xarray as xr

from .attributes import history_line
from .forms import Form, Labelled, read_forms
from .parallel import require_one_chunk, run_blockwise
from .tasks import MEMBER, Reduction, StatisticTask, mean_of, quantiles_of, std_of


def weighted(values: xr.DataArray, weights: xr.DataArray) -> xr.Dataset:
    """Mark an ensemble with weights as a forecast that xrecal understands.

    Parameters
    ----------
    values : DataArray
        Members, along a member dimension. Its name becomes NAME (``forecast`` if it has none).
    weights : DataArray
        Weights >= 0 along the same dimension; need not sum to one.

    Returns
    -------
    Dataset
        ``NAME`` and ``NAME_weight``, linked by attributes.

    Raises
    ------
    ValueError
        If there is no member dimension, or weights lack it.
    """
    (form,) = read_forms(values, name="values").values()
    if form.member_dim not in weights.dims:
        raise ValueError(
            f"weights lack the member dimension {form.member_dim!r}; they have {list(weights.dims)}"
        )
    name = "forecast" if values.name is None else values.name
    return xr.Dataset(
        {
            name: values.assign_attrs(ancillary_variables=f"{name}_weight"),
            f"{name}_weight": weights.assign_attrs(role="member_weight"),
        }
    )


def gaussian(
    loc: xr.DataArray, scale: xr.DataArray, weights: xr.DataArray | None = None
) -> xr.Dataset:
    """Normal distributions, or mixtures of them, as a forecast that xrecal understands.

    Parameters
    ----------
    loc : DataArray
        Means, over ``component`` for a mixture. Its name, without a final ``_loc``, becomes NAME.
    scale : DataArray
        Standard deviations >= 0, in the same unit.
    weights : DataArray, optional
        Weights >= 0 of the components, over ``component``; equal if not given.

    Returns
    -------
    Dataset
        ``NAME_loc``, ``NAME_scale`` and, if given, ``NAME_weight``.

    Raises
    ------
    ValueError
        If weights have no dimension ``component``.
    """
    if weights is not None and "component" not in weights.dims:
        raise ValueError(
            f"weights need the dimension 'component'; they have {list(weights.dims)}. "
            "Rename the dimension that counts the components"
        )
    name = "forecast" if loc.name is None else str(loc.name).removesuffix("_loc")
    parts = {f"{name}_loc": loc, f"{name}_scale": scale}
    if weights is not None:
        parts[f"{name}_weight"] = weights
    return xr.Dataset(parts)


def mean(forecast: Labelled) -> Labelled:
    """Mean of each forecast distribution, in the unit of the variable.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.

    Returns
    -------
    DataArray or Dataset
        As the forecast, without the members; lazy if it is.
    """
    return _statistic(forecast, mean_of, "mean")


def std(forecast: Labelled) -> Labelled:
    """Standard deviation of each forecast distribution (not corrected for ensemble size).

    Parameters and result as for :func:`mean`.
    """
    return _statistic(forecast, std_of, "standard deviation")


def quantile(forecast: Labelled, q: float | Sequence[float] | np.ndarray) -> Labelled:
    """Quantiles of each forecast distribution.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    q : float or sequence of float
        Levels in [0, 1].

    Returns
    -------
    DataArray or Dataset
        As the forecast, with ``quantile`` in place of the members; without it for one number.
        A quantile is the smallest value whose CDF reaches q.

    Raises
    ------
    ValueError
        If a level is outside [0, 1].
    """
    from .arrays.weighted import check_levels

    levels = check_levels(np.asarray(q))
    reduction = partial(quantiles_of, levels=levels)
    result = _statistic(forecast, reduction, "quantiles", {"quantile": levels.size})
    result = result.assign_coords(quantile=levels)
    return result.isel(quantile=0) if np.ndim(q) == 0 else result


def _statistic(
    forecast: Labelled,
    reduction: Reduction,
    what: str,
    new: Mapping[Hashable, int] | None = None,
) -> Labelled:
    result = map_forms(
        forecast, lambda form: reduce_form(form, reduction, new).assign_attrs(form.loc.attrs)
    )
    return result.assign_attrs(history_line(result.attrs, f"{what} of the forecast distribution"))


def map_forms(forecast: Labelled, function: Callable[[Form], xr.DataArray]) -> Labelled:
    """Result of a function on each forecast variable, of the type of ``forecast``."""
    results = {name: function(form) for name, form in read_forms(forecast).items()}
    if isinstance(forecast, xr.DataArray):
        return next(iter(results.values())).rename(forecast.name)
    return xr.Dataset(results, attrs=forecast.attrs)


def reduce_form(
    form: Form,
    reduction: Reduction,
    new: Mapping[Hashable, int] | None = None,
    extra: xr.DataArray | None = None,
) -> xr.DataArray:
    """Reduce each forecast distribution; ``new`` are dimensions in place of the members.

    Members that many forecasts share (past observations) are not repeated for each of them.
    """
    shared = [d for d in form.dims if d not in form.loc.dims]
    if form.kind != "weighted" or not set(form.loc.dims) < set(form.parts["weights"].dims):
        shared = []
    loops = [*(d for d in form.dims if d not in shared), *shared]
    parts = {}
    for name, part in form.parts.items():
        require_one_chunk(part, (form.member_dim,), name="forecast")
        inner = [d for d in loops if d in part.dims]
        parts[name] = part.transpose(*inner, form.member_dim)
        parts[name] = parts[name].drop_vars([form.member_dim], errors="ignore")
        parts[name] = parts[name].rename({form.member_dim: MEMBER})
    args = list(parts.values())
    core: list[tuple[Hashable, ...]] = [(MEMBER,)] * len(args)
    if extra is not None:
        args.append(extra.transpose(*[d for d in loops if d in extra.dims]))
        core.append(())
    (result,) = run_blockwise(
        StatisticTask(reduction, tuple(parts), len(shared)),
        *args,
        core=core,
        out=[tuple(new or ())],
        dtypes=[form.loc.dtype],
        sizes=new or {},
    )
    return result.transpose(*form.order(tuple(new or ())))
