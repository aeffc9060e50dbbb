"""Hindcasts and observations to pairs: variables by name, cases by label, locations exactly."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from .dims import CALIBRATION, LEVEL, MEMBER, candidates, find_dim
from .forms import Form, Labelled, read_forms, require_float
from .units import check_units

Observations = xr.DataArray | xr.Dataset | Mapping[Hashable, xr.DataArray]


@dataclass(frozen=True)
class Pairs:
    """Forecasts and what verified, on the same labels."""

    form: Form
    observations: xr.DataArray
    dim: Hashable | None
    """Dimension of the cases; None for a forecast that lacks it."""
    n_matched: int
    """Forecasts along ``dim`` whose label the observations have."""
    note: str | None
    """Remark on the units."""


def pair_variables(
    hindcast: Labelled,
    observations: Observations,
    member_dim: Hashable | None,
    *,
    name: str,
) -> dict[Hashable, tuple[Form, xr.DataArray]]:
    """Match forecast variables with observed ones.

    Two DataArrays are a pair whatever their names. A Dataset of forecasts takes a Dataset with
    the same names, a mapping from forecast name to observation, or, with one forecast variable,
    a DataArray.

    Raises
    ------
    ValueError
        If a variable has no partner, or the arguments look swapped.
    TypeError
        If an argument is of another type.
    """
    _refuse_swapped(hindcast, observations, member_dim, name=name)
    forms = read_forms(hindcast, member_dim, name=name)
    if isinstance(observations, xr.DataArray):
        if len(forms) > 1:
            raise ValueError(
                f"{name} has several forecast variables, {list(forms)}, but observations are one "
                f"DataArray; pass a Dataset with these names or a dict, {{{next(iter(forms))!r}: "
                "observations, ...}"
            )
        return {variable: (form, observations) for variable, form in forms.items()}
    if not isinstance(observations, Mapping):  # a Dataset is a mapping
        raise TypeError(
            "observations must be a DataArray, a Dataset or a dict from forecast name to "
            f"DataArray, got {type(observations).__name__}"
        )
    observed = {
        variable: observations[variable]
        for variable in (
            observations.data_vars if isinstance(observations, xr.Dataset) else observations
        )
    }
    if isinstance(hindcast, xr.DataArray) and len(observed) == 1:
        return {variable: (form, next(iter(observed.values()))) for variable, form in forms.items()}
    alone = [f"{v} (forecast)" for v in forms if v not in observed]
    alone += [f"{v} (observation)" for v in observed if v not in forms]
    if alone:
        raise ValueError(
            f"these variables of {name} and observations have no partner of the same name: "
            f"{', '.join(alone)}; select variables, or pass a dict {{forecast name: observation}}"
        )
    return {variable: (form, observed[variable]) for variable, form in forms.items()}


def _refuse_swapped(
    hindcast: Labelled, observations: Observations, member_dim: Hashable | None, *, name: str
) -> None:
    def has_members(array: object) -> bool:
        return isinstance(array, xr.DataArray) and (
            member_dim in array.dims or bool(candidates(array, MEMBER) + candidates(array, LEVEL))
        )

    def is_forecast(obj: object) -> bool:
        if not isinstance(obj, Mapping):
            return has_members(obj)
        return any(map(has_members, obj.values())) or any(str(v).endswith("_loc") for v in obj)

    if is_forecast(observations) and not is_forecast(hindcast):
        raise ValueError(
            f"observations are an ensemble or a distribution and {name} is not: are the two "
            "swapped? Forecasts come first: hindcast.recal.fit(observations)"
        )


def pair_cases(
    form: Form,
    observations: xr.DataArray,
    dim: Hashable | None = None,
    *,
    name: str,
    require_dim: bool = True,
) -> Pairs:
    """Bring observations to the labels of the forecasts.

    Along the dimension of the cases observations are matched by label: further ones are ignored,
    missing ones become NaN. Along locations labels must be equal; observations may lack a
    location dimension.

    Parameters
    ----------
    form : Form
        Forecasts.
    observations : DataArray
        What verified.
    dim : hashable, optional
        Dimension of the cases; recognised if not given.
    name : str
        What the user calls the forecasts, for messages.
    require_dim : bool
        Whether forecasts must have a dimension of cases.

    Raises
    ------
    ValueError
        If dimensions, labels or units do not fit.
    TypeError
        If observations are not of a floating type.
    """
    if not isinstance(observations, xr.DataArray):
        raise TypeError(f"observations must be a DataArray, got {type(observations).__name__}")
    require_float(observations, name="observations")
    note = check_units(name, _units(form.loc), "observations", _units(observations))
    forecasts = form.broadcast().loc.isel({form.member_dim: 0}, drop=True)
    dim = find_dim(forecasts, CALIBRATION, dim, name=name)
    if dim is None and require_dim:
        raise ValueError(
            f"{name} has none of the known calibration dimensions "
            f"({', '.join(CALIBRATION.names)}) among {list(form.dims)}; name it: dim=..."
        )
    _check_dims(form, observations, dim, name=name)
    matched = 0
    if dim is not None:
        observations, matched = _match_labels(forecasts, observations, dim, name=name)
    for location in form.dims:
        if location != dim and location in observations.dims:
            require_equal_labels(forecasts, observations, location, names=(name, "observations"))
    unlabelled = [c for c in observations.coords if c not in observations.xindexes]
    observations = observations.drop_vars(unlabelled)
    return Pairs(form, observations, dim, matched, note)


def _units(array: xr.DataArray) -> str | None:
    units = array.attrs.get("units")
    return None if units is None else str(units)


def _check_dims(form: Form, observations: xr.DataArray, dim: Hashable | None, *, name: str) -> None:
    if form.member_dim in observations.dims:
        raise ValueError(
            f"observations have the member dimension {form.member_dim!r} of {name}; pass one "
            f"observation a case, for instance observations.isel({form.member_dim}=0)"
        )
    extra = [d for d in observations.dims if d not in form.dims]
    if extra:
        raise ValueError(
            f"observations have dimensions {extra} that {name} lacks, which has "
            f"{list(form.dims)}. Rename or select, so that each observation has one forecast"
        )
    if dim is not None and dim not in observations.dims:
        raise ValueError(
            f"observations lack the calibration dimension {dim!r} of {name}; "
            f"they have {list(observations.dims)}"
        )


def _match_labels(
    forecasts: xr.DataArray, observations: xr.DataArray, dim: Hashable, *, name: str
) -> tuple[xr.DataArray, int]:
    labelled = [obj for obj in (forecasts, observations) if dim in obj.indexes]
    size, observed_size = forecasts.sizes[dim], observations.sizes[dim]
    if not labelled:
        if size != observed_size:
            raise ValueError(
                f"{name} has {size} cases along {dim!r}, observations have {observed_size}, and "
                "neither has labels to match them by; add a coordinate to both"
            )
        return observations, size
    if len(labelled) == 1:
        bare = "observations" if dim in forecasts.indexes else name
        raise ValueError(f"{bare} have no labels along {dim!r} to match by; add the coordinate")
    wanted, known = forecasts.indexes[dim], observations.indexes[dim]
    for index, owner in ((wanted, name), (known, "observations")):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(
                f"labels along {dim!r} of {owner} must be unique, but {twice} stands there more "
                f"than once; use {owner}.drop_duplicates({dim!r})"
            )
    matched = int((known.get_indexer(wanted) >= 0).sum())  # np.isin compares objects pair by pair
    if matched == 0:
        types = [f", {type(index[0]).__name__}" if index.size else "" for index in (wanted, known)]
        if types[0] == types[1]:  # else told, since dates of two calendars print alike
            types = ["", ""]
        raise ValueError(
            f"no label along {dim!r} is common to {name} (first: {_first(wanted)}{types[0]}) and "
            f"observations (first: {_first(known)}{types[1]})"
        )
    if matched < size / 2:
        warnings.warn(
            f"only {matched} of {size} forecasts along {dim!r} have an observation",
            stacklevel=_users_stacklevel(),
        )
    if wanted.equals(known):
        return observations, matched
    return observations.reindex_like(forecasts[dim]), matched


def _first(index: object) -> str:
    return ", ".join(str(label) for label in list(index)[:3]) or "none"  # type: ignore[call-overload]


def _users_stacklevel() -> int:
    """Level at which the caller's warning points to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("xrecal."):
        frame, level = frame.f_back, level + 1
    return level


def require_equal_labels(
    a: xr.DataArray | xr.Dataset,
    b: xr.DataArray | xr.Dataset,
    dim: Hashable,
    *,
    names: tuple[str, str],
) -> None:
    """Raise ValueError unless both have the same size and, if both have them, labels along dim."""
    if a.sizes[dim] != b.sizes[dim]:
        raise ValueError(
            f"{names[0]} and {names[1]} differ along {dim!r}: {a.sizes[dim]} against "
            f"{b.sizes[dim]} labels; select the same ones"
        )
    if dim not in a.indexes or dim not in b.indexes or a.indexes[dim].equals(b.indexes[dim]):
        return
    if a.indexes[dim].sort_values().equals(b.indexes[dim].sort_values()):
        raise ValueError(
            f"{names[0]} and {names[1]} have the same labels along {dim!r} in another order; use "
            f"{names[1]}.reindex({{{dim!r}: {names[0]}[{dim!r}]}})"
        )
    labels, others = a.indexes[dim], b.indexes[dim]
    differ = np.flatnonzero(np.asarray(labels != others))[0]
    remedy = "bring both to the same locations"
    numbers = labels.dtype.kind in "iuf" and others.dtype.kind in "iuf"
    if numbers and np.allclose(labels, others, rtol=1e-6, atol=1e-6, equal_nan=True):
        remedy = (
            "they agree up to rounding, so if they mean the same use "
            f"{names[1]}.assign_coords({{{dim!r}: {names[0]}[{dim!r}]}})"
        )
    raise ValueError(
        f"labels along {dim!r} differ, first at position {differ}: {labels[differ]} in "
        f"{names[0]}, {others[differ]} in {names[1]}; {remedy}"
    )


def in_order(pairs: Pairs) -> Pairs:
    """Cases by ascending label, so that blocks and gaps are contiguous in time."""
    dim = pairs.dim
    indexes = [part.indexes[dim] for part in pairs.form.parts.values() if dim in part.indexes]
    if dim is None or not indexes or indexes[0].is_monotonic_increasing:
        return pairs
    order = indexes[0].argsort()
    parts = {
        name: part.isel({dim: order}) if dim in part.dims else part
        for name, part in pairs.form.parts.items()
    }
    return replace(
        pairs,
        form=pairs.form.with_parts(parts),
        observations=pairs.observations.isel({dim: order}),
    )
