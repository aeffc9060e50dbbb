"""Fitted state: the arrays that a fit leaves behind, lazy or computed, and what they mean.

:func:`fit_state` runs one task for each chunk of locations. The task gets plain arrays, which
:func:`cases_of` turns into the cases that methods learn from; forecasts and covariates of new
forecasts are brought together by the same functions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import as_array, namespace
from xrecal.chunks.blockwise import work_on
from xrecal.chunks.windows import run_windows
from xrecal.inputs.covariates import period_of
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR, task_parts
from xrecal.inputs.pairing import Pairs
from xrecal.methods import Method
from xrecal.methods.base import Cases, Covariates, Parameter, SharedFits
from xrecal.typing import FloatArray, IntArray

from .fitted import CASE, CASE_MEMBER, feature_count, parameters_of
from .missing import without_absurd
from .pooling import DATE, PooledTask, across, pooled_covariate, position_coordinates

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Forecasts

COVARIATE = "covariate_"
"""Prefix of covariates among the variables of the state."""

PARTNER = "partner_"
"""Prefix of observations of further variables that are recalibrated jointly."""

NEW_MEMBER = "xrecal_new_member"
"""Dimension of the members of forecasts inside a task, where cases and results have their own."""


def fit_state(
    pairs: Pairs,
    method: Method,
    axis: CaseAxis,
    covariates: Mapping[str, xr.DataArray],
    min_samples: int,
    shared: Sequence[xr.DataArray] = (),
) -> xr.Dataset:
    """Lazy or computed state: one call for each chunk of locations.

    ``shared`` are the fields of :class:`xrecal.methods.base.SharedFits` over locations, if places
    share a component.
    """
    pool = pairs.pool
    parts, others = task_arguments(pairs, covariates)
    periods = {name: period_of(value) for name, value in covariates.items()}
    every = parameters_of(method, feature_count(periods))
    parameters = {name: p for name, p in every.items() if not p.of_all_places}
    task: Any = _FitTask(method, tuple(parts), tuple(parameters), axis, periods, min_samples)
    stored = kept_parts(parts) if method.keeps_cases else {}
    observed = [name for name in others if name not in covariates]
    of_cases = {name: others[name] for name in covariates}
    n_cases = pairs.observations.sizes[pairs.dim]
    sizes: dict[Hashable, int] = {}
    cases: tuple[Hashable, ...] = (CASE,)
    windows: dict[Hashable, int] = {}
    if pool is not None:
        of_cases = {name: pooled_covariate(value, pool) for name, value in of_cases.items()}
        others = {name: across(value, pool) for name, value in others.items()}
        n_cases *= len(pool.taken)
        sizes |= dict(zip(pool.dims, pool.sizes, strict=True))
        task = PooledTask(task, pool, (2,) * len(parts) + (1,) * len(others))
        cases, windows = (*pool.dims, DATE), pool.windows
    sizes |= {CASE: n_cases, CASE_MEMBER: next(iter(parts.values())).sizes[CASE_MEMBER]}
    for parameter in parameters.values():
        sizes |= {d: size for d, size in parameter.sizes(n_cases).items() if d != CASE}
    out: dict[str, tuple[Sequence[Hashable], Any]] = {
        **{name: ((CASE, CASE_MEMBER), dtype) for name, dtype in stored.items()},
        **{name: ((CASE,), others[name].dtype) for name in observed},
        "n_cases": ((), np.int32),
        "status": ((), np.int16),
        **{
            name: (tuple(parameter.dims), parameter.dtype) for name, parameter in parameters.items()
        },
    }
    results = run_windows(
        task,
        *parts.values(),
        *others.values(),
        *shared,
        windows=windows,
        core=[(*cases, CASE_MEMBER)] * len(parts) + [cases] * len(others) + [()] * len(shared),
        out=[(*windows, *dims) for dims, _ in out.values()],
        dtypes=[dtype for _, dtype in out.values()],
        sizes=sizes,
        what=work_on("the fit", pairs.form.name),
    )
    variables = dict(zip(out, results, strict=True))
    variables |= {COVARIATE + name: of_cases[name] for name in covariates}
    # Coordinates of the forecasts may have any name; theirs stay with what is issued.
    taken = [*variables, *sizes]
    state = xr.Dataset({n: v.drop_vars(taken, errors="ignore") for n, v in variables.items()})
    return _with_labels(state, pairs, parameters)


def task_arguments(
    pairs: Pairs,
    covariates: Mapping[str, xr.DataArray],
    dims: tuple[str, str] = (CASE, CASE_MEMBER),
) -> tuple[dict[str, xr.DataArray], dict[str, xr.DataArray]]:
    """Parts of the forecasts, then observations and covariates, as tasks that fit take them.

    Over the locations, and ``dims`` for cases and members; where cases are pooled, over other
    locations, the pooled dimensions and ``DATE``, which :class:`xrecal.fit.pooling.PooledTask`
    makes cases of.
    """
    form, dim, pool = pairs.form, pairs.dim, pairs.pool
    case = dims[0] if pool is None else DATE
    pooled = () if pool is None else pool.dims
    locations = [d for d in form.dims if d != dim]
    parts = task_parts(
        form,
        [d for d in locations if d not in pooled],
        {**{d: d for d in pooled}, dim: case, form.member_dim: dims[1]},
    )
    partners = {f"{PARTNER}{k}": value for k, value in enumerate(pairs.partners)}
    others = {
        name: value.drop_vars(list(value.coords)).rename({dim: case})
        for name, value in {"observations": pairs.observations, **partners, **covariates}.items()
    }
    others = {
        name: value.transpose(*[d for d in locations if d in value.dims], case)
        for name, value in others.items()
    }
    return parts, others


def _with_labels(
    state: xr.Dataset, pairs: Pairs, parameters: Mapping[str, Parameter]
) -> xr.Dataset:
    """Labels of the dimensions of parameters, of the cases, and positions of pooled ones."""
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


class _FitTask:
    """One chunk of locations: arrays in, arrays of the state out."""

    def __init__(
        self,
        method: Method,
        parts: tuple[str, ...],
        parameters: tuple[str, ...],
        axis: CaseAxis,
        periods: Mapping[str, float | None],
        min_samples: int,
    ) -> None:
        self.method, self.parts, self.parameters = method, parts, parameters
        self.axis, self.periods, self.min_samples = axis, periods, min_samples

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return self.method.on_device and "scale" not in self.parts

    @property
    def description(self) -> str:
        """The method and the form of the forecasts, for messages."""
        normal = " to normal distributions" if "scale" in self.parts else ""
        return f" by {type(self.method).__name__}{normal}"

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        sharing = self.method.has_shared
        end = len(args) - len(SharedFits._fields) * sharing
        arrays, rest, shared = args[: len(self.parts)], args[len(self.parts) : end], args[end:]
        parts = dict(zip(self.parts, arrays, strict=True))
        lead, cases, flags = cases_of(parts, rest, self.periods, self.axis)
        if shared:
            given = (np.broadcast_to(a, lead).ravel() for a in shared)
            cases = replace(cases, shared=SharedFits(*given))
        observed, core = cases.observations, arrays[0].shape[-2:]
        fitted = dict(self.method.fit_locations(cases, self.min_samples))
        fitted["status"] = (fitted["status"] | flags).astype(np.int16)
        kept = parts_to_keep(parts, cases, lead) if self.method.keeps_cases else []
        return (
            *(a.reshape(*lead, *core) for a in kept),
            *(values.reshape(*lead, core[0]) for values in (observed, *cases.partners)),
            fitted["n_cases"].astype(np.int32).reshape(lead),
            fitted["status"].reshape(lead),
            *(
                as_array(fitted[name]).reshape((*lead, *fitted[name].shape[1:]))
                for name in self.parameters
            ),
        )


def cases_of(
    parts: Mapping[str, npt.NDArray[Any]],
    others: Sequence[npt.NDArray[Any]],
    periods: Mapping[str, float | None],
    axis: CaseAxis,
    *,
    largest: FloatArray | None = None,
    case_by_case: bool = False,
) -> tuple[tuple[int, ...], Cases, IntArray]:
    """Shape of the locations of a chunk, its cases, and bits of the status of each location.

    ``parts`` of the forecasts are (..., n, m), ``others``, observations, perhaps those of further
    variables, and covariates, (..., n). Values are missing beside the ``largest`` (L,) that a model
    has seen, or all others of the location, or those of the same case where a chunk has some only.
    """
    from xrecal.arrays.distributions.forms import usable_observations
    from xrecal.arrays.status import FILL, INVALID

    core = next(iter(parts.values())).shape[-2:]
    lead = np.broadcast_shapes(
        *(part.shape[:-2] for part in parts.values()), *(other.shape[:-1] for other in others)
    )
    members = {
        name: np.broadcast_to(part, (*lead, *core)).reshape(-1, *core)
        for name, part in parts.items()
    }
    values = [np.broadcast_to(other, (*lead, core[0])).reshape(-1, core[0]) for other in others]
    n_observed = len(values) - len(periods)
    if case_by_case:
        rows = {name: a.reshape(-1, 1, a.shape[-1]) for name, a in members.items()}
        cleaned, (found,), filled = without_absurd(rows, [values[0].reshape(-1, 1)])
        members = {name: a.reshape(-1, *core) for name, a in cleaned.items()}
        observed = found.reshape(-1, core[0])
        partners: list[FloatArray] = []
        filled = np.asarray(filled.reshape(-1, core[0]).any(-1))
    else:
        members, (observed, *partners), filled = without_absurd(
            members, values[:n_observed], largest
        )
    forecasts, values = forecasts_of(members), values[n_observed:]
    covariates = covariates_of(values, periods, observed)
    usable, invalid = usable_observations(forecasts, observed)
    usable[~np.isfinite(covariates.values).all(-1)] = np.nan
    invalid |= np.isinf(covariates.values).any((1, 2))
    for partner in partners:
        usable[~np.isfinite(partner)] = np.nan
        invalid |= np.isinf(partner).any(-1)
    shared = tuple(np.where(np.isfinite(usable), partner, np.nan) for partner in partners)
    flags = INVALID * invalid + FILL * filled
    return lead, Cases(forecasts, usable, covariates, axis, partners=shared), flags


def kept_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of forecasts in the state and their types: of quantiles it keeps the masses."""
    types = {name: part.dtype for name, part in parts.items() if name != "levels"}
    return types | ({"weights": types["loc"]} if "levels" in parts else {})


def parts_to_keep(
    parts: Mapping[str, FloatArray], cases: Cases, lead: tuple[int, ...]
) -> list[FloatArray]:
    """Parts (..., n, m) of the forecasts of cases as the state keeps them, (L, n, m)."""
    from xrecal.arrays.distributions.forms import sort_members

    assert cases.forecasts is not None
    if "loc" in parts:
        ordered = sort_members(cases.forecasts)._asdict()
        return [ordered[n].astype(dtype, copy=False) for n, dtype in kept_parts(parts).items()]
    kept = []  # members of vectors stay where they are
    for name, part in parts.items():
        whole = np.broadcast_to(part, (*lead, *part.shape[-2:])).reshape(-1, *part.shape[-2:])
        if name.startswith(VECTOR):
            whole = without_absurd({name: whole}, [])[0][name]
        kept.append(whole)
    return kept


def at_locations(
    n_core: Mapping[str, int], arrays: Sequence[npt.NDArray[Any]]
) -> tuple[tuple[int, ...], dict[str, npt.NDArray[Any]]]:
    """Shape of the locations of a chunk, and arrays (..., core) by name as (L, core).

    ``n_core`` has the number of the last axes of each.
    """
    pairs = list(zip(n_core.items(), arrays, strict=True))
    lead = np.broadcast_shapes(*(a.shape[: a.ndim - n] for (_, n), a in pairs))
    return lead, {
        name: np.broadcast_to(a, (*lead, *a.shape[a.ndim - n :])).reshape(
            -1, *a.shape[a.ndim - n :]
        )
        for (name, n), a in pairs
    }


def cases_of_state(
    state: Mapping[str, FloatArray], periods: Mapping[str, float | None], axis: CaseAxis
) -> Cases:
    """The cases that a state keeps, from its arrays (L, ...)."""
    parts = {name: a for name, a in state.items() if is_part(name)}
    covariates = covariates_of(
        [state[COVARIATE + name] for name in periods], periods, state["observations"]
    )
    return Cases(forecasts_of(parts) if parts else None, state["observations"], covariates, axis)


def forecasts_of(parts: Mapping[str, FloatArray]) -> Forecasts:
    """Forecasts (L, n, m) from their parts.

    Of vectors with the members of one variable after those of another; a member that one of them
    misses is missing in all.
    """
    from xrecal.arrays.distributions.forms import Forecasts
    from xrecal.arrays.distributions.missing import forecasts_from

    names = [name for name in parts if name.startswith(VECTOR)]
    vector = [parts[n] for n in sorted(names, key=lambda n: int(n.removeprefix(VECTOR)))]
    if not vector:
        return forecasts_from(parts)
    missing = np.isnan(vector).any(0)
    whole = [np.where(missing, np.nan, members) for members in vector]
    return Forecasts(np.concatenate(whole, axis=-1), None, parts.get("weights"))


def covariates_of(
    values: Sequence[FloatArray], periods: Mapping[str, float | None], like: FloatArray
) -> Covariates:
    """Covariates (L, n) each, together; of the shape and library of an array where none."""
    xp = namespace(like)
    stacked = np.stack(values, axis=-1) if values else xp.zeros((*like.shape, 0))
    return Covariates(stacked, tuple(periods), tuple(periods.values()))


def without_labels(state: xr.Dataset) -> dict[str, xr.Variable]:
    """Arrays of a state, of which there may be hundreds, as tasks take them."""
    return {str(name): state.variables[name] for name in state.data_vars}


def is_part(name: str) -> bool:
    """Whether an array of the state holds calibration forecasts."""
    return name in ("loc", "scale", "weights") or name.startswith(VECTOR)


def state_of(state: xr.Dataset, place: int) -> xr.Dataset:
    """The state of one of several variables, by its place, from that of all of them.

    They differ in their observations.
    """
    observations = ["observations", *(n for n in state if str(n).startswith(PARTNER))]
    own = state[observations[place]].variable
    return state.drop_vars(observations[1:]).assign(observations=own)
