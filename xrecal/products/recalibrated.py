"""Distributions that a model makes of forecasts: reduced in each chunk, no weights leave a task."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import run_blockwise, work_on
from xrecal.fit.fitted import CASE, Fitted, FittedVariable
from xrecal.fit.held_out import dtype_of_members
from xrecal.fit.missing import without_unseen
from xrecal.fit.select_fits import as_given, match_variables, matching_covariates, shared_dims
from xrecal.fit.shared_places import places_of_forecast
from xrecal.fit.state import (
    COVARIATE,
    NEW_MEMBER,
    cases_of_state,
    covariates_of,
    forecasts_of,
    without_labels,
)
from xrecal.inputs.cases import of_cases
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form, Labelled, numbers_of, task_parts
from xrecal.inputs.metadata import describing, joined
from xrecal.inputs.pairing import paired_by_position
from xrecal.inputs.pool import HINDCAST_LABELS
from xrecal.methods.base import Cases, NewCases
from xrecal.typing import FloatArray

from .reductions import Reduction, name_of, on_device, require_on_circle, takes_device_arrays
from .source import Sources, spread

Task = TypeVar("Task", bound="PredictTask")

SLOT = "xrecal_slot"
"""Dimension of the members of a result inside a task, where forecasts have their own."""


@dataclass(frozen=True)
class Recalibrated:
    """Distributions that a fitted variable makes of forecasts."""

    form: Form
    fitted: FittedVariable
    covariates: Given = None
    forecast: Labelled | None = None
    """As the user gave it."""

    @property
    def dim(self) -> Hashable:
        """Dimension of the cases."""
        return self.fitted.dim

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the forecast, with the units of the observations that were learned from."""
        learned = {k: v for k, v in self.fitted.attrs.items() if k != "history"}
        units = {k: v for k, v in learned.items() if k == "units"}
        own = of_cases(self.form, self.dim)
        return describing({**learned, **self.form.loc.attrs, **units, **own})

    @property
    def threshold_dtype(self) -> npt.DTypeLike:
        """Floating type of the members that thresholds are compared with."""
        return dtype_of_members(self.fitted.method, self.form, self.fitted.state["observations"])

    @property
    def period(self) -> float | None:
        """Period of the variable, if it is circular."""
        variables = self.fitted.method.variables
        return None if variables is None else variables.periods[variables.own]

    def reduce(
        self,
        reduction: Reduction,
        *out: Mapping[Hashable, int],
        extras: Sequence[xr.DataArray] = (),
    ) -> tuple[xr.DataArray, ...]:
        """Predict and reduce in each chunk; see :class:`.source.Source`.

        The cases of the forecast, and positions that were pooled, come last among the dimensions
        looped over, so that a task sees for each fit the state once and all forecasts.
        """
        if self.period is not None:
            require_on_circle(reduction, self.period, self.form.name)
        given = self.task_arguments(extras)
        return self._run(PredictTask(self.fitted, reduction, given.layout), given, out)

    def reduce_with_novelty(
        self,
        reduction: Reduction,
        *out: Mapping[Hashable, int],
        extras: Sequence[xr.DataArray] = (),
    ) -> tuple[xr.DataArray, ...]:
        """As :meth:`reduce`, and the novelty of each forecast last, by the same comparison."""
        given = self.task_arguments(extras)
        return self._run(TaskWithNovelty(self.fitted, reduction, given.layout), given, (*out, {}))

    @property
    def knows_novelty(self) -> bool:
        """Whether the method compares forecasts with past ones, and so knows their novelty."""
        return self.fitted.method.knows_novelty

    def novelty(self) -> xr.DataArray:
        """Novelty of each forecast."""
        given = self.task_arguments()
        (novelty,) = self._run(NoveltyTask(self.fitted, as_it_is, given.layout), given, ({},))
        return novelty

    def _run(
        self, task: PredictTask, given: TaskArguments, out: Sequence[Mapping[Hashable, int]]
    ) -> tuple[xr.DataArray, ...]:
        """Run a task on each chunk."""
        results = run_blockwise(
            task,
            *given.values,
            core=given.core,
            out=[tuple(new) for new in out],
            dtypes=[self.form.loc.dtype] * len(out),
            sizes={d: size for new in out for d, size in new.items()},
            what=work_on("the recalibration", self.form.name),
        )
        return tuple(self._in_user_order(result) for result in results)

    def numbers(self) -> list[xr.DataArray]:
        """Numbers of the case and of the location; see :func:`.source.numbers_of`."""
        return numbers_of(self.form, self.fitted.dim, self.fitted.selected)

    def as_given(self, result: xr.DataArray) -> xr.DataArray:
        """Result without the dimension of a single lead or place, if the forecast has none."""
        assert self.forecast is not None
        return as_given(result, self.fitted, self.forecast)

    def task_arguments(self, extras: Sequence[xr.DataArray] = ()) -> TaskArguments:
        """State, forecasts and other arrays as tasks take them."""
        form, fitted, covariates = self.form, self.fitted, self.covariates
        shared = [d for d in shared_dims(fitted) if d in form.dims]
        loops = [*fitted.locations, *shared]
        new = task_parts(form, loops, {form.member_dim: NEW_MEMBER})
        given = matching_covariates(form, fitted, covariates)
        if fitted.method.by_sums:
            given |= places_of_forecast(form, fitted)
        others = {COVARIATE + name: value for name, value in given.items()}
        others |= {f"extra_{i}": value for i, value in enumerate(extras)}
        own = {name: tuple(d for d in v.dims if d not in loops) for name, v in others.items()}
        others = {
            name: value.drop_vars([c for c in value.coords if c not in value.dims]).transpose(
                *[d for d in loops if d in value.dims], *own[name]
            )
            for name, value in others.items()
        }
        of_updates = [name for name, p in fitted.parameters.items() if p.for_updates]
        kept = fitted.state.drop_vars(of_updates, errors="ignore")
        state = without_labels(kept)
        core = {
            name: tuple(d for d in v.dims if d not in fitted.locations) for name, v in state.items()
        }
        return TaskArguments(
            # State first, as it has all locations: these then lead, and cases follow.
            # Their names are for messages.
            [
                *(xr.DataArray(array, name=name) for name, array in state.items()),
                *new.values(),
                *others.values(),
            ],
            [*core.values(), *[(NEW_MEMBER,)] * len(new), *own.values()],
            Layout(
                tuple(new),
                {name: len(dims) for name, dims in own.items()},
                {name: len(dims) for name, dims in core.items()},
                len(shared),
            ),
        )

    def _in_user_order(self, result: xr.DataArray) -> xr.DataArray:
        """Dimensions as in the forecast, the new one in place of the members; their coordinates."""
        new = [d for d in result.dims if d not in self.form.dims]
        if new in ([CASE], [SLOT]):
            member = self.form.member_dim_of_results
            result = result.rename({new[0]: member})
            result = result.assign_coords(_slot_coordinates(self.fitted, member))
            new = [member]
        return result.transpose(*self.form.order(tuple(new)))


def recalibrated(model: Fitted, forecast: Labelled, covariates: Given) -> Sources[Recalibrated]:
    """The distributions that a model makes of every variable of a forecast."""
    matched = match_variables(model, forecast)
    variables = {name: Recalibrated(*pair, covariates, forecast) for name, pair in matched.items()}
    return Sources(forecast, variables, model.method, by_position(matched.values()))


def by_position(matched: Iterable[tuple[Form, FittedVariable]]) -> str:
    """Remark on places of forecasts that get fits by their position; an empty text if none do."""
    return joined(*(paired_by_position(f.loc, v.state, v.locations) for f, v in matched))


def _slot_coordinates(fitted: FittedVariable, member: Hashable) -> dict[str, xr.Variable]:
    """Past case, position and component that each member comes from, where there are several."""
    coordinates: dict[str, xr.Variable] = {}
    if fitted.method.by_sums:  # no member is of a past case
        return coordinates
    cases, components = fitted.method.slots(fitted.state.sizes[CASE])
    for name, labels in fitted.state.coords.items():
        if labels.dims == (CASE,):
            values = taken_labels(labels.to_index().to_numpy(), cases)
            attrs = {k: v for k, v in labels.attrs.items() if k != HINDCAST_LABELS}
            coordinates[str(name)] = xr.Variable((member,), values, attrs)
    if components is not None:
        about = {"long_name": "what the member is of"}
        coordinates["component"] = xr.Variable((member,), np.asarray(components), about)
    return coordinates


def taken_labels(labels: Any, cases: Any) -> Any:
    """Labels of the cases of all members, missing for those that come from no single case."""
    values = labels[cases]
    if (cases < 0).any():
        dates = values.dtype.kind in "mM"
        values = values.astype(float if values.dtype.kind in "iub" else values.dtype)
        values[cases < 0] = np.array("NaT", values.dtype) if dates else np.nan
    return values


class Layout(NamedTuple):
    """Names and axes of the arguments of a task: state, parts of the forecast, other arrays."""

    parts: tuple[str, ...]
    """Parts of the forecast."""
    others: Mapping[str, int]
    """Covariates and further arrays, with the number of their axes after those of the forecasts."""
    state: Mapping[str, int]
    """Arrays of the state, with the number of their axes after those of the locations."""
    n_axes: int
    """Axes of the forecasts that share a fit."""


class TaskArguments(NamedTuple):
    """The arrays that a :class:`PredictTask` is called with."""

    values: list[xr.DataArray]
    core: list[tuple[Hashable, ...]]
    """Dimensions of each that are not looped over."""
    layout: Layout


class PredictTask:
    """New forecasts and state of a chunk of locations in, arrays of a product out.

    Arguments of the call are the state arrays, with the number of their last axes that are not
    locations, the parts of the forecasts (..., T, p), and further arrays (..., T), with the number
    of their axes after T, in the order of the names given here; parts broadcast against each other.
    Covariates are those further arrays whose name begins so, the reduction gets the rest. There may
    be any number of axes T, ``n_axes``, all of whose forecasts share a fit; without one there is
    one forecast a location.
    """

    def __init__(self, fitted: FittedVariable, reduction: Reduction, layout: Layout) -> None:
        self.method, self.axis, self.periods = fitted.method, fitted.axis, fitted.covariates
        self.reduction = reduction
        self.parts, self.others, self.state, self.n_axes = layout

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return self.method.on_device and takes_device_arrays(self.reduction)

    @property
    def description(self) -> str:
        """Name of the product, for messages."""
        return f", {name_of(self.reduction)} after {type(self.method).__name__},"

    def __call__(self, *args: FloatArray) -> FloatArray | tuple[FloatArray, ...]:
        """Run the task on one chunk."""
        fitted, args = args[: len(self.state)], args[len(self.state) :]
        given, rest = args[: len(self.parts)], args[len(self.parts) :]
        lead = np.broadcast_shapes(
            *(part.shape[:-1] for part in given),
            *(a.shape[: a.ndim - n] for a, n in zip(rest, self.others.values(), strict=True)),
        )
        locations = lead[: len(lead) - self.n_axes]
        n_new = math.prod(lead[len(locations) :])
        n_locations = math.prod(locations)
        shape = n_locations, n_new
        new = {
            name: np.broadcast_to(a, (*lead, a.shape[-1])).reshape(*shape, a.shape[-1])
            for name, a in zip(self.parts, given, strict=True)
        }
        others = {
            name: spread(a, n_core, lead, shape)
            for (name, n_core), a in zip(self.others.items(), rest, strict=True)
        }
        state = {}
        for (name, n_core), a in zip(self.state.items(), fitted, strict=True):
            lead_of_state, core = a.shape[: a.ndim - n_core], a.shape[a.ndim - n_core :]
            if lead_of_state:  # xarray has put an axis of length one for each T
                a = a.reshape((*lead_of_state[: len(lead_of_state) - self.n_axes], *core))
            state[name] = np.broadcast_to(a, (*locations, *core)).reshape(n_locations, *core)
        return self.gather(self._in_blocks(new, state, others), locations, lead[len(locations) :])

    def gather(
        self, blocks: Iterator[list[FloatArray]], locations: tuple[int, ...], axes: tuple[int, ...]
    ) -> FloatArray | tuple[FloatArray, ...]:
        """Results (*locations, *axes, ...) from products (l, T, ...) of blocks of locations."""
        products = (np.concatenate(product) for product in zip(*blocks, strict=True))
        results = tuple(p.reshape((*locations, *axes, *p.shape[2:])) for p in products)
        return results if len(results) > 1 else results[0]

    def _in_blocks(
        self,
        new: dict[str, FloatArray],
        state: dict[str, FloatArray],
        others: dict[str, FloatArray],
    ) -> Iterator[list[FloatArray]]:
        """Products (l, T, ...) of blocks of locations whose weights fit the workspace.

        Many forecasts at one location are cut too, into larger blocks, as each fits anew.
        """
        from xrecal.arrays.rows import WORKSPACE, location_blocks

        first = next(iter(new.values()))
        n_locations, n_new = first.shape[:2]
        n_slots = self.method.slots(state["observations"].shape[-1])[0].size
        row = 8 * n_slots * (1 if self.method.shares_members else 2)
        step = max(1, 4 * WORKSPACE // max(row, 1))
        for block in location_blocks(n_locations, row * min(n_new, step)):
            pieces = []
            for start in range(0, n_new, step):
                at = block, slice(start, start + step)
                forecasts = {name: a[at] for name, a in new.items()}
                extra = {name: a[at] for name, a in others.items()}
                here = {name: a[block] for name, a in state.items()}
                products = self.products(
                    *self._given(forecasts, here, extra),
                    here,
                    *(a for name, a in extra.items() if not name.startswith(COVARIATE)),
                )
                pieces.append([p.astype(first.dtype, copy=False) for p in products])
            yield [np.concatenate(piece, axis=1) for piece in zip(*pieces, strict=True)]

    def products(
        self, new: NewCases, cases: Cases, state: Mapping[str, FloatArray], *others: FloatArray
    ) -> tuple[FloatArray, ...]:
        """What is made of forecasts of a block of locations: a reduction of distributions."""
        return self.reduction(self.method.predict_locations(new, cases, state), *others)

    def _given(
        self,
        new: dict[str, FloatArray],
        state: dict[str, FloatArray],
        others: dict[str, FloatArray],
    ) -> tuple[NewCases, Cases]:
        """Forecasts, and the cases that they are compared with."""
        values = [others[COVARIATE + name] for name in self.periods]
        forecasts = forecasts_of(without_unseen(new, state))
        covariates = covariates_of(values, self.periods, forecasts.loc[..., 0])
        kept = {name: period for name, period in self.periods.items() if COVARIATE + name in state}
        return NewCases(forecasts, covariates), cases_of_state(state, kept, self.axis)


@on_device
def as_it_is(values: FloatArray) -> tuple[FloatArray, ...]:
    """Values (L, T) that need no reduction."""
    return (values,)


class NoveltyTask(PredictTask):
    """As :class:`PredictTask`, of the novelty of forecasts in place of distributions."""

    def products(
        self, new: NewCases, cases: Cases, state: Mapping[str, FloatArray], *others: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Novelty (L, T)."""
        return self.reduction(self.method.novelty_locations(new, cases, state))


class TaskWithNovelty(PredictTask):
    """As :class:`PredictTask`, with the novelty of forecasts beside the products."""

    def products(
        self, new: NewCases, cases: Cases, state: Mapping[str, FloatArray], *others: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Products of distributions, and novelty (L, T)."""
        distributions, novelty = self.method.predict_with_novelty(new, cases, state)
        return *self.reduction(distributions, *others), novelty
