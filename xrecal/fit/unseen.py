"""Cases predicted by fits that have not seen them: splits, the fits of each, one task a chunk."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import run_blockwise, work_on
from xrecal.chunks.warnings import users_stacklevel
from xrecal.inputs.covariates import Given, period_of
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Form
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.pool import Pool, PoolOver
from xrecal.methods import Method
from xrecal.typing import IntArray

from .fit_hindcast import Prepared, pair_hindcast, prepare
from .fitted import CASE, CASE_MEMBER
from .held_out import CrossValidationTask, Fold, PooledCrossValidationTask, Score
from .pooling import DATE, across
from .state import task_arguments


def predict_unseen(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    score: Score,
    size: int | None,
    dim: Hashable | None,
    by: By,
    options: Mapping[str, Any],
    covariates: Given,
    min_samples: int,
    pool: PoolOver = None,
) -> xr.DataArray:
    """What ``score`` makes of each case, predicted by fits that have not seen it.

    One number a case, or ``size`` of them along ``quantile`` in place of the members.
    """
    pairs = pair_hindcast(form, observed, method, dim)
    prepared = prepare(pairs, method, covariates, min_samples, pool, in_splits=True)
    folds = _folds(method, prepared, by, options, min_samples)
    result = _run(prepared, folds, score, size, min_samples, by)
    return _in_user_order(result, form, prepared)


def _folds(
    method: Method,
    prepared: Prepared,
    by: str,
    options: Mapping[str, Any],
    min_samples: int,
) -> list[Fold]:
    """Splits of the cases, each with the method as it can be used on its training cases."""
    from xrecal.arrays.splitting import splits

    axis = prepared.axis
    n = prepared.pairs.observations.sizes[prepared.pairs.dim]
    folds, notes = [], []
    for split in splits(n, by, year=axis.year, days=axis.days, **options):
        train, test = np.flatnonzero(split.train), np.flatnonzero(split.test)
        fold, note = _suited(method, axis, train, test, prepared.pairs.pool)
        folds.append(fold)
        notes += [] if note is None else [note]
    n_cases = [fold.n_cases for fold in folds]
    few = sum(n < min_samples for n in n_cases)
    if few == len(folds):
        raise ValueError(
            f"every split leaves fewer than min_samples={min_samples} cases to learn from, "
            f"{max(n_cases)} at most; give {_more_cases(prepared.pairs, by, options)}a smaller "
            "min_samples if so few are meant"
        )
    if few:
        warnings.warn(
            f"{few} of {len(folds)} splits leave fewer than min_samples={min_samples} cases to "
            "learn from; the cases they test are NaN",
            stacklevel=users_stacklevel(),
        )
    if notes and prepared.note is None:  # that on all cases has been told
        warnings.warn(
            f"{notes[0]} (in {len(notes)} of {len(folds)} splits)", stacklevel=users_stacklevel()
        )
    return folds


def _more_cases(pairs: Pairs, by: str, options: Mapping[str, Any]) -> str:
    """What would give the splits of these cases more of them."""
    ways = []
    if by == "rolling" and options["window"] is not None:
        ways.append("a longer window")
    if options["gap"]:
        ways.append("a smaller gap")
    places = [d for d in pairs.form.dims if d != pairs.dim]
    if pairs.pool is None and places:
        pool = repr(places[0]) if len(places) == 1 else repr(tuple(places))
        ways.append(f"pool={pool} to learn from the cases of all positions together")
    return "".join(f"{way}, " for way in ways) + ("or " if ways else "")


def _suited(
    method: Method, axis: CaseAxis, train: IntArray, test: IntArray, pool: Pool | None
) -> tuple[Fold, str | None]:
    """A split with the pool and the method as they can be used on its training cases."""
    own, n_cases = axis.take(train), train.size
    try:
        if pool is not None:
            pool = pool.learning_from(train.size)
            own, n_cases = pool.axis(own, train.size), train.size * len(pool.taken)
        suited, note = method.check(own, n_cases)
    except ValueError as error:
        raise ValueError(
            f"{error} (learning from {n_cases} cases to predict cases {test[0]} to {test[-1]})"
        ) from error
    return Fold(suited, train, test, pool), note


def _run(
    prepared: Prepared,
    folds: list[Fold],
    score: Score,
    size: int | None,
    min_samples: int,
    by: By,
) -> xr.DataArray:
    """Predictions of the cases in order of time; one task for each chunk of locations."""
    parts, others = task_arguments(prepared.pairs, prepared.covariates)
    periods = {name: period_of(value) for name, value in prepared.covariates.items()}
    pool, common = prepared.pairs.pool, (tuple(parts), prepared.axis, periods)
    task: Callable[..., Any]
    if pool is None:
        reuse = by in ("year", "block") and any(fold.method.keeps_cases for fold in folds)
        task = CrossValidationTask(folds, *common, score, size, min_samples, reuse)
        cases: tuple[Hashable, ...] = (CASE,)
    else:
        task = PooledCrossValidationTask(folds, *common, score, size, min_samples)
        cases = (*pool.dims, DATE)
        others = {name: across(value, pool) for name, value in others.items()}
    known = {d: n for value in others.values() for d, n in value.sizes.items() if d in cases}
    (result,) = run_blockwise(
        task,
        *parts.values(),
        *others.values(),
        core=[(*cases, CASE_MEMBER)] * len(parts) + [cases] * len(others),
        out=[cases if size is None else (*cases, "quantile")],
        dtypes=[parts["loc"].dtype],
        sizes={**known, "quantile": size or 1},
        what=work_on("the cross-validation", prepared.pairs.form.name),
    )
    return result.rename({cases[-1]: prepared.pairs.dim})


def _in_user_order(result: xr.DataArray, form: Form, prepared: Prepared) -> xr.DataArray:
    """Cases, dimensions and coordinates as in the hindcast."""
    dim, pool = prepared.pairs.dim, prepared.pairs.pool
    given = [part.indexes[dim] for part in form.parts.values() if dim in part.indexes]
    if given and not given[0].is_monotonic_increasing:
        result = result.isel({dim: np.argsort(given[0].argsort())})
    within = {dim, *(pool.dims if pool else ())}
    coords = {
        name: coordinate
        for part in form.parts.values()
        for name, coordinate in part.coords.items()
        if within & {*coordinate.dims} and form.member_dim not in coordinate.dims
    }
    new = ("quantile",) if "quantile" in result.dims else ()
    return result.assign_coords(coords).transpose(*form.order(new))


By: TypeAlias = Literal["year", "block", "retrospective", "rolling"]
