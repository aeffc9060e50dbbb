"""What is learned from, checked without its values: paired, ordered and dated cases."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import xarray as xr

from xrecal.chunks.parallel import require_one_chunk
from xrecal.chunks.warnings import users_stacklevel
from xrecal.inputs.circular import refuse_circular
from xrecal.inputs.covariates import Given, read_covariates
from xrecal.inputs.dims import CaseAxis, case_axis
from xrecal.inputs.forms import Form, require_distances
from xrecal.inputs.pairing import Pairs, in_order, pair_cases
from xrecal.inputs.pool import PoolOver
from xrecal.methods import CKME, Method, VectorCKME
from xrecal.methods.base import is_whole
from xrecal.methods.call_errors import require_settings

from .case_arrays import NEW_MEMBER
from .fitted import CASE, CASE_MEMBER
from .pooling import DATE, read_pool

DEFAULT = CKME()


def checked(
    method: Method, condition_on: str | tuple[str, ...] | None, min_samples: int, call: str
) -> Method:
    """The method as ``call`` asks for it; TypeError or ValueError for what cannot be meant."""
    require_settings(method, call)
    if not is_whole(min_samples) or min_samples < 2:
        raise ValueError(f"min_samples must be a whole number from 2 on, got {min_samples!r}")
    return conditioned(method, condition_on)


def conditioned(method: Method, condition_on: str | tuple[str, ...] | None) -> Method:
    """The method with ``condition_on`` filled in where it is None."""
    has_field = any(field.name == "condition_on" for field in fields(method))  # type: ignore[arg-type]
    if condition_on is None or method.condition_on is not None or not has_field:
        return method
    return replace(method, condition_on=condition_on)  # type: ignore[type-var]


class Prepared(NamedTuple):
    """What is learned from at all locations, checked without its values."""

    pairs: Pairs
    """In order of time."""
    method: Method
    """As it can be used on these cases."""
    axis: CaseAxis
    covariates: Mapping[str, xr.DataArray]
    note: str | None
    """Remark on the method and the pooling."""


def prepare(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    dim: Hashable | None,
    covariates: Given,
    min_samples: int,
    pool: PoolOver = None,
    *,
    in_splits: bool = False,
) -> Prepared:
    """Pair, order and date the cases of a variable, and read its covariates.

    With ``in_splits`` fits are of some dates, so each will have a pool of its own: here it has all
    positions, and the axis is that of the dates.
    """
    require_distances(form, name="hindcast")
    if not isinstance(method, VectorCKME):
        refuse_circular(form.period, form.name, "only fit, with CKME, takes that into account")
    pairs = in_order(pair_cases(form, observed, dim, name="hindcast"))
    assert pairs.dim is not None
    n_dates = pairs.observations.sizes[pairs.dim]
    pooled = read_pool(pool, form, pairs.dim)
    if pooled is not None and not in_splits:
        pooled = pooled.learning_from(n_dates)
    pairs = replace(pairs, pool=pooled)
    positions = () if pooled is None else pooled.dims
    n_positions = 1 if pooled is None else len(pooled.taken)
    if pairs.n_matched * n_positions < min_samples:
        each = f", at {n_positions} pooled positions each," if pooled else ""
        raise ValueError(
            f"only {pairs.n_matched} cases along {pairs.dim!r}{each} have a label in hindcast and "
            f"observations, fewer than min_samples={min_samples}; pool neighbours or leads "
            "(pool=...), give more cases, or a smaller min_samples if so few are meant"
        )
    _refuse_reserved(form, pairs.dim)
    for part in pairs.form.parts.values():
        require_one_chunk(part, (pairs.dim, form.member_dim, *positions), name="hindcast")
    require_one_chunk(pairs.observations, (pairs.dim, *positions), name="observations")
    axis = case_axis(pairs.observations.assign_coords(dates_of(pairs)), pairs.dim)
    axis = axis if pooled is None or in_splits else pooled.axis(axis, n_dates)
    method, note = method.check(axis, n_dates * n_positions)
    if note is not None:
        warnings.warn(note, stacklevel=users_stacklevel())
    given = read_covariates(
        method.covariates,
        pairs.form,
        pairs.dim,
        covariates,
        name="hindcast",
        fitting=True,
        pooled=positions,
    )
    for name, value in given.items():
        require_one_chunk(value, positions, name=f"the covariate {name!r}")
    note = "; ".join(n for n in (pooled.note if pooled else None, note) if n) or None
    return Prepared(pairs, method, axis, given, note)


def _refuse_reserved(form: Form, dim: Hashable) -> None:
    taken = {CASE, CASE_MEMBER, DATE, NEW_MEMBER, "quantile"} & {*form.dims} - {dim}
    if taken:
        raise ValueError(
            f"the location dimension {min(map(str, taken))!r} has a name that xrecal uses; "
            "rename it in hindcast and observations"
        )


def dates_of(pairs: Pairs) -> dict[Hashable, Any]:
    """Coordinates along the calibration dimension that may date the cases."""
    return {
        name: coordinate
        for part in pairs.form.parts.values()
        for name, coordinate in part.coords.items()
        if coordinate.dims == (pairs.dim,)
    }
