"""Fit: hindcast and observations in, a Recalibrator with its state at every location out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from .attributes import describing
from .dims import CaseAxis, case_axis
from .ensembles import task_parts
from .forms import Form, Labelled
from .methods import CKME, Method
from .pairing import Observations, Pairs, in_order, pair_cases, pair_variables
from .parallel import require_one_chunk, run_blockwise
from .recalibrator import CASE, CASE_MEMBER, FittedVariable, Recalibrator
from .tasks import NEW_MEMBER

DEFAULT = CKME()


def fit(
    hindcast: Labelled,
    observations: Observations,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    min_samples: int = 20,
) -> Recalibrator:
    """Learn from past forecasts and what verified how to recalibrate new ones.

    Parameters
    ----------
    hindcast : DataArray or Dataset
        Past forecasts in any of the four forms: members along a member dimension (NaN ones left
        out); members with weights (``NAME`` and ``NAME_weight``); quantiles along ``quantile``
        (0-1) or ``percentile`` (0-100); normal distributions (``NAME_loc``, ``NAME_scale``, with
        ``NAME_weight`` over ``component`` a mixture). A Dataset may hold several variables.
    observations : DataArray, Dataset or dict
        What verified, in the same units. Matched by label along the calibration dimension;
        location labels must be equal, and a location dimension may be lacking. For a Dataset of
        forecasts: a Dataset with the same names, a dict from forecast name to observation, or a
        DataArray for its only forecast.
    method : Method
        :class:`CKME`, :class:`Climatology` or :class:`EMOS`.
    dim : hashable, optional
        The calibration dimension. Recognised by CF standard name or name (time, init, ...).
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).
    min_samples : int
        Locations with fewer complete cases get NaN and a status.

    Returns
    -------
    Recalibrator
        Lazy if an input is a Dask array: see :meth:`Recalibrator.compute`.

    Raises
    ------
    ValueError
        If dimensions, labels, units, chunks or the number of cases do not fit; the message says
        what to change. What depends on values is a status of the location instead.
    TypeError
        If an input is of another type, or holds integers or objects.

    Notes
    -----
    Every dimension other than those two is a location, with a fit of its own. Inputs are never
    changed.
    """
    if isinstance(method, type) or not hasattr(method, "fit_locations"):
        hint = f"{method.__name__}()" if isinstance(method, type) else "xrecal.CKME()"
        raise TypeError(
            f"method must be settings such as {hint}, got {_short(method)}; "
            "write hindcast.recal.fit(observations, method)"
        )
    if not isinstance(min_samples, (int, np.integer)) or min_samples < 2:
        raise ValueError(f"min_samples must be a whole number from 2 on, got {min_samples!r}")
    paired = pair_variables(hindcast, observations, member_dim, name="hindcast")
    return Recalibrator(
        method,
        {
            variable: _fit_variable(form, observed, method, dim, min_samples)
            for variable, (form, observed) in paired.items()
        },
    )


def _short(value: object) -> str:
    """What was passed, without printing whole arrays."""
    text = repr(value)
    return text if len(text) < 80 and "\n" not in text else f"a {type(value).__name__}"


def _fit_variable(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    dim: Hashable | None,
    min_samples: int,
) -> FittedVariable:
    pairs = in_order(pair_cases(form, observed, dim, name="hindcast"))
    assert pairs.dim is not None
    n_cases = pairs.observations.sizes[pairs.dim]
    if pairs.n_matched < min_samples:
        raise ValueError(
            f"only {pairs.n_matched} cases along {pairs.dim!r} have a label in hindcast and "
            f"observations, fewer than min_samples={min_samples}; give more cases, or a smaller "
            "min_samples if so few are meant"
        )
    reserved = {CASE, CASE_MEMBER, NEW_MEMBER, "quantile"} & {*form.dims} - {pairs.dim}
    if reserved:
        raise ValueError(
            f"the location dimension {min(map(str, reserved))!r} has a name that xrecal uses; "
            "rename it in hindcast and observations"
        )
    for part in pairs.form.parts.values():
        require_one_chunk(part, (pairs.dim, form.member_dim), name="hindcast")
    require_one_chunk(pairs.observations, (pairs.dim,), name="observations")
    axis = case_axis(pairs.observations.assign_coords(_dates(pairs)), pairs.dim)
    method.check(axis, n_cases)
    units = {"units": observed.attrs["units"]} if "units" in observed.attrs else {}
    attrs = units | describing(form.loc.attrs)
    state = _describe(_fit_state(pairs, method, axis, min_samples), method, attrs)
    return FittedVariable(
        kind=form.kind,
        dim=pairs.dim,
        member_dim=form.member_dim,
        attrs=attrs,
        axis=axis,
        n_matched=pairs.n_matched,
        n_forecasts=n_cases,
        min_samples=min_samples,
        note=pairs.note,
        state=state,
    )


def _dates(pairs: Pairs) -> dict[Hashable, Any]:
    """Coordinates along the calibration dimension that may date the cases."""
    return {
        name: coordinate
        for part in pairs.form.parts.values()
        for name, coordinate in part.coords.items()
        if coordinate.dims == (pairs.dim,)
    }


def _fit_state(pairs: Pairs, method: Method, axis: CaseAxis, min_samples: int) -> xr.Dataset:
    """Lazy or computed state: one call for each chunk of locations."""
    form, dim = pairs.form, pairs.dim
    locations = [d for d in form.dims if d != dim]
    parts = task_parts(form, locations, {dim: CASE, form.member_dim: CASE_MEMBER})
    observed = pairs.observations.drop_vars(list(pairs.observations.coords)).rename({dim: CASE})
    observed = observed.transpose(*[d for d in locations if d in observed.dims], CASE)
    task = _FitTask(method, tuple(parts), axis, min_samples)
    kept = tuple(parts) if method.keeps_cases else ()
    cases = [(CASE, CASE_MEMBER)] * len(kept)
    names = [*kept, "observations", "n_cases", "status", *method.parameters]
    dtypes = [
        *(parts[name].dtype for name in kept),
        observed.dtype,
        np.int32,
        np.int8,
        *(parameter.dtype for parameter in method.parameters.values()),
    ]
    results = run_blockwise(
        task,
        *parts.values(),
        observed,
        core=[(CASE, CASE_MEMBER)] * len(parts) + [(CASE,)],
        out=[*cases, (CASE,), (), (), *([()] * len(method.parameters))],
        dtypes=dtypes,
        sizes={CASE: observed.sizes[CASE], CASE_MEMBER: parts["loc"].sizes[CASE_MEMBER]},
    )
    state = xr.Dataset(dict(zip(names, results, strict=True)))
    labelled = [part[dim] for part in form.parts.values() if dim in part.indexes]
    if labelled:
        labels = (CASE, labelled[0].to_index(), labelled[0].attrs)
        state = state.assign_coords({f"calibration_{dim}": labels})
    return state


class _FitTask:
    """One chunk of locations: arrays in, arrays of the state out."""

    def __init__(
        self, method: Method, parts: tuple[str, ...], axis: CaseAxis, min_samples: int
    ) -> None:
        self.method, self.parts = method, parts
        self.axis, self.min_samples = axis, min_samples

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        from .arrays.forms import Forecasts, sort_members, usable_observations
        from .arrays.status import INVALID

        *parts, observations = args
        core = parts[0].shape[-2:]
        lead = np.broadcast_shapes(*(part.shape[:-2] for part in parts))
        flat = {
            name: np.broadcast_to(part, (*lead, *core)).reshape(-1, *core)
            for name, part in zip(self.parts, parts, strict=True)
        }
        cases = Forecasts(**flat)
        observed = np.broadcast_to(observations, (*lead, core[0])).reshape(-1, core[0])
        usable, invalid = usable_observations(cases, observed)
        fitted = dict(self.method.fit_locations(cases, usable, self.axis, self.min_samples))
        fitted["status"] = (fitted["status"] | (INVALID * invalid)).astype(np.int8)
        kept = sort_members(cases)._asdict() if self.method.keeps_cases else {}
        return (
            *(
                kept[name].reshape(*lead, *core).astype(part.dtype, copy=False)
                for name, part in zip(self.parts, parts, strict=True)
                if name in kept
            ),
            usable.reshape(*lead, core[0]),
            fitted["n_cases"].astype(np.int32).reshape(lead),
            fitted["status"].reshape(lead),
            *(
                np.asarray(fitted[name], dtype=parameter.dtype).reshape(lead)
                for name, parameter in self.method.parameters.items()
            ),
        )


def _describe(state: xr.Dataset, method: Method, attrs: Mapping[str, Any]) -> xr.Dataset:
    """Attributes that make the state readable on its own."""
    from .arrays.status import MEANINGS

    units = {"units": attrs["units"]} if "units" in attrs else {}
    described = {
        "loc": {"long_name": "calibration forecasts", **units},
        "scale": {"long_name": "scale of the calibration forecasts", **units},
        "weights": {"long_name": "weights of the members of the calibration forecasts"},
        "observations": {"long_name": "observations of the cases used", **units},
        "n_cases": {"long_name": "number of cases used"},
        "status": {
            "long_name": "status of the fit",
            "flag_masks": np.array(list(MEANINGS), dtype=np.int8),
            "flag_meanings": " ".join(MEANINGS.values()),
        },
    }
    for name, parameter in method.parameters.items():
        described[name] = {"long_name": parameter.long_name}
        if parameter.in_units_of_variable:
            described[name] |= units
    for variable in state.data_vars:
        state[variable].attrs = described[str(variable)]
    return state
