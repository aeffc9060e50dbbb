"""Forecasts and observations that arrive day by day, in one file or store or in many."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from os import PathLike, fspath
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice
from xrecal.fit.fitted import FittedVariable
from xrecal.fit.mismatch_warnings import without_unseen_values
from xrecal.fit.news import News, news_of
from xrecal.fit.select_fits import explicit_member_dim
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form, read_forms
from xrecal.inputs.identities import known_places
from xrecal.inputs.metadata import check_units
from xrecal.inputs.pairing import Pairs, in_order, pair_cases, pair_variables
from xrecal.inputs.places import find_places, like_places
from xrecal.inputs.roles import LEVEL, MEMBER, Roles
from xrecal.inputs.valid_time import time_dim
from xrecal.inputs.valid_time_lookup import at_own_valid_times
from xrecal.inputs.verification import read_verified
from xrecal.model import Recalibrator
from xrecal.storage.paths import local_path

from .files import Source, covariates_in, forecasts_for, in_blocks_of, observed_variables
from .outcome import Date

Part: TypeAlias = str | PathLike[str] | xr.DataArray | xr.Dataset
Parts: TypeAlias = Part | Sequence[Part]
"""Paths of files and stores, patterns of paths, or xarray objects."""


@dataclass(frozen=True)
class Verifying:
    """Forecasts of one variable in order of their starts, with their observations so far."""

    fitted: FittedVariable
    pairs: Pairs
    """Lazy forecasts, paired with observations in memory."""
    valid: xr.DataArray
    """Valid times along the starts, and along the leads if the forecasts have several leads."""

    @property
    def observed(self) -> xr.DataArray:
        """Observations of the forecasts."""
        return self.pairs.observations

    @property
    def starts(self) -> xr.DataArray:
        """Dates of the starts."""
        starts: xr.DataArray = self.valid.coords[self.fitted.dim]
        return starts

    def known_at(self, start: Date) -> xr.DataArray:
        """Return the observations that were known at a start; all others are NaN.

        An observation is known if its forecast starts before ``start``, and its valid time is not
        after ``start``.
        """
        return self._where((self.valid <= start) & (self.starts < start))

    def until(self, now: Date) -> xr.DataArray:
        """Return the observations with a valid time up to ``now``; all others are NaN."""
        return self._where(self.valid <= now)

    def _where(self, known: xr.DataArray) -> xr.DataArray:
        whole: xr.DataArray = self.observed.where(known).transpose(*self.observed.dims)
        return whole.astype(self.observed.dtype, copy=False)

    def news_at(self, start: Date, fitted: FittedVariable) -> News:
        """Find observations known at a start that are missing or different in ``fitted``."""
        return news_of(fitted, replace(self.pairs, observations=self.known_at(start)))


@dataclass(frozen=True)
class Archive:
    """All forecasts and observations that a run of the cycle gets."""

    forecasts: xr.Dataset
    """Lazy forecasts in order of the starts."""
    variables: Mapping[Hashable, Verifying]
    """Forecasts with their observations, by the names of the forecasts."""
    dim: Hashable
    covariates: Given = None
    """Covariates in memory."""

    @property
    def starts(self) -> np.ndarray[Any, Any]:
        """Dates of the starts, ascending."""
        dates: np.ndarray[Any, Any] = self.forecasts.indexes[self.dim].to_numpy()
        return dates.astype("datetime64[us]")

    def observations(self, values: Mapping[Hashable, xr.DataArray], at: Any) -> dict[Hashable, Any]:
        """Select the observations of the cases at the positions ``at``, by variable.

        Observations get the coordinate ``valid_time`` of the forecasts, if the observations have
        the dimensions of this coordinate.
        """
        chosen = {}
        for name, array in values.items():
            times = [c for n, c in self.forecasts.coords.items() if n == "valid_time"]
            own = [c for c in times if {*c.dims} <= {*array.dims}]
            chosen[name] = array.assign_coords({"valid_time": own[0]} if own else {}).isel(at)
        return chosen


def open_parts(given: Parts, name: str) -> dict[str, xr.Dataset]:
    """Open inputs; the keys of the result are the names that messages use.

    ``*`` in a path matches any text.

    Raises
    ------
    FileNotFoundError
        If no file or store has a given path, or matches a given pattern.
    """
    parts = [given] if isinstance(given, (str, PathLike, xr.DataArray, xr.Dataset)) else [*given]
    found = {}
    for i, part in enumerate(parts):
        if isinstance(part, xr.DataArray):
            part = part.to_dataset(name=part.name or name)
        if isinstance(part, xr.Dataset):
            found[f"number {i}"] = in_blocks_of(part, {})
            continue
        path = fspath(part)
        paths = sorted(glob(path)) if has_magic(path) else [path]
        if not paths:
            raise FileNotFoundError(f"no {name} match {path!r}; give files or stores that exist")
        for one in paths:
            source = Source(local_path(one, name=name), name)
            found[str(source.path)] = in_blocks_of(source.open(), {})
    return found


def open_archive(
    model: Recalibrator,
    forecasts: Parts,
    observations: Parts,
    variable: str | None,
    observed_variable: str | None,
    covariates: Part | Given = None,
) -> Archive:
    """Open forecasts lazily, and read their observations and covariates into memory.

    Raises
    ------
    ValueError
        If starts have no dates or occur twice, or inputs do not match each other or the model.
    """
    first = next(iter(model.variables.values()))
    dim = first.dim
    parts = open_parts(forecasts, "forecasts")
    opened = {path: _forecasts(part, model, dim, variable, path) for path, part in parts.items()}
    members = {*MEMBER.names, *(fitted.member_dim for fitted in model.variables.values())}
    labels = [name for name in first.state.coords if name != dim]
    _require_one_place(opened, labels)
    whole = _joined(opened, dim, members - {*LEVEL.names})
    for place in first.locations:  # in the order of the model, so that all runs have one order
        if place in whole.dims and whole.sizes[place] == first.state.sizes[place]:
            at = find_places(whole, first.state, place, names=("forecasts", "the model"))
            whole = whole if at is None else whole.isel({place: at})
    starts = whole.indexes[dim]
    if not starts.is_unique:
        twice = starts[starts.duplicated()][0]
        raise ValueError(f"the start {twice} occurs in the forecasts twice; give each start once")
    member_dim = explicit_member_dim(model, whole)
    forms = read_forms(whole, member_dim, name="forecasts")
    verified = open_parts(observations, "observations")
    _require_one_place(verified, labels)
    observed = _observations(list(verified.items()))
    values = observed_variables(observed, observed_variable, forms)
    variables = {}
    for name, (form, array) in pair_variables(whole, values, member_dim, name="forecasts").items():
        fitted = model.variables.get(name, first)
        variables[name] = _verifying(fitted, form, array)
    valid = next(iter(variables.values())).valid
    if valid.dims == (dim,) and "valid_time" not in whole.coords and not valid.equals(valid[dim]):
        whole = whole.assign_coords(valid_time=valid.variable)  # of a single lead
    return Archive(whole, variables, dim, _covariates(covariates))


def _covariates(given: Part | Given) -> Given:
    """Return covariates in memory; if a path is given, read them from this file."""
    if isinstance(given, (str, PathLike)):
        given = covariates_in(Source(local_path(given, name="covariates"), "covariates").open())
    if given is None or isinstance(given, xr.DataArray):
        return given  # type: ignore[return-value]  # refused where it is used
    return {str(name): value.load() for name, value in given.items()}


def _forecasts(
    dataset: xr.Dataset, model: Recalibrator, dim: Hashable, variable: str | None, path: str
) -> xr.Dataset:
    """Return the forecasts of a file along their starts; raise ValueError for undated starts."""
    try:
        given = forecasts_for(model, dataset, variable)
    except ValueError as error:
        raise ValueError(Advice(f"forecasts {path}: ", *error.args[:1])) from error
    if dim not in given.dims and dim in given.coords:
        given = given.expand_dims(dim)
    if dim not in given.indexes or given.indexes[dim].dtype.kind != "M":
        raise ValueError(
            f"forecasts {path} have no dates along {dim!r}, so new forecasts cannot be identified; "
            "write them with a coordinate of dates"
        )
    if not given.sizes[dim] or given.indexes[dim].hasnans:
        found = "a start without a date (NaT)" if given.sizes[dim] else "no start"
        raise ValueError(f"forecasts {path} hold {found}; leave it out, or write it again")
    return _along_starts(given, model, dim)


def _along_starts(given: xr.Dataset, model: Recalibrator, dim: Hashable) -> xr.Dataset:
    """Add the dimension of the starts to coordinates that may differ between files.

    The covariates of the model may differ. If a file has a single start, coordinates of dates, such
    as the valid time, may differ too.
    """
    covariates = {name for fitted in model.variables.values() for name in fitted.periods}
    varying = {
        name: label.expand_dims({dim: given.sizes[dim]})
        for name, label in given.coords.items()
        if dim not in label.dims
        and name not in given.dims
        and (name in covariates or (given.sizes[dim] == 1 and label.dtype.kind == "M"))
    }
    return given.assign_coords(varying)


def _require_one_place(parts: Mapping[str, xr.Dataset], labels: Sequence[Hashable]) -> None:
    """Raise ValueError if files of a single lead or place have different leads or places."""
    (path, of_all), *others = parts.items()
    for name in labels:
        for other, part in others:
            pair = [one.coords.get(name) for one in (of_all, part)]
            a, b = (None if one is None or one.ndim else one for one in pair)
            if a is None or b is None or _are_one(a, b):
                continue
            raise ValueError(
                f"{other} does not match {path}: {other} has the {name} {b.item()}, and {path} "
                f"has {a.item()}; put both along {name!r} in one file, or leave one file out"
            )


def _are_one(a: xr.DataArray, b: xr.DataArray) -> bool:
    """Return whether two scalar labels name the same lead or place; their types may differ."""
    if a.dtype.kind == b.dtype.kind == "f" and np.allclose(a, b, rtol=1e-6, equal_nan=True):
        return True
    dim = str(a.name)
    found = known_places(a.expand_dims(dim), b.expand_dims(dim), dim)
    return found is not None and bool((found >= 0).all())


def _joined(
    parts: Mapping[str, xr.Dataset], dim: Hashable, members: Collection[Hashable]
) -> xr.Dataset:
    """Join Datasets along one dimension, in the order of its labels.

    The keys of ``parts`` are names for messages. If ensembles have different members, the result
    has all of these members. Members that a Dataset lacks become NaN.
    """
    first, *others = parts
    for other in others:
        _check_alike(parts, first, other, {dim, *members})
    one_of_all, places = parts[first], [d for d in parts[first].dims if d not in (dim, *members)]
    datasets = [
        like_places(part, one_of_all, places, names=(first, name)) for name, part in parts.items()
    ]
    for member in {d for one in datasets for d in one.dims} & {*members}:
        most = max(one.sizes[member] for one in datasets)
        if all(member in one.indexes for one in datasets):
            every = datasets[0].indexes[member]
            for one in datasets[1:]:
                every = every.union(one.indexes[member], sort=False)
            datasets = [one.reindex({member: every}) for one in datasets]
        else:
            datasets = [one.pad({member: (0, most - one.sizes[member])}) for one in datasets]
    whole = datasets[0]
    if others:
        whole = xr.concat(
            datasets,
            dim,
            data_vars="minimal",
            coords="minimal",
            compat="override",
            join="exact",
            combine_attrs="override",
        )
    return whole if whole.indexes[dim].is_monotonic_increasing else whole.sortby(dim)


def _check_alike(
    parts: Mapping[str, xr.Dataset], first: str, other: str, joined: Collection[Hashable]
) -> None:
    """Raise ValueError if two datasets differ in names, dimensions, labels or units."""
    a, b = parts[first], parts[other]

    def check(what: str, of_a: object, of_b: object) -> None:
        if of_a != of_b:
            raise ValueError(
                f"{other} does not match {first}: {other} has {what} {of_b}, and {first} has "
                f"{of_a}; write both in the same way, or give only one"
            )

    check("the variables", sorted(map(str, a.data_vars)), sorted(map(str, b.data_vars)))
    for name in a.data_vars:
        dims = ([str(d) for d in sorted(one[name].dims, key=str)] for one in (a, b))
        check(f"{name!r} along", *dims)
    for label in (d for d in a.dims if d not in joined):
        check(f"{label!r} of size", a.sizes[label], b.sizes[label])
        if label in a.indexes and label in b.indexes:
            only = [x.indexes[label].difference(y.indexes[label]) for x, y in ((a, b), (b, a))]
            check(f"{label!r} at", *(index[:3].tolist() for index in only))
    for name in {*a.variables} & {*b.variables}:
        units = [one[name].attrs.get("units") for one in (a, b)]
        check_units(f"{first}[{name!r}]", units[0], f"{other}[{name!r}]", units[1])


def _observations(given: Sequence[tuple[str, xr.Dataset]]) -> xr.Dataset:
    """Join the observations of all files; for each date, the last file with this date counts."""
    datasets = [one for _, one in given]
    if len(given) == 1:
        return datasets[0]
    dated = {d for one in datasets for d, index in one.indexes.items() if index.dtype.kind == "M"}
    if len(dated) != 1:
        raise ValueError(
            "xrecal joins files of observations along their dates, but the dates here are along "
            f"{sorted(map(str, dated))}; give one file"
        )
    dim = dated.pop()
    parts = [one if dim in one.dims else one.expand_dims(dim) for one in datasets]
    last = {label: i for i, part in enumerate(parts) for label in part.indexes[dim]}
    kept = {
        name: part.isel({dim: [last[label] == i for label in part.indexes[dim]]})
        for i, ((name, _), part) in enumerate(zip(given, parts, strict=True))
    }
    return _joined({name: part for name, part in kept.items() if part.sizes[dim]}, dim, ())


def _verifying(fitted: FittedVariable, form: Form, observed: xr.DataArray) -> Verifying:
    """Pair forecasts with the observations so far, which may be few or none."""
    dim = fitted.dim
    whole = form.roles.obj
    starts = whole[dim].reset_coords(drop=True)
    when = read_verified(form.roles, dim)
    valid, times = starts, starts.to_numpy()
    if when is not None and when.verified is not None:
        if when.issued is None or when.issued.ndim == 2:
            raise ValueError(
                f"labels of the forecasts along {dim!r} are valid times, but the daily cycle needs "
                "forecasts along their starts; arrange them by starts"
            )
        times = when.verified
        lead = {when.lead: whole[when.lead]} if when.lead in whole.dims else {}
        valid = xr.DataArray(times if lead else times[:, 0], {dim: starts, **lead}, [dim, *lead])
    along = dim
    if when is not None and when.lead not in observed.dims:
        along = time_dim(Roles(observed), whole, dim) or dim
    observed = at_own_valid_times(observed, along)
    if along in observed.indexes:  # unverified forecasts are not a mismatch of labels
        wanted = times if along != dim or when is not None else starts.to_numpy()
        index = observed.indexes[along]
        if index.dtype.kind == "M":
            every = index.union(np.unique(np.ravel(wanted)).astype(index.dtype))
            observed = observed.reindex({along: every})
    pairs = in_order(pair_cases(form, observed, dim, name="forecasts"))
    known = without_unseen_values(pairs.observations.load(), fitted)
    return Verifying(fitted, replace(pairs, observations=known), valid)
