"""Fitted state: the arrays that a fit takes and returns, and descriptions of these arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from xrecal.arrays.status import MEANINGS
from xrecal.chunks.blockwise import require_one_chunk, require_one_side, work_on
from xrecal.chunks.progress import stage
from xrecal.chunks.run import OF_PLACE, Inputs, Named, arrays_of, run
from xrecal.chunks.tree import inputs_after
from xrecal.inputs.covariates import period_of
from xrecal.inputs.dates import CaseAxis, case_axis
from xrecal.inputs.forms import VECTOR, task_parts
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.pool import Pool
from xrecal.methods import Method, SharedCKME
from xrecal.methods.base import Parameter, SharedFits
from xrecal.methods.shared_ckme import OWN

from .cases import COVARIATE, OBSERVATIONS, cases_of, kept_parts, parameters_of, parts_to_keep
from .common_regrets import NOTHING, as_objects, nothing_in_common, with_common_regrets
from .fitted import CASE, CASE_MEMBER
from .kinds import TOGETHER, Choose, KindTask, Together, places_together
from .named_members import NamedMembers
from .pooling import DATE, PooledTask, across, pooled_covariate, position_coordinates
from .together import ChooseTask, Chosen, axes_of, choices_of, fit_with

if TYPE_CHECKING:
    from xrecal.arrays.online.common import Timeline

NEW_MEMBER = "xrecal_new_member"
"""Dimension of forecast members in a task; members of cases and results have other dimensions."""


class Prepared(NamedTuple):
    """Cases of a variable and their method, before any values are read."""

    pairs: Pairs
    """Forecasts with their observations, in order of time."""
    method: Method
    """Method with the settings that these cases use."""
    axis: CaseAxis
    covariates: Mapping[str, xr.DataArray]
    note: str | None = None
    """Remark on the method and the pooling."""
    shared: SharedCKME | None = None
    """Method of a shared fit, if there are many pooled cases."""
    of_all: Prepared | None = None
    """Cases of all places together, if pools at all places share a component."""
    members: NamedMembers | None = None
    """Weights and offsets of the models, if members are named models."""

    @property
    def periods(self) -> dict[str, float | None]:
        """Period of each covariate by name; None if it is not circular."""
        return {name: period_of(value) for name, value in self.covariates.items()}


def fit_state(
    prepared: Prepared,
    min_samples: int,
    shared: tuple[xr.DataArray, ...] = (),
    choose: Choose = TOGETHER,
) -> list[xr.Dataset]:
    """Return the lazy or computed state of each variable; a task fits each chunk of locations.

    States of variables in a joint fit differ only in their observations. If places share a
    component, ``shared`` has the fields of :class:`xrecal.methods.base.SharedFits` over locations.
    """
    pairs, method, periods = prepared.pairs, prepared.method, prepared.periods
    pool, dim = pairs.pool, pairs.dim
    cases = arrays_of_cases(pairs, prepared.covariates)
    parts, observed = cases["forecasts"], cases["observed"]
    every = parameters_of(method, periods)
    parameters = {name: p for name, p in every.items() if not p.of_all_places}
    out, members = _outputs(prepared, cases, parameters)
    fit = FitTask(method, prepared.axis, periods, min_samples, "scale" in parts)
    given: dict[str, Any] = {**_with_core(cases, pool), "shared": shared_group(shared)}
    what = work_on("the fit", pairs.form.name)
    require_one_side(fit, arrays_of(given)[0], what)
    steps = 1 + works_on_all_first(method, pairs, choose)
    with stage(0, steps):
        chosen = choices_of_all(prepared, given, min_samples, choose)
        given = {**inputs_after(given, chosen.known), OF_PLACE: chosen.choices}
        places = [d for d in pairs.form.dims if pool is None and d != dim]
        given, found = with_common_regrets(fit, given, pairs.form, places)
        common = found or nothing_in_common(fit)
    with stage(steps - 1, steps):
        results = run(
            fit if pool is None else PooledTask(fit, pool),
            given,
            out,
            what=what,
            windows=None if pool is None else pool.windows,
        )
    for name, value in cases["covariates"].items():
        kept = value if pool is None else pooled_covariate(value, pool)
        results[COVARIATE + name] = kept.assign_attrs(value.attrs)
    # Coordinates of forecasts may have any name, so they stay with the results only.
    taken = [*results, OBSERVATIONS, *members, *(d for p in parameters.values() for d in p.dims)]
    bare = {name: v.drop_vars(taken, errors="ignore") for name, v in results.items()}
    states = []
    for number in observed:
        names = {n: n for n in bare if n not in observed} | {number: OBSERVATIONS}
        state = xr.Dataset({names[n]: v for n, v in bare.items() if n in names})
        # Last, as the first array of a state has all locations.
        states.append(_with_labels(state, pairs, parameters).assign(common))
    return states


def shared_group(
    shared: Sequence[xr.DataArray],
) -> dict[str, tuple[xr.DataArray, tuple[Hashable, ...]]]:
    """Return the fields of :class:`SharedFits` over locations, with their core dimensions.

    The result is empty without a shared component.
    """
    cores: tuple[tuple[Hashable, ...], ...] = (), (), (OWN + "place_feature",)
    named = zip(SharedFits._fields, shared, cores, strict=False)
    return {name: (array, core) for name, array, core in named}


def _outputs(
    prepared: Prepared, cases: Groups, parameters: Mapping[str, Parameter]
) -> tuple[dict[Any, tuple[dict[Hashable, int], Any]], dict[Hashable, int]]:
    """Return dimensions and types of the arrays of a fit, and dimensions of stored members."""
    pairs, pool, parts = prepared.pairs, prepared.pairs.pool, cases["forecasts"]
    n_cases = pairs.observations.sizes[pairs.dim] * (1 if pool is None else len(pool.taken))
    own: dict[Hashable, int] = {}
    if pool is not None and pool.windows:
        own = dict(zip(pool.dims, pool.sizes, strict=True))
    case: dict[Hashable, int] = {**own, CASE: n_cases}
    members = {**case, CASE_MEMBER: next(iter(parts.values())).sizes[CASE_MEMBER]}
    stored = kept_parts(parts) if prepared.method.keeps_cases else {}
    out: dict[Any, tuple[dict[Hashable, int], Any]] = {
        **{name: (members, dtype) for name, dtype in stored.items()},
        **{number: (case, value.dtype) for number, value in cases["observed"].items()},
        "n_cases": (own, np.int32),
        "status": (own, np.int16),
    }
    for name, p in parameters.items():
        sizes = p.sizes(n_cases).items()
        inside: dict[Hashable, int] = {d: n_cases if d == CASE else n for d, n in sizes}
        out[name] = own | inside, p.dtype
    return out, members


def choosing_together(method: Method, pairs: Pairs, choose: Choose) -> Together | None:
    """Return places that choose together; None if places choose alone or have nothing to choose."""
    if not method.choice_sizes:
        return None
    whole = () if pairs.pool is None else pairs.pool.forecast_dims
    places = [d for d in pairs.form.dims if d not in (pairs.dim, *whole)]
    return places_together(pairs.form, places, choose)


def works_on_all_first(method: Method, pairs: Pairs, choose: Choose) -> bool:
    """Return whether joint choices or common regrets of all places are computed before the fits."""
    return bool(method.in_common) or choosing_together(method, pairs, choose) is not None


def choices_of_all(prepared: Prepared, given: Inputs, min_samples: int, choose: Choose) -> Chosen:
    """Return the joint choices at each place, for :class:`FitTask`.

    ``given`` are arrays of cases from :func:`given_cases`.
    """
    method, pool, pairs = prepared.method, prepared.pairs.pool, prepared.pairs
    together = choosing_together(method, pairs, choose)
    if together is None:
        return Chosen({})
    own = {} if pool is None or not pool.windows else dict(zip(pool.dims, pool.sizes, strict=True))
    described = method, prepared.axis, prepared.periods

    def on_places(
        task: Any, arrays: Inputs, out: Mapping[str, tuple[int, ...]]
    ) -> dict[Any, xr.DataArray]:
        """Run a task on places; each result has the dimensions of places, then axes of its own."""
        return run(
            task if pool is None else PooledTask(task, pool),
            arrays,
            {name: (own | axes_of(name, size), np.float64) for name, size in out.items()},
            what=work_on("the choice of settings", pairs.form.name),
            windows=None if pool is None else pool.windows,
        )

    search = ChooseTask(*described, min_samples)
    of_line = method.variables is None
    facts = on_places(KindTask(*described, of_line), given, dict.fromkeys(KindTask.facts, ()))

    def searched(sample: xr.DataArray, known: Sequence[Any]) -> dict[Any, xr.DataArray]:
        arrays = {**inputs_after(given, known), OF_PLACE: {"sample": (sample, [*own])}}
        return on_places(search, arrays, search.sizes)

    return choices_of(together, method, facts, min_samples, searched, [*own])


def require_whole_cases(pairs: Pairs, positions: tuple[Hashable, ...] = ()) -> None:
    """Raise ValueError if cases, members or pooled positions are in several Dask chunks."""
    for part in pairs.form.parts.values():
        require_one_chunk(part, (pairs.dim, pairs.form.member_dim, *positions), name="hindcast")
    require_one_chunk(pairs.observations, (pairs.dim, *positions), name="observations")


def axis_of(pairs: Pairs) -> CaseAxis:
    """Return the dates of the cases, from coordinates of forecasts or labels of observations."""
    assert pairs.dim is not None
    along = {
        name: coordinate
        for part in pairs.form.parts.values()
        for name, coordinate in part.coords.items()
        if coordinate.dims == (pairs.dim,)
    }
    return case_axis(pairs.observations.assign_coords(along), pairs.dim)


Groups: TypeAlias = dict[str, dict[Any, xr.DataArray]]
"""Arrays of cases in groups: forecasts by part, observed values by number of the variable, and
covariates by name."""


def arrays_of_cases(
    pairs: Pairs,
    covariates: Mapping[str, xr.DataArray],
    dims: tuple[str, str] = (CASE, CASE_MEMBER),
) -> Groups:
    """Return arrays of cases over the locations and ``dims``, the dimensions of cases and members.

    For pooled cases, dates have the dimension ``DATE``. Observations of the variable itself come
    before those of the variables recalibrated jointly with it.
    """
    form, dim, pool = pairs.form, pairs.dim, pairs.pool
    case = dims[0] if pool is None else DATE
    pooled = () if pool is None else pool.dims
    locations = [d for d in form.dims if d != dim]

    def of_cases(value: xr.DataArray) -> xr.DataArray:
        bare = value.drop_vars(list(value.coords)).rename({dim: case})
        return bare.transpose(*[d for d in locations if d in bare.dims], case)

    observed = (pairs.observations, *pairs.partners)
    return {
        "forecasts": task_parts(
            form,
            [d for d in locations if d not in pooled],
            {**{d: d for d in pooled}, dim: case, form.member_dim: dims[1]},
        ),
        "observed": {number: of_cases(value) for number, value in enumerate(observed)},
        "covariates": {name: of_cases(value) for name, value in covariates.items()},
    }


def given_cases(prepared: Prepared) -> Inputs:
    """Return arrays of cases with their core dimensions, for :class:`FitTask`.

    Pooled cases have the pooled dimensions and ``DATE`` as core dimensions;
    :class:`xrecal.fit.pooling.PooledTask` joins these dimensions to one dimension of cases.
    """
    return _with_core(arrays_of_cases(prepared.pairs, prepared.covariates), prepared.pairs.pool)


def _with_core(cases: Groups, pool: Pool | None) -> Inputs:
    core: tuple[Hashable, ...] = (CASE,) if pool is None else (*pool.dims, DATE)
    return {
        group: {
            name: (value, (*core, CASE_MEMBER))
            if group == "forecasts"
            else (value if pool is None else across(value, pool), core)
            for name, value in of.items()
        }
        for group, of in cases.items()
    }


def _with_labels(
    state: xr.Dataset, pairs: Pairs, parameters: Mapping[str, Parameter]
) -> xr.Dataset:
    """Add coordinates to a state: labels of parameters, and labels and positions of cases."""
    form, dim, pool = pairs.form, pairs.dim, pairs.pool
    labels = {d: list(p.labels) for p in parameters.values() for d in p.dims if p.labels}
    state = state.assign_coords(labels)
    dated = [part[dim] for part in form.parts.values() if dim in part.indexes]
    if dated:
        index = dated[0].to_index()
        index = index if pool is None else index.repeat(len(pool.taken))
        state = state.assign_coords({f"calibration_{dim}": (CASE, index, dated[0].attrs)})
    if pool is not None:
        n_dates = pairs.observations.sizes[dim]
        state = state.assign_coords(position_coordinates(form, pool, n_dates))
    return state


def describe_state(
    state: xr.Dataset, method: Method, attrs: Mapping[str, Any], periods: Mapping[str, float | None]
) -> xr.Dataset:
    """Add attributes to a state, which explain its arrays to readers without the model."""
    units = {"units": attrs["units"]} if "units" in attrs else {}
    described: dict[str, dict[str, Any]] = {
        "loc": {"long_name": "calibration forecasts", **units},
        "scale": {"long_name": "scale of the calibration forecasts", **units},
        "weights": {"long_name": "weights of the members of the calibration forecasts"},
        "observations": {"long_name": "observations of the cases used", **units},
        "n_cases": {"long_name": "number of cases used"},
        "status": {
            "long_name": "status of the fit",
            "flag_masks": np.array(list(MEANINGS), dtype=np.int16),
            "flag_meanings": " ".join(MEANINGS.values()),
        },
    }
    names = () if method.variables is None else method.variables.names
    for place, name in enumerate(names):
        described[f"{VECTOR}{place}"] = {"long_name": f"calibration forecasts of {name}"}
    for name, parameter in parameters_of(method, periods).items():
        described[name] = {"long_name": parameter.long_name}
        if parameter.in_units_of_variable:
            described[name] |= units
        if parameter.flags:
            described[name] |= {
                "flag_values": np.arange(len(parameter.flags), dtype=np.int8),
                "flag_meanings": " ".join(parameter.flags),
            }
        if parameter.description:
            described[name]["description"] = parameter.description
    for variable in state.data_vars:
        if str(variable) in described:
            state[variable].attrs = described[str(variable)]
    return state


@dataclass(frozen=True)
class FitTask:
    """Task that takes the cases of a chunk of locations and returns arrays of the state."""

    method: Method
    axis: CaseAxis
    periods: Mapping[str, float | None]
    min_samples: int
    normal: bool = False
    """True if forecasts are normal distributions."""
    by_place: ClassVar[bool] = True

    @property
    def on_device(self) -> bool:
        """True if the task accepts CuPy arrays."""
        return self.method.on_device and not self.normal

    @property
    def description(self) -> str:
        """The method and the form of the forecasts, for messages."""
        normal = " to normal distributions" if self.normal else ""
        return f" by {type(self.method).__name__}{normal}"

    def __call__(
        self,
        forecasts: Named,
        observed: Named,
        covariates: Named,
        shared: Named,
        of_place: Named = NOTHING,
        common: Named = NOTHING,
    ) -> dict[str, Any]:
        """Run the task on one chunk."""
        cases, flags = cases_of(forecasts, observed, covariates, self.axis, self.periods)
        if shared:
            cases = replace(cases, shared=SharedFits(**shared))
        if common:
            cases = replace(cases, common=common[0][0][0])
        fitted = fit_with(self.method, cases, self.min_samples, of_place)
        fitted["status"] = fitted["status"] | flags
        kept = parts_to_keep(forecasts, cases) if self.method.keeps_cases else {}
        usable = zip(observed, (cases.observations, *cases.partners), strict=True)
        return {**fitted, **kept, **dict(usable)}

    def record(self, **given: Named) -> Sequence[Timeline | None]:
        """Do a first pass over these places; return their common regrets."""
        from xrecal.arrays.online.common import Record, timelines

        records = [Record(with_known=False)]
        common = {0: as_objects([records])}
        return timelines(records, [True], lambda: self(**given, common=common))
