"""Check labels along dimensions, select labels of single places, and read levels of quantiles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from keyword import iskeyword
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.warnings import warn
from xrecal.typing import FloatArray

Dims: TypeAlias = Hashable | Sequence[Hashable] | None
"""One dimension, several dimensions, or None, whose meaning depends on the function."""

Labelled: TypeAlias = xr.DataArray | xr.Dataset

Labels = TypeVar("Labels", bound=Labelled)

Names: TypeAlias = tuple[str, str]
"""Names that messages use for two objects."""

MODEL = "model.state"
"""Name that messages use for the state of a model, the Dataset that the fit stores."""

NEAR = 1e-6
"""A level may lie this far outside the range of given levels, because of rounding to float32."""


def listed(dim: Hashable | Iterable[Hashable]) -> list[Hashable]:
    """Return one or several dimensions as a list."""
    return [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)


def dims_as_text(dims: Sequence[Hashable]) -> str:
    """Return dimensions as text, for a line of the attribute ``history``."""
    return " and ".join(map(repr, dims))


def refuse_unlike_cases(wanted: Any, observed: Any, dim: Hashable, *, name: str) -> NoReturn:
    """Raise ValueError, because forecasts and observations have no common label along ``dim``."""
    types = [_type_of(index) for index in (wanted, observed)]
    text = any(index.size and isinstance(index[0], str) for index in (wanted, observed))
    if types[0] == types[1]:  # dates of two calendars print alike
        types = ["", ""]
    raise ValueError(
        f"no label along {dim!r} is common to {name} (first: {_first(wanted)}{types[0]}) and "
        f"observations (first: {_first(observed)}{types[1]})"
        + (
            if_days_agree(wanted.to_numpy(), observed.to_numpy(), dim)
            or (_one_type(dim) if text or types[0] != types[1] else "")
        )
    )


def _type_of(index: Any) -> str:
    """Return, for a message, the type of the labels of an index, and their calendar."""
    if not index.size:
        return ""
    name, calendar = type(index[0]).__name__, getattr(index[0], "calendar", "")
    return f", {name}" + (f" of the calendar {calendar}" if calendar and name == "datetime" else "")


def _one_type(dim: Hashable) -> str:
    """Return advice, for a message, on labels that are text or have two types."""
    return (
        f"; use one type of labels for both. For text or Python's dates use observations."
        f"assign_coords({dim}=pandas.to_datetime(observations.{dim})), for numbers that count from "
        f"a date use xarray.decode_cf, and for another calendar use "
        f"observations.convert_calendar(..., dim={dim!r})"
    )


def if_days_agree(wanted: Any, observed: Any, dim: Hashable) -> str:
    """Return advice if two lists of dates differ only by time of day or day of month."""
    if wanted.dtype.kind != "M" or observed.dtype.kind != "M":
        return ""
    for unit, what in (("D", "the time of the day"), ("M", "the day of the month")):
        days = (dates.astype(f"datetime64[{unit}]") for dates in (wanted, observed))
        _, i, k = np.intersect1d(*days, return_indices=True)
        apart = np.unique(wanted[i] - observed[k])
        if apart.size == 1:
            hours = apart[0] / np.timedelta64(1, "h")
            return (
                f"; they differ by {what} alone, so if they mean the same, use observations."
                f"assign_coords({dim}=observations.{dim} + np.timedelta64({hours:.0f}, 'h'))"
            )
        if apart.size:
            return f"; they differ by {what} alone: if they mean the same, use equal labels"
    return ""


def at_scalars(
    other: Labels, forecasts: Labelled, *, names: Names, dims: Iterable[Hashable] | None = None
) -> Labels:
    """Return the part of an object at the single labels of forecasts, such as a single lead.

    Parameters
    ----------
    other : DataArray or Dataset
        Object that may have dimensions which are scalar coordinates of the forecasts.
    forecasts : DataArray or Dataset
        Forecasts, optionally at a single lead, place or date.
    names : tuple of str
        Names of the forecasts and `other` in messages.
    dims : iterable of hashable, optional
        Dimensions of `other` along which to select; all by default.

    Returns
    -------
    DataArray or Dataset
        `other` at the labels of the forecasts; NaN if `other` lacks a date.

    Raises
    ------
    ValueError
        If `other` lacks a label that is not a date, or has a label twice.
    """
    for d in other.dims if dims is None else [d for d in dims if d in other.dims]:
        if d not in other.indexes or d not in forecasts.coords or forecasts[d].ndim:
            continue
        label, index = _label_at(forecasts, other, d), other.indexes[d]
        require_unique(index, d, names[1])
        dates = index.dtype.kind == "M" or isinstance(index, xr.CFTimeIndex)
        if label not in index and not dates:
            raise ValueError(
                f"{names[0]} is at {d}={label}, which {names[1]} lack; they have {_first(index)}"
                + (", ..." if index.size > 3 else "")
                + f"; select a label that both have, or use {names[0]}.drop_vars({d!r})"
            )
        other = cast("Labels", other.reindex({d: [label]}).isel({d: 0}))
    return other


def _label_at(forecasts: Labelled, other: Labelled, dim: Hashable) -> Any:
    """Return the single label of forecasts for ``dim``.

    If ``other`` has no coordinate ``valid_time``, and the forecasts have a single one, the label
    for a dimension ``time`` is this valid time.
    """
    dated = "valid_time" in forecasts.coords and "valid_time" not in other.coords
    name = "valid_time" if dim == "time" and dated and not forecasts["valid_time"].ndim else dim
    return forecasts[name].to_numpy()[()]


def warn_of_other_labels(
    forecasts: xr.DataArray, observations: xr.DataArray, *, names: Names
) -> None:
    """Warn if forecasts and observations of one place give it different names.

    Names are text or integers. Real numbers may differ: a station is near a grid point, not on it.
    """
    for name, label in observations.coords.items():
        if label.ndim or label.dtype.kind not in "iuUSTO" or name not in forecasts.coords:
            continue
        theirs, mine = label.to_numpy()[()], np.ravel(forecasts[name].to_numpy())
        if isinstance(theirs, str | int | np.integer) and (mine != theirs).any():
            warn(
                f"{names[0]} is at {name} {_first(mine)}{', ...' if mine.size > 3 else ''}, but "
                f"{names[1]} at {theirs}: do they belong together? If so, use "
                f"{names[1]}.drop_vars({name!r})"
            )


def require_unique(index: Any, dim: Hashable, owner: str) -> None:
    """Raise ValueError if a dimension has duplicate labels."""
    if not index.is_unique:
        raise ValueError(
            f"labels along {dim!r} of {owner} must be unique, but {index[index.duplicated()][0]} "
            f"occurs more than once; use {owner}.drop_duplicates({dim!r})"
        )


def require_labels_of_cases(index: Any, dim: Hashable, owner: str) -> None:
    """Raise ValueError if a case has no label, or the label of another case."""
    require_unique(index, dim, owner)
    if index.nlevels == 1 and index.hasnans:
        raise ValueError(
            f"{index.isna().sum()} of {index.size} labels along {dim!r} of {owner} are missing; "
            f"use {owner}.isel({{{dim!r}: {owner}[{dim!r}].notnull()}})"
        )


def require_equal_labels(a: Labelled, b: Labelled, dim: Hashable, *, names: Names) -> None:
    """Raise ValueError unless two objects have equal labels along a dimension.

    If one object has no labels, both need the same size.
    """
    at = _at_labels_of(names[0], dim)
    if a.sizes[dim] != b.sizes[dim]:
        hint = ""
        if dim in a.indexes and dim in b.indexes and a.indexes[dim].isin(b.indexes[dim]).all():
            hint = f", {names[1]}.sel({at})"
        elif dim in a.indexes and dim in b.indexes:
            unknown = b.indexes[dim][~b.indexes[dim].isin(a.indexes[dim])]
            if unknown.size:
                hint = (
                    f". {names[0]} lacks {_first(unknown)}{', ...' if unknown.size > 3 else ''}; "
                    f"it has {_first(a.indexes[dim])}{', ...' if a.sizes[dim] > 3 else ''}"
                )
        if names[0] == MODEL and a.sizes[dim] < b.sizes[dim]:
            hint += f"; a fit with pool={dim!r} can also forecast places without past observations"
        raise ValueError(
            f"{names[0]} and {names[1]} differ along {dim!r}: {a.sizes[dim]} against "
            f"{b.sizes[dim]} labels; select the same labels{hint}"
        )
    if dim not in a.indexes or dim not in b.indexes or a.indexes[dim].equals(b.indexes[dim]):
        return
    labels, others = a.indexes[dim], b.indexes[dim]
    differ = np.flatnonzero(np.asarray(labels != others))[0]
    remedy = "bring both to the same locations"
    numbers = labels.dtype.kind in "iuf" and others.dtype.kind in "iuf"
    if numbers and np.allclose(labels, others, rtol=1e-6, atol=1e-6, equal_nan=True):
        remedy = (
            "they agree up to rounding, so if they mean the same, use "
            f"{names[1]}.assign_coords({at})"
        )
    elif numbers and (apart := _within_half_a_step(labels, others)) is not None:
        remedy = (
            f"all are within {apart:.2g} of each other, less than half a step of the grid, so if "
            f'they mean the same, use {names[1]}.sel({at}, method="nearest").assign_coords({at})'
        )
    raise ValueError(
        f"labels along {dim!r} differ, first at position {differ}: {labels[differ]} in "
        f"{names[0]}, {others[differ]} in {names[1]}; {remedy}"
    )


def _at_labels_of(name: str, dim: Hashable) -> str:
    """Return, as text, the argument of ``sel`` or ``assign_coords`` for the labels of an object."""
    plain = isinstance(dim, str) and dim.isidentifier() and not iskeyword(dim)
    if plain and not hasattr(xr.DataArray, str(dim)) and not hasattr(xr.Dataset, str(dim)):
        return f"{dim}={name}.{dim}"
    return f"{{{dim!r}: {name}[{dim!r}]}}"


def _within_half_a_step(labels: Any, others: Any) -> float | None:
    """Return the largest distance between paired labels; None unless below half a grid step.

    The function sorts the labels of both arguments, and pairs them in this order.
    """
    if not others.is_unique or not (
        others.is_monotonic_increasing or others.is_monotonic_decreasing
    ):
        return None  # no label can be selected by distance
    a, b = (np.sort(index.to_numpy().astype(np.float64)) for index in (labels, others))
    step = min(np.diff(a).min(initial=np.inf), np.diff(b).min(initial=np.inf))
    apart = float(np.abs(a - b).max(initial=0))
    return apart if apart < step / 2 < np.inf else None


def _first(index: object) -> str:
    return ", ".join(str(label) for label in list(index)[:3]) or "none"  # type: ignore[call-overload]


def text_of(value: object) -> str:
    """Return a label as text; decode bytes of netCDF files, and drop a time of 00:00:00."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return text.removesuffix(" 00:00:00")


def read_levels(q: float | Sequence[float] | np.ndarray) -> FloatArray:
    """Return levels of quantiles as a float64 array with one axis, in the given order.

    Raises
    ------
    ValueError
        If a level is outside [0, 1] or occurs twice.
    TypeError
        If a level is not a number.
    """
    from xrecal.arrays.distributions.weighted import check_levels

    if np.asarray(q).dtype.kind in "USOT":
        raise TypeError(f"q must hold numbers between 0 and 1, got {q!r:.60}")
    levels = check_levels(q)
    different, counts = np.unique(levels, return_counts=True)
    if (counts > 1).any():
        twice = ", ".join(f"{level:g}" for level in different[counts > 1])
        raise ValueError(f"q holds levels more than once: {twice}; give each level once")
    return levels


def read_inner_levels(q: float | Sequence[float] | np.ndarray) -> FloatArray:
    """Return the levels that separate categories.

    The function raises ValueError unless levels increase and lie strictly between 0 and 1.
    """
    levels = read_levels(q)
    inside = ((levels > 0) & (levels < 1)).all()
    if not levels.size or not inside or not (np.diff(levels) > 0).all():
        raise ValueError(
            f"q must hold increasing levels between 0 and 1, ends excluded, got {levels}"
        )
    return levels


def is_between(levels: FloatArray, given: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark levels that lie between the lowest and the highest given level, up to rounding."""
    return np.asarray((levels >= given.min() - NEAR) & (levels <= given.max() + NEAR))


def level_coordinate(levels: FloatArray) -> xr.Variable:
    """Return the coordinate ``quantile`` that holds the levels, with its attributes."""
    return xr.Variable("quantile", levels, {"long_name": "quantile", "units": "1"})
