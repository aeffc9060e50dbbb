"""Several variables of a forecast as one, whose values are vectors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import xarray as xr

from xrecal.fit.jointly import read_joint_names, with_vector
from xrecal.inputs.circular import refuse_circular
from xrecal.inputs.forecasts import weighted
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.pairing import Observations, pair_variables

VARIABLE = "vector_component"
"""Dimension of the variables."""

Scale: TypeAlias = Mapping[Hashable, float | xr.DataArray] | None
"""What each variable is divided by."""


def as_vectors(
    forecast: Labelled,
    observations: Observations,
    names: Sequence[Hashable],
    scale: Scale,
    member_dim: Hashable | None,
) -> tuple[Labelled, xr.DataArray]:
    """Forecast and observations of several variables, with a dimension of variables each.

    Raises
    ------
    ValueError
        If a variable is missing, forecasts have other dimensions or weights, or units differ and
        no scale is given.
    """
    paired = pair_variables(forecast, observations, member_dim, name="forecast")
    names = read_joint_names(paired, names, name="forecast")
    forms = {name: paired[name][0] for name in names}
    whole = with_vector(forms, names[0])  # which checks dimensions and labels
    for name, form in forms.items():
        refuse_circular(form.period, name, "scores of vectors take values on a line")
    _require_same_weights(forms)
    of = dict.fromkeys(names, 1.0) if scale is None else _scales(scale, names)
    units = {name: form.loc.attrs.get("units") for name, form in forms.items()}
    if scale is None and len(set(units.values())) > 1:
        raise ValueError(
            f"the variables have the units {units}, whose distances cannot be added up; give what "
            "each is divided by, such as scale=observations.std('time')"
        )
    members = _stacked([_divided(form.loc, of[name]) for name, form in forms.items()], names)
    observed = _stacked([_divided(paired[name][1], of[name]) for name in names], names)
    told = {"units": units[names[0]]} if scale is None and units[names[0]] is not None else {}
    members = members.assign_attrs(told).rename("vectors")
    observed = observed.assign_attrs(told)
    if whole.weights is None:
        return members, observed
    return weighted(members, whole.weights), observed


def _scales(scale: object, names: Sequence[Hashable]) -> Mapping[Hashable, float | xr.DataArray]:
    if not isinstance(scale, Mapping):
        raise TypeError(
            f"scale must be a dict or Dataset with {list(names)}, got {type(scale).__name__}"
        )
    missing = [name for name in names if name not in scale]
    if missing:
        raise ValueError(f"scale lacks {missing[0]!r}; it has {list(scale)}")
    for name in names:
        value = scale[name]
        if not isinstance(value, xr.DataArray) and not value > 0:
            raise ValueError(f"scale of {name!r} must be positive, got {value!r}")
    return scale


def _divided(array: xr.DataArray, scale: float | xr.DataArray) -> xr.DataArray:
    """An array in another unit, of its own type."""
    return (array / scale).astype(array.dtype)


def _require_same_weights(forms: Mapping[Hashable, Form]) -> None:
    """Raise ValueError unless weights are those of whole vectors."""
    (first, one), *others = forms.items()
    for name, form in others:
        if one.kind != form.kind or not _same(one.weights, form.weights):
            raise ValueError(
                f"{first!r} and {name!r} have weights of their own, which say nothing of both "
                "together (of lazy ones that cannot be told: load them first); fit with "
                "jointly=..., or make members: model.members(forecast, n, coherence='schaake')"
            )


def _same(a: xr.DataArray | None, b: xr.DataArray | None) -> bool:
    """Whether weights are equal; lazy ones where they are the same graph."""
    if a is None or b is None:
        return a is b
    if a.chunks is not None or b.chunks is not None:
        return bool(getattr(a.data, "name", 0) == getattr(b.data, "name", 1))
    b = b.transpose(*a.dims)
    return bool(np.array_equal(a.to_numpy(), b.to_numpy(), equal_nan=True))


def _stacked(arrays: Sequence[xr.DataArray], names: Sequence[Hashable]) -> xr.DataArray:
    labels = xr.Variable(VARIABLE, [str(name) for name in names])
    others = {name: c for name, c in arrays[0].coords.items() if name not in arrays[0].indexes}
    # Without these, as xarray would compare them, which computes lazy ones.
    plain = [a.drop_attrs().drop_vars([c for c in a.coords if c not in a.indexes]) for a in arrays]
    found = xr.concat(plain, dim=VARIABLE, coords="minimal", compat="override", join="override")
    if found.chunks is not None:
        found = found.chunk({VARIABLE: -1})
    return found.assign_coords({**others, VARIABLE: labels})
