"""Estimate the tasks, memory and time of fits, and of products such as quantiles.

The estimates need no values of the user's data.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import xarray as xr

from xrecal.fit.conditioned import checked
from xrecal.fit.fit_hindcast import DEFAULT, pair_hindcast, prepare
from xrecal.fit.held_out import By, HeldOut, Splits, hold_out
from xrecal.fit.kinds import TOGETHER, Choose
from xrecal.fit.select_fits import match_variables
from xrecal.fit.shared_places import pools_share
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form, Labelled, read_forms
from xrecal.inputs.lengths import Span
from xrecal.inputs.pairing import Observations, pair_variables
from xrecal.inputs.pool import PoolOver
from xrecal.methods import Method
from xrecal.methods.call_errors import explained
from xrecal.products.recalibrated import Missing, given_or_missing
from xrecal.products.replayed import replayed, updates_as_it_goes

from .costs import Resources, find_resources, probe_of
from .plans import Plan, TaskPlan, split
from .work import (
    Work,
    array_without_values,
    without_values,
    work_of_fit,
    work_of_product,
    work_of_shared_fit,
    work_of_splits,
)

if TYPE_CHECKING:
    from xrecal.fit.fitted import Fitted

BEST_BYTES = 128 * 2**20
"""Largest number of bytes that a task with the suggested chunks may read and write."""
BEST_SECONDS = 300.0
"""Longest duration of a task with the suggested chunks, so that a lost worker costs little."""
ROUNDS = 4
"""Least number of tasks for each thread of a worker, to avoid a long wait for the last task."""

IN_MEMORY = "NumPy arrays are one task on one thread; the suggested chunks make more tasks"
OF_ALL_PLACES = "the plan leaves out the fit of the component that all places share"
REFITTED = "the model is not in memory; each product fits it again, unless you persist the model"


@explained("xrecal.plan")
def plan(
    hindcast: Labelled,
    observations: Observations | None = None,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    pool: PoolOver = None,
    features: str | Sequence[str] = (),
    choose: Choose = TOGETHER,
    min_samples: int = 20,
    by: By | None = None,
    gap: Span | None = None,
    blocks: int = 5,
    window: Span | None = None,
    every: Span | None = None,
    refit: Span | None = None,
    probe: bool = True,
) -> Plan:
    """Estimate the tasks, memory and time of a fit or a cross-validation before it starts.

    The plan also suggests better chunks.

    Parameters
    ----------
    hindcast, method, dim, member_dim, condition_on, covariates, pool, features, choose, min_samples
        As for :func:`xrecal.fit.fit_hindcast.fit`.
    observations : DataArray, Dataset or dict, optional
        As for the fit. If you leave them out, the plan assumes one observation for each forecast.
    by : {"year", "block", "retrospective", "rolling"}, optional
        Kind of splits of a cross-validation. By default, the plan is for a fit; with ``by``, it is
        for a cross-validation.
    gap, blocks, window, every, refit
        As for :func:`xrecal.products.cross_validate.cross_validate`.
    probe : bool
        True: measure the time of the method on synthetic cases. In a new process, this takes some
        seconds. False: the plan has no estimate of time.

    Returns
    -------
    Plan
        The plan, which prints as a table; see also :meth:`Plan.to_dataset` and
        :func:`xrecal.check_plan`.

    Raises
    ------
    ValueError, TypeError
        If inputs are wrong; the fit raises the same errors.

    Notes
    -----
    A plan never reads or computes values of the inputs. Bytes of input and output are exact for the
    largest chunk. The workspace is the approximate memory for copies and matrices, for one task at
    a time in each thread. Dask keeps a few more chunks of input in memory. Times are rough, because
    they also depend on the choices of the method. The plan of a cross-validation assumes five
    values for each forecast, such as the quantiles that ``cross_validate`` computes by default. It
    also assumes that all splits have as many training cases as the largest split. With ``refit``,
    the plan counts for an update only the time to prepare its first forecast.

    Examples
    --------
    >>> plan = xrecal.plan(hindcast, observations, probe=False)
    >>> plan.tasks, plan.fits
    (1, True)
    >>> xrecal.plan(hindcast, observations, by="block", probe=False).largest.splits
    5
    """
    method = checked(method, condition_on, min_samples, "xrecal.plan", covariates)
    if observations is None:
        forms = read_forms(hindcast, member_dim, name="hindcast")
        paired = {name: (form, _one_for_each(form)) for name, form in forms.items()}
    else:
        paired = pair_variables(hindcast, observations, member_dim, name="hindcast")
    resources = find_resources()
    parts, notes = [], set()
    for name, (form, observed) in paired.items():
        bare, verified = without_values(form), array_without_values(observed)
        if by is None:
            pairs = pair_hindcast(bare, verified, method, dim)
            prepared = prepare(
                pairs, method, covariates, min_samples, pool, features, choose=choose
            )
            if prepared.of_all is not None:
                notes.add(OF_ALL_PLACES)
            if prepared.method.by_sums:
                work = work_of_shared_fit(name, prepared, min_samples)
            else:
                work = work_of_fit(name, prepared, min_samples, choose)
        else:
            updates = updates_as_it_goes(by, refit, method)
            given = by, gap, blocks, window, every, pool, min_samples, None, refit, updates
            splits = Splits(*given, choose, features)
            predict = replayed if updates else hold_out
            held_out = predict(bare, verified, method, splits, dim, covariates)
            _refuse_splits_of_many(held_out)
            work = work_of_splits(name, held_out)
        parts.append(_task_plan(work, resources, probe and work.kind != "shared fit"))
        if all(array.chunks is None for array in (*form.parts.values(), observed)):
            notes.add(IN_MEMORY)
    return Plan(tuple(parts), resources, tuple(sorted(notes)))


def plan_forecast(
    model: Fitted,
    forecast: Labelled,
    *,
    values: int | None = 1,
    covariates: Given = None,
    missing_covariates: Missing = "refuse",
    probe: bool = True,
) -> Plan:
    """Estimate the tasks, memory and time of a product, such as quantiles, before it starts.

    Parameters
    ----------
    forecast : DataArray or Dataset
        As for :meth:`apply`. The plan does not read its values.
    values : int, optional
        Number of values to compute for each forecast, such as quantiles, probabilities or members.
        None means all the weights that :meth:`apply` returns.
    covariates, missing_covariates
        As for :meth:`apply`.
    probe : bool
        True: measure the time of the method on synthetic cases; see :func:`xrecal.plan`.

    Returns
    -------
    Plan
        The plan, which prints as a table.

    Raises
    ------
    ValueError
        As for :meth:`apply`.

    Examples
    --------
    >>> model.plan(forecast, probe=False).fits
    True
    """
    resources = find_resources()
    matched = match_variables(model, forecast, read_values=False)
    parts = []
    for name, (form, fitted) in matched.items():
        given = given_or_missing(covariates, form, fitted, missing_covariates)
        work = work_of_product(name, form, fitted, values, given)
        # Chunks are not along a single lead.
        work = replace(work, fits=tuple(d for d in work.fits if d in forecast.dims))
        timed = probe and not fitted.method.by_sums
        parts.append(_task_plan(work, resources, timed))
    notes = [] if model.is_computed else [REFITTED]
    if all(part.chunks is None for form, _ in matched.values() for part in form.parts.values()):
        notes.append(IN_MEMORY)
    return Plan(tuple(parts), resources, tuple(notes))


def _refuse_splits_of_many(held_out: HeldOut) -> None:
    """Raise ValueError if the splits are of a shared fit, or of pools with a shared component."""
    pool = held_out.prepared.pairs.pool
    if pool is not None and any(
        fold.method.by_sums or pools_share(fold.method, pool, fold.train.size)
        for fold in held_out.folds
    ):
        raise ValueError(
            f"a plan cannot have splits of a fit to many cases {pool}, because the splits are "
            "fitted one after the other; to plan a single fit, leave out the argument by"
        )


def _task_plan(work: Work, resources: Resources, timed: bool) -> TaskPlan:
    """Return the tasks of the work with its current chunks, and suggest better chunks."""
    chunks, location = work.tasks.chunksizes, work.location
    block = {d: max(sizes, default=0) for d, sizes in chunks.items()}
    taken, made, workspace = work.bytes_of(block)
    probe = probe_of(location) if timed else None
    seconds = None if probe is None else work.seconds(probe)
    return TaskPlan(
        variable=work.variable,
        work=work.kind,
        cases=location.n_cases,
        members=location.n_members,
        forecasts=work.forecasts,
        splits=work.splits,
        locations=work.locations({}),
        tasks=math.prod(len(sizes) for sizes in chunks.values()),
        locations_per_task=work.locations(block),
        input_bytes=taken,
        output_bytes=made,
        workspace_bytes=workspace,
        seconds_per_location=seconds,
        cases_tried=0 if probe is None else probe.n_tried,
        chunks=_suggested_chunks(work, block, resources, seconds),
        sizes=work.cut,
        bytes_of_smallest=sum(work.bytes_of({**block, **dict.fromkeys(work.cut, 1)})),
    )


def _suggested_chunks(
    work: Work, block: Mapping[Hashable, int], resources: Resources, seconds: float | None
) -> dict[Hashable, int]:
    """Return the largest chunks for which tasks are small, short and numerous enough."""
    cut = work.cut
    one = {**block, **dict.fromkeys(cut, 1)}
    n, fits_each = math.prod(cut.values()), work.locations(one)
    taken, made, _ = work.bytes_of(one)
    most = min(n, BEST_BYTES // max(taken + made, 1), n // (ROUNDS * resources.at_once))
    if seconds:
        most = min(most, int(BEST_SECONDS / (seconds * max(fits_each, 1))))
    most = max(most, 1)
    memory = math.inf if resources.memory is None else resources.memory
    chunks = split(most, cut)
    while most > 1 and sum(work.bytes_of({**block, **chunks})) > memory:
        most //= 2
        chunks = split(most, cut)
    return dict.fromkeys(work.whole, -1) | {d: -1 if k == cut[d] else k for d, k in chunks.items()}


def _one_for_each(form: Form) -> xr.DataArray:
    """Return observations without values, one for each forecast, in the units of the forecasts."""
    whole = without_values(form).broadcast().loc
    units = {k: v for k, v in form.loc.attrs.items() if k == "units"}
    observed = whole.isel({form.member_dim: 0}, drop=True)
    return observed.drop_attrs(deep=False).assign_attrs(units)
