"""Planned work: a fit, the splits of a cross-validation, or a product such as quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import xarray as xr

from xrecal.fit.fitted import CASE, FittedVariable
from xrecal.fit.held_out import HeldOut
from xrecal.fit.kinds import Choose, places_together
from xrecal.fit.select_fits import shared_dims
from xrecal.fit.state import Prepared, fit_state
from xrecal.inputs.between import SIDES, TAIL
from xrecal.inputs.covariates import Given, period_of
from xrecal.inputs.forms import Form
from xrecal.methods import Method
from xrecal.methods.shared_cases import IN_MEMORY
from xrecal.methods.shared_ckme import as_shared
from xrecal.products.recalibrated import Recalibrated
from xrecal.products.statistics import mean_of

from .costs import Probe, Setup, apply_workspace, fit_workspace
from .plans import Kind

N_VALUES = 5
"""Number of values per held-out forecast: the default number of quantiles of cross_validate."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Work on one variable, before it is divided into tasks."""

    variable: Hashable | None
    kind: Kind
    location: Setup
    forecasts: int = 0
    splits: int = 0
    tasks: xr.DataArray
    """Lazy array with the chunks of the result; each chunk is one task."""
    fits: tuple[Hashable, ...]
    """Dimensions along which each position has its own fit."""
    whole: tuple[Hashable, ...]
    """Dimensions that every task needs whole."""
    given: Sequence[xr.DataArray]
    made: Sequence[tuple[xr.DataArray, int]]
    """Result arrays, each with the number of values that a task makes per entry of the array."""
    workspace: Callable[[int], int]
    """Function that returns the workspace in bytes for a number of locations."""
    seconds: Callable[[Probe], float]
    """Function that computes the seconds of one location from a :class:`Probe`."""

    @property
    def cut(self) -> dict[Hashable, int]:
        """Dimensions along which tasks may be divided, and their sizes."""
        return {d: self.tasks.sizes[d] for d in self.fits if d not in self.whole}

    def locations(self, block: Mapping[Hashable, int]) -> int:
        """Return the number of locations of a task.

        ``block`` has the length of each dimension in the task.
        """
        return math.prod(block.get(d, self.tasks.sizes[d]) for d in self.fits)

    def bytes_of(self, block: Mapping[Hashable, int]) -> tuple[int, int, int]:
        """Return the bytes of input, output and workspace of a task.

        ``block`` has the length of each dimension in the task.
        """
        taken = sum(_bytes(array, block) for array in self.given)
        made = sum(_bytes(array, block) * each for array, each in self.made)
        return taken, made, self.workspace(self.locations(block))


def _bytes(array: xr.DataArray, block: Mapping[Hashable, int]) -> int:
    """Return the bytes of a part of an array; it is whole along dimensions not in ``block``."""
    return array.dtype.itemsize * math.prod(block.get(d, n) for d, n in array.sizes.items())


def work_of_fit(
    name: Hashable | None, prepared: Prepared, min_samples: int, choose: Choose
) -> Work:
    """Return the work of a fit of one variable."""
    pairs, method, form = prepared.pairs, prepared.method, prepared.pairs.form
    assert pairs.dim is not None
    (state,) = fit_state(prepared, min_samples, choose=choose)
    location = _location(prepared, form, method.alone, state.sizes[CASE], min_samples)
    location = replace(location, n_together=_together(prepared, choose))
    return Work(
        variable=name,
        kind="fit",
        location=location,
        tasks=state["status"],
        fits=state["status"].dims,
        whole=(pairs.dim, form.member_dim, *(pairs.pool.dims if pairs.pool else ())),
        given=[*form.parts.values(), pairs.observations, *prepared.covariates.values()],
        made=[(variable, 1) for variable in state.data_vars.values()],
        workspace=lambda n: fit_workspace(method, location.n_cases, location.n_members, n),
        seconds=lambda probe: probe.fit,
    )


def work_of_shared_fit(name: Hashable | None, prepared: Prepared, min_samples: int) -> Work:
    """Return the work of one fit to many places, which reads the cases several times in chunks."""
    from xrecal.arrays.shared.packed import GRID

    pairs, method, form = prepared.pairs, as_shared(prepared.method), prepared.pairs.form
    assert pairs.dim is not None
    assert pairs.pool is not None
    tasks = next(iter(form.parts.values())).isel({form.member_dim: 0}, drop=True)
    loops = (pairs.dim, *pairs.pool.forecast_dims)
    n_cases = math.prod(tasks.sizes[d] for d in loops)
    _, folds = method.in_parts(prepared.axis, tasks.sizes[pairs.dim])
    sums = 2 * 8 * method.rank * (2 * method.rank + 2 * GRID) * folds.of_part.size
    location = _location(prepared, form, method, n_cases, min_samples)
    return Work(
        variable=name,
        kind="shared fit",
        location=location,
        tasks=tasks,
        fits=loops,
        whole=(form.member_dim,),
        given=[*form.parts.values(), pairs.observations, *prepared.covariates.values()],
        made=[],
        workspace=lambda n: sums + 2 * 8 * method.rank * min(n, IN_MEMORY),
        seconds=lambda probe: math.nan,
    )


def _location(
    prepared: Prepared, form: Form, method: Method, n_cases: int, min_samples: int
) -> Setup:
    """Return the facts that determine the time of a fit at one location."""
    return Setup(
        method=method,
        kind=form.kind,
        n_cases=n_cases,
        n_members=_length(form, form.member_dim),
        axis=prepared.axis,
        periods={name: period_of(value) for name, value in prepared.covariates.items()},
        min_samples=min_samples,
        dtype=form.loc.dtype,
    )


def _together(prepared: Prepared, choose: Choose) -> int:
    """Return the number of places that choose together."""
    pairs, pool = prepared.pairs, prepared.pairs.pool
    whole = () if pool is None else pool.forecast_dims
    places = [d for d in pairs.form.dims if d not in (pairs.dim, *whole)]
    together = places_together(pairs.form, places, choose)
    return 1 if together is None else math.prod(together.sizes)


def work_of_splits(name: Hashable | None, held_out: HeldOut) -> Work:
    """Return the work of a cross-validation: fits, and forecasts of the held-out cases."""
    prepared, form = held_out.prepared, held_out.form
    n_fits, learned, tested = _turns(held_out)
    pairs, method = prepared.pairs, prepared.method
    assert pairs.dim is not None
    (tasks,) = held_out.reduce(mean_of, {})
    pooled = () if pairs.pool is None else pairs.pool.dims
    shared = pooled if pairs.pool is not None and pairs.pool.widths is None else ()
    axis = prepared.axis
    if pairs.pool is not None:
        axis = pairs.pool.axis(axis, pairs.form.loc.sizes[pairs.dim])
    location = _location(prepared, form, method, max(learned), held_out.splits.min_samples)
    n_together = _together(prepared, held_out.splits.choose)
    location = replace(location, axis=axis, n_together=n_together)
    sizes = location.n_cases, location.n_members
    n_served = math.prod(tasks.sizes[d] for d in shared)
    longest, n_tested = max(tested) * n_served, sum(tested) * n_served
    return Work(
        variable=name,
        kind="cross-validation",
        location=location,
        forecasts=n_tested,
        splits=len(tested),
        tasks=tasks,
        fits=tuple(d for d in tasks.dims if d not in (pairs.dim, *shared)),
        whole=(pairs.dim, form.member_dim, *pooled),
        given=[*form.parts.values(), pairs.observations, *prepared.covariates.values()],
        made=[(tasks, N_VALUES)],
        workspace=lambda n: (
            fit_workspace(method, *sizes, n)
            + apply_workspace(method, sizes[0], longest, sizes[1], n)
        ),
        seconds=lambda probe: (
            n_fits * probe.fit
            + len(tested) * probe.rebuild
            + max(n_tested - len(tested), 0) * probe.each
        ),
    )


def _turns(held_out: HeldOut) -> tuple[int, list[int], list[int]]:
    """Return the number of fits and, for each round, how many cases are known and predicted.

    A round is a fit or an update, followed by predictions. The result leaves out rounds before the
    first fit.
    """
    learned, tested = [], []
    pool = held_out.prepared.pairs.pool
    n_each = 1 if pool is None else len(pool.taken)
    known = 0
    for turn in held_out.rounds:
        new = turn.learn.size * n_each
        known = turn.fit.n_cases if turn.fit else known + new
        if known:  # nothing is predicted before the first fit
            learned.append(known)
            tested.append(turn.test.size)
    return len(held_out.folds), learned, tested


def work_of_product(
    name: Hashable | None,
    form: Form,
    fitted: FittedVariable,
    values: int | None,
    covariates: Given,
) -> Work:
    """Return the work of a product with ``values`` per forecast; see :func:`plan_forecast`."""
    method, state = fitted.method, fitted.state
    lazy = replace(fitted, state=state.map(array_without_values, keep_attrs=True))
    (tasks,) = Recalibrated(without_values(form), lazy, covariates).reduce(mean_of, {})
    location = Setup(
        method=method.alone,
        kind=fitted.kind,
        n_cases=state.sizes[CASE],
        n_members=_length(form, form.member_dim),
        axis=fitted.axis,
        periods=fitted.periods,
        min_samples=fitted.min_samples,
        dtype=form.loc.dtype,
    )
    n_cases, compared = location.n_cases, location.n_members * max(len(form.vector), 1)
    shared = [d for d in shared_dims(fitted) if d in form.dims]
    n_forecasts = math.prod(_length(form, d) for d in shared)
    n_pieces = math.prod(len(tasks.chunksizes[d]) for d in shared)
    longest = math.prod(max(tasks.chunksizes[d], default=0) for d in shared)
    if values is None:  # weights of all members, and members if forecasts have their own
        slots, components = method.slots(n_cases)
        values = slots.size * (1 if method.shares_members else 2)
        values += method.knows_novelty + (not method.shares_members)  # in addition to the weights
        values += len(SIDES) * (TAIL in (components or ()))  # shapes
    return Work(
        variable=name,
        kind="apply",
        location=location,
        forecasts=n_forecasts,
        tasks=tasks,
        fits=fitted.locations,
        whole=(form.member_dim,),
        given=[*form.compared.values(), *state.data_vars.values()],
        made=[(tasks, values)],
        workspace=lambda n: apply_workspace(method, n_cases, longest, compared, n),
        seconds=lambda probe: (
            n_pieces * probe.rebuild + max(n_forecasts - n_pieces, 0) * probe.each
        ),
    )


def _length(form: Form, dim: Hashable) -> int:
    return max(part.sizes.get(dim, 1) for part in form.parts.values())


def without_values(form: Form) -> Form:
    """Return the forecast with lazy arrays that have the same labels, but no values."""
    return form.with_parts({k: array_without_values(v) for k, v in form.parts.items()})


def array_without_values(array: xr.DataArray) -> xr.DataArray:
    """Return a lazy array with the same labels, type and chunks; a NumPy array gets one chunk."""
    import dask.array

    chunks = array.shape if array.chunks is None else array.chunks
    return array.copy(data=dask.array.zeros(array.shape, dtype=array.dtype, chunks=chunks))
