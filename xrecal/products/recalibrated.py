"""Distributions of forecasts from a model; the task of each chunk reduces them to a product."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.chunks.blockwise import work_on
from xrecal.chunks.run import EACH, Inputs, Named, run, with_core_last
from xrecal.fit.cases import (
    covariates_of,
    forecasts_of,
    in_blocks,
    kept_of,
    without_unseen,
)
from xrecal.fit.common_regrets import RANK, ranks_of_places
from xrecal.fit.fitted import CASE, Fitted, FittedVariable, dtype_of_members
from xrecal.fit.replaced import status_of_forecasts, warn_of_replaced
from xrecal.fit.select_fits import (
    as_given,
    match_variables,
    matching_covariates,
    shared_dims,
    with_missing,
)
from xrecal.fit.shared_places import places_of_forecast
from xrecal.fit.state import NEW_MEMBER
from xrecal.inputs.covariates import Given, issued_together
from xrecal.inputs.forms import Form, Labelled, numbers_of, of_cases, task_parts
from xrecal.inputs.metadata import describing, joined
from xrecal.inputs.pairing import paired_by_position
from xrecal.methods.base import Cases, NewCases
from xrecal.typing import FloatArray

from .reductions import Reduction, name_of, require_on_circle, takes_device_arrays
from .source import Sources

Missing: TypeAlias = Literal["refuse", "without"]
"""Treatment of forecasts that lack a covariate of the model."""

SLOT = "xrecal_slot"
"""Dimension of the members of results in a task, the computation for one chunk. Members of
forecasts have another dimension."""

OF_PLACES, PREDICTOR = "xrecal_in_common", "xrecal_predictor"
"""Name and dimension of the predictors of errors that places have in common, in a task."""

BESIDE = {
    "novelty": {
        "long_name": "novelty of the forecast: 0 like past ones, 1 unlike all",
        "units": "1",
        "role": "novelty",
    },
    "beyond": {
        "long_name": "probability of values outside the observed range by more than its width",
        "units": "1",
        "role": "beyond",
    },
}
"""Attributes of the novelty of forecasts, and of the probability of values far beyond the
record."""


@dataclass(frozen=True)
class Recalibrated:
    """Recalibrated distributions of the forecasts of one variable."""

    form: Form
    fitted: FittedVariable
    covariates: Given = None
    forecast: Labelled | None = None
    """Forecast as given by the user."""
    beside: dict[str, xr.DataArray] | None = None
    """Dictionary to which ``reduce`` adds the novelty and the mass of values far beyond the record.
    None if ``reduce`` must not compute them."""

    @property
    def dim(self) -> Hashable:
        """Dimension of the cases."""
        return self.fitted.dim

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the forecast, with the units of the training observations."""
        learned = {k: v for k, v in self.fitted.attrs.items() if k != "history"}
        units = {k: v for k, v in learned.items() if k == "units"}
        own = of_cases(self.form, self.dim)
        return describing({**learned, **self.form.loc.attrs, **units, **own})

    @property
    def threshold_dtype(self) -> npt.DTypeLike:
        """Floating type of the members; thresholds get this type before a comparison."""
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

        The dimension of the cases and the pooled dimensions come after the dimensions of the fits.
        So a task gets the state of each fit once, with all forecasts of this fit.
        """
        if self.period is not None:
            require_on_circle(reduction, self.period, self.form.name)
        method = self.fitted.method
        known: list[str] = []
        if self.beside is not None:
            known += ["beyond"] * (method.output == "weighted" and not method.shares_members)
            known += ["novelty"] * method.knows_novelty
        if "beyond" in known:
            extras = [*extras, *record_of(self.fitted.observed)]
        task = PredictTask(self.fitted, reduction, known)
        given = with_predictors_in_common(self, self.task_arguments(extras))
        results = self._run(task, given, (*out, *({} for _ in known)))
        if self.beside is not None:
            found = zip(known, results[len(out) :], strict=True)
            self.beside.update({name: value.assign_attrs(BESIDE[name]) for name, value in found})
        return results[: len(out)]

    def known_beside(self, name: Hashable) -> dict[Hashable, xr.DataArray]:
        """Novelty and mass of values far beyond the record, by name, as ``reduce`` computed them.

        The result also has the status of the covariates that a median may replace.
        """
        found = dict(self.beside or {})
        covariates = matching_covariates(self.form, self.fitted, self.covariates)
        status = status_of_forecasts(covariates, self.fitted, self.each)
        if status is not None:
            member = {self.form.member_dim: 0}
            whole = self.form.broadcast().loc.isel(member, drop=True, missing_dims="ignore")
            order = self.form.order(())
            sizes = {d: whole.sizes[d] for d in order}
            variable = status.variable.set_dims(sizes)  # type: ignore[no-untyped-call]
            found["status"] = xr.DataArray(variable.transpose(*order), whole.coords)
        return {f"{name}_{what}": found[what] for what in (*BESIDE, "status") if what in found}

    def novelty(self) -> xr.DataArray:
        """Novelty of each forecast."""
        task = PredictTask(self.fitted, None, ["novelty"])
        (novelty,) = self._run(task, self.task_arguments(), ({},))
        return novelty.assign_attrs(BESIDE["novelty"])

    def _run(
        self,
        task: PredictTask,
        given: Inputs,
        out: Sequence[Mapping[Hashable, int]],
    ) -> tuple[xr.DataArray, ...]:
        """Run a task on each chunk."""
        dtype = self.form.loc.dtype
        results = run(
            task,
            given,
            {i: ({EACH: 0, **new}, dtype) for i, new in enumerate(out)},
            what=work_on("the recalibration", self.form.name),
            each=self.each,
        )
        return tuple(map(self._in_user_order, results.values()))

    def numbers(self) -> list[xr.DataArray]:
        """Indices of the case and of the location; see :func:`.source.numbers_of`."""
        return numbers_of(self.form, self.fitted.dim, self.fitted.selected)

    def as_given(self, result: xr.DataArray) -> xr.DataArray:
        """Result, without the dimension of leads or places if the forecast has a single one."""
        assert self.forecast is not None
        return as_given(result, self.fitted, self.forecast)

    @property
    def each(self) -> list[Hashable]:
        """Dimensions along which forecasts share a fit: cases and pooled positions."""
        return [d for d in shared_dims(self.fitted) if d in self.form.dims]

    def task_arguments(self, extras: Sequence[xr.DataArray] = ()) -> Inputs:
        """State, forecasts, covariates and extras for a :class:`PredictTask`."""
        form, fitted = self.form, self.fitted
        loops = [*fitted.locations, *self.each]
        new = task_parts(form, loops, {form.member_dim: NEW_MEMBER})
        covariates = matching_covariates(form, fitted, self.covariates)
        warn_of_replaced(covariates, fitted, self.each)
        if fitted.method.by_sums:
            covariates |= places_of_forecast(form, fitted)
        of_updates = [name for name, p in fitted.parameters.items() if p.for_updates]
        state = {name: a for name, a in fitted.arrays.items() if name not in of_updates}
        return {
            # The state first, as it has all locations; names of its arrays are for messages.
            "state": {
                name: (
                    xr.DataArray(array, name=name),
                    [d for d in array.dims if d not in fitted.locations],
                )
                for name, array in state.items()
            },
            "forecasts": {name: (part, (EACH, NEW_MEMBER)) for name, part in new.items()},
            "covariates": {n: with_core_last(v, loops) for n, v in covariates.items()},
            "extras": {i: with_core_last(extra, loops) for i, extra in enumerate(extras)},
        }

    def _in_user_order(self, result: xr.DataArray) -> xr.DataArray:
        """Put the dimensions of the result in the order of the forecast, and add coordinates.

        The new dimension of the result takes the place of the members.
        """
        new = [d for d in result.dims if d not in self.form.dims]
        if new in ([CASE], [SLOT]):
            member = self.form.member_dim_of_results
            result = result.rename({new[0]: member})
            result = result.assign_coords(_slot_coordinates(self.fitted, member))
            new = [member]
        return result.transpose(*self.form.order(tuple(new)))


def recalibrated(
    model: Fitted,
    forecast: Labelled,
    covariates: Given,
    missing_covariates: Missing = "refuse",
    *,
    beside: bool = False,
) -> Sources[Recalibrated]:
    """Distributions of every variable of a forecast, from a model.

    If ``beside`` is true, reductions of the distributions also compute the novelty, and the mass of
    values far beyond the record.

    Raises
    ------
    ValueError
        If a forecast lacks a covariate, unless ``missing_covariates`` is "without".
    """
    matched = match_variables(model, forecast)
    variables = {}
    for name, pair in matched.items():
        given = given_or_missing(covariates, *pair, missing_covariates)
        variables[name] = Recalibrated(*pair, given, forecast, {} if beside else None)
    by_position = (
        paired_by_position(form.loc, fitted.state, fitted.locations)
        for form, fitted in matched.values()
    )
    return Sources(forecast, variables, model.method, joined(*by_position))


def given_or_missing(
    covariates: Given, form: Form, fitted: FittedVariable, missing_covariates: Missing
) -> Given:
    """Covariates of a forecast; with "without", absent covariates become missing values."""
    if missing_covariates not in get_args(Missing):
        raise ValueError(
            f"missing_covariates must be 'refuse' or 'without', got {missing_covariates!r}"
        )
    return covariates if missing_covariates == "refuse" else with_missing(covariates, form, fitted)


def _slot_coordinates(fitted: FittedVariable, member: Hashable) -> dict[str, xr.Variable]:
    """Coordinates with the past case, the pooled position and the component of each member."""
    coordinates: dict[str, xr.Variable] = {}
    if fitted.method.by_sums:  # no member belongs to a past case
        return coordinates
    cases, components = fitted.method.slots(fitted.state.sizes[CASE])
    for name, labels in fitted.state.coords.items():
        if labels.dims == (CASE,):
            values = taken_labels(labels.to_index().to_numpy(), cases)
            coordinates[str(name)] = xr.Variable((member,), values, labels.attrs)
    if components is not None:
        about = {"long_name": "component that the member comes from"}
        coordinates["component"] = xr.Variable((member,), np.asarray(components), about)
    return coordinates


def taken_labels(labels: Any, cases: Any) -> Any:
    """Label of the case of each member; missing for members that do not come from one case."""
    values = labels[cases]
    if (cases < 0).any():
        dates = values.dtype.kind in "mM"
        values = values.astype(float if values.dtype.kind in "iub" else values.dtype)
        values[cases < 0] = np.array("NaT", values.dtype) if dates else np.nan
    return values


class PredictTask:
    """Task that computes a product from the state of a model and new forecasts, at some locations.

    There are L locations, T forecasts that share a fit at each location, and p members. Arrays of
    the state have the shape (L, ...), forecasts (L, T, p), and covariates (L, T). Extras, which are
    further arguments of the reduction, have the shape (L, T, ...). ``beside`` adds the mass of
    values far beyond the record and the novelty to the results. For this mass, the last two extras
    are the lowest and the highest observation.
    """

    by_place: ClassVar[bool] = True

    def __init__(
        self, fitted: FittedVariable, reduction: Reduction | None, beside: Sequence[str] = ()
    ) -> None:
        self.method, self.axis, self.periods = fitted.method, fitted.axis, fitted.covariates
        self.reduction, self.beside = reduction, beside

    @property
    def on_device(self) -> bool:
        """True if the reduction accepts CuPy arrays."""
        alone = self.reduction is None or takes_device_arrays(self.reduction)
        return self.method.on_device and alone

    @property
    def description(self) -> str:
        """Name of the product, for messages."""
        name = "novelty" if self.reduction is None else name_of(self.reduction)
        return f", {name} after {type(self.method).__name__},"

    def __call__(self, **given: Named) -> Named:
        """Run the task on one chunk."""
        products = (np.concatenate(product) for product in zip(*self.blocks(**given), strict=True))
        return dict(enumerate(products))

    def blocks(
        self, state: Named, forecasts: Named, covariates: Named, extras: Named
    ) -> Iterator[list[FloatArray]]:
        """Products (l, T, ...) of each block of l locations; see :func:`in_blocks`."""
        first = next(iter(forecasts.values()))

        def products(block: slice, piece: slice) -> list[FloatArray]:
            new, known, others = (
                {name: a[block, piece] for name, a in group.items()}
                for group in (forecasts, covariates, extras)
            )
            here = {name: a[block] for name, a in state.items()}
            made = self._products(*self._given(new, here, known), here, *others.values())
            return [product.astype(first.dtype, copy=False) for product in made]

        return in_blocks(products, self.method, state["observations"].shape[-1], first.shape[:2])

    def _products(
        self, new: NewCases, cases: Cases, state: Mapping[str, FloatArray], *others: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Products of the forecasts of a block of locations, which a reduction computes."""
        if self.reduction is None:
            return (self.method.novelty_locations(new, cases, state),)
        distribution: Distribution
        novelty: list[FloatArray] = []
        if "novelty" in self.beside:
            distribution, *novelty = self.method.predict_with_novelty(new, cases, state)
        else:
            distribution = self.method.predict_locations(new, cases, state)
        if "beyond" not in self.beside:
            return (*self.reduction(distribution, *others), *novelty)
        *own, low, high = others
        beyond = mass_beyond(distribution, low, high)
        return (*self.reduction(distribution, *own), beyond, *novelty)

    def _given(
        self, new: Named, state: Mapping[str, FloatArray], covariates: Named
    ) -> tuple[NewCases, Cases]:
        """New forecasts, and the past cases to compare them with."""
        forecasts = forecasts_of(without_unseen(new, state))
        values = [covariates[name] for name in self.periods]
        known = covariates_of(values, self.periods, forecasts.loc[..., 0])
        kept = kept_of(state)
        periods = {name: p for name, p in self.periods.items() if name in kept.covariates}
        new_cases = NewCases(forecasts, known, in_common=covariates.get(OF_PLACES))
        return new_cases, kept.cases(periods, self.axis)


class StandardiseTask(PredictTask):
    """Task that standardises the predictors of errors (L, T, 3) of new forecasts.

    Results are NaN outside a sample of places, which ``rank`` (L,) marks by numbers from 0.
    """

    def __init__(self, fitted: FittedVariable) -> None:
        super().__init__(fitted, None)

    def __call__(self, **given: Named) -> Named:
        """Run the task on one chunk."""
        from xrecal.arrays.online.corrections import N_OWN

        (rank,) = given.pop(RANK).values()
        first = next(iter(given["forecasts"].values()))
        found, at = np.full((*first.shape[:2], N_OWN), np.nan), np.flatnonzero(rank >= 0)
        if at.size:
            state, new, known = (
                {name: a[at] for name, a in given[group].items()}
                for group in ("state", "forecasts", "covariates")
            )
            found[at] = self.method.predictors_of_new(*self._given(new, state, known))
        return {0: found}


def with_predictors_in_common(source: Recalibrated, given: Inputs) -> Inputs:
    """Add the predictors of errors that places have in common to the inputs of a task.

    These are means over a sample of the places of the forecast. The inputs stay as they are if the
    method does not use such means, if there is a single place, if fits pool places or leads, or if
    labels are valid times and leads differ, so that equal labels are not issued together.
    """
    from xrecal.arrays.online.corrections import N_OWN
    from xrecal.arrays.online.in_common import FINEST

    fitted, form = source.fitted, source.form
    shape = [fitted.state.sizes[d] for d in fitted.locations]
    alone = not fitted.method.in_common or math.prod(shape) < 2 or len(shared_dims(fitted)) > 1
    if alone or not issued_together(form, fitted.dim):
        return given
    ranks = ranks_of_places(given, form, fitted.locations, shape)
    parts = {group: given[group] for group in ("state", "forecasts", "covariates")}
    found = run(
        StandardiseTask(fitted),
        {**parts, RANK: {0: (ranks, ())}},
        {0: ({EACH: 0, PREDICTOR: N_OWN}, np.float64)},
        what=work_on("the first pass over places", form.name),
        each=source.each,
    )[0]
    count = found.notnull().sum(fitted.locations)
    total = (found.fillna(0.0) / FINEST).round().astype(np.int64).sum(fitted.locations)
    means = (total / count.clip(min=1) * FINEST).where(count > 0)
    loops = [*fitted.locations, *source.each]
    covariates = {**given["covariates"], OF_PLACES: with_core_last(means, loops)}
    return {**given, "covariates": covariates}


def mass_beyond(distribution: Distribution, low: FloatArray, high: FloatArray) -> FloatArray:
    """Mass (L, T) of values farther outside the observed range than this range is wide.

    There are T forecasts at L locations. The range is from ``low`` to ``high`` (L, T). The mass is
    NaN where the range has no width.
    """
    assert isinstance(distribution, Empirical)
    members, weights = distribution
    assert weights is not None
    xp, width = namespace(members), high - low
    far = (members < (low - width)[..., None]) | (members > (high + width)[..., None])
    mass = xp.sum(xp.where(far, weights, 0.0), axis=-1, dtype=xp.float64)
    known = (width > 0) & ~xp.isnan(weights[..., 0])
    known_mass: FloatArray = xp.where(known, mass, float("nan"))
    return known_mass


def record_of(observed: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Lowest and highest observation at each location."""
    if observed.size == 0:  # has no lowest
        none = observed.isel({CASE: 0}, drop=True)
        return none, none
    low, high = observed.min(CASE), observed.max(CASE)
    return low.drop_vars(list(low.coords)), high.drop_vars(list(high.coords))
