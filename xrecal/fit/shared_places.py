"""Numbers and features of the places of a shared fit, which is one fit for many places."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.warnings import warn
from xrecal.inputs.dims import require_unique
from xrecal.inputs.forms import Form
from xrecal.inputs.identities import known_places
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.place_features import (
    around,
    feature_coordinates,
    middle_longitude,
)
from xrecal.inputs.pool import MAX_POOLED, Pool
from xrecal.methods import CKME, SharedCKME
from xrecal.methods.base import Method
from xrecal.methods.components import Component, components_of
from xrecal.methods.shared_ckme import FEATURE, OWN, PLACE, as_shared

from .fitted import FittedVariable
from .pooling import by_labels, names_along

PLACES = OWN + "place"
"""Dimension of the places in the state."""


def shares(method: Method, pool: Pool, n_dates: int) -> bool:
    """Return whether a fit of a method to all positions of a pool is a shared fit."""
    may = pool.widths is None and method.not_by_sums is None
    return may and math.prod(pool.sizes) > 1 and pool.is_large(n_dates)


def require_few(method: Method, pool: Pool, n_dates: int) -> None:
    """Raise ValueError if the method compares cases one by one, and there are too many cases."""
    if method.keeps_cases:
        pool.require_few(n_dates, method.not_by_sums or "")


def pools_share(method: Method, pool: Pool, n_dates: int) -> bool:
    """Return whether a fit makes a pool of methods, with a shared component, at each position."""
    component = method.shared_by_places
    return component is not None and shares(component, pool, n_dates)


def require_splits(method: Method, pairs: Pairs) -> None:
    """Raise ValueError if the method needs common regrets, as cross-validation has none."""
    pool, n_dates = pairs.pool, pairs.observations.sizes[pairs.dim]
    if pool is not None and method.in_common and pools_share(method, pool, n_dates):
        raise ValueError(
            f"{type(method).__name__} with many cases, {pool}, keeps learning from all places at "
            "once, which splits do not support; leave pool out, use xrecal.LinearPool(), or update "
            "day by day: model.apply(forecast), then model.update(forecast, observations)"
        )


def warn_of_features(pool: Pool | None, trained: Sequence[int]) -> None:
    """Warn if splits have too few training dates to use the features that the user names."""
    if pool is None or not pool.features:
        return
    few = [n for n in trained if not pool.is_large(n)]
    if few:
        names = pool.features[0] if len(pool.features) == 1 else pool.features
        warn(
            Advice(
                Typed("features", names),
                f" has no effect in {len(few)} of {len(trained)} splits: the smallest learns from "
                f"{pool.n_cases(min(few))} pooled cases, and only a fit to more than "
                f"{MAX_POOLED} cases uses features of places; give more cases, use ",
                Typed("condition_on", names),
                ", or leave ",
                Typed("features"),
                " out",
            )
        )


def takes_features(method: Method) -> bool:
    """Return whether a fit of this method to many pooled cases uses features of places."""
    return method.not_by_sums is None or method.shared_by_places is not None


def component_of_all(method: Method) -> Component:
    """Return the component of a pool of methods that all places share."""
    return next(c for c in components_of(method.mixed) if c.method.by_sums)


def in_one_order(pool: Pool, form: Form) -> Pool:
    """Return the pool with its dimensions sorted by name."""
    order = sorted(range(len(pool.dims)), key=lambda i: str(pool.dims[i]))
    dims = tuple(pool.dims[i] for i in order)
    sizes = tuple(pool.sizes[i] for i in order)
    return by_labels(replace(pool, dims=dims, sizes=sizes), form)


def shared_method(method: Method, pairs: Pairs, pool: Pool) -> tuple[SharedCKME, str | None]:
    """Return the method of a shared fit of these places, and a remark on unused features.

    Raises
    ------
    ValueError
        If a label of a place occurs twice, or a feature is unknown at a place.
    """
    from xrecal.arrays.shared.passes import landmarks_for

    form, n_places = pairs.form, math.prod(pool.sizes)
    for d in pool.dims:
        for part in form.parts.values():
            if d in part.indexes:
                require_unique(part.indexes[d], d, "hindcast")
    coordinates = feature_coordinates(form, pool.dims, pool.features)
    _require_named(coordinates, pool, form)
    constant, middle = [], 0.0
    for feature, coordinate in list(coordinates.items()):
        values = coordinate.to_numpy().astype(np.float64)
        _require_known(coordinate, values)
        if np.ptp(values) == 0:
            constant.append(str(coordinate.name))
            del coordinates[feature]
        elif feature == "longitude":
            middle = middle_longitude(values.ravel())
    n_dates = pairs.observations.sizes[pairs.dim]
    rank = landmarks_for(n_places * n_dates)
    note = f"{' and '.join(constant)} left out: the same at all places" if constant else None
    return SharedCKME(cast("CKME", method), n_places, tuple(coordinates), rank, middle), note


def _require_named(coordinates: Mapping[str, xr.DataArray], pool: Pool, form: Form) -> None:
    """Raise ValueError unless all features that the user names are coordinates of places."""
    found = {*coordinates, *(c.name for c in coordinates.values())}
    lacking = [name for name in pool.features if name not in found]
    if lacking:
        along = {
            str(name)
            for part in form.parts.values()
            for name, c in part.coords.items()
            if c.dims and set(c.dims) <= set(pool.dims) and c.dtype.kind in "iuf"
        }
        raise ValueError(
            f"features names {lacking[0]!r}, but hindcast has no such coordinate of numbers along "
            f"{', '.join(map(repr, pool.dims))}; it has {sorted(along)}"
        )


def _require_known(coordinate: xr.DataArray, values: np.ndarray) -> None:
    """Raise ValueError if the feature of a place is unknown."""
    unknown = ~np.isfinite(values)
    if unknown.any():
        at = np.argwhere(unknown)[0]
        where = ", ".join(
            f"{d}={coordinate[d].to_numpy()[i] if d in coordinate.coords else i}"
            for d, i in zip(coordinate.dims, at, strict=True)
        )
        raise ValueError(
            f"the coordinate {coordinate.name!r} of hindcast is unknown at {unknown.sum()} of "
            f"{unknown.size} places, first {where}; a fit to many pooled places uses it: give "
            f"numbers for these places, or use hindcast.drop_vars({coordinate.name!r})"
        )


def places_of_fit(form: Form, method: SharedCKME, pool: Pool) -> dict[str, xr.DataArray]:
    """Return covariates that identify the place of each case, over the pooled dimensions."""
    places = {PLACE: xr.DataArray(pool.numbers.astype(np.float64), dims=pool.dims)}
    return places | features_of_places(form, method, pool.dims)


def features_of_places(
    form: Form, method: SharedCKME, dims: Sequence[Hashable]
) -> dict[str, xr.DataArray]:
    """Return, as arrays without labels, the features that the fit uses at places of a forecast."""
    coordinates = feature_coordinates(form, dims, method.features)
    features = {}
    for name in method.features:
        if name in coordinates:
            values = coordinates[name].to_numpy().astype(np.float64)
            if name == "longitude":
                values = np.asarray(around(values, method.middle_longitude), np.float64)
            features[FEATURE + name] = xr.DataArray(values, dims=coordinates[name].dims)
    return features


def feature_table(form: Form, method: SharedCKME, pool: Pool) -> np.ndarray:
    """Return the features (P, k) of the places of a hindcast, in the order of place numbers."""
    sizes = dict(zip(pool.dims, pool.sizes, strict=True))
    columns = [
        value.expand_dims({d: n for d, n in sizes.items() if d not in value.dims})
        .transpose(*pool.dims)
        .to_numpy()
        .ravel()
        for value in features_of_places(form, method, pool.dims).values()
    ]
    table = np.stack(columns, axis=-1) if columns else np.empty((math.prod(pool.sizes), 0))
    return np.asarray(table[np.array(pool.taken)])


def place_labels(form: Form, pool: Pool) -> dict[str, xr.Variable]:
    """Return labels and names of all places along pooled dimensions, as coordinates for a state."""
    labels = {}
    for axis, d in enumerate(pool.dims):
        along = np.indices(pool.sizes)[axis].ravel()[np.array(pool.taken)]
        for name, c in names_along(form, d).items():
            labels[f"{PLACES}_{name}"] = xr.Variable((PLACES,), c.to_numpy()[along], c.attrs)
    return labels


def places_of_forecast(form: Form, fitted: FittedVariable) -> dict[str, xr.DataArray]:
    """Return covariates that identify the place of each forecast: its number and its features.

    A new place has the number -1.

    Raises
    ------
    ValueError
        If a feature of a new place is unknown, or if positions have no labels, and the forecast has
        another number of positions than the fit.
    """
    method, pool = as_shared(fitted.method), fitted.pool
    assert pool is not None
    number = xr.DataArray(0.0)
    new = xr.DataArray(False)
    for axis, (d, size) in enumerate(zip(pool.dims, pool.sizes, strict=True)):
        position = _positions(form, fitted, d, axis)
        number, new = number * size + position, new | (position < 0)
    at = number.where(~new, 0).astype(np.int64)
    number = at.copy(data=pool.numbers.ravel()[at.data].astype(np.float64))
    unknown = {FEATURE + name: xr.DataArray(np.nan) for name in method.features}
    if not bool(new.any()):  # the fit knows all places
        return {PLACE: number} | unknown
    features = features_of_places(form, method, pool.dims)
    require_features(form, method, features, new)
    return {PLACE: number.where(~new, -1.0)} | features


def _positions(form: Form, fitted: FittedVariable, d: Hashable, axis: int) -> xr.DataArray:
    """Return positions of a forecast along a pooled dimension of the fit, -1 for new places."""
    pool = fitted.pool
    assert pool is not None
    part = next((p for p in form.parts.values() if d in p.dims), None)
    if part is None:  # a single place without a label
        return xr.DataArray(0.0 if pool.sizes[axis] == 1 else -1.0)
    known = known_places(labels_along(fitted, d, axis), part, d)
    if known is None:
        if part.sizes[d] != pool.sizes[axis]:
            raise ValueError(
                f"forecast has {part.sizes[d]} positions along {d!r}, but the model was fitted on "
                f"{pool.sizes[axis]}; without labels along {d!r} in both, xrecal cannot match "
                "them: add the coordinate to hindcast and forecast"
            )
        return xr.DataArray(np.arange(part.sizes[d], dtype=np.float64), dims=[d])
    return xr.DataArray(known.astype(np.float64), dims=[d])


def labels_along(fitted: FittedVariable, d: Hashable, axis: int) -> xr.Dataset:
    """Return labels and names of the places of a fit along a pooled dimension, as coordinates."""
    assert fitted.pool is not None
    grid = np.moveaxis(fitted.pool.numbers, axis, 0).reshape(fitted.pool.sizes[axis], -1)
    along = {}
    for name, labels in fitted.state.coords.items():
        values = labels.to_numpy()[grid] if labels.dims == (PLACES,) else grid
        if labels.dims == (PLACES,) and (values == values[:, :1]).all():
            attrs = labels.attrs
            along[str(name).removeprefix(f"{PLACES}_")] = xr.Variable((d,), values[:, 0], attrs)
    return xr.Dataset(coords=along)


def require_features(
    form: Form,
    method: SharedCKME,
    features: dict[str, xr.DataArray],
    new: xr.DataArray,
) -> None:
    """Raise ValueError unless all features of new places are known."""
    lacking = [name for name in method.features if FEATURE + name not in features]
    for name, values in features.items():
        if bool((~np.isfinite(values) & new).any()):
            lacking.append(name.removeprefix(FEATURE))
    if method.features and not lacking:
        return
    named = []
    for d in new.dims:
        labels = [part.indexes[d] for part in form.parts.values() if d in part.indexes]
        if labels:
            at = new.any([other for other in new.dims if other != d]).to_numpy()
            named.append(f"{d}={', '.join(map(str, labels[0][at][:3]))}")
    where = f" ({'; '.join(named)})" if named else ""
    told = (
        f"it lacks their {' and '.join(lacking)}: add the coordinate"
        if method.features
        else "the hindcast had no features of its places: fit with coordinates such as lat, lon "
        "and height"
    )
    raise ValueError(
        f"forecast has {int(new.sum())} places that the model was not fitted on{where}, and "
        f"{told}, or select places of the fit"
    )
