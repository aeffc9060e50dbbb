"""New places: forecasts and cases at places that a shared fit does not know yet.

Forecasts for a new place come from the law of errors of all places and from the features of the new
place. After an update has added the place, the fit learns the centre and spread of the place from
the cases there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from xrecal.arrays.predictors import Usual
from xrecal.arrays.status import TOO_FEW
from xrecal.inputs.forms import Form
from xrecal.inputs.identities import known_places
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.pool import Pool
from xrecal.methods.components import COMPONENT
from xrecal.methods.shared_ckme import FEATURE, HERE, NUMBER, OWN, as_shared
from xrecal.methods.shared_packing import USUAL
from xrecal.typing import FloatArray, IntArray

from .cases import COVARIATE
from .fitted import CASE, MODEL_PARTS, FittedVariable
from .pooling import by_labels, names_along
from .shared_places import (
    PLACES,
    component_of_all,
    features_of_places,
    labels_along,
    require_features,
)


def with_new_places(form: Form, fitted: FittedVariable) -> FittedVariable:
    """Return the fitted pools (mixtures) at the places of a forecast, in the forecast's order.

    At a new place the component that all places share has all the weight.

    Raises
    ------
    ValueError
        If a feature of a new place is unknown.
    """
    if not fitted.method.has_shared:
        return fitted
    found = {}
    for d in dims_of_places(fitted):
        part = next((part for part in form.parts.values() if d in part.dims), None)
        at = None if part is None else known_places(fitted.state, part, d)
        if part is None or at is None:
            return fitted
        found[d] = part, at
    new = xr.DataArray(False)
    for d, (_, at) in found.items():
        new = new | xr.DataArray(at < 0, dims=[d])
    if not bool(new.any()):
        return fitted
    state, selected = fitted.state, dict(fitted.selected or {})
    for d, (part, at) in found.items():
        n = state.sizes[d]
        selected[d] = np.where(at < 0, n - 1 + np.cumsum(at < 0), at), n
        state = _taken(state, d, at, part)
    filled = _without_record(fitted, state, new, _features_at(form, fitted, new))
    return replace(
        fitted, state=filled.assign(_usual_records(fitted, filled, new)), selected=selected
    )


def dims_of_places(fitted: FittedVariable) -> tuple[Hashable, ...]:
    """Return the dimensions of the places that share a fit or a component."""
    if fitted.method.by_sums:
        assert fitted.pool is not None
        return fitted.pool.dims
    label = component_of_all(fitted.method).label
    return fitted.arrays[f"{label}_{NUMBER}"].dims


def _taken(state: xr.Dataset, d: Hashable, at: IntArray, part: xr.DataArray) -> xr.Dataset:
    """Select positions of a state along a dimension, and add the coordinates of a forecast.

    A new place has position -1. It gets the values of the first place, until
    :func:`_without_record` replaces them.
    """
    taken = state.isel({d: np.maximum(at, 0)})
    along = [n for n, c in taken.coords.items() if d in c.dims]
    known = {n: part.coords[n].variable for n in along if n in part.coords}
    return taken.drop_vars(along).assign_coords(known)


def _features_at(form: Form, fitted: FittedVariable, new: xr.DataArray) -> xr.DataArray:
    """Return features of the places of a forecast; raise ValueError if a new place lacks one."""
    method = as_shared(component_of_all(fitted.method).method)
    features = features_of_places(form, method, new.dims)
    require_features(form, method, features, new)
    each = [features[FEATURE + name].broadcast_like(new) for name in method.features]
    values = np.stack([one.transpose(*new.dims).to_numpy() for one in each], axis=-1)
    return xr.DataArray(values, dims=[*new.dims, OWN + "place_feature"])


def _without_record(
    fitted: FittedVariable, state: xr.Dataset, new: xr.DataArray, features: xr.DataArray
) -> xr.Dataset:
    """Fill the state at new places, where the component of all places gets all the weight."""
    component, parameters = component_of_all(fitted.method), fitted.parameters
    alone = [label == component.label for label in parameters["pool_weight"].labels]
    given: dict[str, Any] = {
        "pool_weight": xr.DataArray(alone, dims=[COMPONENT]),
        "status": TOO_FEW,
        f"{component.label}_{NUMBER}": -1,
        f"{component.label}_{HERE}": features,
    }
    filled = {}
    for name, array in state.data_vars.items():
        if not set(new.dims) <= set(array.dims) or name in MODEL_PARTS:
            continue  # models have the same weights and offsets at all pooled places
        value = given.get(str(name), np.nan)
        if str(name) not in given and array.dtype.kind != "f":
            own = parameters.get(str(name))
            value = 0 if own is None else -1 if own.of_slots else max(own.within[0], 0)
        changed = array.where(~new, value).transpose(*array.dims).astype(array.dtype)
        filled[name] = changed.assign_attrs(array.attrs)
    return state.assign(filled)


def _usual_records(
    fitted: FittedVariable, state: xr.Dataset, new: xr.DataArray
) -> dict[Hashable, xr.DataArray]:
    """Return the stored covariates, filled at new places, which have no cases yet.

    At a new place, the first two cases get the ends of the range of the covariate over all places.
    All other cases get the median over all places.
    """
    component = component_of_all(fitted.method)
    names = as_shared(component.method).breakable
    if not names:
        return {}
    usual = state[f"{component.label}_{USUAL}"]
    records: dict[Hashable, xr.DataArray] = {}
    for place, name in enumerate(names):
        array = state[COVARIATE + name]
        if not set(new.dims) <= set(array.dims):
            continue
        fewer = {d: 0 for d in usual.dims if not str(d).startswith(OWN) and d not in array.dims}
        of_all = usual.isel({OWN + "covariate": place, **fewer})
        middle, first, last = (
            of_all.isel({OWN + "usual_value": Usual._fields.index(part)})
            for part in ("middle", "first", "last")
        )
        slot = xr.DataArray(np.arange(array.sizes[CASE]), dims=[CASE])
        values = first.where(slot == 0, last.where(slot == 1, middle))
        whole = array.where(~new, values).transpose(*array.dims)
        records[COVARIATE + name] = whole.assign_attrs(array.attrs)
    return records


class Grown(NamedTuple):
    """Cases at all places of a fit and at new places; NaN where the hindcast has no case."""

    fitted: FittedVariable
    pairs: Pairs
    covariates: dict[str, xr.DataArray]
    labels: Mapping[str, xr.Variable] = {}
    """Labels and names of all places of a shared fit, as coordinates of its state"""
    features: FloatArray = np.empty((0, 0))
    """Features of the new places of a shared fit"""


def grows(fitted: FittedVariable) -> bool:
    """Return whether an update may have cases at only some places of the fit, or at new places."""
    if not (fitted.method.by_sums or fitted.method.has_shared):
        return False
    return len(dims_of_places(fitted)) == 1


def with_all_places(
    fitted: FittedVariable, pairs: Pairs, covariates: Mapping[str, xr.DataArray]
) -> Grown:
    """Return added cases at the places of a fit, then at new places in the order of their labels.

    Raises
    ------
    ValueError
        If places have no labels and their number differs from the number of places of the fit, or
        if a feature of a new place is unknown.
    """
    (d,) = dims_of_places(fitted)
    by_sums = fitted.method.by_sums
    known = labels_along(fitted, d, 0) if by_sums else fitted.state
    size = fitted.state.sizes[PLACES if by_sums else d]
    part = next(part for part in pairs.form.parts.values() if d in part.dims)
    n = part.sizes[d]
    at = known_places(known, part, d)
    if at is None and n != size:
        raise ValueError(
            f"hindcast has {n} positions along {d!r}, but the model was fitted on {size}; without "
            f"labels along {d!r} in both, xrecal cannot match them: add the coordinate"
        )
    at = np.arange(n) if at is None else at
    ordered = np.array(by_labels(Pool((d,), (n,), None, ()), pairs.form).taken)
    new = ordered[at[ordered] < 0]
    source = np.full(size + new.size, -1)
    source[at[at >= 0]], source[size:] = np.flatnonzero(at >= 0), new
    is_new = xr.DataArray(at < 0, dims=[d])
    features = np.empty((0, 0))
    labels: dict[str, xr.Variable] = {}
    if by_sums:
        method, pool = as_shared(fitted.method), fitted.pool
        assert pool is not None
        if new.size:
            given = features_of_places(pairs.form, method, (d,))
            require_features(pairs.form, method, given, is_new)
            features = np.stack([given[FEATURE + f].to_numpy()[new] for f in method.features], -1)
        labels = _all_labels(fitted, pairs.form, d, new)
        taken = (*pool.taken, *range(size, source.size))
        pool = replace(pool, sizes=(source.size,), taken=taken)
        fitted = replace(fitted, pool=pool, method=replace(method, places=source.size))
    elif new.size:
        fitted = _with_rows(fitted, pairs.form, part, d, new)
    return Grown(fitted, *_at_all(pairs, covariates, d, source), labels, features)


def _with_rows(
    fitted: FittedVariable, form: Form, part: xr.DataArray, d: Hashable, new: IntArray
) -> FittedVariable:
    """Return fitted pools with more places, at the positions ``new`` of a hindcast."""
    size = fitted.state.sizes[d]
    rows = xr.DataArray(np.arange(size + new.size) >= size, dims=[d])
    at = np.concatenate([np.arange(size), np.zeros(new.size, np.int64)])
    state = fitted.state.isel({d: at})
    along = [name for name, c in state.coords.items() if d in c.dims]
    coords = {
        name: (d, np.concatenate([own.to_numpy(), part.coords[name].to_numpy()[new]]), own.attrs)
        for name in along
        if name in part.coords
        for own in (fitted.state.coords[name],)
    }
    state = state.drop_vars(along).assign_coords(coords)
    some = form.with_parts(
        {n: p.isel({d: new}) if d in p.dims else p for n, p in form.parts.items()}
    )
    features = _features_at(some, fitted, rows[size:]).pad({d: (size, 0)})
    return replace(fitted, state=_without_record(fitted, state, rows, features))


def _all_labels(
    fitted: FittedVariable, form: Form, d: Hashable, new: IntArray
) -> dict[str, xr.Variable]:
    """Return labels and names of all places, new places last, as coordinates of the state."""
    theirs = names_along(form, d)
    labels = {}
    for name, c in fitted.state.coords.items():
        own = str(name).removeprefix(f"{PLACES}_")
        if c.dims == (PLACES,) and (not new.size or own in theirs):
            added = theirs[own].to_numpy()[new] if new.size else c.to_numpy()[:0]
            labels[str(name)] = xr.Variable(
                (PLACES,), np.concatenate([c.to_numpy(), added]), c.attrs
            )
    return labels


def _at_all(
    pairs: Pairs, covariates: Mapping[str, xr.DataArray], d: Hashable, source: IntArray
) -> tuple[Pairs, dict[str, xr.DataArray]]:
    """Return cases and covariates at positions ``source`` of a hindcast; NaN for a position -1."""
    there = xr.DataArray(source >= 0, dims=[d])

    def at_all(array: xr.DataArray) -> xr.DataArray:
        if d not in array.dims:
            return array
        along = [n for n, c in array.coords.items() if d in c.dims]
        taken = array.drop_vars(along).isel({d: np.maximum(source, 0)})
        whole = taken if bool(there.all()) else taken.where(there)
        return whole.transpose(*array.dims).assign_attrs(array.attrs)

    form = pairs.form.with_parts({name: at_all(part) for name, part in pairs.form.parts.items()})
    partners = tuple(map(at_all, pairs.partners))
    whole = replace(pairs, form=form, observations=at_all(pairs.observations), partners=partners)
    return whole, {name: at_all(value) for name, value in covariates.items()}
