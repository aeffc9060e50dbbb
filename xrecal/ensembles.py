"""Forecasts of every form: making them explicit, and their mean, spread and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

import numpy as np
import xarray as xr

from .attributes import describing, history_line, with_cell_method
from .circles import on_circle
from .dims import LEVEL, MEMBER
from .forms import Form, Labelled, read_forms
from .labels import require_equal_labels
from .levels import level_coordinate, read_levels
from .parallel import require_one_chunk, run_blockwise, work_on
from .reductions import Reduction, mean_of, quantiles_of, std_of
from .tasks import NEW_MEMBER, StatisticTask


def weighted(values: xr.DataArray, weights: xr.DataArray) -> xr.Dataset:
    """Mark an ensemble with weights as a forecast that xrecal understands.

    Parameters
    ----------
    values : DataArray
        Members, along a member dimension. Its name becomes NAME (``forecast`` if it has none).
    weights : DataArray
        Weights >= 0 along the same dimension; need not sum to one, except for tests of
        auto-calibration, which refuse others.

    Returns
    -------
    Dataset
        ``NAME`` and ``NAME_weight``, linked by attributes.

    Raises
    ------
    ValueError
        If there is no member dimension, weights lack it, or labels differ.
    """
    (form,) = read_forms(values, name="values").values()
    if form.member_dim not in weights.dims:
        raise ValueError(
            f"weights lack the member dimension {form.member_dim!r}; they have {list(weights.dims)}"
        )
    _require_same_labels({"values": values, "weights": weights})
    name = "forecast" if values.name is None else values.name
    return xr.Dataset(
        {
            name: values.assign_attrs(ancillary_variables=f"{name}_weight"),
            f"{name}_weight": weights.assign_attrs(role="member_weight"),
        }
    )


def gaussian(
    loc: xr.DataArray,
    scale: xr.DataArray,
    weights: xr.DataArray | None = None,
    lower: xr.DataArray | float | None = None,
    upper: xr.DataArray | float | None = None,
) -> xr.Dataset:
    """Normal distributions, mixtures of them, or censored ones as a forecast.

    Parameters
    ----------
    loc : DataArray
        Means, over ``component`` for a mixture. Its name, without a final ``_loc``, becomes NAME.
    scale : DataArray
        Standard deviations >= 0, in the same unit.
    weights : DataArray, optional
        Weights >= 0 of the components, over ``component``; equal if not given.
    lower, upper : DataArray or float, optional
        Bounds of the variable, in the unit of ``loc``: all that a distribution has beyond one lies
        on it, such as no rain. Without ``component``, and not for mixtures.

    Returns
    -------
    Dataset
        ``NAME_loc``, ``NAME_scale`` and, if given, ``NAME_weight``, ``NAME_lower``, ``NAME_upper``.

    Raises
    ------
    ValueError
        If weights have no dimension ``component``, bounds have one or go with a mixture, or labels
        or units differ.
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
    for end, bound in (("lower", lower), ("upper", upper)):
        if bound is not None:
            parts[f"{name}_{end}"] = _bound(bound, end, loc)
    _require_same_labels(parts)
    dataset = xr.Dataset(parts)
    if lower is not None or upper is not None:
        read_forms(dataset, name="forecast")  # refuses mixtures and other units
    return dataset


def _bound(bound: xr.DataArray | float, end: str, loc: xr.DataArray) -> xr.DataArray:
    """A bound as a DataArray, checked to be one for all of each distribution."""
    if not isinstance(bound, xr.DataArray):
        if np.ndim(bound):
            raise TypeError(f"{end} must be a number or a DataArray, got {type(bound).__name__}")
        units = {key: value for key, value in loc.attrs.items() if key == "units"}
        return xr.DataArray(np.asarray(bound, loc.dtype), attrs=units)
    taken = [d for d in bound.dims if d in ("component", *MEMBER.names, *LEVEL.names)]
    if taken:
        raise ValueError(
            f"{end} has the dimension {taken[0]!r}, but all of a distribution has one bound; "
            "select one"
        )
    return bound


def _require_same_labels(parts: dict[str, xr.DataArray]) -> None:
    """Raise ValueError where labels differ, which a Dataset would fill up with NaN."""
    (first, a), *others = parts.items()
    for name, b in others:
        for dim in set(a.dims) & set(b.dims):
            require_equal_labels(a, b, dim, names=(first, name))


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
    """
    return _moment(forecast, mean_of, "mean", "mean", member_dim)


def std(forecast: Labelled, *, member_dim: Hashable | None = None) -> Labelled:
    """Standard deviation of each forecast distribution (not corrected for ensemble size).

    Parameters and result as for :func:`mean`.
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


def task_parts(
    form: Form, loops: Sequence[Hashable], core: Mapping[Hashable, Hashable]
) -> dict[str, xr.DataArray]:
    """Parts of a forecast as tasks take them: ``core`` dimensions last, under their new names.

    Along other dimensions each part keeps to those it has, and tasks broadcast them chunk by
    chunk: masses of quantiles repeated for every case of a large forecast would fill the memory.
    """
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    parts = {}
    for name, part in form.compared.items():
        whole = part.expand_dims({d: sizes[d] for d in core if d not in part.dims})
        along = [c for c, coordinate in whole.coords.items() if set(core) & set(coordinate.dims)]
        parts[name] = (
            whole.drop_vars(along)
            .transpose(*[d for d in loops if d in whole.dims], *core)
            .rename(core)
        )
    return parts


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
